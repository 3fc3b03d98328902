"""What only the SQLite store promises: about its file, and about processes on the same machine."""

import asyncio
import fcntl
import os
import re
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import apsw
import pytest

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.errors import HomeError, StoreCorrupt
from everloop.store import schema
from everloop.store.holders import Holders
from everloop.store.sqlite import SqliteStore
from everloop.store.sqlite_file import file_system_of, is_on_network

LETTER = Inbound(Address("test", "chat"), "e1", Said(said("hello"), "ann"))

HOLDER = """
import sys, time
from pathlib import Path
from everloop.store.holders import Holders
print(Holders(Path(sys.argv[1])).me, flush=True)
sys.stdin.read()
"""


def contents(home: Path) -> dict[str, bytes]:
    """The database and what SQLite keeps beside it; not its shared memory, nor a log in which there is nothing."""
    found = {path.name: path.read_bytes() for path in home.glob("everloop.db*") if not path.name.endswith("-shm")}
    return {name: content for name, content in found.items() if content}


def leave_behind_a_dead_process(home: Path) -> None:
    (home / "run").mkdir(exist_ok=True)
    (home / "run" / "1-1-dead").touch()


async def written(home: Path, letters: int = 50) -> None:
    store = await SqliteStore.connect(home)
    for n in range(letters):
        await store.receive(Inbound(LETTER.address, str(n), Said(said("x" * 2000), "ann")))
    await store.close()


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path: Path):
    (tmp_path / "everloop.db").write_bytes(b"this is a letter to my aunt\n" * 400)
    before = contents(tmp_path)
    with pytest.raises(StoreCorrupt, match="left untouched"):
        await SqliteStore.connect(tmp_path)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("attempt", [1, 2])
async def test_damage_is_found_after_a_crash_every_time_and_the_file_is_left_as_it_is(tmp_path: Path, attempt: int):
    await written(tmp_path)
    with (tmp_path / "everloop.db").open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom(20 * 4096))
    leave_behind_a_dead_process(tmp_path)
    before = contents(tmp_path)
    for _ in range(attempt):
        with pytest.raises(StoreCorrupt, match="left untouched"):
            await SqliteStore.connect(tmp_path)
    assert contents(tmp_path) == before


async def test_a_damaged_file_with_a_log_beside_it_is_left_as_it_is(tmp_path: Path):
    """The log of a killed process must not be written into a file that is found to be damaged."""
    await written(tmp_path)
    crashed = await SqliteStore.connect(tmp_path)
    await crashed.receive(LETTER)
    copied = tmp_path / "copy"
    copied.mkdir()
    for name, content in contents(tmp_path).items():
        (copied / name).write_bytes(content)
    await crashed.close()
    with (copied / "everloop.db").open("r+b") as file:
        file.seek(8 * 4096)
        file.write(os.urandom(20 * 4096))
    leave_behind_a_dead_process(copied)
    before = contents(copied)
    assert before["everloop.db-wal"]
    with pytest.raises(StoreCorrupt):
        await SqliteStore.connect(copied)
    assert contents(copied) == before


async def test_a_sound_file_opens_after_a_crash_and_the_dead_are_forgotten(tmp_path: Path):
    await written(tmp_path)
    leave_behind_a_dead_process(tmp_path)
    store = await SqliteStore.connect(tmp_path)
    assert [path.name for path in (tmp_path / "run").iterdir()] == [store.holder]
    await store.close()
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_file_that_cannot_be_used_leaves_no_holder_behind(tmp_path: Path):
    (tmp_path / "everloop.db").mkdir()
    with pytest.raises(HomeError):
        await SqliteStore.connect(tmp_path)
    assert list((tmp_path / "run").iterdir()) == []


async def test_a_copy_is_made_before_a_migration(tmp_path: Path):
    await written(tmp_path, 3)
    newer = [*schema.MIGRATIONS, ["CREATE TABLE later(id TEXT)"]]
    store = await SqliteStore.connect(tmp_path, migrations=newer)
    await store.close()
    copy = apsw.Connection(str(tmp_path / f"everloop.db.before-{len(newer)}"))
    assert copy.pragma("user_version") == len(schema.MIGRATIONS)
    assert copy.execute("SELECT count(*) FROM inbox").fetchall() == [(3,)]


async def test_no_copy_is_made_of_an_empty_or_current_database(tmp_path: Path):
    for _ in range(2):
        await written(tmp_path, 1)
    assert list(contents(tmp_path)) == ["everloop.db"]


async def test_the_copy_holds_the_old_state_even_when_several_migrate_at_once(tmp_path: Path):
    await written(tmp_path, 3)
    newer = [*schema.MIGRATIONS, ["CREATE TABLE later(id TEXT)"]]
    stores = await asyncio.gather(*(SqliteStore.connect(tmp_path, migrations=newer) for _ in range(4)))
    for store in stores:
        await store.close()
    copy = apsw.Connection(str(tmp_path / f"everloop.db.before-{len(newer)}"))
    assert copy.pragma("user_version") == len(schema.MIGRATIONS)


async def test_a_copy_is_for_its_owners_eyes_and_a_half_one_of_a_killed_process_is_replaced(tmp_path: Path):
    await written(tmp_path, 3)
    newer = [*schema.MIGRATIONS, ["CREATE TABLE later(id TEXT)"]]
    for left in ("part", "part-journal"):
        (tmp_path / f"everloop.db.before-{len(newer)}.{left}").write_bytes(b"half")
    await (await SqliteStore.connect(tmp_path, migrations=newer)).close()
    copy = tmp_path / f"everloop.db.before-{len(newer)}"
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert sorted(contents(tmp_path)) == ["everloop.db", copy.name]
    assert apsw.Connection(str(copy)).pragma("integrity_check") == "ok"


async def test_the_two_latest_copies_stay(tmp_path: Path):
    await written(tmp_path, 1)
    known = len(schema.MIGRATIONS)
    for more in range(1, 5):
        newer = [*schema.MIGRATIONS, *(["SELECT 1"] for _ in range(more))]
        await (await SqliteStore.connect(tmp_path, migrations=newer)).close()
    copies = [f"everloop.db.before-{known + more}" for more in (3, 4)]
    assert sorted(contents(tmp_path)) == sorted(["everloop.db", *copies])


async def test_nothing_is_changed_when_no_copy_can_be_made(tmp_path: Path):
    await written(tmp_path, 3)
    newer = [*schema.MIGRATIONS, ["CREATE TABLE later(id TEXT)"]]
    (tmp_path / f"everloop.db.before-{len(newer)}.part").mkdir()
    with pytest.raises(HomeError, match="make room for a copy and start again"):
        await SqliteStore.connect(tmp_path, migrations=newer)
    assert apsw.Connection(str(tmp_path / "everloop.db")).pragma("user_version") == len(schema.MIGRATIONS)


async def test_the_database_is_safe_by_default(tmp_path: Path):
    store = await SqliteStore.connect(tmp_path)
    connection: Any = store._connection
    assert (connection.pragma("journal_mode"), connection.pragma("synchronous")) == ("wal", 2)
    await store.close()


def test_a_process_is_alive_until_it_is_killed(tmp_path: Path):
    holders = Holders(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    name = process.stdout.readline().strip()
    assert (holders.alive(name), holders.dead(), holders.knows(process.pid, name.split("-")[1])) == (True, [], True)
    process.kill()
    process.wait()
    assert (holders.alive(name), holders.dead()) == (False, [name])
    holders.bury([name])
    assert (holders.alive(name), holders.dead()) == (False, [])
    holders.close()


def test_a_process_that_is_just_starting_is_not_taken_for_dead(tmp_path: Path):
    """Its file is locked before others can see it; while it is hidden, nobody counts it."""
    holders = Holders(tmp_path)
    (tmp_path / ".2-2-starting").touch()
    assert holders.dead() == []
    with (tmp_path / ".2-2-starting").open() as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    holders.close()


async def test_looking_back_never_reads_a_whole_thread(tmp_path: Path):
    asked: list[tuple[str, tuple[object, ...]]] = []

    class Listening(SqliteStore):
        async def _ask(self, statement: str, *values: object) -> Sequence[Any]:
            asked.append((statement, values))
            return await super()._ask(statement, *values)

    store = await Listening.connect(tmp_path)
    await store.conversations("owner")
    await store.history("thread", 99_990)
    await store.search("owner", "word")
    await store.search("owner", "word", thread="thread", session="test:chat")
    await store.snapshots("owner")
    plans = [
        line[3]
        for statement, values in asked
        for line in await SqliteStore._ask(store, f"EXPLAIN QUERY PLAN {statement}", *values)
    ]
    await store.close()
    assert len(asked) >= 10
    assert [line for line in plans if re.match(r"SCAN (e|entries|t|threads|s|said|inbox)\b", line)] == []
    assert any("seq>? AND seq<?" in line for line in plans)


@pytest.mark.parametrize(
    ("home", "kind"),
    [("/home/ann/.everloop", "ext4"), ("/mnt/my files/agent", "cifs"), ("/mnt/nas", "nfs4"), ("/mnt/nasty", "ext4")],
)
def test_a_file_system_of_the_network_is_known_by_where_it_is_mounted(tmp_path: Path, home: str, kind: str):
    lines = ("/dev/sda / ext4 rw 0 0", r"//nas/f /mnt/my\040files cifs rw 0 0", "nas:/x /mnt/nas nfs4 rw 0 0")
    (tmp_path / "mounts").write_text("\n".join(lines) + "\n")
    found = file_system_of(Path(home), tmp_path / "mounts")
    assert (found, is_on_network(found)) == (kind, kind != "ext4")
