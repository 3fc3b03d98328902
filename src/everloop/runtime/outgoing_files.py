"""The files that go with answers: their bytes where the channel takes so many, else a link or a word on where they lie.

Bytes are read when their part is to be sent and not before, and of a channel only a few parts have them at a time.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct, structs

from ..core.message import Made, Media
from ..errors import ChannelDown
from ..ports import Files
from ..ports.channel import OutgoingFile, OutgoingPart, Traits
from ..readings.filenames import plain_name
from ..readings.linked_files import is_address

AT_ONCE = 2  # parts whose bytes are in memory
PATIENCE = 3.0  # seconds that one waits for that; the answer is claimed only for a while
READING = 30.0  # seconds
ENCLOSED = 10  # files that travel with one text
GONE = "it has been deleted"
UNREADABLE = "it cannot be read now"
LEAST = 3  # attempts before an answer goes without a file that cannot be read

Link = Callable[[Media], Awaitable[str]]


async def no_link(media: Media) -> str:
    return ""


class FileToSend(Struct, frozen=True):
    """Without its bytes yet. Only those with a `size` are to have them."""

    media: Media
    file: OutgoingFile
    size: int = 0


FileGroup = tuple[FileToSend, ...]


class OutgoingFiles:
    """Those of one channel. `link` makes an address under which anyone finds a file, if there is one."""

    def __init__(self, files: Files | None, traits: Traits, link: Link = no_link) -> None:
        self._files = files
        self._traits = traits
        self._link = link
        self._places = asyncio.Semaphore(AT_ONCE)

    async def groups(self, files: Sequence[Made]) -> list[FileGroup]:
        """Those that go with the last text, then those of each further part. A file that is gone by now counts as it
        did when it was there, so that no other is left out when sending is taken up again. Raises ChannelDown."""
        found = [await self._look_at(each.media) for each in files]
        if self._traits.enclosed:
            return _packed(found, self._traits.files)
        apart = [(each,) for each in found if each.size or each.file.why == GONE]
        return [tuple(each for each in found if (each,) not in apart), *apart]

    async def _look_at(self, media: Media) -> FileToSend:
        file = OutgoingFile(plain_name(media.name), media.mime)
        if is_address(media.file):  # a tool has told where it lies
            return FileToSend(media, structs.replace(file, link=media.file))
        size, largest = await self._size(media), self._traits.files
        if size is None:
            return FileToSend(media, structs.replace(file, why=GONE))
        if 0 < size <= largest:
            return FileToSend(media, file, size)
        why = f"more than {largest:,} bytes" if size and largest else "an empty file" if largest else ""
        return FileToSend(media, structs.replace(file, why=why, link=await self._link(media)))

    async def _size(self, media: Media) -> int | None:
        """None: it is not there any more."""
        if self._files is None:
            return 0
        try:
            async with self._files.open(media.owner, media.file) as opened:
                return opened.size
        except (FileNotFoundError, ValueError):
            return None
        except OSError as error:
            raise ChannelDown(f"a file cannot be read ({error})") from error

    @asynccontextmanager
    async def loaded(self, part: OutgoingPart, group: FileGroup, attempt: int) -> AsyncIterator[OutgoingPart]:
        """The part with the bytes of its files, for as long as the block lasts. Raises ChannelDown."""
        if not any(each.size for each in group):
            yield part
            return
        try:
            async with asyncio.timeout(PATIENCE):
                await self._places.acquire()
        except TimeoutError:
            raise ChannelDown("other files are being sent", retry_after=1.0) from None
        try:
            yield structs.replace(part, files=await self._load(group, attempt))
        finally:
            self._places.release()

    async def _load(self, group: FileGroup, attempt: int) -> tuple[OutgoingFile, ...]:
        try:
            async with asyncio.timeout(READING):
                return tuple([await self._with_bytes(each) for each in group])
        except OSError as error:  # also a TimeoutError
            if attempt < LEAST:
                raise ChannelDown(f"a file cannot be read ({str(error) or 'it takes too long'})") from error
            return tuple(structs.replace(each.file, why=each.file.why or UNREADABLE) for each in group)

    async def _with_bytes(self, each: FileToSend) -> OutgoingFile:
        try:
            return structs.replace(each.file, data=await self._read(each)) if each.size else each.file
        except (FileNotFoundError, ValueError):
            return structs.replace(each.file, why=GONE)

    async def _read(self, each: FileToSend) -> bytes:
        assert self._files is not None
        async with self._files.open(each.media.owner, each.media.file) as opened:
            data = await opened.read(0, each.size)
            while len(data) < each.size:  # it may give less than it was asked for
                if not (more := await opened.read(len(data), each.size - len(data))):
                    raise OSError("it ends too early")
                data += more
        return data


def _packed(files: Sequence[FileToSend], largest: int) -> list[FileGroup]:
    """In their order, as many together as one message takes."""
    groups: list[list[FileToSend]] = [[]]
    for each in files:
        last = groups[-1]
        if last and (len(last) >= ENCLOSED or sum(other.size for other in last) + each.size > max(largest, 1)):
            groups.append([])
        groups[-1].append(each)
    return [tuple(group) for group in groups]
