"""How long an answer may become, as it stands in the request: at an address of one's own, in each dialect."""

import asyncio
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web

import everloop
from everloop.core.prompt import Prompt, Transcript
from everloop.errors import TurnFailed
from everloop.ports.provider import ModelLimits
from everloop.providers.catalog import HOSTS
from everloop.providers.dialects import anthropic_messages
from everloop.providers.dialects.quirks import Quirks
from everloop.providers.model_limits import find_output, longest_answer
from everloop.testing import Say
from everloop.testing.model_server import ModelServer

# Where each dialect says how long an answer may become.
FIELDS = {
    "openai_chat": ("max_tokens",),
    "anthropic_messages": ("max_tokens",),
    "gemini": ("generationConfig", "maxOutputTokens"),
    "openai_responses": ("max_output_tokens",),
}


@pytest.fixture(autouse=True)
def nobodys_keys(monkeypatch) -> None:
    for host in HOSTS.values():
        for variable in host.key_variables:
            monkeypatch.delenv(variable, raising=False)


class OwnServer:
    """Lists the models that it is told to, in the order in which they are asked for, and refuses to answer."""

    def __init__(self) -> None:
        self.listed: dict[str, dict[str, Any]] = {}  # what is answered, by path
        self.asked: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.url = ""

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.asked.append(request.path)
        if request.method == "GET" or request.path == "/api/show":
            told = self.listed.get(request.path)
            return web.json_response(told) if told else web.json_response({"error": "no such page"}, status=404)
        self.bodies.append(await request.json())
        return web.json_response({"error": {"message": "no"}}, status=400)


@pytest.fixture
async def server() -> AsyncIterator[OwnServer]:
    own = OwnServer()
    runner = web.ServerRunner(web.Server(own.handle))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert site._server is not None
    own.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"  # type: ignore[attr-defined]
    yield own
    await runner.cleanup()


async def longest_asked_for(tmp_path, server: OwnServer, dialect: str = "openai_chat", **defaults) -> int:
    """What the request of a first message says."""
    path = "" if dialect in ("anthropic_messages", "gemini") else "/v1"
    account = {"api_base": server.url + path, "api_key": "sk-canary-limits", "dialect": dialect}
    settings = {"agents": {"defaults": {"model": "custom/bench", **defaults}}, "providers": {"custom": account}}
    async with everloop.open(home=tmp_path / "home", settings=settings) as agent:
        with pytest.raises(TurnFailed):
            await agent.ask("Write me a long report.")
    found: Any = server.bodies[-1]
    for name in FIELDS[dialect]:
        found = found[name]
    return found


def listing(dialect: str, **row: int) -> dict[str, dict[str, Any]]:
    path = "/v1beta/models" if dialect == "gemini" else "/v1/models"
    return {path: {"data": [{"id": "bench", **row}]}}


@pytest.mark.parametrize("dialect", FIELDS)
@pytest.mark.parametrize(
    ("row", "longest"),
    [
        pytest.param({"max_model_len": 128_000}, 8192, id="as the settings say"),
        pytest.param({"max_model_len": 128_000, "max_completion_tokens": 4096}, 4096, id="no more than it can say"),
        pytest.param({"max_model_len": 6000}, 1500, id="a quarter of a small window"),
        pytest.param({"max_model_len": 6000, "max_output_tokens": 1000}, 1000, id="the smaller of the two"),
        pytest.param({}, 2048, id="nobody says"),
    ],
)
async def test_the_host_is_asked_before_the_first_answer_and_the_request_keeps_to_what_it_says(
    tmp_path, server, dialect, row, longest
):
    server.listed = listing(dialect, **row)
    assert await longest_asked_for(tmp_path, server, dialect) == longest


async def test_what_the_settings_say_of_the_window_is_believed_and_nobody_asked(tmp_path, server):
    server.listed = listing("openai_chat", max_model_len=128_000)
    assert await longest_asked_for(tmp_path, server, context_window=4000) == 1000
    assert server.asked == ["/v1/chat/completions"]


async def test_a_smaller_wish_stays_as_it_is(tmp_path, server):
    server.listed = listing("openai_chat", max_model_len=128_000, max_completion_tokens=4096)
    assert await longest_asked_for(tmp_path, server, max_tokens=700) == 700


@pytest.mark.parametrize(
    ("told", "longest"),
    [
        ({"/api/ps": {"models": [{"name": "bench", "context_length": 16_384}]}}, 4096),
        ({"/api/show": {"parameters": 'stop "<|end|>"\nnum_ctx    4096\n'}}, 1024),
        ({"/props": {"default_generation_settings": {"n_ctx": 12_000}}}, 3000),
        ({"/api/v0/models": {"data": [{"id": "bench", "loaded_context_length": 20_000}]}}, 5000),
        ({"/api/show": {"parameters": "num_ctx many"}}, 2048),
    ],
    ids=["ollama, loaded", "ollama, by its own parameters", "llama.cpp", "lm studio", "nonsense"],
)
async def test_a_server_whose_list_does_not_say_is_asked_where_such_servers_say_it(tmp_path, server, told, longest):
    server.listed = {**listing("openai_chat"), **told}
    assert await longest_asked_for(tmp_path, server) == longest


async def test_a_host_that_does_not_list_its_models_still_answers(tmp_path, server):
    assert await longest_asked_for(tmp_path, server) == 2048


async def test_two_turns_ask_the_host_once(tmp_path):
    async with ModelServer(lambda shown: Say("fine"), models=("bench",)) as server:
        account = {"api_base": server.url, "api_key": "sk-canary-limits"}
        settings = {"agents": {"defaults": {"model": "custom/bench"}}, "providers": {"custom": account}}
        async with everloop.open(home=tmp_path / "home", settings=settings) as agent:
            await asyncio.gather(*(agent.ask("hi", f"api:{number}") for number in range(2)))
        assert [asked.body["max_tokens"] for asked in server.requests] == [8192] * 2


# What is known without asking


@pytest.mark.parametrize(
    ("model", "output"),
    [
        ("claude-3-haiku-20240307", 4096),
        ("anthropic/claude-3.5-sonnet", 8192),
        ("us.anthropic.claude-3-5-sonnet-20241022-v2:0", 8192),
        ("claude-opus-4-20250514", 32_000),
        ("claude-opus-4-1", 32_000),
        ("claude-opus-4-6", None),
        ("claude-haiku-4-5", 64_000),
        ("claude-haiku-5-5", None),
        ("gpt-4", 8192),
        ("gpt-4-turbo-2024-04-09", 4096),
        ("gpt-4o-mini", 16_384),
        ("gpt-4.1-mini", 32_768),
        ("gpt-5.4-mini", None),
        ("models/gemini-2.0-flash", 8192),
        ("some/thing-with-gpt-4-in-it", None),
    ],
)
def test_how_much_a_model_can_say_is_known_of_those_that_say_little(model, output):
    assert find_output(model) == output


@pytest.mark.parametrize(
    ("wanted", "limits", "longest"),
    [
        (8192, ModelLimits(400_000, 4096), 4096),
        (8192, ModelLimits(400_000), 8192),
        (8192, ModelLimits(None, 64_000), 2048),
        (8192, ModelLimits(2), 1),
    ],
)
def test_an_answer_is_as_long_as_is_wanted_and_possible(wanted, limits, longest):
    assert longest_answer(wanted, limits) == longest


@pytest.mark.parametrize(
    ("model", "effort", "limit", "sent"),
    [
        ("claude-3-7-sonnet", "medium", 0, (12_288, 8192)),
        ("claude-3-7-sonnet", "medium", 10_000, (10_000, 5904)),
        ("claude-3-7-sonnet", "high", 8192, (8192, 4096)),
        ("claude-3-7-sonnet", "high", 4500, (4500, None)),  # too little for both: it answers without
        ("claude-opus-4-8", "high", 16_000, (16_000, None)),
    ],
)
def test_thoughts_do_not_lead_beyond_what_a_model_can_say(model, effort, limit, sent):
    asked = Prompt(model, "", Transcript(), max_tokens=min(8192, limit or 8192), effort=effort, output_limit=limit)
    body = anthropic_messages.encode(asked, Quirks(), "anthropic").decode()
    found = [re.search(rf'"{name}":(\d+)', body) for name in ("max_tokens", "budget_tokens")]
    assert tuple(int(each[1]) if each else None for each in found) == sent


async def test_a_fallback_is_asked_for_no_more_than_it_can_say(tmp_path):
    async with ModelServer(lambda shown: Say("fine"), models=("gpt-4-turbo",)) as server:
        settings = {
            "agents": {"defaults": {"model": "openai/gpt-5.4-mini", "fallbacks": ["custom/gpt-4-turbo"]}},
            "providers": {
                "openai": {"api_base": "http://127.0.0.1:1", "api_key": "sk-canary-limits"},
                "custom": {"api_base": server.url},
            },
        }
        async with everloop.open(home=tmp_path / "home", settings=settings) as agent:
            assert (await agent.ask("hi")).model == "custom/gpt-4-turbo"
        assert [asked.body["max_tokens"] for asked in server.requests] == [4096]
