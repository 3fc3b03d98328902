"""Titles that a model gives: once for a conversation, whoever is killed, and never over a person's own."""

import asyncio
import time
from typing import Any, Protocol

import pytest
from msgspec import Struct, structs

from everloop.bus.local import LocalBus
from everloop.core.log import ModelCalled, ModelSaid, UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.overrun import Account
from everloop.core.people import Role
from everloop.core.prompt import Usage
from everloop.core.turn import Finished
from everloop.errors import RateLimited, StoreUnreachable
from everloop.ports import Store
from everloop.ports.budgets import Bound, Limit, Reservation, Spending
from everloop.ports.channel import DOORS
from everloop.ports.conversation import ArchiveThread, GiveTitle, Rename
from everloop.ports.jobs import TITLE, JobRow
from everloop.ports.rows import Commit, Lease, Spent, SpentRow
from everloop.runtime.budgets import BudgetControl
from everloop.runtime.people import KnownPeople
from everloop.runtime.scheduler import Scheduler
from everloop.runtime.titles import NotTitled, Titles
from everloop.testing import Empty, Fail, Say, ScriptedModel, Spend, Wait

PAGE = Address("page", "one")
USED = Usage(40, 5)
NAMED = (Say("Walrus research"), Spend(USED))


class Home(Protocol):
    async def connect(self, lease_seconds: float = 30.0) -> Store: ...
    async def lose(self, store: Store) -> None: ...
    async def write(self, statement: str) -> None: ...
    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


class Small(Struct, frozen=True):
    provider: Any
    name: str = "custom/small"
    model: str = "small"

    def price(self, usage: Usage) -> float | None:
        return usage.output / 1000


class LateClock:
    """What is due is due at once."""

    def __init__(self, ahead: float = 0.0) -> None:
        self.ahead = ahead

    def now(self) -> float:
        return time.time() - 1.0 + self.ahead

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0.005)


def titles(
    store: Store, model: Any, *, wanted: bool = True, bus: Any = None, clock: Any = None, **roles: Role
) -> Titles:
    async def namer() -> Small | None:
        return Small(model) if model else None

    return Titles(
        store,
        bus or LocalBus(),
        KnownPeople(None, roles),
        clock or LateClock(),
        wanted=lambda: wanted,
        namer=namer,
        traits=DOORS,
        budgets=BudgetControl(store),
    )


async def talked(
    store: Store, address: Address = PAGE, owner: str = "owner", question: str = "Where do walruses live?"
) -> str:
    """A conversation in which one question was answered."""
    receipt = await store.command(Inbound(address, f"new/{address}", Said(said("/new"), owner), owner), "new", "")
    entries = [UserSaid(said(question), owner, str(address)), ModelCalled("large"), ModelSaid("In the Arctic.")]
    await store.commit(Lease(receipt.thread), Commit(entries, release=True, state="resting"))
    return receipt.thread


def ended(address: Address = PAGE, **more: Any) -> Finished:
    return Finished(1, 3, more.pop("text", "In the Arctic."), str(address), (1,), **more)


async def claimed(store: Store) -> JobRow:
    (row,) = await store.claim_jobs({TITLE}, 30.0)
    return row


async def title_of(store: Store, thread: str, owner: str = "owner") -> tuple[str, bool]:
    (found,) = await store.conversations(owner, id=thread, archived=True)
    return found.title, found.named


async def spent(store: Store) -> list[tuple[str, str, int]]:
    return [(row.model, row.purpose, row.calls) for row in await store.spent()]


async def test_a_conversation_is_named_once_and_what_that_took_is_written_down(home: Home, store: Store):
    thread, model, bus = await talked(store), ScriptedModel([NAMED]), LocalBus()
    named = titles(store, model, bus=bus)
    with bus.subscribe() as events:
        await named.plan(thread)
        row = await claimed(store)
        assert await named.work(row) == "asked"
        event = await anext(aiter(events))
    await store.settle_job(row, "asked")
    assert (event.name, event.thread, event.seq, event.data) == ("titled", thread, 0, {"title": "Walrus research"})
    assert await title_of(store, thread) == ("Walrus research", True)
    (only,) = await store.spent()
    assert only == SpentRow(only.day, "small", 1, USED, 0.0, 1, "titles")
    assert await home.rows("SELECT owner, thread, seq FROM usage") == [("owner", thread, 0)]
    await named.plan(thread)  # also when it is noted again
    assert (await store.claim_jobs({TITLE}, 30.0), model.calls) == ([], 1)


async def test_the_model_is_shown_the_first_question_and_its_answer_cut_and_is_given_no_tools(store: Store):
    thread, model = await talked(store, question="walrus " * 10_000), ScriptedModel([NAMED])
    await titles(store, model).plan(thread)
    await titles(store, model).work(await claimed(store))
    (prompt,) = model.prompts
    text = prompt.messages[0].text
    assert (prompt.tools, len(prompt.messages), len(text) < 3100, "In the Arctic." in text) == ((), 1, True, True)


async def test_a_job_that_was_cut_off_while_the_model_was_asked_is_not_paid_twice(home: Home, store: Store):
    other, model = await home.connect(), ScriptedModel(lambda shown: (Wait(asyncio.Event()), *NAMED))
    thread = await talked(store)
    await titles(store, model).plan(thread)
    asking = asyncio.ensure_future(titles(store, model).work(await claimed(store)))
    await model.called(1)
    asking.cancel()
    await asyncio.wait([asking])
    await home.lose(store)
    await home.write("UPDATE jobs SET until = 0")
    row = await claimed(other)
    assert (row.attempts, row.result) == (2, "")
    assert await titles(other, model).work(row) == "broken off, and not asked again: it may have been paid"
    assert (model.calls, await title_of(other, thread)) == (1, ("Where do walruses live?", False))


async def test_a_job_that_was_cut_off_after_its_title_was_given_is_not_paid_twice(home: Home, store: Store):
    other, model = await home.connect(), ScriptedModel([NAMED])
    thread = await talked(store)
    await titles(store, model).plan(thread)
    await titles(store, model).work(await claimed(store))
    await home.lose(store)
    await home.write("UPDATE jobs SET until = 0")
    assert await titles(other, model).work(await claimed(other)) == "paid"
    assert (model.calls, await spent(other)) == (1, [("small", "titles", 1)])


async def test_a_host_that_refuses_is_asked_once_more_and_then_no_more(home: Home, store: Store, caplog):
    thread, model = await talked(store), ScriptedModel(lambda shown: Fail(RateLimited("too many requests")))
    await titles(store, model).plan(thread)
    scheduler = Scheduler(store, LocalBus(), LateClock(), {TITLE: titles(store, model).work})
    running = asyncio.ensure_future(scheduler.run())
    while [row.state for row in await store.jobs("owner")] != ["done"]:
        await home.write("UPDATE jobs SET until = 0 WHERE state = 'waiting'")
        await asyncio.sleep(0.005)
    running.cancel()
    await asyncio.wait([running])
    assert (model.calls, await spent(store)) == (2, [])
    assert f"conversation {thread} gets no title, for the model has given none: too many requests" in caplog.text
    assert await title_of(store, thread) == ("Where do walruses live?", False)


async def test_a_second_try_after_a_refusal_may_succeed(store: Store):
    thread, model = await talked(store), ScriptedModel([Fail(RateLimited("too many requests")), NAMED])
    await titles(store, model).plan(thread)
    row = await claimed(store)
    with pytest.raises(NotTitled, match="too many requests"):
        await titles(store, model).work(row)
    await store.settle_job(row, "NotTitled: too many requests", 0.0)
    assert await titles(store, model).work(await claimed(store)) == "asked"
    assert await title_of(store, thread) == ("Walrus research", True)


async def test_a_person_who_names_it_meanwhile_is_not_overruled_and_the_call_is_counted(store: Store):
    thread, gate = await talked(store), asyncio.Event()
    model = ScriptedModel([(Wait(gate), *NAMED)])
    await titles(store, model).plan(thread)
    asking = asyncio.ensure_future(titles(store, model).work(await claimed(store)))
    await model.called(1)
    await store.perform("owner", str(PAGE), Rename(thread, "mine"))
    gate.set()
    await asking
    assert (await title_of(store, thread), await spent(store)) == (("mine", True), [("small", "titles", 1)])


async def test_a_commit_whose_answer_was_lost_is_sent_again_and_counts_once(store: Store):
    thread, model = await talked(store), ScriptedModel([NAMED])

    class Lossy:
        """A store that performs, and does not say so, the first time."""

        told = False

        def __getattr__(self, name: str) -> Any:
            return getattr(store, name)

        async def perform(self, *args: Any) -> bool:
            done = await store.perform(*args)
            if not Lossy.told:
                Lossy.told = True
                raise StoreUnreachable("the connection broke")
            return done

    lossy: Any = Lossy()
    await titles(store, model).plan(thread)
    await titles(lossy, model).work(await claimed(store))
    assert (await title_of(store, thread), await spent(store)) == (
        ("Walrus research", True),
        [("small", "titles", 1)],
    )


async def test_without_its_mark_the_same_deed_would_be_counted_twice(home: Home, store: Store):
    """The control of the one before."""
    thread = await talked(store)
    deed = GiveTitle(thread, "Walrus research", Spent(0, "m", USED, 0.5), f"{TITLE}:{thread}")
    await titles(store, ScriptedModel([])).plan(thread)
    assert [await store.perform("owner", str(PAGE), deed) for _ in range(2)] == [True, False]
    assert await spent(store) == [("m", "titles", 1)]
    await home.write("UPDATE jobs SET result = ''")
    await store.perform("owner", str(PAGE), deed)
    assert await spent(store) == [("m", "titles", 2)]


async def test_an_answer_without_a_title_is_paid_and_leaves_the_first_words(store: Store):
    thread, model = await talked(store), ScriptedModel([(Empty(), Spend(USED))])
    await titles(store, model).plan(thread)
    assert await titles(store, model).work(await claimed(store)) == "asked"
    assert (await title_of(store, thread), await spent(store)) == (
        ("Where do walruses live?", False),
        [("small", "titles", 1)],
    )


async def test_what_is_named_archived_a_guests_or_old_is_not_planned(store: Store):
    model = ScriptedModel([])
    named, away, hers, old = [
        await talked(store, Address("page", name), owner)
        for name, owner in (("named", "owner"), ("away", "owner"), ("hers", "ann"), ("old", "owner"))
    ]
    await store.perform("owner", "page:named", Rename(named, "mine"))
    await store.perform("owner", "page:away", ArchiveThread(away))
    for thread in (named, away, hers):
        await titles(store, model).plan(thread)
    await titles(store, model, clock=LateClock(8 * 86400.0)).plan(old)
    assert [await store.jobs(owner) for owner in ("owner", "ann")] == [[], []]
    await titles(store, model, ann=Role.USER).plan(hers)
    assert [row.job.payload for row in await store.jobs("ann")] == [hers]


async def test_what_was_named_or_archived_since_is_not_asked_for(store: Store):
    model = ScriptedModel([])
    for name, deed in (("a", lambda id: Rename(id, "mine")), ("b", ArchiveThread)):
        thread = await talked(store, Address("page", name))
        await titles(store, model).plan(thread)
        await store.perform("owner", f"page:{name}", deed(thread))
        row = await claimed(store)
        assert await titles(store, model).work(row) == "not needed"
        await store.settle_job(row, "not needed")
    assert model.calls == 0


async def test_only_answered_turns_of_lists_are_noted_and_none_when_nobody_is_to_name_them(store: Store):
    model = ScriptedModel([])
    threads = {door: await talked(store, Address(door, "x")) for door in ("page", "cli", "api", "openai", "platform")}
    threads["telegram"] = await talked(store, Address("telegram", "x"))
    failed, off = [await talked(store, Address("page", name)) for name in ("failed", "off")]
    working = titles(store, model)
    for door, thread in threads.items():
        working.note(thread, ended(Address(door, "x")))
    working.note(failed, ended(reason="model", text="No."))
    working.note(failed, ended(text=None))
    titles(store, model, wanted=False).note(off, ended())
    running = asyncio.ensure_future(working.run())
    while not await store.jobs("owner"):  # noqa: ASYNC110  it happens in the database
        await asyncio.sleep(0.005)
    running.cancel()
    await asyncio.wait([running])
    assert [row.job.payload for row in await store.jobs("owner")] == [threads["page"]]


async def test_a_title_is_paid_by_whose_conversation_it_is_and_left_out_where_there_is_no_room(store: Store):
    thread = await talked(store)
    await store.set_limit("owner", "month", Limit(100))
    model = ScriptedModel(lambda shown: Say("Walruses"))
    namer = titles(store, model)
    await namer.plan(thread)
    assert await namer.work(await claimed(store)) == "there is no room for it in the budget"
    other = await talked(store, Address("page", "other"))
    await store.set_limit("owner", "month", Limit(10_000))
    enough = titles(store, model)
    await enough.plan(other)
    assert (await enough.work(await claimed(store)), model.calls) == ("asked", 1)
    [spent] = await store.spending(["owner"])
    assert (spent.tokens > 0, spent.held_tokens) == (True, 0)


async def test_a_title_that_was_broken_off_is_charged_as_it_was_reserved(store: Store):
    await store.set_limit("owner", "month", Limit(10_000))
    account = Account("owner", "month")
    bound = Bound(account, Limit(10_000), Spending(account))
    thread = await talked(store)
    namer = titles(store, ScriptedModel([]))
    await namer.plan(thread)
    row = await claimed(store)
    await store.reserve(Reservation(row.job.id, "owner", 700, 0, (bound,)))  # and then it was killed
    assert (await namer.work(structs.replace(row, attempts=2))).startswith("broken off")
    [spent] = await store.spending(["owner"])
    assert (spent.tokens, spent.held_tokens) == (700, 0)
