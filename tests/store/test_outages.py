"""Turns over a real PostgreSQL server that is restarted, locked or away: who is asked again, and who is not."""

import asyncio
import logging
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.store.test_postgres import proxied
from tests.torture.postgres import Node

import everloop
from everloop.app.agent import Agent
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.errors import StoreUnreachable
from everloop.ports.rows import Commit, Lease, Renewal
from everloop.store.postgres import PostgresStore
from everloop.testing import Say, ScriptedModel, Wait

TURNS = 6
SHORT = 6.0  # seconds of a lease that is to run out, and that no slow moment of a machine takes away before


@pytest.fixture(scope="module")
def server(postgres: str) -> Iterator[Node]:
    """One that may be stopped. That there is `postgres` says that a server can be had at all."""
    folder = Path(tempfile.mkdtemp(prefix="everloop-node-", dir="/tmp"))
    node = Node(folder / "data")
    node.create()
    node.start()
    yield node
    node.stop("immediate")
    shutil.rmtree(folder)


class Told(logging.Handler):
    """Waits for so many lines in the log that hold some words."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: list[str] = []
        self._more = asyncio.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())
        self._more.set()

    async def told(self, words: str, times: int = 1) -> None:
        while sum(words in line for line in self._lines) < times:
            self._more.clear()
            await self._more.wait()


@pytest.fixture
async def log() -> AsyncIterator[Told]:
    handler, logger = Told(), logging.getLogger("everloop.lanes")
    logger.addHandler(handler)
    yield handler
    logger.removeHandler(handler)


@asynccontextmanager
async def house(node: Node, folder: Path, model: ScriptedModel, lease_seconds: float) -> AsyncIterator[Agent]:
    name = f"d{abs(hash(str(folder)))}"
    await asyncio.to_thread(node.sql, f'CREATE DATABASE "{name}"')
    settings = {"store": {"url": node.url(name), "lease_seconds": lease_seconds}}
    async with everloop.open(folder / "home", settings, provider=model) as agent:
        yield agent


def ask(agent: Agent) -> list["asyncio.Task[Any]"]:
    return [asyncio.create_task(agent.ask("hi", f"api:{n}")) for n in range(TURNS)]


async def resumed(agent: Agent) -> int:
    rows = [await agent.store.session(f"api:{n}") for n in range(TURNS)]
    entries = [entry for row in rows if row for entry in await agent.store.read(row.id)]
    return sum(type(entry).__name__ == "Resumed" for entry in entries)


@pytest.mark.parametrize("during", [True, False], ids=["answered-during-it", "answered-after-it"])
@pytest.mark.parametrize("mode", ["fast", "immediate"])
async def test_a_restart_of_the_database_costs_no_model_call(
    server: Node, tmp_path: Path, log: Told, mode: Any, during: bool
):
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("done")]] * TURNS)
    async with house(server, tmp_path, model, lease_seconds=24) as agent:
        asking = ask(agent)
        await model.called(TURNS)
        await asyncio.to_thread(server.stop, mode)
        if during:
            gate.set()
            await log.told("a turn waits for the database", TURNS)
        else:
            await log.told("leases could not be renewed", 2)
        await asyncio.to_thread(server.start)
        gate.set()
        assert [(await each).content for each in asking] == ["done"] * TURNS
        assert await resumed(agent) == 0
    assert len(model.prompts) == TURNS


async def test_an_outage_that_is_longer_than_a_lease_costs_each_running_turn_one_call(
    server: Node, tmp_path: Path, log: Told
):
    gate = asyncio.Event()
    model = ScriptedModel([*([[Say("half"), Wait(gate)]] * TURNS), *([Say("whole")] * TURNS)])
    async with house(server, tmp_path, model, lease_seconds=SHORT) as agent:
        asking = ask(agent)
        await model.called(TURNS)
        await asyncio.to_thread(server.stop)
        await log.told("is lost", TURNS)
        await asyncio.to_thread(server.start)
        assert [(await each).content for each in asking] == ["whole"] * TURNS
        assert await resumed(agent) == TURNS
    assert len(model.prompts) == 2 * TURNS


@pytest.mark.parametrize("long", [True, False], ids=["longer-than-a-lease", "for-a-while"])
async def test_a_row_that_somebody_holds_costs_at_most_its_own_turn(
    server: Node, tmp_path: Path, log: Told, long: bool
):
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("done")]] * (TURNS + 1))
    async with house(server, tmp_path, model, lease_seconds=SHORT if long else 3 * SHORT) as agent:
        asking = ask(agent)
        await model.called(TURNS)
        threads = [row.id for n in range(TURNS) if (row := await agent.store.session(f"api:{n}"))]
        connection = await asyncpg.connect(agent.store._server._url)  # type: ignore[attr-defined]
        async with connection.transaction():
            await connection.execute("SELECT 1 FROM threads WHERE id = $1 FOR UPDATE", threads[0])
            if long:
                await log.told(f"the lease on thread {threads[0]} is lost")
            for _ in range(2):  # the others are renewed
                await until_renewed(connection, threads[1])
        gate.set()
        assert [(await each).content for each in asking] == ["done"] * TURNS
        assert await resumed(agent) == int(long)
        await connection.close()
    assert len(model.prompts) == TURNS + int(long)


async def until_renewed(connection: Any, thread: str) -> None:
    expires = "SELECT expires FROM threads WHERE id = $1"
    before = await connection.fetchval(expires, thread)
    while await connection.fetchval(expires, thread) == before:  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.01)


async def taken(store: PostgresStore, chat: str) -> Lease:
    receipt = await store.receive(Inbound(Address("test", chat), chat, Said(said("hello"), "ann")))
    committed = await store.commit(Lease(receipt.thread), Commit())
    return Lease(receipt.thread, committed.epoch)


async def test_a_renewal_waits_for_nobody_who_reads(postgres_home: Any):
    store = await PostgresStore.connect(postgres_home.url)
    lease = await taken(store, "chat")
    reads = [asyncio.ensure_future(store._rows("SELECT pg_sleep(60)")) for _ in range(8)]
    await asyncio.sleep(0)
    assert await store.renew([lease]) == Renewal(frozenset({lease.thread}), frozenset())
    assert not any(read.done() for read in reads)
    for read in reads:
        read.cancel()
    await asyncio.gather(*reads, return_exceptions=True)
    await store.close()


async def test_of_a_locked_row_a_renewal_says_nothing_unless_it_is_lost(postgres_home: Any):
    store = await PostgresStore.connect(postgres_home.url)
    free, held, lost = [await taken(store, chat) for chat in "abc"]
    gone = Lease("nowhere", 1)
    connection = await asyncpg.connect(postgres_home.url)
    await connection.execute("UPDATE threads SET epoch = epoch + 1 WHERE id = $1", lost.thread)
    async with connection.transaction():
        await connection.execute("SELECT 1 FROM threads WHERE id = ANY($1) FOR UPDATE", [held.thread, lost.thread])
        told = await store.renew([free, held, lost, gone])
    assert told == Renewal(frozenset({free.thread}), frozenset({lost.thread, "nowhere"}))
    assert (await store.renew([held])).kept == {held.thread}
    await connection.close()
    await store.close()


async def test_a_renewal_that_is_not_answered_is_given_up_and_the_next_has_a_new_connection(postgres_home: Any):
    async with proxied(postgres_home) as (proxy, url):
        store = await PostgresStore.connect(url, lease_seconds=20)
        lease = await taken(store, "chat")
        await postgres_home.write("UPDATE threads SET expires = expires + 1000")
        assert (await store.renew([lease])).kept == {lease.thread}
        proxy.deaf = True
        with pytest.raises(StoreUnreachable, match="does not answer"):
            await store.renew([lease])
        proxy.deaf = False
        await postgres_home.write("UPDATE threads SET expires = expires + 1000")
        assert (await store.renew([lease])).kept == {lease.thread}
        await store.close()
