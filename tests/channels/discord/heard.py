"""A Deliver that remembers, and a channel that listens into it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from everloop.channels.discord.wire import DiscordChannel
from everloop.errors import StoreError
from everloop.ports.channel import Delivered, Incoming
from everloop.testing.event_gateway import EventGateway


class Heard:
    """`resume` is where to go on; what was heard before is not `fresh`. It can be `full`."""

    def __init__(self) -> None:
        self.all: list[Incoming] = []
        self.resume = ""
        self.full = False
        self.refused = ""
        self._events: set[str] = set()
        self._changed = asyncio.Condition()

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        if self.full:
            raise StoreError("the disk is full")
        fresh = incoming.event not in self._events
        async with self._changed:
            if fresh:
                self.all.append(incoming)
            self._events.add(incoming.event)
            self.resume = resume or self.resume
            self._changed.notify_all()
        return Delivered(fresh, self.refused)

    async def skip_to(self, resume: str) -> None:
        if self.full:
            raise StoreError("the disk is full")
        async with self._changed:
            self.resume = resume
            self._changed.notify_all()

    async def until(self, messages: int) -> list[Incoming]:
        async with self._changed:
            await self._changed.wait_for(lambda: len(self.all) >= messages)
        return self.all

    async def until_saved(self) -> None:
        async with self._changed:
            await self._changed.wait_for(lambda: self.resume)

    async def until_acknowledged(self, gateway: EventGateway) -> None:
        """Until all that was told is committed, and where to go on."""
        (session,) = gateway.sessions.values()
        await gateway.until_acknowledged(session, len(session.events))

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.all]


@asynccontextmanager
async def listening(channel: DiscordChannel, heard: Heard) -> AsyncIterator["asyncio.Task[None]"]:
    task = asyncio.create_task(channel.run(heard, heard.resume))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
