"""Whoever has had something handed on sees how it stands, what was done, and can end it; nobody else does."""

import asyncio

import pytest

from everloop import Role
from everloop.errors import TurnFailed
from everloop.testing import Call, Say, ScriptedModel, Wait
from tests.runtime.test_subagents import by_task, spawn, tasks_in


async def over(agent, session: str = "api:default") -> None:
    async with asyncio.timeout(60):
        while any(task.is_open for task in await tasks_in(agent, session)):  # noqa: ASYNC110  the store knows
            await asyncio.sleep(0.02)


async def stages_in(agent) -> list[str]:
    return [task.stage for task in await tasks_in(agent)]


class TestTasks:
    async def test_they_are_listed_with_how_they_stand(self, house):
        gate = asyncio.Event()
        model = by_task(
            [(spawn("a quick one", wait=True), spawn("b slow one")), Say("done")],
            a=[Say("A")],
            b=[(Wait(gate), Say("B"))],
        )
        async with house(model) as agent:
            none = await agent.ask("/tasks")
            await agent.ask("go")
            told = (await agent.ask("/tasks")).content.splitlines()
            gate.set()
        assert none.content == "Nobody works at a task for this conversation, and nobody has."
        assert told[0].startswith("1. a quick one — done, 1 step(s), price not known, ")
        assert told[1].startswith("2. b slow one — running, 0 step(s), ")
        assert told[2].startswith("/tasks show N tells what one has done")

    async def test_what_one_has_done_can_be_read(self, house):
        model = by_task([spawn("dig", wait=True), Say("done")], dig=[Call("list_dir"), Say("gold")])
        async with house(model) as agent:
            await agent.ask("go")
            shown = (await agent.ask("/tasks show 1")).content.splitlines()
        assert shown[0].startswith("1. dig — done, 2 step(s)")
        assert shown[1:3] == ["task: dig", "sub-agent: → list_dir {}"]
        assert shown[-1] == "sub-agent: gold"

    @pytest.mark.parametrize("typed", ["/tasks show 7", "/tasks show x", "/kill 7", "/tasks stop -1", "/kill ²"])
    async def test_a_number_that_there_is_not_is_answered_with_those_there_are(self, house, typed: str):
        model = by_task([spawn("dig", wait=True), Say("done")], dig=[Say("gold")])
        async with house(model) as agent:
            await agent.ask("go")
            told = (await agent.ask(typed)).content
        assert "they have the numbers 1 to 1" in told

    async def test_nobody_sees_those_of_another_conversation(self, house):
        model = by_task([spawn("dig", wait=True), Say("done")], dig=[Say("gold")])
        async with house(model, roles={"web:una": Role.USER}) as agent:
            await agent.ask("go")
            told = await agent.user("web:una").ask("/tasks")
        assert told.content == "Nobody works at a task for this conversation, and nobody has."


class TestKill:
    async def test_one_is_ended_and_others_go_on(self, house):
        gate = asyncio.Event()
        model = by_task(
            [(spawn("a"), spawn("b")), Say("under way"), Say("told")],
            a=[(Wait(gate), Say("A"))],
            b=[(Wait(gate), Say("B"))],
        )
        async with house(model) as agent:
            await agent.ask("go")
            await model.called(4)
            told = (await agent.ask("/kill 1")).content
            async with asyncio.timeout(60):
                while (stages := await stages_in(agent)) != ["stopped", "running"]:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            gate.set()
            await over(agent)
            again = (await agent.ask("/kill 1")).content
            stages_then = await stages_in(agent)
        assert (told, stages, stages_then) == ("⏹ Task 1 is stopped.", ["stopped", "running"], ["stopped", "done"])
        assert again == "Task 1 is over already."

    async def test_who_waits_for_it_is_told_that_it_was_stopped(self, house):
        gate = asyncio.Event()
        model = by_task([spawn("a", wait=True), Say("It was stopped.")], a=[(Wait(gate), Say("A"))])
        async with house(model) as agent:
            asking = asyncio.create_task(agent.ask("go"))
            await model.called(2)
            await agent.ask("/kill 1")
            assert (await asking).content == "It was stopped."
        assert model.prompts[-1].said[-1][1].startswith("The task was stopped before it was done.")

    async def test_what_waits_for_its_turn_is_ended_without_having_it(self, house):
        gate = asyncio.Event()
        model = by_task(
            [(spawn("a"), spawn("b", wait=True)), Say("done")], a=[(Wait(gate), Say("A"))], b=[Say("never")]
        )
        async with house(model, settings={"agents": {"tasks": {"per_person": 1}}}) as agent:
            asking = asyncio.create_task(agent.ask("go"))
            await model.called(2)
            await agent.ask("/kill 2")
            assert (await asking).content == "done"
            assert [task.stage for task in await tasks_in(agent)] == ["running", "stopped"]
            gate.set()

    async def test_a_stop_reaches_those_that_wait_for_their_turn(self, house):
        gate = asyncio.Event()
        model = by_task([(spawn("a"), spawn("b", wait=True)), Say("never")], a=[(Wait(gate), Say("A"))])
        async with house(model, settings={"agents": {"tasks": {"per_person": 1}}}) as agent:
            asking = asyncio.create_task(agent.ask("go"))
            await model.called(2)
            assert (await agent.ask("/stop")).content == "⏹ Stopped 3 task(s)."
            with pytest.raises(TurnFailed):
                await asking
            await over(agent)
            assert [task.stage for task in await tasks_in(agent)] == ["stopped", "stopped"]


class TestStatus:
    async def test_it_says_who_answers_how_full_it_is_and_what_goes_on(self, house):
        model = by_task([spawn("dig", wait=True), Say("done")], dig=[Say("gold")])
        async with house(model) as agent:
            before = (await agent.ask("/status")).content.splitlines()
            await agent.ask("go")
            await agent.ask("/cron add every 1d message: drink")
            after = (await agent.ask("/status")).content.splitlines()
        assert before[0].endswith("Nothing has been said here yet.")
        assert after[0].startswith("Model: ")
        assert "% of its" in after[0]
        assert after[1:] == [
            "State: resting. 2 model call(s), price not known.",
            "Tasks: 0 open, 1 in all.",
            "Schedules of yours that are to come: 1.",
            "Channels: none is open here.",
        ]

    async def test_it_is_not_for_guests_and_tells_users_nothing_of_the_house(self, house):
        model = ScriptedModel([])
        async with house(model, roles={"web:una": Role.USER, "web:gus": Role.GUEST}) as agent:
            user = (await agent.user("web:una").ask("/status")).content
            guest = (await agent.user("web:gus").ask("/status")).content
        assert ("Channels" in user, guest) == (False, "/status is not for guests: it needs a user.")
