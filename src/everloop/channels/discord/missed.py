"""What was said while nobody listened and the gateway has forgotten: fetched, channel by channel."""

import asyncio
import logging
from collections.abc import Awaitable, Callable

import msgspec

from .codec import DiscordMessage
from .places import DiscordPlaces
from .rest import DiscordRefused, DiscordRest
from .resume import ResumeProgress

_log = logging.getLogger("everloop.channels.discord")

PAGE = 100  # messages of one answer
AT_ONCE = 4  # channels that are asked
PATIENCE = 60.0  # seconds that asking waits for a limit

HandIn = Callable[[DiscordMessage], Awaitable[None]]


class Missed:
    """Since the point that is committed. `hand_in` commits a message; one that comes twice is one."""

    def __init__(self, rest: DiscordRest, places: DiscordPlaces, progress: ResumeProgress, hand_in: HandIn) -> None:
        self._rest = rest
        self._places = places
        self._progress = progress
        self._hand_in = hand_in
        self._turn = asyncio.Semaphore(AT_ONCE)

    async def catch_up(self) -> None:
        """Raises ChannelDown, StoreError: then it is to be begun again, from the same point."""
        point = self._progress.point
        if not point.missed_since:
            return
        try:
            async with asyncio.TaskGroup() as group:
                for channel in (*point.private, *point.shared):
                    group.create_task(self._fetch(channel, point.missed_since))
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None

    async def _fetch(self, channel: str, since: str) -> None:
        async with self._turn:
            try:
                await self._fetch_pages(channel, since)
            except DiscordRefused as error:
                _log.info("what was missed in a channel cannot be read: %s", error)
                self._progress.forget(channel)

    async def _fetch_pages(self, channel: str, since: str) -> None:
        """Messages that are asked for do not say in which server they were written."""
        place = await self._places.find(channel)
        while messages := await self._page(channel, since):
            for message in messages:
                await self._hand_in(msgspec.structs.replace(message, guild_id=place.server or None))
            if len(messages) < PAGE:
                return
            since = messages[-1].id

    async def _page(self, channel: str, since: str) -> list[DiscordMessage]:
        path = f"channels/{channel}/messages?after={since}&limit={PAGE}"
        told = msgspec.convert(await self._rest.call("GET", path, patience=PATIENCE), list[DiscordMessage])
        return sorted(told, key=lambda message: int(message.id))
