"""Code that is not ours cannot end the program that it runs in, and no turn hangs because it tried."""

import asyncio

import pytest

from everloop.core.tool import Effect, Ground, ToolSpec
from everloop.errors import ToolError
from everloop.ports.tools import Tool
from everloop.runtime.strangers import contained
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel
from everloop.tools.decorator import tool
from tests.runtime.conftest import letter


class Odd(BaseException):
    """Such as test runners and other loops have."""


ENDINGS = (SystemExit(3), KeyboardInterrupt(), GeneratorExit(), Odd("odd"), BaseExceptionGroup("all", [Odd("one")]))


@pytest.mark.parametrize("ending", ENDINGS, ids=repr)
async def test_a_tool_that_tries_to_end_the_program_is_a_failed_call(house, ending: BaseException):
    @tool(Effect.UNSAFE)
    async def leave() -> str:
        """Leave."""
        raise ending

    model = ScriptedModel([Call("leave"), Say("still here")])
    async with house(model, tools=[leave]) as agent:
        assert (await agent.ask("go")).content == "still here"
    why = f"{type(ending).__name__}: {ending}".rstrip(": ")
    told = f"Error: it tried to end the program it runs in ({why}); it was kept from that"
    assert model.prompts[1].said[-1] == ("tool", told)


async def test_a_thread_of_a_tool_that_exits_is_a_failed_call(house):
    @tool(Effect.UNSAFE)
    async def leave() -> str:
        """Leave."""
        await asyncio.to_thread(exit, 4)
        return "never"

    async with house(ScriptedModel([Call("leave"), Say("still here")]), tools=[leave]) as agent:
        assert (await agent.ask("go")).content == "still here"


async def test_telling_where_a_call_would_run_ends_nothing(house):
    def ground(args: object) -> tuple[Ground, ...]:
        raise SystemExit("no")

    async def run(args: object, context: object) -> str:
        return "ran"

    spec = ToolSpec("act", "Act.", {"type": "object", "properties": {}}, Effect.UNSAFE, guarded=True)
    model = ScriptedModel([Call("act"), Say("then not")])
    async with house(model, tools=[Tool(spec, run, ground=ground)]) as agent:
        assert (await agent.ask("go")).content == "then not"  # it was asked about, and nobody was there


async def test_a_channel_that_tries_to_end_the_program_has_its_message_sent_again(house):
    class Leaving(RecordingChannel):
        left = False

        async def send(self, part):
            if not self.left:
                self.left = True
                raise SystemExit
            return await super().send(part)

    channel = Leaving("fake")
    async with house(ScriptedModel([Say("hello")]), channels=[channel]) as agent:
        await agent.tell(letter("hi", "e1", session="fake:chat"))
        await channel.sent(1)
    assert [sent.text for sent in channel.delivered] == ["hello"]


async def test_errors_of_their_own_pass_as_they_are():
    for error in (ValueError("bad"), ToolError("no"), asyncio.CancelledError()):
        with pytest.raises(type(error)) as passed, contained():
            raise error
        assert passed.value is error


def test_a_coroutine_that_is_put_away_is_let_go():
    async def hang() -> None:
        with contained():
            await asyncio.sleep(60)

    async def leave_it() -> object:
        hanging = hang()
        task = asyncio.ensure_future(hanging)
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return hanging.cr_frame

    assert asyncio.run(leave_it()) is None

    class Never:
        def __await__(self):
            yield

    async def wait() -> None:
        with contained():
            await Never()

    waiting = wait()
    waiting.send(None)
    assert waiting.close() is None  # and no complaint that it went on
