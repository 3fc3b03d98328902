"""Texts as vectors, over real connections: OpenAI's way and Gemini's, with the vendors' own clients as judges."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from aiohttp import web
from msgspec.structs import replace
from tests.providers.test_conformance import REFUSED, STATUS, recording

from everloop.core.prompt import Usage
from everloop.errors import (
    BadRequest,
    HostFailed,
    HostUnreachable,
    KeyRefused,
    ModelMissing,
    ProviderError,
    UnknownModel,
)
from everloop.ports import Embeddings
from everloop.providers.catalog import HOSTS
from everloop.providers.choose import Choice
from everloop.providers.embeddings import HostEmbedder

KEY = "sk-canary-embeddings"
TEXTS = ["one", "two", "drei 🎉"]
VECTORS = [[0.25, -0.5], [1.0, 0.0], [-0.125, 2e-05]]
MODEL = {"openai": "text-embedding-3-small", "mistral": "mistral-embed", "gemini": "gemini-embedding-001"}
OPENAI = {
    "object": "list",
    "model": "text-embedding-3-small",
    "data": [{"object": "embedding", "index": index, "embedding": VECTORS[index]} for index in (1, 2, 0)],
    "usage": {"prompt_tokens": 7, "total_tokens": 7},
}
GEMINI = {"embeddings": [{"values": vector} for vector in VECTORS], "usageMetadata": {"promptTokenCount": 7}}
TOLD = {"openai": OPENAI, "mistral": OPENAI, "gemini": GEMINI}


class Host:
    """Answers with each of its answers in turn, then again and again with the last."""

    def __init__(self, *answers: web.Response | dict[str, Any]) -> None:
        self._answers = list(answers)
        self.paths: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []

    async def handle(self, request: web.BaseRequest) -> web.Response:
        self.paths.append(request.path_qs)
        self.headers.append(dict(request.headers))
        self.bodies.append(msgspec.json.decode(await request.read()))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, dict):
            return web.json_response(answer)
        return web.Response(body=answer.body, status=answer.status, headers=answer.headers)


class Talk:
    def __init__(self, http, serve) -> None:
        self._http = http
        self._serve = serve
        self.slept: list[float] = []

    async def embedder(self, name: str, host: Host, **more: Any) -> HostEmbedder:
        base = await self._serve(host.handle) + ("" if name == "gemini" else "/v1")
        return self.at(Choice(HOSTS[name], MODEL[name], base, KEY, {"X-Team": "a"}), **more)

    def at(self, choice: Choice, **more: Any) -> HostEmbedder:
        return HostEmbedder(choice, self._http, sleep=self._sleep, chance=lambda: 0.5, **more)

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def talk(http, serve) -> Talk:
    return Talk(http, serve)


@pytest.mark.parametrize("name", MODEL)
async def test_each_text_becomes_a_vector_in_order(talk, name):
    host = Host(TOLD[name])
    embedder = await talk.embedder(name, host, cost=lambda usage: usage.input / 10)
    assert await embedder.embed(TEXTS) == Embeddings(VECTORS, f"{name}/{MODEL[name]}", Usage(input=7), 0.7)
    assert embedder.name == f"{name}/{MODEL[name]}"
    (shown,) = host.headers
    assert (shown.get("x-goog-api-key") or shown["Authorization"].removeprefix("Bearer "), shown["X-Team"]) == (
        KEY,
        "a",
    )


async def test_nothing_costs_nothing_and_asks_nobody(talk):
    host = Host(OPENAI)
    embedder = await talk.embedder("openai", host, cost=lambda usage: float(usage.input))
    assert await embedder.embed([]) == Embeddings([], "openai/text-embedding-3-small", Usage(), 0.0)
    assert host.bodies == []


async def test_a_host_that_counts_no_tokens_has_no_known_cost(talk):
    told = {"embeddings": GEMINI["embeddings"]}
    embedder = await talk.embedder("gemini", Host(told), cost=lambda usage: 0.0)
    assert await embedder.embed(TEXTS) == Embeddings(VECTORS, "gemini/gemini-embedding-001", Usage(), None)


async def test_many_texts_are_sent_as_the_host_takes_them(talk, serve):
    sent: list[list[str]] = []

    async def count(request: web.BaseRequest) -> web.Response:
        texts = msgspec.json.decode(await request.read())["input"]
        sent.append(texts)
        rows = [{"index": index, "embedding": [float(text or -1)]} for index, text in enumerate(texts)]
        return web.json_response({"data": rows, "usage": {"prompt_tokens": len(texts)}})

    row = replace(HOSTS["dashscope"], batch=2)
    embedder = talk.at(Choice(row, "text-embedding-v4", await serve(count), KEY), cost=lambda usage: 1.0)
    made = await embedder.embed(["0", "1", "2", "3", "4"])
    assert made == Embeddings([[0.0], [1.0], [2.0], [3.0], [4.0]], "dashscope/text-embedding-v4", Usage(input=5), 1.0)
    assert sent == [["0", "1"], ["2", "3"], ["4"]]


async def test_no_text_is_sent_empty_for_hosts_refuse_that(talk):
    host = Host({**OPENAI, "data": OPENAI["data"][:1]})
    await (await talk.embedder("openai", host)).embed([""])
    assert host.bodies == [{"model": "text-embedding-3-small", "input": [" "]}]


# What goes wrong


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("name", MODEL)
async def test_a_refusal_has_the_kind_that_it_has_in_a_chat(talk, name, case):
    body = recording(HOSTS[name].dialect, case)
    host = Host(web.Response(body=body, status=STATUS[case], headers={"Retry-After": "999"}))
    with pytest.raises(ProviderError) as raised:
        await (await talk.embedder(name, host)).embed(TEXTS)
    assert type(raised.value) is REFUSED[case]
    assert (len(host.bodies), talk.slept) == (1, [])


@pytest.mark.parametrize("status, kind", [(404, UnknownModel), (422, BadRequest), (403, KeyRefused), (501, BadRequest)])
async def test_what_another_attempt_would_not_cure_is_told_at_once(talk, status, kind):
    host = Host(web.Response(status=status, body=b'{"error": {"message": "no"}}'))
    with pytest.raises(kind, match="openai"):
        await (await talk.embedder("openai", host)).embed(TEXTS)
    assert len(host.bodies) == 1


async def test_what_passes_is_tried_again(talk):
    host = Host(web.Response(status=503), web.Response(status=429, headers={"Retry-After": "7"}), OPENAI)
    assert (await (await talk.embedder("openai", host)).embed(TEXTS)).vectors == VECTORS
    assert talk.slept == [0.5, 7.0]


async def test_three_attempts_are_enough(talk):
    host = Host(web.Response(status=503))
    with pytest.raises(HostFailed):
        await (await talk.embedder("openai", host)).embed(TEXTS)
    assert (len(host.bodies), talk.slept) == (3, [0.5, 1.0])


@pytest.mark.parametrize(
    "told",
    [
        {"data": [{"index": 0, "embedding": [1.0]}]},
        {"data": [{"index": index, "embedding": [1.0] * (index + 1)} for index in range(3)]},
        {"data": [{"index": index, "embedding": "AAAA"} for index in range(3)]},
        {"choices": []},
    ],
    ids=["too few", "of several lengths", "no numbers", "something else"],
)
async def test_what_are_no_vectors_for_the_texts_is_the_hosts_failure(talk, told):
    with pytest.raises(HostFailed, match=r"openai answered for text-embedding-3-small with .* Check the model's name"):
        await (await talk.embedder("openai", Host(told))).embed(TEXTS)


async def test_a_host_that_is_not_there_is_named(talk):
    with pytest.raises(HostUnreachable, match=r"^openai: "):
        await talk.at(Choice(HOSTS["openai"], "m", "http://127.0.0.1:1/v1", KEY)).embed(TEXTS)


async def test_a_key_that_the_host_repeats_is_not_told(talk):
    host = Host(web.Response(status=400, text=f'{{"error": {{"message": "bad {KEY}"}}}}'))
    with pytest.raises(BadRequest) as raised:
        await (await talk.embedder("openai", host)).embed(TEXTS)
    assert KEY not in str(raised.value)


@pytest.mark.parametrize(
    "choice, whose", [(Choice(HOSTS["anthropic"], "claude-x"), "anthropic"), (Choice(None, ""), "the embedded model")]
)
def test_where_there_are_no_embeddings_it_is_said(talk, choice, whose):
    with pytest.raises(ModelMissing, match=f"^{whose} offers no embeddings: set agents.defaults.embedding_model to"):
        talk.at(choice)


async def test_a_login_is_asked_for_its_headers_each_time(talk):
    host = Host(OPENAI)

    async def login() -> dict[str, str]:
        return {"Authorization": "Bearer fresh"}

    await (await talk.embedder("openai", host, login=login)).embed(TEXTS)
    assert host.headers[0]["Authorization"] == "Bearer fresh"


# The vendors' own clients


def pick(body: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: body[name] for name in names}


async def test_openai_sends_what_we_send_and_reads_what_we_read(talk, serve):
    openai = pytest.importorskip("openai")
    from tests.providers.test_responses_with_the_vendors_sdk import admits

    ours, theirs = Host(OPENAI), Host(OPENAI)
    made = await (await talk.embedder("openai", ours)).embed(TEXTS)
    async with openai.AsyncOpenAI(base_url=await serve(theirs.handle) + "/v1", api_key=KEY) as client:
        read = await client.embeddings.create(model=MODEL["openai"], input=TEXTS, encoding_format="float")
    assert theirs.bodies == [{**ours.bodies[0], "encoding_format": "float"}]  # which is what a host does unasked
    assert (ours.paths, pick(ours.headers[0], "Authorization")) == (
        theirs.paths,
        pick(theirs.headers[0], "Authorization"),
    )
    assert made.vectors == [row.embedding for row in sorted(read.data, key=lambda row: row.index)]
    assert made.usage.input == read.usage.prompt_tokens
    params = openai.types.embedding_create_params.EmbeddingCreateParams
    assert admits(params, ours.bodies[0])
    assert not admits(params, ours.bodies[0] | {"inputs": TEXTS})


async def test_google_sends_what_we_send_and_reads_what_we_read(talk, serve):
    genai = pytest.importorskip("google.genai")
    ours, theirs = Host(GEMINI), Host(GEMINI)
    made = await (await talk.embedder("gemini", ours)).embed(TEXTS)
    options = genai.types.HttpOptions(base_url=await serve(theirs.handle), api_version="v1beta")
    async with genai.Client(api_key=KEY, http_options=options).aio as client:
        read = await client.models.embed_content(model=MODEL["gemini"], contents=TEXTS)
    assert without_roles(theirs.bodies[0]) == ours.bodies[0]
    assert (ours.paths, ours.headers[0]["x-goog-api-key"]) == (theirs.paths, theirs.headers[0]["x-goog-api-key"])
    assert made.vectors == [each.values for each in read.embeddings]


def without_roles(body: dict[str, Any]) -> dict[str, Any]:
    """Google's client says who speaks, which means nothing here."""
    requests: Sequence[dict[str, Any]] = body["requests"]
    return {"requests": [{**each, "content": pick(each["content"], "parts")} for each in requests]}
