"""How much a model is sent: what the settings say, then what the host says, then the table, then 8192 tokens."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager

import pytest
from aiohttp import web

import everloop
from everloop.core.briefing import Briefing
from everloop.core.decide import Rules
from everloop.errors import TurnFailed
from everloop.ports.provider import ModelLimits
from everloop.providers.catalog import HOSTS
from everloop.runtime.context import Context, Profile
from everloop.runtime.models import Briefed, Model
from everloop.testing import Say, ScriptedModel
from everloop.testing.model_server import ModelServer

Opener = Callable[..., AbstractAsyncContextManager[everloop.Agent]]
KNOWN = "openai/gpt-5.4-mini"  # reads 400,000 tokens, says the table
MIDDLE = "x" * 15_000  # 5,000 tokens by our estimate
LONG = "x" * 60_000  # 20,000, more than the 8,192 of a model that nobody knows
LONGEST = "x" * 199_000


@pytest.fixture(autouse=True)
def nobodys_keys(monkeypatch) -> None:
    for host in HOSTS.values():
        for variable in host.key_variables:
            monkeypatch.delenv(variable, raising=False)


class ClientFeed(ModelServer):
    """Says how much its models can read, as far as it likes to."""

    window: int | None = 128_000
    status = 200
    gate: asyncio.Event | None = None  # its list of models waits here

    def __init__(self) -> None:
        super().__init__(lambda shown: Say("hello"), models=("a", "gpt-5.4-mini"))
        self.lists = 0
        self.listing = asyncio.Event()

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path != "/v1/models":
            return await super()._answer(request)
        self.lists += 1
        self.listing.set()
        if self.gate:
            await self.gate.wait()
        row = {} if self.window is None else {"max_model_len": self.window}
        return web.json_response({"data": [{"id": name, **row} for name in self.models]}, status=self.status)

    @property
    def capped(self) -> list[int]:
        """How long each answer was allowed to become."""
        return [asked.body["max_completion_tokens"] for asked in self.requests if "messages" in asked.body]


@pytest.fixture
async def server() -> AsyncIterator[ClientFeed]:
    async with ClientFeed() as server:
        yield server


@pytest.fixture
def house(tmp_path, server) -> Opener:
    def open(model: str = "custom/a", **defaults) -> AbstractAsyncContextManager[everloop.Agent]:
        account = {"api_base": server.url, "api_key": "sk-canary-windows"}
        settings = {
            "agents": {"defaults": {"model": model, **defaults}},
            "providers": {"custom": account, "openai": account},
        }
        return everloop.open(home=tmp_path / "home", settings=settings)

    return open


async def say(agent: everloop.Agent, *texts: str, session: str = "api:default") -> list[str]:
    return [(await agent.ask(text, session)).content for text in texts]


@pytest.mark.parametrize(
    ("told", "share"), [(128_000, "of its 128,000 tokens are used"), (None, "It is assumed to read 8,192.")]
)
async def test_the_status_after_a_restart_tells_the_window_that_the_host_says(house, server, told, share):
    server.window = told
    async with house() as agent:
        await say(agent, "hi")
    async with house() as agent:
        (status,) = await say(agent, "/status")
    assert share in status.splitlines()[0]


@pytest.mark.parametrize(("model", "lists"), [("custom/a", 1), (KNOWN, 0)])
async def test_a_short_conversation_asks_for_a_window_only_where_nothing_is_known(house, server, model, lists):
    async with house(model) as agent:
        assert await say(agent, "hi", "and?") == ["hello"] * 2
    assert server.lists == lists


async def test_what_the_settings_say_of_a_window_is_believed_and_nobody_asked(house, server):
    async with house(context_window=10_000) as agent:
        with pytest.raises(TurnFailed, match="too long"):
            await agent.ask(LONG)
    async with house(context_window=100_000) as agent:
        assert await say(agent, LONG) == ["hello"]
    assert server.lists == 0


async def test_a_host_that_reads_more_than_the_table_says_is_sent_more(house, server):
    async with house() as agent:
        assert await say(agent, LONG, LONG, LONGEST) == ["hello"] * 3
        assert (server.calls, server.lists) == (3, 1)
        assert await say(agent, LONGEST) == ["hello"]
    assert (server.calls, server.lists) == (5, 1)  # a summary was made of what no longer fitted


async def test_a_host_that_reads_less_than_the_table_says_is_sent_less(house, server):
    server.window = 6000
    async with house(KNOWN) as agent:
        assert await say(agent, "hi", "x" * 9000) == ["hello"] * 2
        with pytest.raises(TurnFailed, match="reads at most 4,500 as far as is known") as failed:
            await agent.ask(MIDDLE)
    assert (failed.value.reason, server.calls, server.lists) == ("context", 2, 1)
    assert server.capped == [8192, 1500]


async def test_a_letter_that_is_too_long_for_a_smaller_window_ends_its_own_turn_and_no_other(house, server):
    server.window = 6000
    async with house(KNOWN) as agent:
        await say(agent, "hi")
        with pytest.raises(TurnFailed, match="too long"):
            await agent.ask(MIDDLE, event="e1")
        with pytest.raises(TurnFailed, match="too long"):  # the same letter is answered in the same way
            await agent.ask(MIDDLE, event="e1")
        assert await agent.store.unfinished((await agent.store.session("api:default")).id) == []
        assert await say(agent, "hi", session="api:other") == ["hello"]


async def test_a_host_that_tells_no_windows_leaves_it_to_the_table_and_is_asked_once(house, server):
    server.window = None
    async with house(KNOWN) as agent:
        assert await say(agent, MIDDLE, LONG, LONGEST) == ["hello"] * 3
    assert (server.lists, server.capped) == (1, [8192] * 3)


async def test_where_neither_knows_a_conversation_is_too_long_at_8192(house, server):
    server.models = ()
    async with house() as agent:
        with pytest.raises(TurnFailed, match="too long") as failed:
            await agent.ask(LONG)
    assert (failed.value.reason, server.calls, server.lists) == ("context", 0, 1)


async def test_a_host_that_cannot_be_asked_leaves_it_to_the_table_and_is_not_asked_at_every_step(house, server):
    server.status = 503
    async with house(KNOWN) as agent:
        assert await say(agent, MIDDLE, LONG, MIDDLE) == ["hello"] * 3
    assert (server.lists, server.capped) == (1, [8192] * 3)


async def test_a_stop_does_not_wait_for_a_list_of_models(house, server):
    server.gate = asyncio.Event()
    async with house(KNOWN) as agent:
        asking = asyncio.create_task(agent.ask(MIDDLE))
        await server.listing.wait()
        assert (await agent.ask("/stop")).content == "⏹ Stopped 1 task(s)."
        with pytest.raises(TurnFailed, match="stopped"):
            await asking
    assert (server.calls, server.lists) == (0, 1)


async def test_one_conversation_asks_for_all(house, server):
    server.gate = asyncio.Event()
    async with house(KNOWN) as agent:
        asking = asyncio.create_task(agent.ask(MIDDLE))
        await server.listing.wait()
        assert await say(agent, MIDDLE, session="api:other") == ["hello"]
        server.gate.set()
        assert (await asking).content == "hello"
    assert (server.calls, server.lists) == (2, 1)


async def test_while_a_host_is_asked_only_what_would_have_to_be_compacted_waits_for_its_answer():
    asked, gate = [], asyncio.Event()

    async def measure() -> ModelLimits:
        asked.append(True)
        await gate.wait()
        return ModelLimits(128_000)

    def fit(limits: ModelLimits, told: Briefing) -> tuple[Context, Rules]:
        return Context(Profile("m", ()), (), lambda: "now"), Rules(limit=limits.window)

    model = Model("house/m", "m", "m", ScriptedModel(lambda shown: Say("hello")), 6144, fit, measure)
    briefed = Briefed(model, Briefing(""))
    async with asyncio.TaskGroup() as group:
        first = group.create_task(model.measure_window())
        while not asked:  # noqa: ASYNC110 (it is asked as soon as the task has begun)
            await asyncio.sleep(0)
        assert [briefed.should_measure(6000, cramped=cramped) for cramped in (False, True)] == [False, True]
        second = group.create_task(model.measure_window())
        await asyncio.sleep(0)
        assert (first.done(), second.done(), briefed.rules.limit) == (False, False, 6144)
        gate.set()
    briefed.fit_again()
    assert (asked, briefed.rules.limit, briefed.should_measure(6000, cramped=True)) == ([True], 128_000, False)
