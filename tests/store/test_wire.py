"""The connection that writes: looked after while it rests, given up after trouble, replaced when asyncpg changes."""

import asyncio
import logging
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import pytest
from tests.strays import told_by

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.errors import StoreError, StoreUnreachable
from everloop.store import fetching
from everloop.store.fetching import FetchingWire, wire_over
from everloop.store.keepalive import transport_of
from everloop.store.postgres import PostgresStore
from everloop.store.wire import REST_SECONDS, Wire

CHAT = Address("test", "chat")


class Home(Protocol):
    url: str

    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...
    async def write(self, statement: str) -> None: ...


def letter(event: str) -> Inbound:
    return Inbound(CHAT, event, Said(said("hello"), "ann"))


@asynccontextmanager
async def opened(url: str, over: Any = wire_over) -> AsyncIterator[Any]:
    store = await PostgresStore.connect(url, over=over)
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def over_tcp(home: Home) -> AsyncIterator[str]:
    """The same server, but not by a socket of this machine."""
    values = dict(part.split("=", 1) for part in home.url.partition("?")[2].split("&"))

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, down = await asyncio.open_unix_connection(f"{values['host']}/.s.PGSQL.5432")
        await asyncio.gather(carry(reader, down), carry(up, writer))

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres?search_path={values['search_path']}"
    finally:
        server.close()


def watched(connection: Any) -> list[int]:
    """How the system looks after it: at all, after how long, how often, how many times, and until when."""
    sock = transport_of(connection).get_extra_info("socket")
    on = sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    if sock.family == socket.AF_UNIX:
        return [on]
    options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
    return [on, *(sock.getsockopt(socket.IPPROTO_TCP, option) for option in options)]


async def both(store: Any) -> list[list[int]]:
    await store.receive(letter("e1"))
    async with store._pool.acquire() as connection:
        return [watched(connection), watched(store._writer._sender.wire._connection)]


async def test_connections_over_a_network_are_kept_alive(postgres_home: Home):
    async with over_tcp(postgres_home) as url, opened(url) as store:
        assert await both(store) == [[1, 60, 10, 3, 90_000]] * 2


async def test_a_socket_of_this_machine_is_not(postgres_home: Home):
    async with opened(postgres_home.url) as store:
        assert await both(store) == [[0], [0]]


@pytest.mark.parametrize("kind", [Wire, FetchingWire])
async def test_a_wire_that_has_rested_for_five_minutes_is_replaced_before_it_is_used(postgres_home: Home, kind: Any):
    over = wire_over if kind is Wire else FetchingWire
    async with opened(postgres_home.url, over) as store:
        await store.receive(letter("e1"))
        first = store._writer._sender.wire
        assert isinstance(first, kind)
        first._asked -= REST_SECONDS - 60
        look(first)
        await store.receive(letter("e2"))
        assert store._writer._sender.wire is first
        first._asked -= REST_SECONDS
        look(first)
        assert (await store.receive(letter("e3"))).fresh
        assert store._writer._sender.wire is not first
        assert first._connection.is_closed()


def look(wire: Any) -> None:
    if isinstance(wire, Wire):
        wire._look_at_the_clock()


async def test_a_wire_that_hears_something_unexpected_is_not_used_again(postgres_home: Home):
    """As after a fail-over, or behind a pooler: the session does not know the statement that was prepared in it."""
    made: list[Any] = []

    def over(connection: Any, prepared: Any, statement: Any) -> Any:
        name = statement.name if made else "unknown"
        made.append(wire_over(connection, prepared, statement._replace(name=name)))
        return made[-1]

    async with opened(postgres_home.url, over) as store:
        with pytest.raises(StoreError, match=r'"unknown" does not exist.*pool_mode = session'):
            await store.receive(letter("e1"))
        assert made[0].is_closed()
        assert (await store.receive(letter("e1"))).fresh
        assert len(made) == 2


async def test_a_wire_that_hears_what_was_simply_refused_is_kept(postgres_home: Home):
    async with opened(postgres_home.url) as store:
        await store.receive(letter("e1"))
        wire = store._writer._sender.wire
        with pytest.raises(StoreError):
            await store.receive(letter("a\0b"))
        assert store._writer._sender.wire is wire


async def test_a_connection_whose_wire_cannot_be_made_is_ended(postgres_home: Home):
    connections: list[Any] = []

    def over(connection: Any, prepared: Any, statement: Any) -> Any:
        connections.append(connection)
        raise TypeError("asyncpg is quite different")

    async with opened(postgres_home.url, over) as store:
        for event in ("e1", "e2"):
            with pytest.raises(TypeError):
                await store.receive(letter(event))
        assert [connection.is_closed() for connection in connections] == [True, True]


class Renamed:
    """A connection of an asyncpg that calls its transport otherwise."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        if name == "_transport":
            raise AttributeError(f"no attribute {name!r}")
        return getattr(self._connection, name)


async def test_an_asyncpg_that_has_changed_inside_is_asked_by_its_public_interface(
    postgres_home: Home, caplog: pytest.LogCaptureFixture
):
    fetching._tell_once.cache_clear()
    made: list[Any] = []

    def over(connection: Any, prepared: Any, statement: Any) -> Any:
        made.append(wire_over(Renamed(connection), prepared, statement))
        return made[-1]

    with caplog.at_level(logging.INFO, "everloop"):
        async with opened(postgres_home.url, over) as store:
            receipts = await asyncio.gather(*(store.receive(letter(str(n))) for n in range(300)))
            made[0].close()
            assert (await store.receive(letter("last"))).id > max(receipt.id for receipt in receipts)
    assert [type(wire) for wire in made] == [FetchingWire, FetchingWire]
    told = told_by("everloop", caplog.records)
    assert len(told) == 1
    assert "public interface" in told[0]


async def test_a_question_that_is_cancelled_is_told_and_its_wire_closed(postgres_home: Home):
    """By the public interface it is a task, and somebody may end all tasks."""
    async with opened(postgres_home.url, FetchingWire) as store:
        await store.receive(letter("e1"))
        writing = asyncio.ensure_future(store.receive(letter("e2")))
        await asyncio.sleep(0)
        store._writer._sender.wire._task.cancel()
        with pytest.raises(StoreUnreachable, match="broken off"):
            await writing
        assert (await store.receive(letter("e3"))).fresh


async def test_a_server_that_is_away_is_no_fault_to_be_told_of_with_a_traceback(
    postgres_home: Home, caplog: pytest.LogCaptureFixture
):
    """As asyncpg's pool does each time that it has tried in vain; what else it has to say is heard."""
    pool = logging.getLogger("asyncpg.pool")
    async with opened(postgres_home.url):
        try:
            raise ConnectionRefusedError("nobody listens")
        except ConnectionRefusedError:
            pool.warning("Failed to restore the pool connection floor; retrying", exc_info=True)
        pool.warning("Pool.close() is taking over 60 seconds to complete.")
    assert told_by("asyncpg", caplog.records) == ["Pool.close() is taking over 60 seconds to complete."]
