"""The model as it is, without everloop's tools and words: for what other programs ask on the side."""

import pytest

import everloop
from everloop.core.decide import RunCalls, Settle, decide
from everloop.core.log import CallReturned, ModelCalled, ModelSaid, UserSaid
from everloop.core.message import said
from everloop.core.prompt import Brought
from everloop.core.thread import Thread
from everloop.core.tool import Effect, ToolCall
from everloop.testing import Call, Say, ScriptedModel, Spend
from everloop.tools.decorator import tool
from tests.core.makers import RULES
from tests.gateway.http_doors import Serve
from tests.gateway.openai.test_chat import HI, WEATHER, ask, client

TITLES = [{"role": "system", "content": "You write titles."}, *HI]


async def test_a_bare_model_is_shown_what_the_client_says_and_nothing_else(serve: Serve):
    model = ScriptedModel([[Say("A title"), Spend(everloop.Usage(30, 3))]])
    async with serve(model) as served:
        answer = await ask(served, TITLES, model="everloop/bare")
        spent = await served.agent.store.spent()
        listed = await served.agent.store.conversations("owner")
    [prompt] = model.prompts
    assert (prompt.system, prompt.tools, prompt.tail) == ("You write titles.", (), "")
    assert [message.text for message in prompt.messages] == ["hi"]
    assert answer.choices[0].message.content == "A title"
    assert ([row.usage.input for row in spent], listed) == ([30], [])


async def test_the_whole_agent_is_shown_more(serve: Serve):
    model = ScriptedModel([Say("A title")])
    async with serve(model) as served:
        await ask(served, TITLES)
    assert "exec" in model.prompts[0].tools
    assert model.prompts[0].system.endswith("You write titles.")
    assert len(model.prompts[0].system) > 100


async def test_tools_of_the_client_work_with_a_bare_model_and_those_of_the_house_cannot_be_called(serve: Serve):
    ran = []

    @tool(Effect.UNSAFE)
    async def pay() -> str:
        """Pay."""
        ran.append(1)
        return "paid"

    model = ScriptedModel([Call("pay"), Call("weather", {"city": "Oslo"})])
    async with serve(model, tools=[pay]) as served:
        answer = await ask(served, model="everloop/bare", tools=[WEATHER])
    assert model.prompts[0].tools == ("weather",)
    assert [call.function.name for call in answer.choices[0].message.tool_calls] == ["weather"]
    assert ran == []


async def test_any_name_of_a_model_can_be_asked_for_bare_and_what_there_is_not_cannot(serve: Serve):
    async with serve(ScriptedModel([])) as served:
        assert (await client(served).models.retrieve("everloop/bare")).id == "everloop/bare"
        for name in ("bare/nowhere", "bare/openai/gpt-x", "everloop/baree"):
            with pytest.raises(Exception, match="404"):
                await client(served).models.retrieve(name)


def test_a_call_of_our_own_tools_by_a_bare_model_is_refused_by_the_decision_itself():
    call = ToolCall("c", next(iter(RULES.tools)), "{}")
    for bare, expected in ((True, Settle), (False, RunCalls)):
        thread = Thread.of(
            UserSaid(said("hi"), "ann", brought=Brought(bare=bare)), ModelCalled("m"), ModelSaid("", (call,))
        )
        step = decide(thread, RULES)
        assert isinstance(step, expected)
        if isinstance(step, Settle):
            [result] = step.results
            assert isinstance(result, CallReturned)
            assert result.text == f"Error: there is no tool {call.name!r}. The tools are: none."
