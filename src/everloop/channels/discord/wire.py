"""How it travels: the channel itself, which listens at the gateway for as long as it can and speaks through REST."""

import asyncio
import logging
import random
from collections.abc import Sequence
from typing import Literal

import msgspec

from ...core.mail import Address, Outbound, ReplyTo
from ...errors import (
    ChannelDown,
    HostTimeout,
    HostUnreachable,
    ProviderError,
    SettingsError,
    SocketRefused,
)
from ...ports import Deliver, Http, SocketTerms, WebSockets
from ...ports.channel import FileRef, OutgoingPart, Probed, Rendered
from ..text import DISCORD, render
from .codec import DiscordUser
from .files import DiscordFiles
from .gateway import KEEPS_SESSION, GatewayConnection, Reconnect, address
from .interactions import registered
from .listening import DiscordListening
from .manifest import MANIFEST, DiscordSettings
from .places import DiscordPlaces
from .probe import DiscordApplication, probe
from .rest import DiscordRefused, DiscordRest
from .resume import ResumePoint, ResumeProgress
from .sending import DiscordSending

_log = logging.getLogger("everloop.channels.discord")

TRIES = 5  # connections in a row that come to nothing, before somebody is told
LONGEST = 60.0  # seconds between two
CALM = 30.0  # seconds that one has to last for the next to be made at once, more or less
TERMS = SocketTerms(compress=True, farewell=KEEPS_SESSION, max_bytes=32_000_000, silence=120.0)


class DiscordChannel:
    """The Channel. `patience` are the seconds, more or less, before a lost connection is made anew."""

    manifest = MANIFEST

    def __init__(self, chosen: DiscordSettings, http: Http, patience: float = 1.0) -> None:
        if not isinstance(http, WebSockets):
            raise SettingsError("channels.discord needs a network that opens WebSockets")
        self._chosen = chosen
        self._sockets: WebSockets = http
        self._patience = patience
        self._rest = DiscordRest(http, chosen.api_url, chosen.token)
        self._sending = DiscordSending(self._rest)
        self._files = DiscordFiles(http, chosen.cdn_url)
        self._has_commands = not chosen.commands

    async def run(self, deliver: Deliver, resume: str) -> None:
        """Raises ChannelRefused for what only the owner can mend."""
        me = msgspec.convert(await self._rest.call("GET", "users/@me"), DiscordUser)
        await self._register_commands()
        places = DiscordPlaces(self._rest)
        listening = DiscordListening(self._rest, places, deliver, me.id, ResumeProgress(ResumePoint.parse(resume)))
        try:
            await self._listen_on(listening)
        finally:
            await listening.close()

    async def _listen_on(self, listening: DiscordListening) -> None:
        clock, failed, short = asyncio.get_running_loop().time, 0, 0
        while True:
            listening.settled, began = False, clock()
            try:
                await self._listen(listening)
            except (Reconnect, HostUnreachable, HostTimeout, SocketRefused) as error:
                failed = 0 if listening.settled else failed + 1
                if failed >= TRIES:
                    raise ChannelDown(f"Discord's gateway cannot be used: {error}") from error
                if isinstance(error, Reconnect) and error.fresh:
                    listening.progress.point = listening.progress.point.without_session()
                _log.info("connecting to Discord again: %s", error)
            short = short + 1 if clock() - began < CALM else 0
            await asyncio.sleep(min(LONGEST, self._patience * 2 ** min(short, 10)) * (0.5 + random.random() / 2))

    async def _listen(self, listening: DiscordListening) -> None:
        point = listening.progress.point
        url, named_by = await self._gateway_address(point)
        async with self._sockets.websocket(address(url), terms=TERMS, named_by=named_by) as wire:
            connection = GatewayConnection(wire, self._chosen.token, listening.committed)
            await connection.converse(point, listening.take)

    async def _gateway_address(self, point: ResumePoint) -> tuple[str, str]:
        """And by which address it was named, if it was. Raises ChannelDown when no more sessions may be begun today:
        Discord takes the token from a bot that begins more."""
        if self._chosen.gateway_url:
            return self._chosen.gateway_url, ""
        if point.session and point.url:
            return point.url, self._chosen.api_url
        told = await self._rest.call("GET", "gateway/bot")
        limit = told["session_start_limit"]
        if not point.session and limit["remaining"] < 1:
            raise ChannelDown("Discord lets the bot begin no more sessions for now", limit["reset_after"] / 1000)
        return str(told["url"]), self._chosen.api_url

    async def _register_commands(self) -> None:
        """Once for each process. What fails costs people the list that Discord shows after a slash, and nothing
        else."""
        if self._has_commands:
            return
        try:
            told = await self._rest.call("GET", "applications/@me")
            application = msgspec.convert(told, DiscordApplication)
            await self._rest.call("PUT", f"applications/{application.id}/commands", registered())
        except (ChannelDown, DiscordRefused, ProviderError) as error:
            _log.warning("Discord does not offer our commands: %s", error)
        self._has_commands = True

    def render(self, outbound: Outbound) -> Sequence[Rendered]:
        return render(outbound.text, DISCORD)

    async def send(self, part: OutgoingPart) -> str:
        return await self._sending.send(part)

    async def preview(self, address: Address, shown: str, text: str, reply_to: ReplyTo) -> str:
        return await self._sending.preview(address, shown, text, reply_to)

    async def signal(self, address: Address, what: Literal["typing", "done"], reply_to: ReplyTo) -> None:
        if what == "typing":
            await self._sending.type(address)

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        return await self._files.fetch(ref, limit)

    async def react(self, address: Address, to: ReplyTo, emoji: str) -> None:
        await self._sending.react(address, to, emoji)

    async def replace(self, address: Address, sent: str, text: Rendered) -> None:
        await self._sending.replace(address, sent, text)

    async def withdraw(self, address: Address, sent: str) -> None:
        await self._sending.withdraw(address, sent)

    async def chat_with(self, account: str) -> str:
        return await self._sending.chat_with(account)

    async def probe(self) -> Probed:
        return await probe(self._rest)
