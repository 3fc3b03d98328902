"""A database that is away for less than a lease costs a running turn a moment, and nobody a model call.

The store fails here when it is told to, in both ways in which a commit can: it has not arrived, or it has and nobody
was told. tests/store/test_outages.py does the same with a real server.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest

import everloop
from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.errors import Fenced, StoreBroken, StoreError, StoreFull, StoreUnreachable
from everloop.ports.rows import Commit, Committed, Lease, Renewal
from everloop.testing import Call, Say, ScriptedModel, Wait
from everloop.tools.decorator import tool
from tests.runtime.conftest import letter
from tests.runtime.test_turns import entries, kinds

AWAY = StoreUnreachable("the database does not answer")


class Outage:
    """Lets what a store is asked fail for as many times as are told."""

    def __init__(self, store: Any, name: str, times: int, error: StoreError = AWAY, landed: bool = False) -> None:
        self._ask: Callable[..., Awaitable[Any]] = getattr(store, name)
        self._left = times
        self._error = error
        self._landed = landed  # what was asked is done all the same
        self.over = asyncio.Event()
        self.begun = asyncio.Event()
        setattr(store, name, self)

    async def __call__(self, *args: Any, **more: Any) -> Any:
        if not self._left:
            return await self._ask(*args, **more)
        self._left -= 1
        self.begun.set()
        if not self._left:
            self.over.set()
        if self._landed:
            await self._ask(*args, **more)
        raise self._error


async def test_a_renewal_that_fails_is_tried_again_while_the_lease_holds(house):
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("one")]])
    async with house(model, settings={"store": {"lease_seconds": 6}}) as agent:
        outage = Outage(agent.store, "renew", 5)
        asking = asyncio.create_task(agent.ask("hi"))
        await outage.over.wait()
        gate.set()
        assert (await asking).content == "one"
        assert "Resumed" not in kinds(await entries(agent))
    assert len(model.prompts) == 1


async def test_another_process_that_holds_the_write_lock_of_the_file_is_waited_for(house, tmp_path: Path):
    """Renewals and answers stand in line for it, and come to their turn."""
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("one")]])
    async with house(model, settings={"store": {"lease_seconds": 12}}) as agent:
        asking = asyncio.create_task(agent.ask("hi"))
        await model.called(1)
        with closing(apsw.Connection(str(tmp_path / "home" / "everloop.db"))) as other:
            other.execute("BEGIN IMMEDIATE")
            for _ in range(2):  # first a renewal, then the answer
                before = agent.store._writer._waiting
                while agent.store._writer._waiting == before:  # noqa: ASYNC110  nothing tells of it
                    await asyncio.sleep(0.01)
                gate.set()
            assert not asking.done()
        assert (await asking).content == "one"
        assert "Resumed" not in kinds(await entries(agent))
    assert len(model.prompts) == 1


def let_leases_run_out(home: Path, thread: str) -> None:
    """By the clock of the store, as those do by which we hold them."""
    with closing(apsw.Connection(str(home / "everloop.db"))) as other:
        other.set_busy_timeout(60_000)
        other.execute("UPDATE threads SET expires = 0 WHERE id = ?", (thread,))


async def left(agent: everloop.Agent, thread: str) -> None:
    while agent._lanes.is_driving(thread):  # noqa: ASYNC110  nothing tells of it
        await asyncio.sleep(0.01)


async def test_a_lease_that_runs_out_ends_its_turn_however_long_the_store_takes(house, tmp_path: Path):
    """The renewal neither fails nor succeeds: after a while others may have the thread, and it is taken up again."""
    model = ScriptedModel([[Say("half"), Wait(asyncio.Event())], [Say("whole")]])
    async with house(model, settings={"store": {"lease_seconds": 120}}) as agent:
        asked = asyncio.Event()

        async def hang(leases: list[Lease]) -> Renewal:
            asked.set()
            return await asyncio.Future()

        agent.store.renew = hang
        asking = asyncio.create_task(agent.ask("hi"))
        await model.called(1)
        thread = (await agent.store.session("api:default")).id
        book = agent._lanes._lanes[thread].book
        book.held_from -= 60  # by our clock it is time to renew
        await asked.wait()
        book.held_from -= 60  # and now it is too late for that
        await left(agent, thread)
        let_leases_run_out(tmp_path / "home", thread)
        assert (await asking).content == "whole"
        assert kinds(await entries(agent)).count("Resumed") == 1


async def test_a_lease_that_cannot_be_renewed_costs_its_own_turn_alone(house, tmp_path: Path):
    """The row of one thread is locked by someone: it is neither kept nor lost, until its lease has run out."""
    gates = asyncio.Event(), asyncio.Event()
    waiting = {"stuck": [Wait(gates[0]), Say("never")], "free": [Wait(gates[1]), Say("free")]}
    model = ScriptedModel(lambda shown: waiting.pop(shown.asked, Say("again")))
    async with house(model, settings={"store": {"lease_seconds": 120}}) as agent:
        asking = {name: asyncio.create_task(agent.ask(name, f"api:{name}")) for name in ("stuck", "free")}
        await model.called(2)
        stuck, free = [(await agent.store.session(f"api:{name}")).id for name in ("stuck", "free")]
        books = {thread: agent._lanes._lanes[thread].book for thread in (stuck, free)}
        renew, renewed = agent.store.renew, asyncio.Event()

        async def skip(leases: list[Lease]) -> Renewal:
            renewal = await renew([lease for lease in leases if lease.thread != stuck])
            if {lease.thread for lease in leases} == books.keys():
                renewed.set()
            return renewal

        agent.store.renew = skip
        for book in books.values():
            book.held_from -= 60  # by our clock it is time to renew
        await renewed.wait()
        for book in books.values():
            book.held_from -= 60  # which is too late for the one that was not
        await left(agent, stuck)
        let_leases_run_out(tmp_path / "home", stuck)
        await model.called(3)
        agent.store.renew = renew
        gates[1].set()
        answers = [(await asking[name]).content for name in ("stuck", "free")]
        assert answers == ["again", "free"]
        assert "Resumed" not in kinds(await entries(agent, "api:free"))


async def test_a_lease_that_is_another_s_ends_its_turn_at_once(house, tmp_path: Path):
    model = ScriptedModel([[Wait(asyncio.Event())], [Say("theirs")]])
    async with house(model, settings={"store": {"lease_seconds": 30}}) as agent:
        asking = asyncio.create_task(agent.ask("hi"))
        await model.called(1)
        thread = (await agent.store.session("api:default")).id

        async def lose(leases: list[Lease]) -> Renewal:
            return Renewal(frozenset(), frozenset({thread}))

        agent.store.renew = lose
        agent._lanes._lanes[thread].book.held_from -= 10  # by our clock it is time to renew
        await left(agent, thread)
        let_leases_run_out(tmp_path / "home", thread)  # whoever had it is gone
        assert (await asking).content == "theirs"


def acting(runs: list[str]) -> list[Any]:
    @tool(Effect.READ, local=True)
    async def look() -> str:
        """Look."""
        runs.append("look")
        return "seen"

    @tool(Effect.UNSAFE)
    async def act() -> str:
        """Act."""
        runs.append("act")
        return "acted"

    return [look, act]


SCRIPT = [Call("look"), Call("act"), Say("done")]
UNDISTURBED = [
    "UserSaid",
    *("ModelCalled", "ModelSaid", "CallReturned"),
    *("ModelCalled", "ModelSaid", "CallStarted", "CallReturned"),
    *("ModelCalled", "ModelSaid"),
]


@pytest.mark.parametrize("landed", [False, True], ids=["not-arrived", "arrived"])
@pytest.mark.parametrize("nth", [2, 3, 4, 5])
async def test_a_commit_that_finds_the_database_away_keeps_what_it_holds(house, nth: int, landed: bool):
    """Whichever commit it is, and whether it has arrived or not: nothing is asked, done, written or told twice."""
    runs: list[str] = []
    model = ScriptedModel([*SCRIPT])
    async with house(model, tools=acting(runs)) as agent:
        commits: list[Commit] = []
        commit = agent.store.commit

        async def failing(lease: Lease, what: Commit) -> Committed:
            commits.append(what)
            if len(commits) == nth:
                if landed:
                    await commit(lease, what)
                raise AWAY
            return await commit(lease, what)

        agent.store.commit = failing
        stream = [event async for event in agent.stream("go")]
        assert stream[-1].data["answer"].content == "done"
        assert kinds(await entries(agent)) == UNDISTURBED
        assert [event.name for event in stream].count("thinking_finished") == 1
        assert commits[nth] is commits[nth - 1]  # the very same was sent again
    assert (len(model.prompts), runs) == (3, ["look", "act"])


async def test_a_turn_makes_as_many_commits_as_are_failed_above(house):
    """Or some of the cases above would be none."""
    async with house(ScriptedModel([*SCRIPT]), tools=acting([])) as agent:
        commit, commits = agent.store.commit, []

        async def count(lease: Lease, what: Commit) -> Committed:
            commits.append(bool(lease.epoch))
            return await commit(lease, what)

        agent.store.commit = count
        await agent.ask("go")
        assert commits == [False, True, True, True, True][: len(commits)]
        assert len(commits) == 5


async def test_a_commit_that_is_fenced_after_an_outage_is_not_taken_for_our_own(house):
    """Someone else took the thread over meanwhile. What they have written is not what we would have."""
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("mine")], [Say("whoever goes on")]])
    async with house(model) as agent:
        asking = asyncio.create_task(agent.ask("hi"))
        await model.called(1)
        row = await agent.store.session("api:default")
        commit = agent.store.commit
        fenced = asyncio.Event()

        async def overtaken(lease: Lease, what: Commit) -> Committed:
            agent.store.commit = refused
            await commit(Lease(row.id, 0, lease.head), Commit())  # another epoch
            raise AWAY

        async def refused(lease: Lease, what: Commit) -> Committed:
            try:
                return await commit(lease, what)
            except Fenced:
                fenced.set()
                raise
            finally:
                agent.store.commit = commit

        agent.store.commit = overtaken
        gate.set()
        await fenced.wait()
        agent._lanes.wake(row.id)
        assert (await asking).content == "whoever goes on"
        assert "Resumed" in kinds(await entries(agent))


@pytest.mark.parametrize("name", ["mail", "spending", "watched"])
async def test_what_a_turn_asks_of_the_store_between_its_steps_waits_as_well(house, tmp_path: Path, name: str):
    """Each with an answer in hand that is not committed yet: new mail is read, a guest's budget is looked at, and when
    the next turn follows at once the files of the prompt are looked at."""
    outages: list[Outage] = []
    model = ScriptedModel(lambda shown: Say("done") if shown.asked == "more" or shown.step else Call("look"))

    @tool(Effect.READ, local=True, permission=Role.GUEST)
    async def look() -> str:
        """Look."""
        author = "owner" if name == "watched" else "discord:8"  # only the owner's files stand in prompts
        await agent.tell(letter("more", "e2", author=author, session="api:room"))
        outages.append(Outage(agent.store, name, 3))
        (tmp_path / "home" / "workspace" / "AGENTS.md").write_text("changed")
        return "seen"

    async with house(model, tools=[look]) as agent:
        answer = await agent.ask("look", "api:room", author="discord:7")
        assert answer.content == "done"
        await agent.finish("api:room")
        assert "Resumed" not in kinds(await entries(agent, "api:room"))
        assert outages[0].over.is_set()
    assert [prompt.asked for prompt in model.prompts] == ["look", "look", "more"]


async def test_a_full_disk_is_waited_for_and_a_broken_one_is_not(house):
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("paid for")], [Wait(gate), Say("lost")], [Say("again")]])
    async with house(model) as agent:
        asking = asyncio.create_task(agent.ask("hi"))
        await model.called(1)
        outage = Outage(agent.store, "commit", 3, StoreFull("the disk is full"))
        gate.set()
        assert (await asking).content == "paid for"
        assert outage.over.is_set()
        gate.clear()
        asking = asyncio.create_task(agent.ask("and now?"))
        await model.called(2)
        Outage(agent.store, "commit", 1, StoreBroken("nothing more is written until a restart"))
        gate.set()
        with pytest.raises(StoreBroken):
            await asking


async def test_whoever_asks_while_the_database_is_away_is_told_at_once(house):
    """Nothing has been spent and no lease is held: there is nothing to wait for."""
    async with house(ScriptedModel([Say("one"), Say("two")])) as agent:
        await agent.ask("hi")
        for name in ("commit", "receive"):
            Outage(agent.store, name, 100)
        with pytest.raises(StoreUnreachable):
            await agent.ask("hi again")


async def test_closing_waits_for_no_database(house):
    gate = asyncio.Event()
    model = ScriptedModel([[Wait(gate), Say("one")]])
    async with asyncio.timeout(60):
        async with house(model, settings={"agents": {"shutdown_seconds": 0.0}}) as agent:
            await agent.tell(letter("hi", "e1"))
            await model.called(1)
            outage = Outage(agent.store, "commit", 1_000)
            gate.set()
            await outage.begun.wait()


async def test_an_outage_is_told_of_once_and_not_at_every_look(house, caplog: pytest.LogCaptureFixture):
    async with house(ScriptedModel([])) as agent:
        for _ in range(2):
            outage, again = Outage(agent.store, "changed", 4), asyncio.Event()
            await outage.over.wait()
            changed = agent.store.changed

            async def look(changed: Any = changed, again: asyncio.Event = again) -> bool:
                found = await changed()
                again.set()
                return bool(found)

            agent.store.changed = look
            await again.wait()
    told = [record.getMessage() for record in caplog.records if record.getMessage().startswith("polling")]
    assert told == [f"polling: {AWAY}"] * 2
