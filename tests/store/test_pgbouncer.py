"""Behind the real pgbouncer: session pooling works as it is installed, the others are refused with the reason."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import asyncpg
import pytest

from everloop.core.log import ModelCalled
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.errors import StoreError, StoreUnreachable
from everloop.ports.rows import Commit, Lease
from everloop.store.postgres import PostgresStore

from .conftest import cannot

CHAT = Address("test", "chat")
PROGRAM = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")


class Home(Protocol):
    url: str

    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...
    async def write(self, statement: str) -> None: ...


class Pgbouncer:
    """Runs as whoever runs the server, for it does not as root."""

    def __init__(self, home: Home, folder: Path) -> None:
        values = dict(part.split("=", 1) for part in home.url.partition("?")[2].split("&"))
        self._host, self._search_path = Path(values["host"]), values["search_path"]
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._socket = folder / ".s.PGSQL.6432"
        self.name = f"{folder}/postgres"
        self.address = f"postgresql://postgres@/postgres?host={folder}&port=6432"
        self.url = f"{self.address}&search_path={self._search_path}"

    def write_settings(self, mode: str, more: str = "") -> None:
        (self._folder / "users.txt").write_text('"postgres" ""\n')
        (self._folder / "pgbouncer.ini").write_text(
            f"[databases]\npostgres = host={self._host} port=5432\n[pgbouncer]\nlisten_addr =\n"
            f"listen_port = 6432\nunix_socket_dir = {self._folder}\nauth_type = trust\n"
            f"auth_file = {self._folder}/users.txt\npool_mode = {mode}\n{more}\n"
        )

    async def start(self) -> None:
        process = self._process = self._run()
        while True:
            assert process.poll() is None, "pgbouncer ended"
            try:
                (await asyncio.open_unix_connection(self._socket))[1].close()
                return
            except (FileNotFoundError, ConnectionRefusedError):
                await asyncio.sleep(0.01)

    def _run(self) -> "subprocess.Popen[bytes]":
        assert PROGRAM
        owner = self._host.stat()
        who: Any = {"user": owner.st_uid, "group": owner.st_gid} if os.getuid() == 0 else {}
        command = [PROGRAM, "-q", self._folder / "pgbouncer.ini"]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self._socket.unlink(missing_ok=True)


@pytest.fixture
def pgbouncer(postgres_home: Home) -> Iterator[Pgbouncer]:
    if not PROGRAM:
        cannot("pgbouncer is not installed")
    folder = Path(tempfile.mkdtemp(prefix="everloop-pgb-", dir="/tmp"))  # a short path: sockets' names are limited
    folder.chmod(0o777)
    bouncer = Pgbouncer(postgres_home, folder)
    yield bouncer
    bouncer.stop()
    shutil.rmtree(folder)


def letter(event: str) -> Inbound:
    return Inbound(CHAT, event, Said(said("hello"), "ann"))


async def test_session_pooling_works_as_pgbouncer_is_installed(postgres_home: Home, pgbouncer: Pgbouncer):
    pgbouncer.write_settings("session")
    await pgbouncer.start()
    store: Any = await PostgresStore.connect(pgbouncer.url)
    receipts = await asyncio.gather(*(store.receive(letter(str(n))) for n in range(300)))
    thread = receipts[0].thread
    assert (await store.commit(Lease(thread), Commit([ModelCalled("m")]))).head == 1
    assert (await store.command(letter("c"), "none", "Yes.")).reply == "Yes."
    assert len(await store.mail(thread)) == 300
    assert await store.read(thread) == [ModelCalled("m")]
    assert await postgres_home.rows("SELECT count(*) FROM inbox") == [(301,)]  # where the url says
    for setting, value in (("synchronous_commit", "on"), ("statement_timeout", "8s"), ("lock_timeout", "2s")):
        assert await store._pool.fetchval(f"SHOW {setting}") == value
    await store.close()


async def test_what_was_set_for_a_session_does_not_stay_with_those_who_come_after(pgbouncer: Pgbouncer):
    pgbouncer.write_settings("session", "default_pool_size = 6")
    await pgbouncer.start()
    store = await PostgresStore.connect(pgbouncer.url)
    await store.receive(letter("e1"))
    await store.close()
    for _ in range(6):
        connection = await asyncpg.connect(pgbouncer.address)
        assert await connection.fetchval("SHOW lock_timeout") == "0"
        await connection.close()


async def test_a_pgbouncer_that_is_restarted_is_reached_again(pgbouncer: Pgbouncer):
    pgbouncer.write_settings("session")
    await pgbouncer.start()
    store = await PostgresStore.connect(pgbouncer.url)
    first = await store.receive(letter("e1"))
    pgbouncer.stop()
    with pytest.raises(StoreUnreachable):
        await store.receive(letter("e2"))
    await pgbouncer.start()
    again = await store.receive(letter("e1"))
    assert (again.id, again.fresh) == (first.id, False)
    assert (await store.receive(letter("e2"))).fresh
    await store.close()


async def refusal(url: str) -> str:
    with pytest.raises(StoreError) as caught:
        await PostgresStore.connect(url)
    return str(caught.value)


@pytest.mark.parametrize("mode", ["transaction", "statement"])
@pytest.mark.parametrize(
    "more", ["", "server_round_robin = 1\nmin_pool_size = 3", "default_pool_size = 1"], ids=["last", "round", "one"]
)
async def test_pooling_that_shares_sessions_is_refused_with_the_reason(pgbouncer: Pgbouncer, mode: str, more: str):
    pgbouncer.write_settings(mode, more)
    await pgbouncer.start()
    for _ in range(2):  # and when the sessions have been used
        said = await refusal(pgbouncer.url)
        assert said.startswith(f"the database server {pgbouncer.name} ")
        assert said.endswith("set pool_mode = session for this database, or give the address of the server itself")


@asynccontextmanager
async def busy(address: str, others: int) -> AsyncIterator[None]:
    """Others use the pooler all the while."""
    connections = [await asyncpg.connect(address, statement_cache_size=0) for _ in range(others)]
    done = asyncio.Event()

    async def use(connection: Any) -> None:
        while not done.is_set():
            await connection.execute("SELECT 1")

    tasks = [asyncio.ensure_future(use(connection)) for connection in connections]
    try:
        yield
    finally:
        done.set()
        await asyncio.gather(*tasks)
        for connection in connections:
            await connection.close()


async def test_it_is_told_apart_also_when_others_are_busy(pgbouncer: Pgbouncer):
    for mode in ("session", "transaction"):
        pgbouncer.write_settings(mode)
        await pgbouncer.start()
        async with busy(pgbouncer.address, 6):
            for _ in range(5):
                if mode == "session":
                    await (await PostgresStore.connect(pgbouncer.url)).close()
                else:
                    assert "pool_mode = session" in await refusal(pgbouncer.url)
        pgbouncer.stop()


async def test_a_pooler_that_begins_to_share_later_is_told_of_at_the_next_connection(pgbouncer: Pgbouncer):
    pgbouncer.write_settings("session")
    await pgbouncer.start()
    store = await PostgresStore.connect(pgbouncer.url)
    await store.receive(letter("e1"))
    pgbouncer.stop()
    pgbouncer.write_settings("transaction")
    await pgbouncer.start()
    with pytest.raises(StoreError, match="pool_mode = session"):
        await store.receive(letter("e2"))
    await store.close()


async def test_a_parameter_that_cannot_be_set_later_is_refused_by_its_name(pgbouncer: Pgbouncer):
    pgbouncer.write_settings("session")
    await pgbouncer.start()
    assert await refusal(f"{pgbouncer.url}&options=-csearch_path%3Dx") == (
        f"the database server {pgbouncer.name} refused: unsupported startup parameter: options"
    )
