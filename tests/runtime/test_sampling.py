"""What an MCP server has a model asked is paid by whoever has called it, and tells it nothing of the conversation."""

from collections.abc import Callable
from typing import Any

import pytest

import everloop
from everloop.core.people import Role
from everloop.core.prompt import Prompt, Usage
from everloop.errors import ModelMissing
from everloop.ports.budgets import Limit
from everloop.ports.provider import Delta, Reply
from everloop.ports.tools import CallContext
from everloop.runtime.budgets import BudgetControl
from everloop.runtime.people import KnownPeople
from everloop.runtime.sampling import LONGEST, MOST_TOKENS, SampledAnswers
from everloop.testing import Say, ScriptedModel

CONTEXT = CallContext("t:1:0", "t", "web:x", "ann", role=Role.USER)


def asked(text: str = "who are you?", **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 50, **more}


class Small:
    """A model that costs."""

    name = key = "host/m"
    model = "m"

    def __init__(self, provider: ScriptedModel) -> None:
        self.provider = provider

    def price(self, usage: Usage) -> float:
        return 1.0


def answers(agent: everloop.Agent, model: ScriptedModel) -> SampledAnswers:
    async def find() -> Any:
        return Small(model)

    people = KnownPeople(agent.store, {"ann": Role.USER})
    return SampledAnswers(find, BudgetControl(agent.store), agent.store, people)


@pytest.fixture
async def agent(tmp_path):
    async with everloop.open(home=tmp_path / "home", provider=ScriptedModel([])) as agent:
        yield agent


async def test_a_model_answers_and_whoever_has_called_pays(agent):
    model = ScriptedModel([Say("a model")])
    answer = await answers(agent, model).ask_model(CONTEXT, "x", asked(systemPrompt="Be short."))
    assert answer is not None
    assert (answer["role"], answer["content"]) == ("assistant", {"type": "text", "text": "a model"})
    [row] = await agent.store.spent(who="ann")
    assert (row.purpose, row.calls) == ("mcp", 1)
    [shown] = model.prompts
    assert (shown.asked, shown.system.endswith("Be short."), shown.tools) == ("who are you?", True, ())


async def test_whoever_has_nothing_left_gets_no_answer(agent):
    await agent.store.set_limit("ann", "month", Limit(tokens=1))
    model = ScriptedModel([Say("a model")])
    assert await answers(agent, model).ask_model(CONTEXT, "x", asked()) is None
    assert (model.calls, await agent.store.spent(who="ann")) == (0, [])


@pytest.mark.parametrize(
    "request_",
    [{}, {"messages": []}, asked(""), asked("x" * (LONGEST + 1)), {"messages": [{"content": {"type": "image"}}]}],
)
async def test_what_is_no_text_or_too_long_is_not_asked(agent, request_):
    model = ScriptedModel([Say("a model")])
    assert await answers(agent, model).ask_model(CONTEXT, "x", request_) is None
    assert model.calls == 0


class Limited(ScriptedModel):
    """Remembers how long its answers may be."""

    limits: tuple[int, ...] = ()

    async def reply(self, prompt: Prompt, on_delta: Callable[[Delta], None]) -> Reply:
        self.limits = (*self.limits, prompt.max_tokens)
        return await super().reply(prompt, on_delta)


async def test_an_answer_is_of_so_many_tokens_at_most(agent):
    model = Limited(lambda shown: Say("a model"))
    for wanted in (50, 10**9, "many", -1):
        await answers(agent, model).ask_model(CONTEXT, "x", asked(maxTokens=wanted))
    assert model.limits == (50, MOST_TOKENS, MOST_TOKENS, MOST_TOKENS)


async def test_where_no_model_is_there_none_answers(agent):
    async def find() -> Any:
        raise ModelMissing("none is configured")

    people = KnownPeople(agent.store, {})
    sampled = SampledAnswers(find, BudgetControl(agent.store), agent.store, people)
    assert await sampled.ask_model(CONTEXT, "x", asked()) is None


async def test_a_model_that_fails_answers_nothing_and_costs_nothing(agent):
    assert await answers(agent, ScriptedModel([])).ask_model(CONTEXT, "x", asked()) is None
    assert await agent.store.spent(who="ann") == []
