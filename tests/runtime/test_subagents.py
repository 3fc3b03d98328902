"""A task that is handed on is worked at in a conversation of its own, and what comes of it is told once."""

import asyncio

import pytest

import everloop
from everloop import Role
from everloop.core.log import CallReturned, CallStarted, ModelSaid, UserSaid
from everloop.core.tool import Effect
from everloop.errors import MailRefused, TurnFailed
from everloop.ports.events import SubagentCompleted, SubagentProgress, SubagentSpawned
from everloop.ports.tasks import TaskRow
from everloop.replay import cut, replay, turns_in
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Wait
from everloop.tools.decorator import tool

pytestmark = pytest.mark.usefixtures("sent_as_well")

PROFILES = {
    "agents": {
        "profiles": {
            "scout": {"description": "looks around", "prompt": "Look twice.", "tools": ["list_dir"], "steps": 3},
            "boss": {"tools": ["*", "spawn"]},
        }
    }
}


def spawn(task: str, **more) -> Call:
    return Call("spawn", {"task": task, **more})


def by_task(parent: list, **children: list) -> ScriptedModel:
    """One that answers a conversation by how it begins: the parent's script, or that of the task's first word."""
    scripts = {"": iter(parent), **{name: iter(script) for name, script in children.items()}}

    def answer(shown):
        first = shown.said[0][1].split()[0]
        return next(scripts[first] if first in scripts else scripts[""])

    return ScriptedModel(answer)


async def tasks_in(agent: everloop.Agent, session: str = "api:default") -> list[TaskRow]:
    row = await agent.store.session(session)
    return await agent.store.tasks(under=row.id)


async def log_of(agent: everloop.Agent, session: str = "api:default") -> list:
    row = await agent.store.session(session)
    return await agent.store.read(row.id)


class TestWaiting:
    async def test_what_comes_of_it_is_the_result_of_the_call(self, house):
        model = by_task([spawn("dig deep", wait=True), Say("They found gold.")], dig=[Call("list_dir"), Say("gold")])
        async with house(model) as agent:
            answer = await agent.ask("find gold")
            log = await log_of(agent)
            (task,) = await tasks_in(agent)
        assert answer.content == "They found gold."
        assert [entry for entry in log if isinstance(entry, CallStarted | CallReturned)] == [
            CallStarted(3, 0, waits=True),
            CallReturned(3, 0, "gold"),
        ]
        assert (task.title, task.stage, task.steps, task.spawned_by) == ("dig deep", "done", 2, f"{task.parent}:3:0")

    async def test_it_sees_the_task_and_nothing_of_the_conversation(self, house):
        model = by_task([Say("hm"), spawn("dig deep", wait=True), Say("done")], dig=[Say("gold")])
        async with house(model) as agent:
            await agent.ask("my secret is canary-17")
            await agent.ask("find gold")
        (shown,) = [prompt for prompt in model.prompts if prompt.said[0][1] == "dig deep"]
        assert shown.said == [("user", "dig deep")]
        assert "canary-17" not in shown.system
        assert "sub-agent" in shown.system
        assert not {"message", "spawn"} & set(shown.tools)
        assert {"read_file", "write_file", "exec"} <= set(shown.tools)

    async def test_who_waits_holds_nothing(self, house):
        gate = asyncio.Event()
        model = by_task([spawn("dig deep", wait=True), Say("done")], dig=[(Wait(gate), Say("gold"))])
        async with house(model) as agent:
            asking = asyncio.create_task(agent.ask("find gold"))
            await model.called(2)
            row = await agent.store.session("api:default")
            held = (await agent.store.open(row.id)).row
            gate.set()
            await asking
        assert (held.state, held.holder) == ("waiting", "")

    async def test_several_of_one_answer_are_worked_at_side_by_side(self, house):
        gates = [asyncio.Event(), asyncio.Event()]
        model = by_task(
            [(spawn("a", wait=True), spawn("b", wait=True)), Say("done")],
            a=[(Wait(gates[0]), Say("A"))],
            b=[(Wait(gates[1]), Say("B"))],
        )
        async with house(model) as agent:
            asking = asyncio.create_task(agent.ask("both"))
            await model.called(3)
            gates[1].set()
            gates[0].set()
            await asking
            log = await log_of(agent)
        assert {entry.text for entry in log if isinstance(entry, CallReturned)} == {"A", "B"}

    async def test_a_person_who_speaks_meanwhile_is_answered_and_told_of_it_later(self, house):
        gate, channel = asyncio.Event(), RecordingChannel("fake")
        model = by_task(
            [spawn("dig deep", wait=True), Say("It is under way."), Say("They found gold.")],
            dig=[(Wait(gate), Say("gold"))],
        )
        async with house(model, channels=[channel]) as agent:
            asking = asyncio.create_task(agent.ask("find gold", "fake:home", author="owner"))
            await model.called(2)
            second = await agent.ask("how far is it?", "fake:home", author="owner")
            gate.set()
            await channel.sent(2)
            first = await asking
        assert (first.content, second.content) == ("It is under way.", "It is under way.")
        assert [sent.text for sent in channel.sends] == ["It is under way.", "They found gold."]


class TestReporting:
    async def test_it_is_told_in_a_turn_of_its_own_where_it_was_asked(self, house):
        channel = RecordingChannel("fake")
        model = by_task([spawn("dig deep"), Say("Under way."), Say("They found gold.")], dig=[Say("gold")])
        async with house(model, channels=[channel]) as agent:
            first = await agent.ask("find gold", "fake:home", author="owner")
            await channel.sent(2)
            log = await log_of(agent, "fake:home")
        assert first.content == "Under way."
        assert [sent.text for sent in channel.sends] == ["Under way.", "They found gold."]
        (told,) = [entry for entry in log if isinstance(entry, UserSaid) and entry.source]
        assert (told.parts[0].text, told.source, told.rounds) == ("gold", "a task that was handed on (done)", 1)

    async def test_one_that_fails_says_so(self, house):
        model = by_task(
            [spawn("dig deep", wait=True, agent="poor"), Say("It failed.")],
            dig=[Say("never")],
        )
        settings = {"agents": {"profiles": {"poor": {"budget_tokens": 1}}}}
        async with house(model, settings=settings) as agent:
            await agent.ask("find gold")
            log = await log_of(agent)
            (task,) = await tasks_in(agent)
        (result,) = [entry for entry in log if isinstance(entry, CallReturned)]
        assert (result.outcome, task.stage, task.steps) == ("failed", "failed", 0)
        assert "spent 0 of 1 tokens" in result.text

    async def test_its_events_are_told_where_it_was_handed_on(self, house):
        model = by_task([spawn("dig deep", wait=True), Say("done")], dig=[Call("list_dir"), Say("gold")])
        seen = []
        async with house(model) as agent:
            async for event in agent.stream("find gold"):
                if isinstance(event, SubagentSpawned | SubagentProgress | SubagentCompleted):
                    seen.append(event)
            (task,) = await tasks_in(agent)
        call = task.spawned_by
        assert [(event.name, event.task) for event in seen] == [
            ("spawned", call),
            ("progress", call),
            ("completed", call),
        ]
        assert (seen[0].title, seen[1].doing, seen[2].reason, seen[2].steps) == ("dig deep", "list_dir", "", 2)


class TestWhoWorks:
    async def test_a_profile_says_what_it_is_told_and_may_do(self, house):
        model = by_task([spawn("dig deep", agent="scout", wait=True), Say("done")], dig=[Say("gold")])
        async with house(model, settings=PROFILES) as agent:
            await agent.ask("find gold")
            spec = model.prompts[0]
        (shown,) = [prompt for prompt in model.prompts if prompt.said[0][1] == "dig deep"]
        assert (set(shown.tools), shown.system.endswith("Look twice.")) == ({"list_dir"}, True)
        assert "spawn" in spec.tools

    async def test_one_that_there_is_not_is_answered_with_those_there_are(self, house):
        model = ScriptedModel([spawn("dig", agent="nobody"), Say("done")])
        async with house(model, settings=PROFILES) as agent:
            await agent.ask("find gold")
            log = await log_of(agent)
            assert await tasks_in(agent) == []
        (result,) = [entry for entry in log if isinstance(entry, CallReturned)]
        assert result.text == "Error: there is no agent 'nobody'; there is: boss, scout. Or name none"

    async def test_a_task_hands_on_only_where_its_profile_names_spawn_and_not_too_deep(self, house):
        model = by_task(
            [spawn("dig deep", agent="boss", wait=True), Say("done")],
            dig=[spawn("deeper still", agent="boss", wait=True), Say("gold")],
            deeper=[spawn("deepest", wait=True), Say("stone")],
        )
        async with house(model, settings=PROFILES) as agent:
            await agent.ask("find gold")
            rows = await tasks_in(agent)
        tools = {prompt.said[0][1]: "spawn" in prompt.tools for prompt in model.prompts}
        assert tools == {"find gold": True, "dig deep": True, "deeper still": False}
        assert [(row.title, row.stage) for row in rows] == [("dig deep", "done"), ("deeper still", "done")]

    async def test_it_stops_at_its_steps_and_says_what_is_left(self, house):
        model = by_task(
            [spawn("dig deep", agent="scout", wait=True), Say("done")],
            dig=[Call("list_dir", {"path": "."}), Call("list_dir", {"path": ".."}), Call("list_dir"), Say("left: all")],
        )
        async with house(model, settings=PROFILES) as agent:
            await agent.ask("find gold")
            log = await log_of(agent)
        assert [entry.text for entry in log if isinstance(entry, CallReturned)] == ["left: all"]

    async def test_guests_hand_nothing_on(self, house):
        model = ScriptedModel([Say("hm")])
        async with house(model, roles={"web:gus": Role.GUEST, "web:una": Role.USER}) as agent:
            await agent.user("web:gus").ask("hi")
        assert "spawn" not in model.prompts[0].tools

    async def test_nobody_speaks_with_one_that_works(self, house):
        model = by_task([spawn("dig deep", wait=True), Say("done")], dig=[Say("gold")])
        async with house(model) as agent:
            await agent.ask("find gold")
            (task,) = await tasks_in(agent)
            with pytest.raises(MailRefused, match="a sub-agent works alone"):
                await agent.ask("hello", f"child:{task.spawned_by}", author="owner")


@tool(Effect.UNSAFE, guarded=True, permission=Role.USER)
async def blast() -> str:
    """Blow something up."""
    return "boom"


class TestAsking:
    @pytest.mark.parametrize(("allow", "told"), [(True, "boom"), (False, "The user did not allow this.")])
    async def test_a_person_is_asked_where_it_was_handed_on(self, house, allow: bool, told: str):
        channel = RecordingChannel("fake")
        model = by_task([spawn("dig", wait=True), Say("done")], dig=[Call("blast"), Say("gold")])
        async with house(model, tools=[blast], channels=[channel]) as agent:
            asking = asyncio.create_task(agent.ask("go", "fake:home", author="owner", attended=True))
            await channel.sent(1)
            (waiting,) = await agent.approvals("fake:home")
            assert await agent.approvals("fake:elsewhere") == []
            assert (waiting.tool, waiting.session, waiting.id in channel.sends[0].text) == ("blast", "fake:home", True)
            answered = await agent.ask(f"/approve {waiting.id}{'' if allow else ' no'}", "fake:home", author="owner")
            assert answered.content == f"blast is {'allowed' if allow else 'not allowed'}."
            await asking
            (task,) = await tasks_in(agent, "fake:home")
            log = await agent.store.read(task.thread)
        assert [entry.text for entry in log if isinstance(entry, CallReturned)] == [told]

    async def test_who_watches_the_conversation_is_shown_the_question(self, house):
        model = by_task([spawn("dig", wait=True), Say("done")], dig=[Call("blast"), Say("gold")])
        async with house(model, tools=[blast]) as agent:
            async for event in agent.stream("go", attended=True):
                if event.name == "approval_asked":
                    await agent.decide(event.approvals[0].id, True)
        assert event.answer.content == "done"


class TestReplaying:
    async def test_turns_that_wait_and_are_told_are_replayed_as_they_were(self, house):
        model = by_task(
            [(spawn("a", wait=True), spawn("b")), Say("done"), Say("told")],
            a=[Call("list_dir"), Say("A")],
            b=[Say("B")],
        )
        async with house(model) as agent:
            await agent.ask("go")
            await model.called(6)
            log = await log_of(agent)
            while not isinstance(log[-1], ModelSaid):
                await asyncio.sleep(0.01)
                log = await log_of(agent)
        turns = turns_in(log)
        differences = [str((await replay(cut(log, turn, {}), {})).difference) for turn in turns]
        assert (len(turns), differences) == (2, ["None", "None"])


class TestStopping:
    async def test_a_stop_ends_all_that_works_for_the_conversation_and_says_how_many(self, house):
        gate = asyncio.Event()
        model = by_task(
            [(spawn("a"), spawn("b"), spawn("c", wait=True)), Say("never")],
            a=[(Wait(gate), Say("A"))],
            b=[(Wait(gate), Say("B"))],
            c=[(Wait(gate), Say("C"))],
        )
        async with house(model) as agent:
            asking = asyncio.create_task(agent.ask("three"))
            await model.called(4)
            stopped = await agent.ask("/stop")
            with pytest.raises(TurnFailed):
                await asking
            async with asyncio.timeout(60):
                while (stages := {row.stage for row in await tasks_in(agent)}) != {"stopped"}:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            again = await agent.ask("/stop")
        assert (stopped.content, stages) == ("⏹ Stopped 4 task(s).", {"stopped"})
        assert again.content == "No active task to stop."
