"""The folders of a home, and what exporting and erasing a person make of each. One that stands here in no line breaks
the build (tests/app/test_home_folders.py), as a table does that store/belongings.py does not know."""

import asyncio
import fcntl
import math
import os
import re
import stat
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from ..backup.listing import FOLDER
from ..core.people import OWNER
from ..errors import HomeError
from ..files.names import folder_of
from ..ports import Files, FileShelves, HomeFile, KeptFile
from ..ports.workspace import OpenFile
from ..tools.tainted import place_of
from .skills import installed_in
from .workspaces import principals_folder, workspace_for

PIECE = 262_144  # bytes that are read at once
DEEPEST = 100  # folders in each other, of which each is held open
SERVICE_ENV = "service.env"  # what a service reads, as keys
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
WalkedFile = tuple[str, int, str]  # its path, a descriptor, or -1 and why there is none
LINK, OTHER, DEEP, UNREAD = "a link", "no file", f"more than {DEEPEST} folders deep", "it cannot be read"


class FolderRule(Struct, frozen=True):
    """What lies under a name of the home (or a pattern of names), whose it is, what erasing somebody removes, and where
    it is in an export of the house (`everloop export`) or, in brackets, why it is not."""

    name: str
    erase: str
    export: str
    left_out: str = ""  # of a backup, and why; "": it is in it


FOLDERS = (
    FolderRule(
        "everloop.db",
        "rows: store/belongings.py; then it is written anew without them",
        "people/*/conversations/*.jsonl",
        "copied at one moment",
    ),
    FolderRule("everloop.db-*", "the WAL is emptied", "(a part of everloop.db)", "it is in the copy"),
    FolderRule(
        "everloop.db.before-*",
        "removed: a copy of all that everybody had before a migration",
        "(what was before an upgrade)",
        "older",
    ),
    FolderRule(
        "files", "the person's folder; of others, what only their words in a group had named", "people/*/files/*"
    ),
    FolderRule("people", "the person's folder, with their workspace", "people/*/workspace/*"),
    FolderRule("chats", "kept: a group's workspace", "people/*/workspace/*"),
    FolderRule("workspace", "kept: the owner's", "people/owner/workspace/*"),
    FolderRule("views", "which lines the person's memory files held, by hashes", "(hashes)"),
    FolderRule(
        "spool",
        "what commands said in the person's conversations",
        "(what commands said is in the conversations)",
        "of that home",
    ),
    FolderRule(
        "logs",
        "lines that name the person, or a conversation of theirs",
        "(of that machine: everloop logs)",
        "of that machine",
    ),
    FolderRule(
        "backups",
        "kept: whole copies, which hold the person until they are removed",
        "(a backup is whole by itself)",
        "itself",
    ),
    FolderRule(
        "restoring.json",
        "kept: a restore that has not ended",
        "(a home that is not whole is not opened)",
        "of a home that is not whole",
    ),
    FolderRule("personas", "kept: what the agent is told to be, the house's", "personas/*"),
    FolderRule(
        "skills",
        "kept: what the owner has installed, the house's; a person's lie in their folder of people",
        "people/owner/skills/*",
    ),
    FolderRule(
        "mcp",
        "kept: what is installed for MCP servers, and what they write, the house's",
        "(programs of others, with what they write for themselves; a backup has them)",
    ),
    FolderRule("imports", "kept: what was brought in from elsewhere, by hashes, so that it comes once", "(hashes)"),
    FolderRule(
        "importing",
        "kept: an export of the owner's, until it was taken over",
        "(the owner's own file)",
        "it is the owner's own file",
    ),
    FolderRule("history", "kept: what was typed at the owner's terminal", "(what was typed is in the conversations)"),
    FolderRule("terminals", "kept: which chats are open at terminals", "(of that machine)", "of that machine"),
    FolderRule("run", "kept: which processes run", "(of that machine)", "of that machine"),
    FolderRule("lost+found", "kept: the disk's, where the home is a volume", "(the disk's)", "the disk's"),
    FolderRule("models", "kept: weights of models", "(they are fetched again)", "they are fetched again"),
    FolderRule("config.*", "kept: the owner's settings", "settings.json"),
    FolderRule(SERVICE_ENV, "kept: the owner's variables", "(keys, of that machine's service)", "of that machine"),
    FolderRule(
        "vault.key",
        "kept: the key to the vault, whose rows are the person's or not",
        "(a secret)",
        "unless it is encrypted",
    ),
)


def undeclared(names: Collection[str]) -> str:
    """A sentence about what lies in a home and stands in no line, "" when there is nothing such."""
    found = sorted(name for name in names if not any(fnmatchcase(name, each.name) for each in FOLDERS))
    if not found:
        return ""
    return (
        f"{', '.join(found)}: nobody has said whose this is. Add a line for each to FOLDERS in app/home_folders.py, "
        "and see to it in HomeFoldersOf.remove if a person's own can lie there."
    )


class HomeFoldersOf:
    """The HomeFolders port over a home on this machine."""

    def __init__(self, home: Path, workspace: Path, files: Files, shelves: FileShelves) -> None:
        """`workspace` is the owner's."""
        self._home = home
        self._workspace = workspace
        self._files = files
        self._shelves = shelves

    async def count(self, people: Sequence[str]) -> dict[str, int]:
        kept = len(await self._kept(people))
        found = {"files": kept} | await asyncio.to_thread(self._count, people)
        return {name: count for name, count in found.items() if count}

    def places(self, people: Sequence[str]) -> list[str]:
        return [place_of(workspace_for(person, self._home, self._workspace)) for person in people]

    async def workspace(self, person: str) -> AsyncIterator[HomeFile]:
        async for file in _handed(_beneath(workspace_for(person, self._home, self._workspace), self._home)):
            yield file

    async def skills(self, person: str) -> AsyncIterator[HomeFile]:
        async for file in _handed(_beneath(installed_in(self._home, person), self._home)):
            yield file

    async def kept(self, person: str) -> AsyncIterator[HomeFile]:
        for kept in sorted(await self._kept([person]), key=lambda each: each.ref):
            try:
                async with self._files.open(person, kept.ref) as file:
                    yield HomeFile(kept.ref, _read(file))
            except OSError:
                yield HomeFile(kept.ref, None, UNREAD)

    async def remove(self, people: Sequence[str], words: Collection[str]) -> None:
        if OWNER in people:
            raise ValueError("the owner is not erased")
        async for _ in self._shelves.remove(await self._kept(people), math.inf):
            pass
        try:
            await asyncio.to_thread(self._remove, people, words)
        except OSError as error:
            raise HomeError(f"{error.filename} cannot be removed ({error.strerror}); this is tried again") from error

    async def forget_copies(self) -> int:
        await asyncio.to_thread(sweep_copies, self._home)
        return await asyncio.to_thread(self._forget_copies)

    async def _kept(self, people: Sequence[str]) -> list[KeptFile]:
        """Their files, in the folder or in the bucket."""
        folders = {folder_of(person) for person in people}
        return [file for file in await self._shelves.files() if file.owner in folders]

    def _folders(self, person: str) -> tuple[Path, Path]:
        """What is left of their folder of files, and that of their workspace."""
        return self._home / "files" / folder_of(person), self._home / "people" / principals_folder(person)

    def _count(self, people: Sequence[str]) -> dict[str, int]:
        own = sum(_number_in(self._folders(person)[1]) for person in people)
        return {"files in the workspace": own, "copies of the store": len(self._copies())}

    def _remove(self, people: Sequence[str], words: Collection[str]) -> None:
        import shutil  # few erase anybody

        for person in people:
            for folder in self._folders(person):
                if folder.is_dir() and not folder.is_symlink():
                    shutil.rmtree(folder)
            (self._home / "views" / f"{principals_folder(person)}.json").unlink(missing_ok=True)
        for left in (self._home / "logs").glob("*.erasing"):  # by a process that was killed
            left.unlink(missing_ok=True)
        if told := [word.encode() for word in words if word]:
            for path in sorted((self._home / "logs").glob("everloop.log*")):
                _drop_lines(path, told)

    def _copies(self) -> list[Path]:
        return sorted(self._home.glob("everloop.db.before-*"))

    def _forget_copies(self) -> int:
        copies = self._copies()
        for copy in copies:
            copy.unlink(missing_ok=True)
        return len(copies)


def sweep_copies(home: Path) -> None:
    """Remove copies of the database that a backup was to be made of, whose process is gone: nobody holds their
    folder."""
    import shutil  # few leave any

    for old in (home / FOLDER).glob(".copy-*"):
        with suppress(OSError):  # it is in use, is gone, or is something else
            opened = os.open(old, _FOLDER)
            try:
                fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(old)
            finally:
                os.close(opened)


def walked(folder: Path, home: Path) -> AsyncIterator[HomeFile]:
    """The files beneath a folder of the home, each to be read before the next is asked for."""
    return _handed(_beneath(folder, home))


async def _handed(walk: Iterator[WalkedFile]) -> AsyncIterator[HomeFile]:
    while found := await asyncio.to_thread(next, walk, None):
        path, fd, left_out = found
        yield HomeFile(path, _pieces(fd) if fd >= 0 else None, left_out)


async def _read(file: OpenFile) -> AsyncIterator[bytes]:
    for at in range(0, file.size, PIECE):
        yield await file.read(at, PIECE)


async def _pieces(fd: int) -> AsyncIterator[bytes]:
    """All of an open file, which whoever walks closes afterwards."""
    while piece := await asyncio.to_thread(os.read, fd, PIECE):
        yield piece


def _beneath(folder: Path, home: Path) -> Iterator[WalkedFile]:
    try:
        fd = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        return
    hidden = os.stat(home)
    yield from _files_in(fd, "", (hidden.st_dev, hidden.st_ino), 0)


def _files_in(folder: int, above: str, hidden: tuple[int, int], depth: int) -> Iterator[WalkedFile]:
    """Each with a descriptor that is open until the next one is asked for, or -1 and why not."""
    try:
        status = os.fstat(folder)
        if (status.st_dev, status.st_ino) == hidden:
            return
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries)
        for name in names:
            yield from _one(folder, name, above, hidden, depth)
    finally:
        os.close(folder)


def _one(folder: int, name: str, above: str, hidden: tuple[int, int], depth: int) -> Iterator[WalkedFile]:
    path = f"{above}{name}"
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
            yield path, -1, LINK if stat.S_ISLNK(mode) else OTHER
            return
        if stat.S_ISDIR(mode) and depth >= DEEPEST:
            yield path, -1, DEEP
            return
        fd = os.open(name, _FOLDER if stat.S_ISDIR(mode) else _FILE, dir_fd=folder)
    except OSError:
        yield path, -1, UNREAD
        return
    if stat.S_ISDIR(mode):
        yield from _files_in(fd, f"{path}/", hidden, depth + 1)
        return
    try:
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)  # something else may have been put there since
        yield (path, fd, "") if is_file else (path, -1, OTHER)
    finally:
        os.close(fd)


def _number_in(folder: Path) -> int:
    return sum(len(files) for _, _, files in os.walk(folder))


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _drop_lines(path: Path, words: Collection[bytes]) -> None:
    """Those with one of the words: `discord:7` is not in a line of `discord:77`. Processes that write to it notice that
    it is another file."""
    told = re.compile(rb"(?<![0-9A-Za-z])(?:%s)(?![0-9A-Za-z])" % b"|".join(map(re.escape, words)))
    part = path.with_name(f"{path.name}.erasing")
    try:
        with open(path, "rb") as lines, open(part, "wb", opener=_private) as kept:
            kept.writelines(line for line in lines if not told.search(line))
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
