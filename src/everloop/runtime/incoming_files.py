"""The files that come with what is said on a channel: fetched, kept, and made parts of the letter before its commit.

A file that cannot be had now leaves its message to come again, a few times; then the message is taken without it, so
that no file keeps a channel from going on.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from ..core.mail import Address
from ..core.message import Part, Text
from ..errors import ChannelDown, MailRefused, Undeliverable
from ..ports import Channel, Fetches
from ..ports.channel import Admitted, FileRef, Incoming
from .file_allowance import FAILURE, FileAllowance
from .strangers import contained
from .voice import VoiceMessages

MOST_FILES = 20  # with one message
LARGEST_FILE = 20_000_000  # bytes
FETCHING = 60.0  # seconds for one of them
AT_ONCE = 4  # files whose bytes are in memory
TRIES = 5  # of a message whose files cannot be had
REMEMBERED = 1000  # messages
TOO_SLOW = "those of its sender have kept others waiting for too long"

Enclose = Callable[[str, bytes, str], Awaitable[Part]]


class IncomingFiles:
    """Those of one channel. `enclose` keeps a file for someone and makes the part that names it; raises MailRefused."""

    def __init__(
        self,
        channel: Channel,
        enclose: Enclose,
        voice: VoiceMessages | None = None,
        allowance: FileAllowance | None = None,
    ) -> None:
        self._channel = channel
        self._enclose = enclose
        self._voice = voice
        self._allowance = allowance or FileAllowance()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._failed: OrderedDict[str, int] = OrderedDict()  # how often, by event
        self._taking: dict[str, tuple[asyncio.Lock, int]] = {}  # with how many want it

    @asynccontextmanager
    async def alone(self, event: str) -> AsyncIterator[None]:
        """A platform that has no answer yet may hand in the same message again: nothing is fetched or paid twice."""
        lock, wanted = self._taking.get(event) or (asyncio.Lock(), 0)
        self._taking[event] = lock, wanted + 1
        try:
            async with lock:
                yield
        finally:
            lock, wanted = self._taking.pop(event)
            if wanted > 1:
                self._taking[event] = lock, wanted - 1

    async def parts(self, incoming: Incoming, decided: Admitted, address: Address) -> list[Part]:
        """Raises ChannelDown: then the message is to come again."""
        found: list[Part] = []
        try:
            for ref in incoming.files[:MOST_FILES]:
                found += await self._parts_of(ref, incoming, decided, address)
        except ChannelDown as error:
            self._allowance.spend(decided.author, FAILURE)
            if self._count(incoming.event) < TRIES and self._allowance.left(decided.author):
                raise
            found.append(Text(f"[files came along that cannot be had: {error}]"))
        self._failed.pop(incoming.event, None)
        if left := len(incoming.files) - MOST_FILES:
            found += [Text(f"[{left} more files came along; at most {MOST_FILES} are taken]")] if left > 0 else []
        return found

    def _count(self, event: str) -> int:
        self._failed[event] = self._failed.pop(event, 0) + 1
        while len(self._failed) > REMEMBERED:
            self._failed.popitem(last=False)
        return self._failed[event]

    async def _parts_of(self, ref: FileRef, incoming: Incoming, decided: Admitted, address: Address) -> list[Part]:
        """A file that came along and, if it is spoken, what is said in it; or a word on why it cannot be had."""
        if not isinstance(self._channel, Fetches):
            return [Text("[a file came along that this channel cannot fetch]")]
        async with self._places:
            try:
                name, data = await self._fetch(self._channel, ref, decided.author)
                part = await self._enclose(name, data, decided.owner)
            except (MailRefused, Undeliverable, TimeoutError) as error:
                why = str(error) or "it took too long"
                what = "voice message" if ref in incoming.voice else "file"
                return [Text(f"[a {what} came along that cannot be taken: {why}]")]
            if ref not in incoming.voice or self._voice is None:
                return [part]
            key = f"{address.channel}:{incoming.event}:{ref}"
            in_group = decided.owner != decided.author
            said = await self._voice.read(
                data, name, author=decided.author, session=str(address), key=key, in_group=in_group
            )
        return [Text(said), part]

    async def _fetch(self, channel: Fetches, ref: FileRef, author: str) -> tuple[str, bytes]:
        left, began = self._allowance.left(author), self._allowance.now()
        if not left:
            raise Undeliverable(TOO_SLOW)
        try:
            async with asyncio.timeout(min(FETCHING, left)):
                with contained():
                    name, data = await channel.fetch(ref, LARGEST_FILE)
        finally:
            self._allowance.spend(author, self._allowance.now() - began)
        if len(data) > LARGEST_FILE:
            raise Undeliverable(f"it has more than {LARGEST_FILE:,} bytes")
        return name, data
