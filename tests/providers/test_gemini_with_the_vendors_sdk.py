"""Google's own client as the judge: it reads our recordings as we do, and sends our requests as we write them.

Its types forbid fields that they do not know, so that a misspelt one is found.
"""

import re
from pathlib import Path

import msgspec
import pytest
from aiohttp import web
from google import genai
from google.genai import errors, types
from msgspec import Struct
from pydantic import ValidationError

from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Prompt, Transcript, Usage
from everloop.core.tool import ToolCall, ToolSpec
from everloop.errors import ContextOverflow, HostFailed, KeyRefused, RateLimited
from everloop.ports.provider import Reply
from everloop.providers import dialects
from everloop.providers.dialects import gemini
from everloop.providers.dialects.quirks import Quirks

RECORDINGS = Path(__file__).parent / "recordings" / "gemini"
MODEL = "gemini-3.8-flash"
ANSWERS = (
    *("text", "one_call", "text_and_call", "parallel_calls", "call_without_arguments", "reasoning"),
    *("reasoning_and_call", "empty", "unicode", "length", "refusal", "usage"),
)
REASONS = {"stop": "STOP", "calls": "STOP", "length": "MAX_TOKENS", "refused": "SAFETY"}


def recording(case: str) -> bytes:
    return next(RECORDINGS.glob(f"{case}.*")).read_bytes()


class Read(Struct, frozen=True):
    """An answer as both of us can tell it."""

    text: str
    thoughts: str
    calls: tuple[tuple[str, object], ...]
    usage: Usage
    reason: str
    model: str


def read_by_us(case: str) -> Read:
    decoder = gemini.decoder("host", MODEL)
    decoder.feed(recording(case))
    reply: Reply = decoder.reply()
    calls = tuple((call.name, msgspec.json.decode(call.args)) for call in reply.calls)
    return Read(reply.text, reply.reasoning, calls, reply.usage, REASONS[reply.finish], reply.model)


def read_by_google(chunks: list[types.GenerateContentResponse]) -> Read:
    parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts or []]
    said = "".join(part.text for part in parts if part.text and not part.thought)
    thoughts = "".join(part.text for part in parts if part.text and part.thought).strip()
    calls = tuple((part.function_call.name, part.function_call.args) for part in parts if part.function_call)
    last = chunks[-1]
    count = last.usage_metadata
    usage = Usage(
        input=count.prompt_token_count,
        output=count.total_token_count - count.prompt_token_count,
        cache_read=count.cached_content_token_count or 0,
        reasoning=count.thoughts_token_count or 0,
    )
    return Read(said, thoughts, calls, usage, last.candidates[0].finish_reason.value, last.model_version)


class Google:
    """The vendor's client, speaking with a server on loopback that answers with a recording."""

    def __init__(self, serve, answer: bytes, status: int = 200) -> None:
        self._serve = serve
        self._answer = answer
        self._status = status
        self.path = ""
        self.key = ""
        self.body: dict = {}

    async def ask(self, contents, config=None) -> list[types.GenerateContentResponse]:
        base = await self._serve(self._respond)
        options = types.HttpOptions(base_url=base, api_version="v1beta")
        async with genai.Client(api_key="k", http_options=options).aio as client:
            stream = await client.models.generate_content_stream(model=MODEL, contents=contents, config=config)
            return [chunk async for chunk in stream]

    async def _respond(self, request: web.BaseRequest) -> web.Response:
        self.path, self.key = request.path_qs, request.headers["x-goog-api-key"]
        self.body = msgspec.json.decode(await request.read())
        kind = "text/event-stream" if self._status == 200 else "application/json"
        return web.Response(body=self._answer, status=self._status, content_type=kind)


@pytest.mark.parametrize("case", ANSWERS)
async def test_an_answer_is_read_as_google_reads_it(serve, case):
    assert read_by_us(case) == read_by_google(await Google(serve, recording(case)).ask("hi"))


async def test_google_knocks_at_the_same_door(serve):
    google = Google(serve, recording("text"))
    await google.ask("hi")
    assert google.path == gemini.path(MODEL)
    assert gemini.headers("k") == {"x-goog-api-key": google.key}


async def test_google_also_finds_that_a_prompt_was_blocked(serve):
    (chunk,) = await Google(serve, recording("blocked")).ask("hi")
    assert chunk.prompt_feedback.block_reason.value == "PROHIBITED_CONTENT"
    assert chunk.candidates is None


@pytest.mark.parametrize(
    "case, code, kind", [("error_overloaded", 503, HostFailed), ("error_rate_limit", 429, RateLimited)]
)
async def test_an_error_in_the_middle_is_one_for_google_too(serve, case, code, kind):
    with pytest.raises(errors.APIError) as raised:
        await Google(serve, recording(case)).ask("hi")
    assert raised.value.code == code
    with pytest.raises(kind):
        read_by_us(case)


@pytest.mark.parametrize(
    "case, status, kind",
    [
        ("refused_key", 400, KeyRefused),
        ("refused_overflow", 400, ContextOverflow),
        ("refused_rate_limit", 429, RateLimited),
    ],
)
async def test_a_refusal_is_one_for_google_too(serve, case, status, kind):
    with pytest.raises(errors.ClientError) as raised:
        await Google(serve, recording(case), status).ask("hi")
    assert raised.value.code == status
    assert type(gemini.error_from("host", MODEL, status, {}, recording(case))) is kind


def user(*parts) -> Message:
    return Message("user", parts)


def kept_answer(case: str) -> Message:
    decoder = gemini.decoder("host", MODEL)
    decoder.feed(recording(case))
    reply = decoder.reply()
    return Message("assistant", said(reply.text), reply.calls, opaque=reply.opaque)


PNG = Media("f1", "image/png", "a.png")
PDF = Media("f2", "application/pdf", "b.pdf")
HELLO = user(Text("hi"))
LOOK = ToolSpec(
    "look",
    "Looks at a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "additionalProperties": False},
)
FOREIGN = Message("assistant", said("Let me see."), (ToolCall("c1", "look", '{"path":"a"}'), ToolCall("c2", "now", "")))
RESULTS = (Message("tool", said("x"), answers="c1"), Message("tool", said("y"), answers="c2"))
SEEN = Message("tool", (Text("x"), PNG), answers="c1")
SIGNED = kept_answer("text_and_call")
SIGNED_RESULT = Message("tool", said("x"), answers=SIGNED.calls[0].id)
REQUESTS: dict[str, tuple[tuple[Message, ...], dict]] = {
    "text": ((HELLO,), {"system": "Be brief.", "temperature": 0.5, "top_p": 0.25, "tail": "It is noon."}),
    "tools": ((HELLO,), {"tools": (LOOK,)}),
    "calls_and_results": ((HELLO, FOREIGN, *RESULTS), {"tools": (LOOK,), "tail": "It is noon."}),
    "calls_of_an_older_model": ((HELLO, FOREIGN, *RESULTS), {"model": "gemini-2.5-flash"}),
    "signed_answers": ((HELLO, SIGNED, SIGNED_RESULT, kept_answer("reasoning"), HELLO), {}),
    "image": ((user(Text("see"), PNG),), {}),
    "image_in_a_result": ((HELLO, FOREIGN, SEEN, RESULTS[1]), {}),
    "image_beside_a_result": ((HELLO, FOREIGN, SEEN, RESULTS[1]), {"model": "gemini-2.5-flash"}),
    "pdf": ((user(PDF),), {}),
    "thinking_by_level": ((HELLO,), {"effort": "high"}),
    "thinking_by_budget": ((HELLO,), {"effort": "medium", "model": "gemini-2.5-flash"}),
}


def request(case: str) -> dict:
    messages, fields = REQUESTS[case]
    transcript = Transcript(messages)
    transcript.files.update({"f1": b"png", "f2": b"pdf"})
    prompt = Prompt(**{"model": MODEL, "system": "", "transcript": transcript, **fields})
    return msgspec.json.decode(gemini.encode(prompt, Quirks(), "host"))


def understood(body: dict) -> tuple[list[types.Content], types.GenerateContentConfig]:
    """The request in Google's own types. Raises ValidationError for anything that they do not know."""
    types.GenerationConfig.model_validate_json(msgspec.json.encode(body.get("generationConfig", {})))
    known = {"contents", "generationConfig", "systemInstruction", "tools"}
    config = {key: value for key, value in body.items() if key not in ("contents", "generationConfig")}
    assert body.keys() <= known
    return (
        [types.Content.model_validate_json(msgspec.json.encode(content)) for content in body["contents"]],
        types.GenerateContentConfig.model_validate_json(msgspec.json.encode(config | body.get("generationConfig", {}))),
    )


@pytest.mark.parametrize("case", REQUESTS)
async def test_google_sends_the_request_as_we_do(serve, case):
    body = request(case)
    google = Google(serve, recording("text"))
    await google.ask(*understood(body))
    assert spelt_alike(google.body) == spelt_alike(body)


def spelt_alike(value, name: str = ""):
    """Google's hosts take camel and snake case for names and both alphabets of base64, and its client mixes them."""
    match value:
        case dict():
            return {camel(key): spelt_alike(item, camel(key)) for key, item in value.items()}
        case list():
            return [spelt_alike(item) for item in value]
        case str() if name == "thoughtSignature":
            return value.replace("-", "+").replace("_", "/")
    return value


def camel(name: str) -> str:
    return re.sub(r"_(.)", lambda found: found[1].upper(), name)


@pytest.mark.parametrize(
    "wrong",
    [
        {"contents": [{"role": "user", "parts": [{"inlinedata": {"mimeType": "image/png", "data": "cG5n"}}]}]},
        {"contents": [{"role": "user", "parts": [{"functionResponse": {"name": "a", "results": {}}}]}]},
        {"contents": [{"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": "no base 64"}}]}]},
        {"contents": [], "generationConfig": {"maxTokens": 5}},
        {"contents": [], "generationConfig": {"thinkingConfig": {"thinkingEffort": "HIGH"}}},
        {"contents": [], "tools": [{"functionDeclarations": [{"name": "a", "jsonSchema": {}}]}]},
    ],
)
def test_google_would_find_a_misspelt_field(wrong):
    with pytest.raises(ValidationError):
        understood(wrong)


def test_the_module_is_a_dialect():
    assert dialects.load("gemini") is gemini
