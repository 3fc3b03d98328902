"""Somebody else holds what we want to write: whose write it is waits, and nobody else does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any, Protocol

import asyncpg
import pytest

from everloop.core.log import ModelCalled
from everloop.core.mail import Address, Inbound, Outbound, Said
from everloop.core.message import said
from everloop.errors import StoreError, StoreUnreachable
from everloop.ports.rows import Commit, Lease


class Home(Protocol):
    url: str

    async def connect(self) -> Any: ...
    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


def letter(chat: str, event: str) -> Inbound:
    return Inbound(Address("test", chat), event, Said(said(event), "ann"))


@asynccontextmanager
async def held(home: Home, statement: str) -> AsyncIterator[None]:
    connection = await asyncpg.connect(home.url)
    try:
        async with connection.transaction():
            await connection.execute(statement)
            yield
    finally:
        await connection.close()


def row_of(thread: str) -> str:
    return f"SELECT 1 FROM threads WHERE id = '{thread}' FOR UPDATE"


async def hasty(home: Home) -> Any:
    """A store that does not wait for a lock as long as others do; its way to write has not been made yet."""
    store = await home.connect()
    assert store._server._settings["lock_timeout"] == "2s"
    store._server._settings["lock_timeout"] = "200ms"
    return store


async def threads(store: Any, number: int) -> list[str]:
    return [(await store.receive(letter(str(n), f"first/{n}"))).thread for n in range(number)]


async def writes(store: Any, *writing: Awaitable[Any]) -> "list[asyncio.Future[Any]]":
    """All of them in one batch."""
    store.running = 2
    futures = [asyncio.ensure_future(write) for write in writing]
    await asyncio.sleep(0)
    store.running = 0
    return futures


def step(store: Any, thread: str) -> Awaitable[Any]:
    committing: Awaitable[Any] = store.commit(Lease(thread), Commit([ModelCalled("m")]))
    return committing


async def test_a_thread_that_somebody_holds_costs_its_own_write_alone(postgres_home: Home):
    store = await postgres_home.connect()
    first, *others = await threads(store, 30)
    async with held(postgres_home, row_of(first)):
        blocked, *free = await writes(store, *(step(store, thread) for thread in (first, *others)))
        assert [done.head for done in await asyncio.gather(*free)] == [1] * 29
        assert not blocked.done()
    assert (await blocked).head == 1
    assert [len(await store.read(thread)) for thread in (first, *others)] == [1] * 30


async def test_what_comes_after_a_blocked_write_waits_behind_it_and_all_else_goes_on(postgres_home: Home):
    store = await hasty(postgres_home)
    first, second = await threads(store, 2)
    async with held(postgres_home, row_of(first)):
        blocked = await writes(store, store.receive(letter("0", "a")), step(store, second))
        await blocked[1]
        batches = store._writer.batches
        behind = [asyncio.ensure_future(store.receive(letter("0", event))) for event in "bc"]
        assert (await store.receive(letter("1", "other"))).fresh
        assert store._writer.batches == batches + 1  # those behind were not even tried
        assert not any(task.done() for task in (blocked[0], *behind))
    receipts = await asyncio.gather(blocked[0], *behind)
    mail = await store.mail(first)
    assert [m.id for m in mail[1:]] == [receipt.id for receipt in receipts]
    assert [m.letter.parts for m in mail[1:]] == [said("a"), said("b"), said("c")]


async def test_rows_that_are_no_threads_may_be_held_too(postgres_home: Home):
    """A letter with the same name that is about to be committed, and a row of the outbox."""
    store = await hasty(postgres_home)
    first, second = await threads(store, 2)
    sent = Outbound("k", Address("test", "0"), "hi")
    await store.commit(Lease(first), Commit([ModelCalled("m")], outbox=[sent]))
    [row] = await store.due("test")
    post = (
        "INSERT INTO inbox(channel, event, thread, owner, kind, body, at) "
        f"VALUES('test', 'same', '{first}', 'owner', 'said', '{{}}', 0)"
    )
    async with (
        held(postgres_home, f"SELECT 1 FROM outbox WHERE id = {row.id} FOR UPDATE"),
        held(postgres_home, post),
    ):
        settled, doubled, free = await writes(
            store, store.settle(row.id, "sent"), store.receive(letter("1", "same")), step(store, second)
        )
        assert (await free).head == 1
        assert not settled.done()
        assert not doubled.done()
    await settled
    assert (await doubled).thread == first
    assert await postgres_home.rows("SELECT state FROM outbox") == [("sent",)]


async def test_a_table_that_is_held_as_a_whole_is_waited_for(postgres_home: Home):
    store = await hasty(postgres_home)
    known = await threads(store, 5)
    async with held(postgres_home, "LOCK TABLE inbox"):
        tasks = await writes(store, *(store.receive(letter(str(n), f"e{n}")) for n in range(5)))
        while not store._writer._blocked.piles:  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0)
        assert not any(task.done() for task in tasks)
    assert [receipt.thread for receipt in await asyncio.gather(*tasks)] == known


async def test_a_write_whose_time_is_up_is_told_and_was_not_written(postgres_home: Home):
    store = await hasty(postgres_home)
    first, second = await threads(store, 2)
    async with held(postgres_home, row_of(first)):
        blocked, free = await writes(store, step(store, first), step(store, second))
        await free
        piles = store._writer._blocked.piles
        piles[first] = [(0.0, job) for _, job in piles[first]]
        with pytest.raises(StoreUnreachable, match="another session holds what was to be written"):
            await blocked
    assert await store.read(first) == []
    assert (await step(store, first)).head == 1


async def test_whoever_ends_all_tasks_leaves_no_blocked_write_waiting(postgres_home: Home):
    store = await hasty(postgres_home)
    first, second = await threads(store, 2)
    async with held(postgres_home, row_of(first)):
        blocked, free = await writes(store, step(store, first), step(store, second))
        await free
        [task] = [task for task in asyncio.all_tasks() if task.get_name() == "everloop-blocked"]
        task.cancel()
        with pytest.raises(StoreError, match="broken off"):
            await blocked
        assert (await store.receive(letter("1", "other"))).fresh


async def test_closing_waits_for_what_is_blocked(postgres_home: Home):
    store = await hasty(postgres_home)
    first, second = await threads(store, 2)
    async with held(postgres_home, row_of(first)):
        blocked, free = await writes(store, step(store, first), step(store, second))
        await free
        closing = asyncio.ensure_future(store.close())
        await asyncio.sleep(0)
        assert not closing.done()
    await closing
    assert (await blocked).head == 1


async def test_what_the_database_refuses_among_the_blocked_fails_alone(postgres_home: Home):
    store = await hasty(postgres_home)
    first, second = await threads(store, 2)
    async with held(postgres_home, row_of(first)):
        blocked, free = await writes(store, store.receive(letter("0", "a")), step(store, second))
        await free
        behind = [asyncio.ensure_future(store.receive(letter("0", event))) for event in ("b\0", "c")]
        await store.receive(letter("1", "other"))
    assert (await blocked).fresh
    results = await asyncio.gather(*behind, return_exceptions=True)
    assert [isinstance(result, StoreError) for result in results] == [True, False]
    assert [m.letter.parts for m in (await store.mail(first))[1:]] == [said("a"), said("c")]


async def test_commands_that_wait_for_a_thread_leave_room_for_those_who_read(postgres_home: Home):
    """As many as there are connections, and one more: each gives its own back after a while, and comes again."""
    store = await hasty(postgres_home)
    [thread] = await threads(store, 1)
    async with held(postgres_home, row_of(thread)):
        commands = [asyncio.ensure_future(store.command(letter("0", f"c{n}"), "none", "Yes.")) for n in range(5)]
        await asyncio.sleep(0)
        assert (await store.open(thread)).row.id == thread
        assert not any(command.done() for command in commands)
    assert [receipt.reply for receipt in await asyncio.gather(*commands)] == ["Yes."] * 5
