"""What hosts tell about their models, each in its own shape, asked over a real connection."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from aiohttp import web
from msgspec.structs import replace

from everloop.errors import HostFailed, HostTimeout, HostUnreachable, KeyRefused
from everloop.providers.catalog import HOSTS, Host
from everloop.providers.choose import Choice
from everloop.providers.discovery import Discovery, ListedModel, read_models

KEY = "sk-canary-discovery"
OPENAI = {"object": "list", "data": [{"id": "gpt-5.4-mini", "object": "model", "created": 1, "owned_by": "openai"}]}
OPENROUTER = {
    "data": [
        {
            "id": "anthropic/claude-x",
            "context_length": 200000,
            "architecture": {"input_modalities": ["text", "image"]},
            "top_provider": {"context_length": 180000, "max_completion_tokens": 64000},
            "supported_parameters": ["max_tokens", "tools"],
        },
        {
            "id": "meta/llama",
            "context_length": None,
            "architecture": {"input_modalities": ["text"]},
            "top_provider": {"context_length": 131072.0, "max_completion_tokens": None},
            "supported_parameters": ["max_tokens"],
        },
    ]
}
GROQ = {
    "object": "list",
    "data": [{"id": "openai/gpt-oss-120b", "active": True, "context_window": 131072, "max_completion_tokens": 65536}],
}
MISTRAL = {
    "data": [
        {
            "id": "mistral-medium",
            "max_context_length": 131072,
            "capabilities": {"vision": True, "function_calling": True},
        }
    ]
}
VLLM = {"object": "list", "data": [{"id": "qwen", "root": "qwen", "max_model_len": 32768, "permission": [{}]}]}
TOGETHER = [{"id": "openai/gpt-oss-120b", "type": "chat", "context_length": 131072}]
ANTHROPIC = {
    "data": [
        {
            "type": "model",
            "id": "claude-x",
            "display_name": "Claude X",
            "max_input_tokens": 1000000,
            "max_tokens": 64000,
        }
    ],
    "has_more": False,
}
GEMINI = {
    "models": [
        {"name": "models/gemini-x", "inputTokenLimit": 1048576, "outputTokenLimit": 65536},
        {"name": "models/embedding-x", "inputTokenLimit": 2048},
    ]
}
LMSTUDIO = {
    "data": [{"id": "qwen", "state": "loaded", "max_context_length": 262144, "loaded_context_length": 4096}],
}
OLLAMA_PS = {"models": [{"name": "qwen3:8b", "model": "qwen3:8b", "size": 1, "context_length": 16384}]}
LLAMACPP = {
    "models": [{"name": "model.gguf", "model": "model.gguf", "capabilities": ["completion", "vision"]}],
    "object": "list",
    "data": [{"id": "model.gguf", "object": "model", "meta": {"n_ctx_train": 131072, "n_ctx": 8192}}],
}
PROPS = {"default_generation_settings": {"id": 0, "id_task": -1, "n_ctx": 24576, "params": {}}, "total_slots": 4}


STRANGE = {
    "data": [
        {"no": "name"},
        "text",
        {"id": 7},
        {"id": "good", "context_length": "many", "max_tokens": True, "n_ctx": -1},
    ]
}
SHAPES = {
    "openai": (OPENAI, [ListedModel("gpt-5.4-mini")]),
    "openrouter": (
        OPENROUTER,
        [
            ListedModel("anthropic/claude-x", 200000, True, 64000, True),
            ListedModel("meta/llama", 131072, False, None, False),
        ],
    ),
    "groq": (GROQ, [ListedModel("openai/gpt-oss-120b", 131072, None, 65536)]),
    "mistral": (MISTRAL, [ListedModel("mistral-medium", 131072, True, None, True)]),
    "vllm": (VLLM, [ListedModel("qwen", 32768)]),
    "together": (TOGETHER, [ListedModel("openai/gpt-oss-120b", 131072)]),
    "anthropic": (ANTHROPIC, [ListedModel("claude-x", 1000000, None, 64000)]),
    "gemini": (GEMINI, [ListedModel("gemini-x", 1048576, None, 65536), ListedModel("embedding-x", 2048)]),
    "lmstudio": (LMSTUDIO, [ListedModel("qwen", 4096)]),
    "ollama": (OLLAMA_PS, [ListedModel("qwen3:8b", 16384)]),
    "llamacpp": (LLAMACPP, [ListedModel("model.gguf", 8192)]),
    "props": (PROPS, [ListedModel("", 24576)]),
    "strange": (STRANGE, [ListedModel("good")]),
    "none": ({"data": []}, []),
}


@pytest.mark.parametrize(("told", "models"), SHAPES.values(), ids=SHAPES)
def test_every_shape_is_read(told, models):
    assert list(read_models("host", msgspec.json.encode(told))) == models


@pytest.mark.parametrize("body", [b"<html>", b"", b"7", b'"text"', b"{}", b'{"data": {}}', b'{"data": null}'])
def test_what_is_no_list_of_models_is_a_sentence(body):
    with pytest.raises(HostFailed) as raised:
        list(read_models("host", body))
    assert str(raised.value) == "host answers with something that is no list of models."


class Clock:
    time = 1000.0

    def __call__(self) -> float:
        return self.time


class Place:
    """A host on loopback that answers by path, counts, and can be told to fail."""

    def __init__(self, **told: object) -> None:
        self.told = {name.replace("__", "/"): value for name, value in told.items()}
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.answer: Callable[[], web.Response] | None = None

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.asked.append(request.path_qs)
        self.headers.append(dict(request.headers))
        if self.answer:
            return self.answer()
        told = self.told.get(request.path.lstrip("/"))
        return web.json_response(told) if told is not None else web.Response(status=404, text="{}")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def discovery(http, clock) -> Discovery:
    return Discovery(http, clock)


async def test_each_dialect_lists_its_models_at_its_own_address_with_its_own_key(serve, discovery):
    place = Place(v1__models=OPENAI, v1beta__models=GEMINI)
    base = await serve(place.handle)
    for name, path in (("groq", "/v1"), ("openai", "/v1"), ("anthropic", ""), ("gemini", "")):
        choice = Choice(HOSTS[name], "m", f"{base}{path}", KEY, {"X-Team": "a"})
        await Discovery(discovery._http).models(choice)
    assert place.asked == ["/v1/models", "/v1/models", "/v1/models?limit=1000", "/v1beta/models?pageSize=1000"]
    shown = [
        (headers.get("Authorization") or headers.get("x-api-key") or headers.get("x-goog-api-key"), headers["X-Team"])
        for headers in place.headers
    ]
    assert shown == [(f"Bearer {KEY}", "a"), (f"Bearer {KEY}", "a"), (KEY, "a"), (KEY, "a")]


async def test_what_was_learned_is_good_for_five_minutes(serve, discovery, clock):
    place = Place(v1__models=VLLM)
    choice = Choice(HOSTS["vllm"], "qwen", await serve(place.handle) + "/v1")
    assert await discovery.find(choice) == ListedModel("qwen", 32768)
    place.told["v1/models"] = GROQ
    clock.time += 299
    assert await discovery.find(choice) == ListedModel("qwen", 32768)
    assert len(place.asked) == 1
    clock.time += 2
    assert await discovery.find(choice) is None
    assert await discovery.models(choice) == [ListedModel("openai/gpt-oss-120b", 131072, None, 65536)]
    assert len(place.asked) == 2


async def test_what_one_key_was_told_says_nothing_of_another(serve, discovery):
    place = Place(v1__models=VLLM)
    choice = Choice(HOSTS["custom"], "qwen", await serve(place.handle) + "/v1", KEY)
    assert await discovery.models(choice) == [ListedModel("qwen", 32768)]
    place.answer = lambda: web.Response(status=401, text="{}")
    assert await discovery.models(choice) == [ListedModel("qwen", 32768)]
    with pytest.raises(KeyRefused):
        await discovery.models(replace(choice, key="another"))


async def test_a_word_in_the_place_of_a_key_is_left_in_what_the_server_tells_and_a_key_is_not(serve, discovery):
    place = Place(v1__models={"data": [{"id": f"qwen-{KEY}", "max_model_len": 32768}]})
    base = await serve(place.handle) + "/v1"
    for key, told in (("x", f"qwen-{KEY}"), (KEY, "qwen-***")):
        assert await discovery.models(Choice(HOSTS["custom"], "qwen", base, key)) == [ListedModel(told, 32768)]


async def test_a_host_that_does_not_come_to_an_end_is_not_listened_to_for_long(serve, discovery, clock):
    place, quick = Place(v1__models=VLLM), False

    async def dawdle(request: web.BaseRequest) -> web.StreamResponse:
        if quick:
            return await place.handle(request)
        answer = web.StreamResponse()
        await answer.prepare(request)
        while True:
            await answer.write(b" ")  # it is never silent for long
            await asyncio.sleep(0.01)

    choice = Choice(HOSTS["vllm"], "qwen", await serve(dawdle) + "/v1")
    with pytest.raises(HostTimeout, match=r"^vllm/qwen: its host does not say in 0\.05 s what models it has\.$"):
        await discovery.find(choice, 0.05)
    quick = True
    assert await discovery.find(choice) == ListedModel("qwen", 32768)
    quick, clock.time = False, clock.time + 301
    assert await discovery.find(choice, 0.05) == ListedModel("qwen", 32768)  # as it was


@pytest.mark.parametrize(
    "answer",
    [
        lambda: web.Response(status=500, text="broken"),
        lambda: web.Response(status=401, text="{}"),
        lambda: web.Response(text="<html>"),
    ],
    ids=["fails", "refuses", "garbage"],
)
async def test_a_host_that_cannot_be_asked_again_is_remembered_as_it_was(serve, discovery, clock, answer):
    place = Place(v1__models=VLLM)
    choice = Choice(HOSTS["vllm"], "qwen", await serve(place.handle) + "/v1")
    await discovery.models(choice)
    clock.time += 301
    place.answer = answer
    assert await discovery.models(choice) == [ListedModel("qwen", 32768)]
    place.answer = None
    place.told["v1/models"] = GROQ
    # It is asked again at once.
    assert await discovery.models(choice) == [ListedModel("openai/gpt-oss-120b", 131072, None, 65536)]


@pytest.mark.parametrize(
    ("status", "text", "error", "says"),
    [
        (401, "{}", KeyRefused, "custom refuses the key (401). Check the key that is set for custom."),
        (
            503,
            '{"error":{"message":"busy"}}',
            HostFailed,
            "custom failed to answer for its list of models (503): busy. Try again later.",
        ),
        (200, "<html>", HostFailed, "custom answers with something that is no list of models."),
    ],
)
async def test_a_host_that_cannot_be_asked_is_a_sentence_or_nothing_is_known(
    serve, discovery, status, text, error, says
):
    place = Place()
    place.answer = lambda: web.Response(status=status, text=text)
    choice = Choice(HOSTS["custom"], "m", await serve(place.handle) + "/v1", KEY)
    with pytest.raises(error) as raised:
        await discovery.models(choice)
    assert str(raised.value) == says
    if raised.value.retryable:  # it may tell later
        with pytest.raises(error):
            await discovery.find(choice)
    else:
        assert await discovery.find(choice) is None


async def test_a_host_that_is_not_there_is_unreachable(discovery):
    choice = Choice(HOSTS["custom"], "m", "http://127.0.0.1:9/v1")
    with pytest.raises(HostUnreachable):
        await discovery.find(choice)


def listed(name: str) -> dict[str, object]:
    return {"object": "list", "data": [{"id": name, "object": "model"}]}


@pytest.mark.parametrize(
    ("host", "model", "told", "window"),
    [
        ("ollama", "qwen3:8b", {"v1__models": listed("qwen3:8b"), "api__ps": OLLAMA_PS}, 16384),
        ("ollama", "other", {"v1__models": listed("other"), "api__ps": OLLAMA_PS}, None),  # it is not loaded
        ("lmstudio", "qwen", {"v1__models": listed("qwen"), "api__v0__models": LMSTUDIO}, 4096),
        ("llamacpp", "any", {"v1__models": listed("any"), "props": PROPS}, 24576),
        ("llamacpp", "model.gguf", {"v1__models": LLAMACPP, "props": PROPS}, 8192),
        ("ollama", "old", {"v1__models": listed("old")}, None),  # an old one, which cannot tell
        ("vllm", "plain", {"v1__models": listed("plain"), "props": PROPS}, None),  # tells it in its list or not at all
    ],
)
async def test_a_local_server_tells_with_which_window_a_model_is_loaded(serve, discovery, host, model, told, window):
    here: Host = HOSTS[host]
    base = await serve(Place(**told).handle) + "/v1"
    assert await discovery.find(Choice(here, model, base)) == ListedModel(model, window)


async def test_a_local_server_that_lists_nothing_may_still_tell_its_window(serve, discovery):
    base = await serve(Place(v1__models={"data": []}, props=PROPS).handle) + "/v1"
    assert await discovery.find(Choice(HOSTS["llamacpp"], "any", base)) == ListedModel("any", 24576)
