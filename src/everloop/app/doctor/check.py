"""What a check is, and what it looks at. Each stands alone: it tells its own failure as a finding, changes nothing, and
has a limit in time."""

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec import Struct

from ...ports import Http
from ...ports.doctor import Diagnosis, Mend
from ...ports.jobs import TaskState
from ...settings import Settings
from ..opening import OpenHome

Result = TypeVar("Result")
Needs = Literal["", "settings", "store"]


class Patient(Struct, frozen=True, kw_only=True):
    """A home as far as it can be looked into: without `settings` they cannot be read, without `opened` its store
    cannot, and the sentences beside them say why."""

    home: Path
    environ: Mapping[str, str]
    settings: Settings | None = None
    unread: str = ""
    opened: OpenHome | None = None
    unopened: str = ""
    schema: int = 0  # of the store; 0: there is none yet
    http: Callable[[], Http]
    live: bool = False  # servers may be started and platforms asked
    tasks: Callable[[], Sequence[TaskState]] | None = None  # of the gateway that looks at itself
    confine: Callable[[], Awaitable[Any]] | None = None  # in place of how commands are confined here

    @property
    def chosen(self) -> Settings:
        """The settings; where they cannot be read, the defaults."""
        return self.settings or Settings()

    @property
    def house(self) -> OpenHome:
        """Of a check that needs the store."""
        assert self.opened is not None
        return self.opened


class Check(Struct, frozen=True):
    """`about` says what it looks at; `look` finds at least one thing, if only that all is well."""

    name: str
    about: str
    look: Callable[[Patient], Awaitable[Sequence[Diagnosis]]]
    needs: Needs = ""
    seconds: float = 20.0


def fine(what: str) -> list[Diagnosis]:
    return [Diagnosis("ok", what)]


def advice(what: str, todo: str, *mends: Mend) -> Diagnosis:
    return Diagnosis("advice", what, todo, mends)


def broken(what: str, todo: str, *mends: Mend) -> Diagnosis:
    return Diagnosis("broken", what, todo, mends)


def many(number: int, thing: str) -> str:
    """`1 job`, `2 jobs`."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def skipped(what: str) -> list[Diagnosis]:
    return [Diagnosis("skipped", what)]


def found_or_fine(found: Sequence[Diagnosis], what: str) -> Sequence[Diagnosis]:
    return found or fine(what)


def why_unwritable(folder: Path) -> str:
    """Why nothing can be made in a folder, or the folder itself not; "" if it can."""
    there = next(each for each in (folder, *folder.parents) if os.path.lexists(each))
    if not there.is_dir():
        return f"{there} is no folder"
    if os.statvfs(there).f_flag & os.ST_RDONLY:
        return f"{there} is on a read-only file system"
    return "" if os.access(there, os.W_OK | os.X_OK) else f"{there} cannot be written by you (uid {os.getuid()})"


def opening_of(path: Path, rights: str = "rwx") -> str:
    """What to do about something that cannot be written."""
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        return "It is on a read-only file system: mount that for writing"
    return f"chmod u+{rights} {path}, or see whose it is"


async def aside(work: Callable[..., Result], *args: Any) -> Result:
    """In a thread that nobody waits for at the end: a disk or a name server that never answers holds nobody up."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Result] = loop.create_future()

    def settle(result: Result | None, error: Exception | None) -> None:
        if future.done():
            return
        if error:
            future.set_exception(error)
        else:
            future.set_result(result)  # type: ignore[arg-type]  # there is one where there is no error

    def run() -> None:
        result, failed = None, None
        try:
            result = work(*args)
        except Exception as error:  # the border of the thread: whoever waits is told
            failed = error
        with suppress(RuntimeError):  # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=run, name="everloop-doctor", daemon=True).start()
    return await future
