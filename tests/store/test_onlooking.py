"""A store that is looked at is not changed, and shows what is there."""

import os
import secrets
from pathlib import Path
from typing import Any

import apsw
import pytest

from everloop.core.people import Role
from everloop.errors import StoreError
from everloop.ports.directory import Person
from everloop.store import schema
from everloop.store.onlooking import KNOWN, look_at_sqlite
from everloop.store.onlooking_server import facts_of, look_at_postgres
from everloop.store.postgres import PostgresStore

ANNA = Person("web:7", "Anna", Role.USER, accounts=("web:7",))


class TestSqlite:
    async def test_what_another_process_has_written_is_seen_and_nothing_can_be(self, sqlite_home: Any):
        store = await sqlite_home.connect()
        await store.introduce(ANNA)
        seen, version = await look_at_sqlite(sqlite_home.path)
        assert version == KNOWN
        assert [person.name for person in await seen.people()][-1] == "Anna"
        with pytest.raises(StoreError, match="read-only"):
            await seen.change_person("web:7", name="Berta")
        await seen.close()

    async def test_a_file_that_nobody_has_open_is_read_and_nothing_is_made_beside_it(self, sqlite_home: Any):
        store = await sqlite_home.connect()
        await store.introduce(ANNA)
        await sqlite_home.lose(store)
        before = sorted(path.name for path in sqlite_home.path.rglob("*"))
        seen, _ = await look_at_sqlite(sqlite_home.path)
        assert len(await seen.people()) == 2
        await seen.close()
        assert sorted(path.name for path in sqlite_home.path.rglob("*")) == before

    async def test_an_older_one_is_not_brought_up_to_date(self, sqlite_home: Any):
        store = await sqlite_home.connect(migrations=schema.MIGRATIONS[:-1])
        seen, version = await look_at_sqlite(sqlite_home.path)
        await seen.close()
        await sqlite_home.lose(store)
        assert version == KNOWN - 1
        assert apsw.Connection(str(sqlite_home.path / "everloop.db")).pragma("user_version") == KNOWN - 1

    async def test_where_there_is_none_there_is_nothing_in_it_and_none_is_made(self, tmp_path: Path):
        seen, version = await look_at_sqlite(tmp_path)
        assert (version, await seen.undelivered(), os.listdir(tmp_path)) == (0, [], [])
        await seen.close()


class TestPostgres:
    async def test_what_is_there_is_seen_and_nothing_can_be_written(self, postgres_home: Any):
        assert await look_at_postgres(postgres_home.url) is None
        store = await postgres_home.connect()
        await store.introduce(ANNA)
        found = await look_at_postgres(postgres_home.url)
        assert found is not None
        seen, version = found
        assert version == KNOWN
        assert [person.name for person in await seen.people()][-1] == "Anna"
        with pytest.raises(StoreError, match="read-only"):
            await seen.change_person("web:7", name="Berta")
        await seen.close()

    async def test_a_user_who_may_make_no_tables_is_known_and_told_what_to_do(self, postgres_home: Any):
        nobody = f"nobody_{secrets.token_hex(4)}"
        await postgres_home.write(f"CREATE ROLE {nobody}")
        url = f"{postgres_home.url}&role={nobody}"
        try:
            facts = await facts_of(url)
            with pytest.raises(StoreError, match=r"Let the database belong to the user of store\.url"):
                await PostgresStore.connect(url)
        finally:
            await postgres_home.write(f"DROP ROLE {nobody}")
        assert (facts.user, facts.may_make) == (nobody, False)
        assert (await facts_of(postgres_home.url)).may_make

    async def test_a_server_tells_of_itself(self, postgres_home: Any):
        facts = await facts_of(postgres_home.url)
        assert (facts.synchronous_commit, facts.tls) == ("on", False)
        assert facts.number > 130_000
