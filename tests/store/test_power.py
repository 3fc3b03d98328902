"""The power fails: what was acknowledged is still there, on a disk that loses or tears whatever was not synced.

The disk below keeps, beside the real files, what a real disk would hold: the bytes up to the last sync and the
writes since then. A cut takes the first and, of the second, an arbitrary part. It may come at any write or sync.
"""

import asyncio
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import apsw
import pytest

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.store.sqlite import SqliteStore

CUTS = 200
SECTOR = 512


class Platter:
    """One file as the disk holds it."""

    def __init__(self) -> None:
        self.synced = bytearray()
        self.pending: list[tuple[int, bytes] | int] = []  # a write at an offset, or a truncation

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.synced, change)
        self.pending.clear()

    def after_a_cut(self, chance: random.Random) -> bytes:
        content = bytearray(self.synced)
        keep = chance.choice((0.0, 0.5, 0.9))
        for change in self.pending:
            if chance.random() < keep:
                _apply(content, change)
            elif not isinstance(change, int) and chance.random() < 0.3:
                _apply(content, _torn(change, chance))
        return bytes(content)


def _apply(content: bytearray, change: tuple[int, bytes] | int) -> None:
    if isinstance(change, int):
        del content[change:]
        return
    offset, data = change
    content.extend(bytes(max(0, offset - len(content))))
    content[offset : offset + len(data)] = data


def _torn(change: tuple[int, bytes], chance: random.Random) -> tuple[int, bytes]:
    offset, data = change
    return offset, data[: SECTOR * chance.randint(0, len(data) // SECTOR)]


class Disk(apsw.VFS):
    def __init__(self, name: str, seed: int) -> None:
        super().__init__(name, base="")
        self.name = name
        self._chance = random.Random(seed)
        self._lock = Lock()
        self._platters: dict[str, Platter] = {}
        self._countdown = 0
        self.image: dict[str, bytes] | None = None  # what was left at the last cut
        self.acknowledged: list[str] = []
        self.known: list[str] = []  # what had been acknowledged at the last cut

    def arm(self) -> None:
        """Let the power fail at one of the next operations."""
        self.image, self._countdown = None, self._chance.randint(1, 40)

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        with self._lock:
            platter = self._platters.setdefault(path, Platter())
        return Spinning(self, platter, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        super().xDelete(filename, syncdir)
        with self._lock:
            self._platters.pop(filename, None)

    def change(self, platter: Platter, change: tuple[int, bytes] | int) -> None:
        with self._lock:
            platter.pending.append(change)
            self._maybe_cut()

    def sync(self, platter: Platter) -> None:
        with self._lock:
            self._maybe_cut()
            platter.sync()

    def _maybe_cut(self) -> None:
        self._countdown -= 1
        if self._countdown == 0:
            self.known = list(self.acknowledged)
            self.image = {
                Path(path).name: platter.after_a_cut(self._chance) for path, platter in self._platters.items()
            }


class Spinning(apsw.VFSFile):
    def __init__(self, disk: Disk, platter: Platter, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk
        self._platter = platter

    def xWrite(self, data: Any, offset: int) -> None:
        super().xWrite(data, offset)
        self._disk.change(self._platter, (offset, bytes(data)))

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self._disk.change(self._platter, size)

    def xSync(self, flags: int) -> None:
        # The real file needs no sync: no power will fail here.
        self._disk.sync(self._platter)


@pytest.fixture
def disk(request: pytest.FixtureRequest) -> Iterator[Disk]:
    disk = Disk("platters", seed=7)
    yield disk
    disk.unregister()


async def lost_in_cuts(disk: Disk, home: Path, synchronous: str, cuts: int) -> int:
    """How many cuts lost something that had been acknowledged. A damaged file is an error in any case."""
    store = await SqliteStore.connect(home / "running", synchronous=synchronous, vfs=disk.name)
    checkpoints = apsw.Connection(str(home / "running" / "everloop.db"), vfs=disk.name)
    checkpoints.execute(f"PRAGMA synchronous = {synchronous}")
    events = (f"e{n}" for n in range(10**9))
    losses = 0
    for cut in range(cuts):
        disk.arm()
        if cut % 5 == 4:
            checkpoints.execute("PRAGMA wal_checkpoint").fetchall()
        while disk.image is None:
            await asyncio.gather(*(_receive(store, disk, next(events)) for _ in range(cut % 3 + 1)))
        found = await asyncio.to_thread(_restarted, home / "restarted", disk.image)
        losses += not found.issuperset(disk.known)
    checkpoints.close()
    await store.close()
    return losses


async def _receive(store: SqliteStore, disk: Disk, event: str) -> None:
    await store.receive(Inbound(Address("test", event[-1]), event, Said(said("hello"), "ann")))
    disk.acknowledged.append(event)


def _restarted(home: Path, image: dict[str, bytes]) -> set[str]:
    """The events that are found when the machine is up again."""
    home.mkdir()
    for name, content in image.items():
        (home / name).write_bytes(content)
    connection = apsw.Connection(str(home / "everloop.db"))
    assert connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()[0][0]
    found = {event for (event,) in connection.execute("SELECT event FROM inbox")} if tables else set()
    connection.close()
    shutil.rmtree(home)
    return found


async def test_nothing_that_was_acknowledged_is_lost_when_the_power_fails(disk: Disk, tmp_path: Path):
    assert await lost_in_cuts(disk, tmp_path, "FULL", CUTS) == 0
    assert len(disk.acknowledged) > CUTS


async def test_without_a_sync_for_each_commit_something_would_be_lost(disk: Disk, tmp_path: Path):
    """The control: it shows that the disk above does lose what was not synced."""
    assert await lost_in_cuts(disk, tmp_path, "NORMAL", 40) > 0
