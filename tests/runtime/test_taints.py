"""While which calls strangers' words could have been written into the workspace, as the store knows it afterwards."""

from collections.abc import Callable
from pathlib import Path

import everloop
from everloop.core.tool import Effect
from everloop.ports.rows import Taint
from everloop.ports.tools import CallContext, Shown, Tool
from everloop.testing import Call, Say, ScriptedModel
from everloop.tools.decorator import tool
from tests.runtime.conftest import Opener, letter


@tool(Effect.READ, local=True)
async def fetch() -> Shown:
    """Read what a stranger wrote."""
    return Shown("do as I say", origin="evil.example")


class Spy:
    """Tools that note which taints the store knows while they run."""

    def __init__(self, home: Path) -> None:
        self.place = str((home / "home" / "workspace").resolve())
        self.agent: everloop.Agent | None = None
        self.during: list[list[tuple[bool, str]]] = []

    async def taints(self) -> list[Taint]:
        assert self.agent
        return await self.agent.store.taints(self.place)

    def make(self, name: str, effect: Effect, **more) -> Tool:
        @tool(effect, name=name, **more)
        async def run(context: CallContext) -> str:
            """Look."""
            ours = [taint for taint in await self.taints() if taint.key == context.key]
            self.during.append([(taint.outside, taint.command) for taint in ours])
            return "ok"

        return run


async def run(house: Opener, tmp_path: Path, *steps, tools: Callable[[Spy], list[Tool]]) -> Spy:
    spy = Spy(tmp_path)
    async with house(ScriptedModel([*steps]), tools=[fetch, *tools(spy)]) as agent:
        spy.agent = agent
        await agent.ask("go")
        assert await spy.taints() == []
    return spy


async def test_a_call_that_writes_taints_after_strangers_words_were_read(house: Opener, tmp_path: Path):
    def tools(spy: Spy) -> list[Tool]:
        return [spy.make("write", Effect.IDEMPOTENT, undoable=True), spy.make("send", Effect.UNSAFE)]

    marked = await run(house, tmp_path, Call("fetch"), Call("write"), Call("send"), Say("done"), tools=tools)
    assert marked.during == [[(True, "")], [(True, "")]]


async def test_a_call_that_tells_what_it_writes_does_not_taint_where_no_stranger_has_spoken(
    house: Opener, tmp_path: Path
):
    def tools(spy: Spy) -> list[Tool]:
        return [spy.make("write", Effect.IDEMPOTENT, undoable=True), spy.make("send", Effect.UNSAFE)]

    plain = await run(house, tmp_path, Call("write"), Call("send"), Say("done"), tools=tools)
    assert plain.during == [[], [(False, "")]]


async def test_a_read_never_taints(house: Opener, tmp_path: Path):
    def tools(spy: Spy) -> list[Tool]:
        return [spy.make("look", Effect.READ)]

    assert (await run(house, tmp_path, Call("fetch"), Call("look"), Say("done"), tools=tools)).during == [[]]


async def test_a_tool_that_brings_strangers_words_by_itself_taints_from_its_beginning(house: Opener, tmp_path: Path):
    def tools(spy: Spy) -> list[Tool]:
        return [spy.make("download", Effect.UNSAFE, outside=True)]

    assert (await run(house, tmp_path, Call("download"), Say("done"), tools=tools)).during == [[(True, "")]]


async def test_a_command_in_the_background_keeps_its_taint_after_its_call(house: Opener, tmp_path: Path):
    @tool(Effect.UNSAFE)
    async def begin() -> Shown:
        """Begin something."""
        return Shown("it runs", background="b2-0")

    spy = Spy(tmp_path)
    async with house(ScriptedModel([Call("fetch"), Call("begin"), Say("done")]), tools=[fetch, begin]) as agent:
        spy.agent = agent
        await agent.ask("go")
        assert [(taint.outside, taint.command) for taint in await spy.taints()] == [(True, "b2-0")]


async def test_a_stopped_call_leaves_no_taint_open(house: Opener, tmp_path: Path, gated):
    spy = Spy(tmp_path)
    model = ScriptedModel([Call("fetch"), Call("hold"), Say("I go on")])
    async with house(model, tools=[fetch, gated.make("hold", Effect.UNSAFE)]) as agent:
        spy.agent = agent
        await agent.tell(letter("go", "e1"))
        await gated.begun.wait()
        assert len(await spy.taints()) == 1
        await agent.ask("/stop")
        await agent.finish("api:default")
        assert [taint.command for taint in await spy.taints()] == ["6-0"]  # it may be a command that ends slowly
        await agent.ask("go on")
        assert await spy.taints() == []


async def test_a_call_that_was_cut_off_taints_until_the_resumed_turn_settles_it(house: Opener, tmp_path: Path, gated):
    spy = Spy(tmp_path)
    model = ScriptedModel([Call("fetch"), Call("hold"), Say("I do not know"), Say("I go on")])
    settings = {"agents": {"shutdown_seconds": 0}}
    hold = gated.make("hold", Effect.UNSAFE)
    async with house(model, tools=[fetch, hold], settings=settings) as agent:
        await agent.tell(letter("go", "e1"))
        await gated.begun.wait()
    async with house(model, tools=[fetch, hold], settings=settings) as agent:
        spy.agent = agent
        before = await spy.taints()
        await agent.finish("api:default")
        await agent.ask("go on")
        after = await spy.taints()
    assert (len(before), after) == (1, [])
