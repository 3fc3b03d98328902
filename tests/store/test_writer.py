"""The SQLite writer: what meets shares a commit, what fails fails alone, and a disk that fails acknowledges nothing."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.errors import Fenced, StoreBroken, StoreError, StoreFull
from everloop.store.sqlite import SqliteStore
from everloop.store.writer import Execute, Writer


class TroubledDisk(apsw.VFS):
    """The real disk, but for what `trouble` is raised by: "write", "sync". A closed `gate` holds up what is synced."""

    def __init__(self, name: str) -> None:
        super().__init__(name, base="")
        self.trouble: dict[str, type[apsw.Error]] = {}
        self.passes = False  # whether the trouble is over when it has shown itself
        self.gate, self.held = threading.Event(), threading.Event()
        self.gate.set()

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return TroubledFile(self, name, flags)


class TroubledFile(apsw.VFSFile):
    def __init__(self, disk: TroubledDisk, name: Any, flags: list[int]) -> None:
        super().__init__("", name, flags)
        self._disk = disk

    def xWrite(self, data: Any, offset: int) -> None:
        self._fail("write")
        super().xWrite(data, offset)

    def xSync(self, flags: int) -> None:
        if not self._disk.gate.is_set():
            self._disk.held.set()
            self._disk.gate.wait()
        self._fail("sync")
        super().xSync(flags)

    def _fail(self, what: str) -> None:
        if error := self._disk.trouble.get(what):
            if self._disk.passes:
                del self._disk.trouble[what]
            raise error(what)


@pytest.fixture
def disk() -> Iterator[TroubledDisk]:
    disk = TroubledDisk("troubled")
    yield disk
    disk.unregister()


@pytest.fixture
async def store(tmp_path: Path, disk: TroubledDisk) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.connect(tmp_path, vfs="troubled")
    yield store
    disk.trouble.clear()
    disk.gate.set()
    await store.close()


@pytest.fixture
async def writer(tmp_path: Path) -> AsyncIterator[Writer]:
    connection = apsw.Connection(str(tmp_path / "numbers.db"))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE numbers(n INTEGER PRIMARY KEY)")
    connection.set_busy_timeout(1)
    writer = Writer(connection, lambda seconds: None)
    yield writer
    await asyncio.to_thread(writer.close)
    connection.close()


@contextmanager
def busy(path: Path) -> Iterator[None]:
    """Another process is writing meanwhile, so that all that comes has to wait."""
    other = apsw.Connection(str(path / "numbers.db"))
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


_ALL = "SELECT n FROM numbers ORDER BY n"


def numbers(path: Path) -> list[int]:
    connection = apsw.Connection(str(path / "numbers.db"))
    rows = [n for (n,) in connection.execute("SELECT n FROM numbers ORDER BY n")]
    connection.close()
    return rows


def insert(n: int, error: Exception | None = None) -> Callable[[Execute], int]:
    def transaction(execute: Execute) -> int:
        execute("INSERT INTO numbers VALUES(?)", (n,))
        if error is not None:
            raise error
        return n

    return transaction


def letter(event: str) -> Inbound:
    return Inbound(Address("test", "chat"), event, Said(said("hello"), "ann"))


async def test_a_write_that_is_alone_is_committed_at_once(writer: Writer, tmp_path: Path):
    future = writer.write(insert(1))
    assert (future.done(), numbers(tmp_path)) == (True, [1])
    assert await future == 1


async def test_what_is_read_here_is_what_is_committed_by_whomever_and_nothing_else(writer: Writer, tmp_path: Path):
    within: list[object] = []

    def transaction(execute: Execute) -> None:
        execute("INSERT INTO numbers VALUES(2)")
        within.append(writer.read(_ALL, ()))

    await writer.write(insert(1))
    await writer.write(transaction)
    other = apsw.Connection(str(tmp_path / "numbers.db"))
    other.execute("INSERT INTO numbers VALUES(3)")
    other.close()
    assert (within, writer.read(_ALL, ())) == ([None], [(1,), (2,), (3,)])
    assert writer.read("SELECT n FROM nowhere", ()) is None  # whoever reads elsewhere is told why


async def test_writes_that_meet_share_one_commit(writer: Writer, tmp_path: Path):
    with busy(tmp_path):
        futures = [writer.write(insert(n)) for n in range(100)]
        await asyncio.sleep(0)
        assert not any(future.done() for future in futures)
    assert await asyncio.gather(*futures) == list(range(100))
    assert writer.commits <= 2  # what the thread had taken when it began to wait, and all that came after
    assert numbers(tmp_path) == list(range(100))


@pytest.mark.parametrize("error", [Fenced("in other hands"), ValueError("a mistake in a transaction")])
async def test_one_that_fails_does_not_touch_the_others(writer: Writer, tmp_path: Path, error: Exception):
    with busy(tmp_path):
        futures = [writer.write(insert(n, error if n % 3 == 0 else None)) for n in range(10)]
    results = await asyncio.gather(*futures, return_exceptions=True)
    assert results == [error if n % 3 == 0 else n for n in range(10)]
    assert numbers(tmp_path) == [1, 2, 4, 5, 7, 8]


@pytest.mark.parametrize("error", [Fenced("in other hands"), ValueError("a mistake in a transaction")])
async def test_one_that_fails_alone_leaves_nothing_and_the_next_one_works(
    writer: Writer, tmp_path: Path, error: Exception
):
    with pytest.raises(type(error)):
        await writer.write(insert(1, error))
    assert await writer.write(insert(2)) == 2
    assert numbers(tmp_path) == [2]


async def test_what_the_tables_refuse_is_an_error_of_the_store_and_fails_alone(writer: Writer, tmp_path: Path):
    with busy(tmp_path):
        futures = [writer.write(insert(n)) for n in (1, 1, 2)]
    first, second, third = await asyncio.gather(*futures, return_exceptions=True)
    assert (first, type(second), third) == (1, StoreError, 2)


async def test_a_write_stands_when_whoever_asked_has_gone(writer: Writer, tmp_path: Path):
    with busy(tmp_path):
        futures = [writer.write(insert(n)) for n in (1, 2)]
        futures[0].cancel()
    assert await futures[1] == 2
    assert numbers(tmp_path) == [1, 2]


async def test_a_closed_writer_says_so(tmp_path: Path):
    connection = apsw.Connection(str(tmp_path / "numbers.db"))
    writer = Writer(connection, lambda seconds: None)
    await asyncio.to_thread(writer.close)
    with pytest.raises(StoreError, match="closed"):
        await writer.write(insert(1))


async def test_a_full_disk_acknowledges_nothing_and_is_forgotten_when_there_is_room(
    store: SqliteStore, disk: TroubledDisk
):
    first = await store.receive(letter("e1"))
    disk.trouble["write"] = apsw.FullError
    with pytest.raises(StoreFull, match="full"):
        await store.receive(letter("e2"))
    assert [mail.id for mail in await store.mail(first.thread)] == [first.id]
    disk.trouble.clear()
    assert (await store.receive(letter("e2"))).fresh is True


async def test_a_full_disk_is_told_to_all_who_shared_the_commit(store: SqliteStore, disk: TroubledDisk):
    first = await store.receive(letter("e0"))
    disk.trouble["write"] = apsw.FullError
    futures = (store.receive(letter(f"e{n}")) for n in range(1, 20))
    results = await asyncio.gather(*futures, return_exceptions=True)
    assert {type(result) for result in results} == {StoreFull}
    assert [mail.id for mail in await store.mail(first.thread)] == [first.id]


@pytest.mark.parametrize("what", ["write", "sync"])
async def test_a_disk_that_refuses_ends_writing_but_not_reading_and_nothing_acknowledged_is_lost(
    store: SqliteStore, disk: TroubledDisk, tmp_path: Path, what: str
):
    """What is on such a disk is not known, so nothing is tried again before a restart."""
    first = await store.receive(letter("e1"))
    disk.trouble[what] = apsw.IOError
    for event in ("e2", "e3"):
        with pytest.raises(StoreFull, match="until a restart"):
            await store.receive(letter(event))
    disk.trouble.clear()
    with pytest.raises(StoreFull, match="until a restart"):
        await store.receive(letter("e4"))
    assert [mail.id for mail in await store.mail(first.thread)] == [first.id]
    again = await SqliteStore.connect(tmp_path)
    assert (await again.receive(letter("e1"))).fresh is False
    assert (await again.receive(letter("e4"))).fresh is True
    await again.close()


@pytest.mark.parametrize("is_late", [False, True], ids=["a slow disk", "another process"])
async def test_what_came_while_a_commit_failed_in_the_thread_is_refused_with_it(
    store: SqliteStore, disk: TroubledDisk, tmp_path: Path, is_late: bool
):
    """The thread makes the COMMIT of many turns on a slow disk, and does it all while another process is writing."""
    store.running, store._writer._pace = 5, 1.0
    disk.gate.clear()
    disk.trouble["sync"], disk.passes = apsw.IOError, True
    other = apsw.Connection(str(tmp_path / "everloop.db"))
    if is_late:
        other.execute("BEGIN IMMEDIATE")
    first = asyncio.ensure_future(store.receive(letter("e1")))
    for _ in range(2):  # rounds of the event loop: it is gathered, and then tried
        await asyncio.sleep(0)
    assert store._writer._waiting == is_late
    other.close()
    await asyncio.to_thread(disk.held.wait)
    second = asyncio.ensure_future(store.receive(letter("e2")))
    await asyncio.sleep(0)
    disk.gate.set()
    results = await asyncio.gather(first, second, return_exceptions=True)
    assert [(type(result), "until a restart" in str(result)) for result in results] == [(StoreBroken, True)] * 2
    again = await SqliteStore.connect(tmp_path)
    assert (await again.receive(letter("e2"))).fresh is True
    await again.close()


async def test_what_is_begun_anew_while_another_process_writes_does_not_hold_up_the_event_loop(tmp_path: Path):
    connection, other = (apsw.Connection(str(tmp_path / "numbers.db")) for _ in range(2))
    connection.execute("PRAGMA journal_mode = WAL").fetchall()
    connection.execute("CREATE TABLE numbers(n INTEGER PRIMARY KEY)")
    connection.set_busy_timeout(1)
    waiting: list[str] = []

    def step_in() -> None:
        connection.set_rollback_hook(None)
        other.execute("BEGIN IMMEDIATE")

    def blocked(seconds: float) -> None:
        if not waiting:
            other.execute("COMMIT")
        waiting.append(threading.current_thread().name)

    connection.set_rollback_hook(step_in)
    writer = Writer(connection, blocked)
    refused = writer.write(insert(1, Fenced("in other hands")))
    assert (refused.done(), writer._waiting) == (False, 1)
    following = writer.write(insert(2))
    with pytest.raises(Fenced):
        await refused
    assert (await following, {*waiting}, numbers(tmp_path)) == (2, {"everloop-writer"}, [2])
    await asyncio.to_thread(writer.close)
    for each in (connection, other):
        each.close()
