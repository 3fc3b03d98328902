"""An upgrade that fails leaves a database with which the everloop of before goes on, wherever it is cut off."""

import os
import resource
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.effort import in_full
from tests.store.conftest import PostgresHome, SqliteHome
from tests.store.test_old import VERSION, unpacked

from everloop.errors import EverloopError, StoreError, StoreNewer
from everloop.store import schema
from everloop.store.postgres import PostgresStore
from everloop.store.sqlite import SqliteStore
from everloop.store.sqlite_file import connect
from everloop.testing import failpoints

THEN = schema.MIGRATIONS[:VERSION]
STATEMENTS = len(schema.statements("sqlite", schema.MIGRATIONS[VERSION:]))
BROKEN = [*schema.MIGRATIONS, ["CREATE TABLE later(id TEXT)", "CREATE TABLE later(id TEXT)"]]
ROWS = "SELECT thread, seq, body FROM entries ORDER BY 1, 2"
KILLED, REFUSED, DONE = "killed", "refused", "done"


def old_home(path: Path) -> Path:
    path.mkdir(exist_ok=True)
    (path / "everloop.db").write_bytes(unpacked("sqlite.gz"))
    return path


def upgraded_elsewhere(home: Path, before: Callable[[], None]) -> str:
    """In a process of its own, which may not live to tell."""
    if not (child := os.fork()):
        try:
            before()
            for each in connect(home):
                each.close()
        except EverloopError:
            os._exit(3)
        except BaseException:
            os._exit(4)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return KILLED if os.WIFSIGNALED(status) else {0: DONE, 3: REFUSED}[os.waitstatus_to_exitcode(status)]


async def works_with_the_old_version(home: Path, rows: list[tuple[object, ...]]) -> None:
    """It opens it, reads all of it, and writes."""
    found = SqliteHome(home)
    try:
        await found.connect(migrations=THEN)
        assert await found.rows(ROWS) == rows
        await found.write("UPDATE threads SET epoch = epoch + 1")
    finally:
        await found.close()


@pytest.mark.shortened
async def test_killed_at_any_statement_the_old_version_goes_on_or_the_new_one_completes(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("EVERLOOP_TEST", "1")
    assert STATEMENTS > 50
    for nth in range(1, STATEMENTS + 1, in_full(1, 12)):
        home = old_home(tmp_path / str(nth))
        rows = await SqliteHome(home).rows(ROWS)
        assert upgraded_elsewhere(home, lambda nth=nth: failpoints.arm("store.migrating", nth=nth)) == KILLED
        await works_with_the_old_version(home, rows)
        assert upgraded_elsewhere(home, lambda: None) == DONE
        assert await SqliteHome(home).rows("PRAGMA user_version") == [(len(schema.MIGRATIONS),)]


async def test_an_upgrade_that_finds_no_room_leaves_it_to_the_old_version(tmp_path: Path):
    size, outcomes = len(unpacked("sqlite.gz")), list[str]()
    for more in (-8192, 0, 4096, 200_000, 10_000_000):
        home = old_home(tmp_path / f"with{more}")
        rows = await SqliteHome(home).rows(ROWS)

        def limited(most: int = size + more) -> None:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        outcomes.append(upgraded_elsewhere(home, limited))
        if outcomes[-1] == REFUSED:
            assert list(home.glob("*.before-*")) == []  # or it would keep the room that the old version needs
            await works_with_the_old_version(home, rows)
    assert (outcomes[0], outcomes[-1]) == (REFUSED, DONE)


async def test_a_migration_that_cannot_be_done_says_so_and_names_the_copy(tmp_path: Path):
    home = old_home(tmp_path / "home")
    rows = await SqliteHome(home).rows(ROWS)
    with pytest.raises(StoreError) as told:
        await SqliteStore.connect(home, migrations=BROKEN)
    assert f"from schema {VERSION} to {len(BROKEN)}" in str(told.value)
    assert f"{home / 'everloop.db'}.before-{len(BROKEN)}" in str(told.value)
    assert (home / f"everloop.db.before-{len(BROKEN)}").exists()
    await works_with_the_old_version(home, rows)


async def test_an_older_version_refuses_what_a_newer_has_written_and_says_what_to_do(tmp_path: Path):
    home = old_home(tmp_path / "home")
    await (await SqliteStore.connect(home)).close()
    with pytest.raises(StoreNewer) as told:
        await SqliteStore.connect(home, migrations=THEN)
    for word in ("Install that one", "everloop backup restore", f"everloop.db.before-{len(schema.MIGRATIONS)}"):
        assert word in str(told.value)
    assert (home / f"everloop.db.before-{len(schema.MIGRATIONS)}").exists()


async def test_on_postgres_an_upgrade_is_one_transaction(postgres_home: PostgresHome):
    await postgres_home.load(unpacked("postgres.gz").decode())
    rows = await postgres_home.rows(ROWS)
    with pytest.raises(StoreError, match="It was left as it was"):
        await PostgresStore.connect(postgres_home.url, migrations=BROKEN)
    assert await postgres_home.rows("SELECT version FROM everloop_schema") == [(VERSION,)]
    await postgres_home.connect(migrations=THEN)
    assert await postgres_home.rows(ROWS) == rows
    await postgres_home.connect()
    with pytest.raises(StoreNewer, match="Install that one"):
        await PostgresStore.connect(postgres_home.url, migrations=THEN)
