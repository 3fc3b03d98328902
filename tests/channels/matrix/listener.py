"""A Matrix channel that listens without a house behind it: what it hands in is remembered."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from everloop.channels.matrix.manifest import MatrixSettings
from everloop.channels.matrix.wire import Matrix
from everloop.core.mail import Address
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import Delivered, Incoming, OutgoingPart
from everloop.ports.channel_state import ChannelRecords
from everloop.readings.keys import escaped
from tests.channels.matrix.synapse import Account, Synapse

PATIENCE = 60.0


class Listener:
    """A Deliver and KnowsPeople. `resume` is where the channel would go on."""

    def __init__(self, known: set[str]) -> None:
        self.known = known
        self.heard: list[Incoming] = []
        self.resume = ""
        self._more = asyncio.Condition()

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        async with self._more:
            self.heard.append(incoming)
            self.resume = resume or self.resume
            self._more.notify_all()
        return Delivered()

    async def skip_to(self, resume: str) -> None:
        async with self._more:
            self.resume = resume
            self._more.notify_all()

    async def knows(self, account: str) -> bool:
        return account in self.known

    async def begun(self) -> None:
        await self._until(lambda: self.resume)

    async def hears(self, count: int) -> list[Incoming]:
        await self._until(lambda: len(self.heard) >= count)
        return self.heard

    async def texts(self, count: int) -> list[str]:
        return [each.text for each in await self.hears(count)]

    async def _until(self, so: Any) -> None:
        async with asyncio.timeout(PATIENCE), self._more:
            await self._more.wait_for(so)


class Bot:
    """An account of ours, and the channels that are opened with it."""

    def __init__(self, synapse: Synapse, http: TrustedHttp) -> None:
        self.account: Account = synapse.register("bot")
        self.user = self.account.user
        self._url = synapse.url
        self._http = http

    def channel(self, state: ChannelRecords | None = None, **settings: Any) -> Matrix:
        given = {"homeserver": self._url, "access_token": self.account.token, **settings}
        return Matrix(MatrixSettings(**given), self._http, state)

    @asynccontextmanager
    async def listening(
        self, *known: str, channel: Matrix | None = None, resume: str = "", **settings: Any
    ) -> AsyncIterator[Listener]:
        listener = Listener({*known})
        running = asyncio.ensure_future((channel or self.channel(**settings)).run(listener, resume))
        try:
            waiting = asyncio.ensure_future(listener.begun() if not resume else asyncio.sleep(0))
            await asyncio.wait([running, waiting], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            yield listener
        finally:
            running.cancel()
            await asyncio.gather(running, waiting, return_exceptions=True)


def place_of(incoming: Incoming) -> Address:
    return Address("matrix", escaped(incoming.chat), escaped(incoming.thread))


def part_for(incoming: Incoming, text: str, key: str = "k1", **more: Any) -> OutgoingPart:
    given = {"key": key, "address": place_of(incoming), "text": text, "reply_to": incoming.reply_to, **more}
    return OutgoingPart(**given)
