"""Which model answers: what is named, else what is configured, else a key, else a local server."""

import pytest
from aiohttp import web
from msgspec import Struct

from everloop.core.errors import ModelMissing
from everloop.net.trusted import TrustedHttp
from everloop.providers import local
from everloop.providers.catalog import HOSTS, Host
from everloop.providers.choose import Choice, choose


class Account(Struct):
    api_key: str = ""
    api_base: str = ""
    model: str = ""
    headers: dict[str, str] = {}


def test_a_model_that_is_named_is_taken_from_its_host():
    choice = choose("openai/gpt-5-mini", {"openai": Account("k1")}, {})
    assert choice == Choice(HOSTS["openai"], "gpt-5-mini", HOSTS["openai"].base, "k1")
    assert choice.name == "openai/gpt-5-mini"


def test_a_model_name_may_hold_slashes():
    choice = choose("openrouter/meta/llama-4", {}, {"OPENROUTER_API_KEY": "k2"})
    assert (choice.model, choice.key) == ("meta/llama-4", "k2")


def test_the_settings_win_over_the_environment():
    choice = choose("openai/x", {"openai": Account("mine", "http://127.0.0.1:9/v1")}, {"OPENAI_API_KEY": "other"})
    assert (choice.base, choice.key) == ("http://127.0.0.1:9/v1", "mine")


def test_a_host_of_ones_own_needs_no_key():
    assert choose("custom/x", {"custom": Account(api_base="http://127.0.0.1:9/v1")}, {}).key == ""


def test_the_embedded_models_have_no_host():
    assert choose("embedded", {}, {}) == Choice(None, "")
    assert choose("embedded/smollm2", {}, {}) == Choice(None, "smollm2")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("gpt-5", "write provider/model"),
        ("nosuch/gpt-5", "write provider/model"),
        ("openai/gpt-5", "set OPENAI_API_KEY or providers.openai.api_key"),
        ("custom/x", "set EVERLOOP_PROVIDERS__CUSTOM__API_BASE"),
    ],
)
def test_what_cannot_be_reached_is_a_sentence_that_says_what_to_do(name, says):
    with pytest.raises(ModelMissing, match=says):
        choose(name, {}, {})


def test_auto_takes_what_is_configured_before_a_key_in_the_environment():
    accounts = {"custom": Account(api_base="http://127.0.0.1:9/v1", model="mine")}
    assert choose("auto", accounts, {"OPENAI_API_KEY": "k"}).name == "custom/mine"
    assert choose("auto", {}, {"DEEPSEEK_API_KEY": "k"}).name == f"deepseek/{HOSTS['deepseek'].model}"
    assert choose("auto", {}, {}) is None


async def _serve(answer: web.Response) -> tuple[web.AppRunner, int]:
    app = web.Application()

    async def models(request: web.Request) -> web.Response:
        return answer

    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return runner, site._server.sockets[0].getsockname()[1]


async def found(hosts: list[Host]) -> Choice | None:
    http = TrustedHttp()
    try:
        return await local.find_local(http, hosts)
    finally:
        await http.close()


async def test_a_local_server_is_found_by_asking_for_its_models():
    answer = web.json_response({"data": [{"id": "nomic-embed-text"}, {"id": "qwen3:8b"}]})
    runner, port = await _serve(answer)
    here = Host("ollama", f"http://127.0.0.1:{port}/v1", port=port)
    try:
        assert (await found([here])).name == "ollama/qwen3:8b"
    finally:
        await runner.cleanup()


@pytest.mark.parametrize("body", ['{"models": []}', "<html>", '{"data": []}'])
async def test_someone_else_on_that_port_is_passed_by(body):
    runner, port = await _serve(web.Response(text=body))
    try:
        assert await found([Host("ollama", f"http://127.0.0.1:{port}/v1", port=port)]) is None
    finally:
        await runner.cleanup()


async def test_where_nobody_listens_nothing_is_found():
    assert await found([Host("ollama", "http://127.0.0.1:9/v1", port=9)]) is None
