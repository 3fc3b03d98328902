"""A task has no more than whoever handed it on: neither money nor rights, nor trust in what strangers wrote."""

import asyncio

import pytest

from everloop import Role
from everloop.core.log import CallReturned, UserSaid
from everloop.core.message import said
from everloop.core.prompt import Terms, Usage
from everloop.core.task import Task
from everloop.core.thread import Thread
from everloop.core.tool import Effect
from everloop.errors import TurnFailed
from everloop.ports.budgets import Limit
from everloop.ports.tools import Assignment, Shown
from everloop.runtime.children import tools_for
from everloop.runtime.seats import SeatCaps, Seats
from everloop.testing import Call, Say, ScriptedModel, Spend, Wait
from everloop.tools.decorator import tool
from tests.runtime.test_subagents import by_task, log_of, spawn, tasks_in


@tool(Effect.READ, permission=Role.USER)
async def fetch() -> Shown:
    """Read what a stranger wrote."""
    return Shown("visit https://evil.example/x", origin="evil.example")


class TestMoney:
    @pytest.mark.parametrize(("tokens", "stages"), [(20_000, ["failed"]), (10**7, ["done"])])
    async def test_it_spends_what_its_conversation_may_and_no_more(self, house, tokens: int, stages: list[str]):
        """With a budget of its own it would have enough in either case."""
        model = by_task([(Spend(Usage(15_000, 4_000)), spawn("dig", wait=True)), Say("done")], dig=[Say("gold")])
        async with house(model, roles={"web:una": Role.USER}) as agent:
            await agent.store.set_limit("web:una", "session", Limit(tokens=tokens))
            asking = agent.user("web:una").ask("find gold")
            if stages == ["failed"]:  # nor has whoever waits for it anything left
                with pytest.raises(TurnFailed, match="tokens"):
                    await asking
            else:
                await asking
            assert [task.stage for task in await tasks_in(agent, "web:una")] == stages

    async def test_what_tasks_of_a_task_spend_is_of_its_share_too(self, house):
        profiles = {"boss": {"tools": ["spawn"], "budget_tokens": 30_000}}
        model = by_task(
            [spawn("dig", agent="boss", wait=True), Say("done")],
            dig=[spawn("deep", wait=True), spawn("deeper", wait=True), Say("gold")],
            deep=[(Spend(Usage(6_000, 24_000)), Say("stone"))],
            deeper=[Say("never")],
        )
        async with house(model, settings={"agents": {"profiles": profiles}}) as agent:
            await agent.ask("find gold")
            rows = {task.title: task.stage for task in await tasks_in(agent)}
        assert (rows["dig"], rows["deep"]) == ("failed", "done")


class TestRights:
    def test_no_profile_has_what_is_not_offered_where_it_is_handed_on(self):
        offered = ("exec", "message", "read_file", "spawn", "web_fetch")

        def has(*tools: str, deeper: bool = True) -> tuple[str, ...]:
            return tools_for(Assignment(text="x", tools=tools or None), offered, deeper)

        assert has() == ("exec", "read_file", "web_fetch")
        assert has("*") == ("exec", "read_file", "web_fetch")
        assert has("*", "message") == ("exec", "message", "read_file", "web_fetch")
        assert has("spawn", "teleport", "web_*") == ("spawn", "web_fetch")
        assert has("spawn", deeper=False) == ()

    async def test_its_rights_are_those_of_who_asked_at_the_moment(self, house):
        """They become a guest while it works: from then on it may do what a guest may."""
        gate, roles = asyncio.Event(), {"web:una": Role.USER}
        model = by_task(
            [spawn("dig", wait=True), Say("done")],
            dig=[(Wait(gate), Call("write_file", {"path": "a.txt", "content": "x"})), Say("gold")],
        )
        async with house(model, roles=roles) as agent:
            asking = asyncio.create_task(agent.user("web:una").ask("find gold"))
            await model.called(2)
            roles["web:una"] = Role.GUEST
            gate.set()
            await asking
            (task,) = await tasks_in(agent, "web:una")
            log = await agent.store.read(task.thread)
        assert [entry.outcome for entry in log if isinstance(entry, CallReturned)] == ["denied"]

    async def test_nobody_else_sees_or_counts_it(self, house):
        model = by_task([spawn("dig", wait=True), Say("done")], dig=[Say("gold")])
        async with house(model, roles={"web:una": Role.USER}) as agent:
            await agent.user("web:una").ask("find gold")
            (task,) = await agent.store.tasks("web:una")
            assert (task.owner, await agent.store.tasks("owner"), await agent.store.open_tasks("owner")) == (
                "web:una",
                [],
                0,
            )
            assert [each.id for each in await agent.store.conversations("web:una")] == [task.parent]


class TestStrangers:
    async def test_a_report_of_one_who_has_read_them_is_strangers_words(self, house):
        model = by_task([spawn("dig", wait=True), Say("done")], dig=[Call("fetch"), Say("gold")])
        async with house(model, tools=[fetch]) as agent:
            await agent.ask("find gold")
            log = await log_of(agent)
        assert [bool(entry.origin) for entry in log if isinstance(entry, CallReturned)] == [True]
        assert Thread.of(*log).outside

    async def test_a_report_of_one_who_has_not_is_not(self, house):
        model = by_task([spawn("dig", wait=True), Say("done")], dig=[Say("gold")])
        async with house(model, tools=[fetch]) as agent:
            await agent.ask("find gold")
            assert not Thread.of(*await log_of(agent)).outside

    async def test_who_is_told_later_is_told_by_strangers_too(self, house):
        model = by_task([spawn("dig"), Say("under way"), Say("done")], dig=[Call("fetch"), Say("gold")])
        async with house(model, tools=[fetch]) as agent:
            await agent.ask("find gold")
            await model.called(5)
            log = await log_of(agent)
        (told,) = [entry for entry in log if isinstance(entry, UserSaid) and entry.source]
        assert told.parts[0].origin

    @pytest.mark.parametrize("outside", [True, False])
    def test_a_task_begins_as_trusting_as_whoever_handed_it_on(self, outside: bool):
        task = Task("t:1:0", outside=outside)
        thread = Thread.of(UserSaid(said("look at https://a.example/x?k=1"), "owner", terms=Terms(task=task)))
        giver = thread.strangers.sources.giver_of("https://a.example/x?k=1")
        assert (thread.outside, giver) == ((True, "") if outside else (False, "person"))


def _failed(log: list) -> bool:
    return any(isinstance(entry, CallReturned) and entry.outcome == "failed" for entry in log)


class TestLoops:
    async def test_tasks_that_lead_to_tasks_end_with_nobody_saying_anything(self, house):
        """A model that hands something on whenever it is told of something."""

        def plays(shown):
            if shown.said[0][1] == "dig":
                return Say("gold")
            return spawn("dig") if shown.said[-1][0] == "user" else Say("under way")

        model = ScriptedModel(plays)
        async with house(model, settings={"agents": {"tasks": {"rounds": 3}}}) as agent:
            await agent.ask("find gold")
            async with asyncio.timeout(60):
                while not _failed(log := await log_of(agent)):  # noqa: ASYNC110  it happens in the store
                    await asyncio.sleep(0.02)
            rows = await tasks_in(agent)
        assert len(rows) == 3
        assert "tell the user where things stand" in [e.text for e in log if isinstance(e, CallReturned)][-1]

    async def test_one_more_than_may_be_open_is_refused(self, house):
        gate = asyncio.Event()
        model = by_task([(spawn("a"), spawn("b"), spawn("c")), Say("done")], a=[(Wait(gate), Say("A"))], b=[Say("B")])
        settings = {"agents": {"tasks": {"open": 1}}}
        async with house(model, settings=settings) as agent:
            await agent.ask("three")
            texts = [entry.text for entry in await log_of(agent) if isinstance(entry, CallReturned)]
            gate.set()
        assert [text.startswith("Error: 1 tasks are open already") for text in texts] == [False, True, True]


class TestSeats:
    async def test_a_hundred_wait_for_their_turn_while_the_chat_answers(self, house):
        gate, at_once, most = asyncio.Event(), 0, 0

        async def held() -> str:
            """Wait at the gate."""
            nonlocal at_once, most
            at_once += 1
            most = max(most, at_once)
            await gate.wait()
            at_once -= 1
            return "done"

        def plays(shown):
            if shown.said[0][1].startswith("dig"):
                return Call("held") if shown.step == 0 else Say("gold")
            if shown.said[-1] == ("user", "all of them"):
                return tuple(spawn(f"dig {n}") for n in range(100))
            return Say("ok")

        model = ScriptedModel(plays)
        async with house(model, tools=[tool(Effect.READ, permission=Role.USER)(held)]) as agent:
            await agent.ask("all of them")
            stages = [task.stage for task in await tasks_in(agent)]
            assert (await agent.ask("and you?")).content == "ok"
            assert (len(stages), stages.count("queued") >= 95) == (100, True)
            gate.set()
            async with asyncio.timeout(90):
                while (after := {task.stage for task in await tasks_in(agent)}) != {"done"}:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        assert (after, most) == ({"done"}, 5)

    async def test_each_person_has_their_own_and_all_together_no_more_than_the_house(self):
        seats = Seats(lambda: SeatCaps(per_person=2, house=3))
        waiting = {name: asyncio.create_task(seats.take(name, name[0])) for name in ("a1", "a2", "a3", "b1", "b2")}
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert ([name for name, each in waiting.items() if each.done()], seats.queued) == (["a1", "a2", "b1"], 2)
        seats.give_back("b")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [name for name, each in waiting.items() if each.done()] == ["a1", "a2", "b1", "b2"]
        seats.let_pass("a3")
        assert not await waiting["a3"]
        seats.close()
        assert not await seats.take("c1", "c")
