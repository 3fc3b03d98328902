"""Which model answers a conversation, end to end: real settings, a real store, models behind real connections."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest

import everloop
from everloop.core import log
from everloop.core.tool import Effect
from everloop.errors import HostFailed, KeyRefused, RateLimited, TurnFailed
from everloop.ports.rows import SpentRow
from everloop.providers.catalog import HOSTS
from everloop.runtime.usage_command import describe
from everloop.testing import Call, Fail, Say, ScriptedModel, Spend, Wait
from everloop.testing.model_server import ModelServer
from everloop.tools.decorator import tool
from tests.runtime.test_turns import entries

Opener = Callable[..., AbstractAsyncContextManager[everloop.Agent]]
KEY = "sk-canary-choice"
USED = everloop.Usage(input=1000, output=100, cache_read=400)


@pytest.fixture(autouse=True)
def nobodys_keys(monkeypatch) -> None:
    for host in HOSTS.values():
        for variable in host.key_variables:
            monkeypatch.delenv(variable, raising=False)


class Counting(ModelServer):
    """Counts how often it is asked for its list of models."""

    lists = 0

    async def _answer(self, request):
        self.lists += request.path == "/v1/models"
        return await super()._answer(request)

    @property
    def asked(self) -> list[str]:
        """The models that were asked for, in order."""
        return [prompt.model for prompt in self.prompts]


@pytest.fixture
async def server() -> AsyncIterator[Counting]:
    async with Counting(lambda shown: [Say("hello"), Spend(USED)], models=("a", "b")) as server:
        yield server


@pytest.fixture
def house(tmp_path, server) -> Opener:
    """Open everloop with the models custom/a and custom/b, the first being the default."""

    def open(settings=None, **more) -> AbstractAsyncContextManager[everloop.Agent]:
        here = {
            "agents": {"defaults": {"model": "custom/a"}},
            "providers": {"custom": {"api_base": server.url, "api_key": KEY}},
            "models": {"fast": {"model": "custom/b"}},
        }
        return everloop.open(home=tmp_path / "home", settings=here | (settings or {}), **more)

    return open


async def say(agent: everloop.Agent, text: str, session: str = "api:default") -> str:
    return (await agent.ask(text, session)).content


# Choosing


CHOSEN = "custom/b answers in this conversation from now on."


async def test_a_preset_is_chosen_for_this_conversation_and_no_other(house, server):
    async with house() as agent:
        await agent.ask("one")
        assert await say(agent, "/model fast") == CHOSEN
        answer = await agent.ask("two")
        await agent.ask("three", "api:other")
        assert (answer.model, server.asked) == ("custom/b", ["a", "b", "a"])
        chosen = [entry for entry in await entries(agent) if isinstance(entry, log.ModelChosen)]
    assert chosen == [log.ModelChosen("fast", "owner")]


async def test_a_conversation_may_begin_with_a_choice(house, server):
    async with house() as agent:
        await agent.ask("/model fast")
        await agent.ask("one")
    assert server.asked == ["b"]


async def test_any_model_of_a_provider_can_be_chosen(house, server):
    async with house() as agent:
        assert await say(agent, "/model custom/b") == CHOSEN
        assert await say(agent, "/MODEL  custom/c ") == "custom/c answers in this conversation from now on."
        await agent.ask("one")
    assert server.asked == ["c"]


async def test_one_goes_back_to_the_default(house, server):
    async with house() as agent:
        await agent.ask("/model fast")
        assert await say(agent, "/model default") == "custom/a answers in this conversation from now on."
        await agent.ask("one")
    assert server.asked == ["a"]


@pytest.mark.parametrize(
    ("wanted", "why"),
    [
        ("nonsense", "the model 'nonsense' is not known: write provider/model, for example openai/gpt-5.4-mini. "),
        ("nosuch/x", "the model 'nosuch/x' is not known: write provider/model, "),
        ("claude-x", "claude-x needs a key: set ANTHROPIC_API_KEY or providers.anthropic.api_key, or keep it in "),
        ("openai/gpt-x", "openai/gpt-x needs a key: set OPENAI_API_KEY or "),
    ],
)
async def test_with_a_model_that_cannot_be_had_everything_stays_as_it_is(house, server, wanted, why):
    async with house() as agent:
        await agent.ask("/model fast")
        said = await say(agent, f"/model {wanted}")
        assert said.startswith(f"The model stays as it is: {why}")
        await agent.ask("one")
    assert server.asked == ["b"]


async def test_alone_it_shows_who_answers_and_who_else_could(house):
    rest = (
        "Presets: fast.\nChoose another with /model NAME (a preset or provider/model), or go back with /model default."
    )
    async with house() as agent:
        assert await say(agent, "/model") == f"custom/a answers in this conversation.\n{rest}"
        await agent.ask("/model fast")
        assert await say(agent, "/model") == f"fast (custom/b) answers in this conversation.\n{rest}"
        await agent.ask("/model custom/c")
        await agent.ask("one")
        assert await say(agent, "/model") == f"custom/c answers in this conversation.\n{rest}"


async def test_a_choice_is_kept_over_a_restart_and_ends_with_the_conversation(house, server):
    async with house() as agent:
        await agent.ask("/model fast")
    async with house() as agent:
        await agent.ask("one")
        await agent.ask("/new")
        await agent.ask("two")
        assert (await say(agent, "/model")).startswith("custom/a answers")
    assert server.asked == ["b", "a"]


async def test_a_preset_that_is_gone_after_a_restart_is_answered_for_by_the_default(house, server):
    async with house() as agent:
        await agent.ask("/model fast")
    async with house({"models": {}}) as agent:
        assert (await agent.ask("one")).model == "custom/a"


async def test_the_same_command_twice_is_one_choice(house):
    async with house() as agent:
        answers = [await agent.ask("/model fast", event="e1") for _ in range(2)]
        await agent.ask("one")
        assert [answer.content for answer in answers] == [CHOSEN, CHOSEN]
        assert sum(isinstance(entry, log.ModelChosen) for entry in await entries(agent)) == 1


async def test_a_choice_in_the_middle_of_a_turn_holds_from_the_next_step(house, server):
    gate = asyncio.Event()
    server.play([[Wait(gate), Call("list_dir")], Say("done")])
    async with house() as agent:
        asking = asyncio.create_task(agent.ask("look"))
        await server.called(1)
        assert await say(agent, "/model fast") == CHOSEN
        gate.set()
        answer = await asking
    assert (answer.content, answer.model, server.asked) == ("done", "custom/b", ["a", "b"])


async def test_a_program_with_one_model_of_its_own_keeps_it(tmp_path):
    model = ScriptedModel([Say("hello")], name="mine")
    async with everloop.open(home=tmp_path / "home", provider=model) as agent:
        assert await say(agent, "/model custom/b") == (
            "The model stays as it is: this program has one model, which was handed over to it."
        )
        assert (await say(agent, "/model")).startswith("mine answers in this conversation.\nChoose")
        assert (await agent.ask("hi")).content == "hello"


# How it is asked


async def test_what_a_preset_and_the_defaults_say_reaches_the_host(house, server):
    settings = {
        "agents": {"defaults": {"model": "custom/a", "temperature": 0.25, "max_tokens": 50}},
        "models": {
            "fast": {
                "model": "custom/b",
                "temperature": 0.5,
                "top_p": 0.75,
                "reasoning_effort": "low",
                "max_tokens": 100,
            }
        },
    }
    async with house(settings) as agent:
        await agent.ask("one")
        await agent.ask("/model fast")
        await agent.ask("two")
    fields = ("model", "temperature", "top_p", "reasoning_effort", "max_tokens")
    assert [tuple(asked.body.get(field) for field in fields) for asked in server.requests] == [
        ("a", 0.25, None, None, 50),
        ("b", 0.5, 0.75, "low", 100),
    ]


async def test_nothing_is_said_of_what_nobody_has_set(house, server):
    async with house() as agent:
        await agent.ask("one")
    assert {*server.requests[0].body} == {"model", "stream", "stream_options", "max_tokens", "messages", "tools"}


# The prefix


async def metrics(agent: everloop.Agent, text: str) -> list[dict[str, object]]:
    return [event.data async for event in agent.stream(text) if event.name == "metrics"]


async def prefixes(agent: everloop.Agent) -> list[str]:
    return [entry.prefix for entry in await entries(agent) if isinstance(entry, log.ModelCalled)]


def parts(prefix: str) -> list[str]:
    return [part.partition(":")[0] for part in prefix.split()]


async def test_the_prefix_is_written_at_the_first_call_and_when_it_has_changed(house):
    async with house() as agent:
        await agent.ask("one")
        await agent.ask("two")
    async with house() as agent:
        await agent.ask("three")
        await agent.ask("/model fast")
        await agent.ask("four")
        await agent.ask("five")
        first, *same, fourth, fifth = await prefixes(agent)
    assert (parts(first), same, parts(fourth), fifth) == (
        *(["model", "identity", "agents.md", "soul.md", "skills", "tools"], ["", ""]),
        *(["model", "identity", "agents.md", "soul.md", "skills", "tools"], ""),
    )
    assert first.split()[1:] == fourth.split()[1:]
    assert first.split()[0] != fourth.split()[0]


async def test_metrics_tell_what_a_call_took_and_how_much_of_it_was_in_the_cache(house):
    async with house({"prices": {"custom/a": {"input": 2.0, "output": 10.0, "cache_read": 0.5}}}) as agent:
        (told,) = await metrics(agent, "one")
    assert told.pop("seconds") > 0
    assert told == {
        "model": "custom/a",
        "usage": USED,
        "cost": pytest.approx(0.0024),
        "cached": 0.4,
        "prefix_changed": (),
        "full": pytest.approx(0.009, abs=0.005),
    }


async def test_metrics_name_what_made_the_hosts_cache_useless(house, tmp_path):
    @tool(Effect.READ)
    async def look() -> str:
        """Looks."""
        return "nothing"

    async def changed(agent: everloop.Agent) -> list[object]:
        return [told["prefix_changed"] for told in await metrics(agent, "go on")]

    async with house() as agent:
        assert await changed(agent) == [()]
        assert await changed(agent) == [()]
        await agent.ask("/model fast")
        assert await changed(agent) == [("model",)]
        assert await changed(agent) == [()]
    async with house(tools=[look]) as agent:
        assert await changed(agent) == [("identity", "tools")]
    async with house({"workspace": str(tmp_path / "elsewhere")}, tools=[look]) as agent:
        assert await changed(agent) == [("identity",)]


async def test_the_last_call_of_a_turn_that_has_used_up_its_steps_has_no_tools(house, server):
    server.play([Call("list_dir"), Say("what was done")])
    defaults = {"model": "custom/a", "max_tool_iterations": 1}
    async with house({"agents": {"defaults": defaults}}) as agent:
        assert [told["prefix_changed"] for told in await metrics(agent, "look")] == [(), ("tools",)]


# Fallbacks


async def test_three_hosts_of_which_the_last_answers(tmp_path):
    failing = ModelServer(lambda shown: Fail(HostFailed("broken")))
    refusing = ModelServer(lambda shown: Fail(KeyRefused("no")))
    answering = ModelServer(lambda shown: [Say("hello"), Spend(USED)])
    async with failing, refusing, answering:
        servers = {"one": failing, "two": refusing, "three": answering}
        settings = {
            "agents": {"defaults": {"model": "one/m1", "fallbacks": ["two/m2", "three/m3"]}},
            "providers": {name: {"api_base": server.url, "api_key": KEY} for name, server in servers.items()},
            "prices": {"three/*": {"input": 1.0, "output": 10.0}},
        }
        async with everloop.open(home=tmp_path / "home", settings=settings) as agent:
            seen = [event async for event in agent.stream("hi")]
            answer = seen[-1].data["answer"]
            assert (answer.content, answer.model, answer.steps, answer.usage) == ("hello", "three/m3", 1, USED)
            assert answer.cost == pytest.approx(0.002)
            chunks = [event.data for event in seen if event.name == "stream_chunk"]
            assert [chunk["notice"] for chunk in chunks if chunk["notice"]] == [
                "one/m1 does not answer (failed); asking two/m2",
                "two/m2 does not answer (key refused); asking three/m3",
            ]
            assert "".join(chunk["text"] for chunk in chunks) == "hello"
            assert [server.calls for server in servers.values()] == [2, 1, 1]
            called, said = (await entries(agent))[1:]
            assert (called.model, said.model, said.cost) == ("one/m1", "three/m3", pytest.approx(0.002))
            assert (await agent.ask("again")).model == "three/m3"
            assert [server.calls for server in servers.values()] == [2, 1, 2]  # the others rest
            spent = [(row.model, row.calls) for row in await agent.store.spent()]
            assert spent == [("three/m3", 2)]


async def test_when_none_can_answer_the_turn_fails_as_the_first_did(house, server):
    server.play(lambda shown: Fail(KeyRefused("no")) if shown.model == "a" else Fail(RateLimited("busy", 3600)))
    defaults = {"model": "custom/a", "fallbacks": ["fast"]}
    async with house({"agents": {"defaults": defaults}}) as agent:
        with pytest.raises(TurnFailed) as failed:
            await agent.ask("hi")
    assert failed.value.reason == "key"
    assert str(failed.value).startswith(
        "custom refuses the key (401). Check the key that is set for custom. "
        "The fallbacks failed too: custom/b (too many requests)."
    )
    assert server.asked == ["a", "b"]


async def open_at_the_first_word(agent: everloop.Agent, gate: asyncio.Event) -> everloop.Answer:
    async for event in agent.stream("hi"):
        if event.name == "stream_chunk":
            gate.set()
    return event.data["answer"]


async def test_an_answer_that_has_begun_is_asked_for_again_and_not_of_another(house, server):
    gate = asyncio.Event()
    server.play([[Say("half"), Wait(gate), Fail(HostFailed("broken"))], Say("whole")])
    defaults = {"model": "custom/a", "fallbacks": ["custom/b"]}
    async with house({"agents": {"defaults": defaults}}) as agent:
        answer = await open_at_the_first_word(agent, gate)
    assert (answer.content, server.asked) == ("whole", ["a", "a"])


# What it costs


PRICES = {"prices": {"custom/a": {"input": 2.0, "output": 10.0, "cache_read": 0.5}}}


async def test_an_answer_and_the_store_tell_what_it_cost(house, server):
    server.play([[Call("list_dir"), Spend(USED)], [Say("done"), Spend(USED)]])
    async with house(PRICES) as agent:
        answer = await agent.ask("look")
        assert (answer.usage, answer.cost) == (USED + USED, pytest.approx(0.0048))
        (row,) = await agent.store.spent()
    assert row == SpentRow(row.day, "custom/a", 2, USED + USED, pytest.approx(0.0048), 0)


async def test_a_price_that_nobody_knows_makes_the_cost_of_a_turn_unknown(house):
    async with house() as agent:
        assert (await agent.ask("hi")).cost is None


async def test_usage_shows_what_this_conversation_has_used_and_cost(house):
    async with house(PRICES) as agent:
        assert await say(agent, "/usage") == "Nothing has been used in this conversation yet."
        await agent.ask("one")
        await agent.ask("two")
        await agent.ask("elsewhere", "api:other")
        await agent.ask("/model fast")
        await agent.ask("three")
        assert await say(agent, "/usage") == (
            "custom/a: 2 call(s), 2,000 tokens in (800 from the cache), 200 out, $0.0048\n"
            "custom/b: 1 call(s), 1,000 tokens in (400 from the cache), 100 out, price not known"
        )
        await agent.ask("/new")
        assert await say(agent, "/usage") == "Nothing has been used in this conversation yet."


async def test_a_restored_snapshot_brings_what_it_has_used_until_then(house):
    used = "custom/a: {} call(s), {} tokens in ({} from the cache), {} out, ${}".format
    inherited = "Up to where it branched off (a fork, a snapshot), in the conversation that it comes from:"
    async with house(PRICES) as agent:
        await agent.ask("one")
        await agent.ask("two")
        await agent.ask("/session snapshot here")
        await agent.ask("three")
        await agent.ask("/session restore here")
        restored, status = await say(agent, "/usage"), await say(agent, "/status")
        await agent.ask("four")
        gone_on = await say(agent, "/usage")
        await agent.ask("/undo")
        taken_back = await say(agent, "/usage")
    two, one = used(2, "2,000", 800, 200, "0.0048"), used(1, "1,000", 400, 100, "0.0024")
    assert (restored, gone_on) == (f"{inherited}\n{two}", f"{one}\n{inherited}\n{two}")
    assert status.splitlines()[1] == "State: resting. 2 model call(s), $0.0048."
    assert taken_back.splitlines()[0::2] == [one, inherited]
    assert taken_back.splitlines()[-1] == two


def test_usage_adds_up_days_and_says_what_is_missing():
    used = [SpentRow(day, "m", 1, USED, 0.5, unpriced) for day, unpriced in ((1, 0), (2, 1))]
    assert describe(used) == "m: 2 call(s), 2,000 tokens in (800 from the cache), 200 out, more than $1.0000"
