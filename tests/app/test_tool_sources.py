"""Tools that come and go while the house is open."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop import Effect, Role, Tool, ToolSource, tool
from everloop.core.log import ModelCalled
from everloop.testing import Call, Say, ScriptedModel, Wait


def named(name: str, result: str = "") -> Tool:
    @tool(Effect.READ, name=name, permission=Role.GUEST)
    async def run() -> str:
        """Something that a server can do."""
        return result or f"{name} done"

    return run


class Shelf:
    """A source whose tools a test can exchange."""

    def __init__(self, *tools: Any) -> None:
        self.held: Sequence[Any] = tools
        self.version = 0

    def hold(self, *tools: Any) -> None:
        self.held, self.version = tools, self.version + 1

    def tools(self) -> Sequence[Any]:
        return self.held


def of_ours(model: ScriptedModel) -> list[set[str]]:
    """Which of the tools of this file were offered with each call."""
    return [{name for name in shown.tools if name in {"look", "find", "fly"}} for shown in model.prompts]


async def test_the_next_turn_is_offered_what_there_is_then_under_another_prefix(tmp_path: Path):
    shelf = Shelf(named("look"))
    assert isinstance(shelf, ToolSource)
    model = ScriptedModel([Say("one"), Say("two"), Call("find", {}), Say("three"), Say("four")])
    async with everloop.open(tmp_path, provider=model, tools=[shelf, named("fly")]) as agent:
        await agent.ask("a")
        await agent.ask("b")
        shelf.hold(named("find"))
        assert (await agent.ask("c")).content == "three"
        shelf.hold()
        await agent.ask("d")
        row = await agent.store.session("api:default")
        calls = [entry for entry in await agent.store.read(row.id) if isinstance(entry, ModelCalled)]
    assert of_ours(model) == [{"look", "fly"}, {"look", "fly"}, {"find", "fly"}, {"find", "fly"}, {"fly"}]
    assert model.prompts[3].said[-1] == ("tool", "find done")
    assert [bool(call.prefix) for call in calls] == [True, False, True, False, True]  # another one


async def test_what_a_turn_has_begun_with_stays_usable_to_its_end(tmp_path: Path):
    shelf, gate = Shelf(named("look")), asyncio.Event()
    model = ScriptedModel([[Wait(gate), Call("look", {})], Call("look", {}), Say("done"), Call("look", {}), Say("no")])
    async with everloop.open(tmp_path, provider=model, tools=[shelf]) as agent:
        asking = asyncio.ensure_future(agent.ask("a"))
        await model.called(1)
        shelf.hold(named("find"))
        gate.set()
        assert (await asking).content == "done"
        await agent.ask("b")
    results = [text for role, text in model.prompts[-1].said if role == "tool"]
    assert of_ours(model) == [{"look"}, {"look"}, {"look"}, {"find"}, {"find"}]
    assert results[:2] == ["look done", "look done"]
    assert results[2].startswith("Error: there is no tool 'look'.")


async def test_nothing_that_a_source_brings_takes_the_place_of_what_is_there(tmp_path: Path, caplog):
    shelf = Shelf(named("read_file", "mine"), named("look"), named("look", "other"), named("no such name"), "no tool")
    model = ScriptedModel([Call("read_file", {"path": "AGENTS.md"}), Call("look", {}), Say("done")])
    async with everloop.open(tmp_path, provider=model, tools=[shelf]) as agent:
        await agent.ask("a")
    results = [text for role, text in model.prompts[-1].said if role == "tool"]
    assert "mine" not in results[0]
    assert results[1] == "look done"
    left_out = [record.message for record in caplog.records if "left out" in record.message]
    assert [line.partition(" is left out")[0] for line in left_out] == [
        *("a tool 'no such name'", "a tool 'str'", "a tool 'read_file'", "a tool 'look'"),
    ]


async def test_a_source_that_fails_keeps_what_it_had_and_ends_no_turn(tmp_path: Path, caplog):
    class Failing(Shelf):
        fails = False

        def tools(self) -> Sequence[Any]:
            if self.fails:
                raise RuntimeError("the server is away")
            return super().tools()

    shelf = Failing(named("look"))
    model = ScriptedModel([Say("one"), Call("look", {}), Say("two"), Say("three")])
    async with everloop.open(tmp_path, provider=model, tools=[shelf]) as agent:
        await agent.ask("a")
        shelf.hold(named("find"))
        shelf.fails = True
        assert (await agent.ask("b")).content == "two"
        shelf.fails = False  # it need not say so
        await agent.ask("c")
    assert of_ours(model) == [{"look"}, {"look"}, {"look"}, {"find"}]
    assert "RuntimeError: the server is away" in caplog.text


async def test_everyone_is_offered_them(tmp_path: Path):
    shelf = Shelf(named("look"))
    model = ScriptedModel(lambda shown: Say("hi"))
    async with everloop.open(tmp_path, provider=model, tools=[shelf], roles={"web:anna": Role.USER}) as agent:
        await agent.user("web:anna").ask("a")
        shelf.hold(named("find"))
        await agent.user("web:anna").ask("b")
        await agent.ask("c")
    assert of_ours(model) == [{"look"}, {"find"}, {"find"}]


@pytest.mark.parametrize("other", ["guarded", "the owner's", "the same"])
async def test_a_tool_that_becomes_another_in_the_middle_of_a_turn_is_not_run(tmp_path: Path, other: str):
    """What was decided on was the one that the turn began with. One that only was made anew is run."""
    ran: list[str] = []

    def made(name: str, **more: Any) -> Tool:
        @tool(Effect.READ, name="look", **more)
        async def run() -> str:
            """Something that a server can do."""
            ran.append(name)
            return "looked"

        return run

    first = made("first", permission=Role.GUEST)
    later = {
        "guarded": made("later", permission=Role.GUEST, guarded=True),
        "the owner's": made("later", permission=Role.OWNER),
        "the same": made("later", permission=Role.GUEST),
    }
    shelf, gate = Shelf(first), asyncio.Event()
    model = ScriptedModel([[Wait(gate), Call("look", {})], Say("done")])
    async with everloop.open(tmp_path, provider=model, tools=[shelf]) as agent:
        asking = asyncio.ensure_future(agent.user("web:guest").ask("a"))
        await model.called(1)
        shelf.hold(later[other])
        gate.set()
        assert (await asking).content == "done"
    assert ran == (["later"] if other == "the same" else [])
    assert ("looked" in str(model.prompts[-1].said[-1])) is (other == "the same")
