"""Both dialects of OpenAI's against OpenAI's own client: it must hear in our recordings what we hear in them, and its
types must admit what we send."""

from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Required, Union, get_args, get_origin

import msgspec
import pytest
from aiohttp import web
from msgspec import Struct

from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Prompt, Transcript
from everloop.core.tool import ToolCall, ToolSpec
from everloop.errors import ProviderError
from everloop.providers import dialects
from everloop.providers.dialects.quirks import Quirks

openai = pytest.importorskip("openai")
pydantic = pytest.importorskip("pydantic")
typing_extensions = pytest.importorskip("typing_extensions")

RECORDINGS = Path(__file__).parent / "recordings"
HELLO = [{"role": "user", "content": "hello"}]


class Heard(Struct, frozen=True):
    text: str
    calls: tuple[ToolCall, ...]
    finish: str
    reasoning: str
    model: str
    counts: tuple[int, int, int, int]  # read, written, from the cache, thought


def recordings(dialect: str, *, broken: bool) -> list[str]:
    cases = sorted(file.stem for file in (RECORDINGS / dialect).glob("*.sse"))
    return [case for case in cases if case.startswith(("cut", "error")) == broken]


def recording(dialect: str, case: str) -> bytes:
    return next((RECORDINGS / dialect).glob(f"{case}.*")).read_bytes()


def heard_by_us(dialect: dialects.Name, body: bytes) -> Heard:
    decoder = dialects.load(dialect).decoder("host", "m")
    decoder.feed(body)
    reply = decoder.reply()
    counts = (reply.usage.input, reply.usage.output, reply.usage.cache_read, reply.usage.reasoning)
    return Heard(reply.text, reply.calls, reply.finish, reply.reasoning, reply.model, counts)


class Player:
    """Answers with whatever it is told to."""

    def __init__(self) -> None:
        self.body = b""
        self.status = 200

    async def __call__(self, request: web.BaseRequest) -> web.Response:
        kind = "text/event-stream" if self.status == 200 else "application/json"
        return web.Response(body=self.body, status=self.status, headers={"Content-Type": kind, "Retry-After": "7"})


@pytest.fixture
def player() -> Player:
    return Player()


@pytest.fixture
async def client(player, serve) -> AsyncIterator["openai.AsyncOpenAI"]:
    async with openai.AsyncOpenAI(base_url=await serve(player), api_key="sk-test", max_retries=0) as client:
        yield client


@pytest.mark.parametrize("case", recordings("openai_responses", broken=False))
async def test_it_hears_in_a_stream_of_responses_what_we_hear(player, client, case):
    player.body = recording("openai_responses", case)
    said: list[str] = []
    async with client.responses.stream(model="m", input="hello") as stream:
        async for event in stream:
            if event.type in ("response.output_text.delta", "response.refusal.delta"):
                said.append(event.delta)
            end = event
    assert end.type in ("response.completed", "response.incomplete")
    assert heard_in(end.response, "".join(said)) == heard_by_us("openai_responses", player.body)


def heard_in(response, text: str) -> Heard:
    calls = [item for item in response.output if item.type == "function_call"]
    thoughts = [part.text for item in response.output if item.type == "reasoning" for part in item.summary]
    refused = any(part.type == "refusal" for item in response.output if item.type == "message" for part in item.content)
    if response.incomplete_details:
        finish = {"max_output_tokens": "length", "content_filter": "refused"}[response.incomplete_details.reason]
    else:
        finish = "refused" if refused else "calls" if calls else "stop"
    usage = response.usage
    return Heard(
        text=text,
        calls=tuple(ToolCall(call.call_id, call.name, call.arguments) for call in calls),
        finish=finish,
        reasoning="\n\n".join(thoughts),
        model=response.model,
        counts=(
            *(usage.input_tokens, usage.output_tokens),
            *(usage.input_tokens_details.cached_tokens, usage.output_tokens_details.reasoning_tokens),
        ),
    )


@pytest.mark.parametrize("case", recordings("openai_chat", broken=False))
async def test_it_hears_in_a_stream_of_chat_what_we_hear(player, client, case):
    player.body = recording("openai_chat", case)
    thoughts: list[str] = []
    options = {"include_usage": True}
    async with client.chat.completions.stream(model="m", messages=HELLO, stream_options=options) as stream:
        async for event in stream:
            if event.type == "chunk" and event.chunk.choices:
                thoughts.append(getattr(event.chunk.choices[0].delta, "reasoning_content", None) or "")
        answer = stream.current_completion_snapshot
    assert heard_in_chat(answer, "".join(thoughts)) == heard_by_us("openai_chat", player.body)


def heard_in_chat(answer, reasoning: str) -> Heard:
    choice, usage = answer.choices[0], answer.usage
    message = choice.message
    finishes = {"stop": "stop", "length": "length", "tool_calls": "calls"}
    return Heard(
        text=message.refusal or message.content or "",
        calls=tuple(
            ToolCall(call.id, call.function.name, call.function.arguments) for call in message.tool_calls or ()
        ),
        finish="refused" if message.refusal else finishes[choice.finish_reason],
        reasoning=reasoning,
        model=answer.model,
        counts=(
            *(usage.prompt_tokens, usage.completion_tokens),
            *(usage.prompt_tokens_details.cached_tokens, usage.completion_tokens_details.reasoning_tokens),
        ),
    )


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_each_event_of_the_recordings_is_one_of_its_events(dialect):
    kind = openai.types.responses.ResponseStreamEvent
    events = pydantic.TypeAdapter(openai.types.chat.ChatCompletionChunk if dialect == "openai_chat" else kind)
    for case in recordings(dialect, broken=False):
        lines = [line[6:] for line in recording(dialect, case).splitlines() if line.startswith(b"data: {")]
        assert [events.validate_json(line) is not None for line in lines] == [True] * len(lines)
    with pytest.raises(pydantic.ValidationError):
        events.validate_json(lines[0].replace(b'"model"', b'"modell"'))


@pytest.mark.parametrize("case", recordings("openai_responses", broken=True))
async def test_a_response_that_breaks_off_is_no_answer_to_it_either(player, client, case):
    player.body = recording("openai_responses", case)
    with pytest.raises(ProviderError):
        heard_by_us("openai_responses", player.body)
    with pytest.raises((openai.APIError, RuntimeError)):
        async with client.responses.stream(model="m", input="hello") as stream:
            await stream.get_final_response()


@pytest.mark.parametrize("case", ["error_overloaded", "error_rate_limit"])
async def test_an_error_in_a_stream_of_chat_is_one_to_it_too(player, client, case):
    player.body = recording("openai_chat", case)
    with pytest.raises(openai.APIError):
        [chunk async for chunk in await client.chat.completions.create(model="m", messages=HELLO, stream=True)]


@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
@pytest.mark.parametrize(
    "case, status, kind",
    [
        ("refused_key", 401, "AuthenticationError"),
        ("refused_overflow", 400, "BadRequestError"),
        ("refused_rate_limit", 429, "RateLimitError"),
    ],
)
async def test_it_understands_the_refusals(player, client, dialect, case, status, kind):
    player.body, player.status = recording(dialect, case), status
    ask = client.responses if dialect == "openai_responses" else client.chat.completions
    question = {"input": "hello"} if dialect == "openai_responses" else {"messages": HELLO}
    with pytest.raises(getattr(openai, kind)) as raised:
        await ask.create(model="m", stream=True, **question)
    assert raised.value.code == msgspec.json.decode(player.body)["error"]["code"]


def admits(hint: Any, value: Any) -> bool:
    """Whether a value is of a type of the client's, to the last field: no required one missing, none unknown."""
    origin, args = get_origin(hint), get_args(hint)
    if hint is Any or hint is object:
        return True
    if typing_extensions.is_typeddict(hint):
        return isinstance(value, dict) and admits_fields(hint, value)
    if origin in (Annotated, Required, NotRequired, typing_extensions.Required, typing_extensions.NotRequired):
        return admits(args[0], value)
    if origin in (Union, UnionType):
        return any(admits(arg, value) for arg in args)
    if origin is Literal:
        return value in args
    if origin is dict:
        return isinstance(value, dict) and all(admits(args[1], one) for one in value.values())
    if isinstance(origin, type) and issubclass(origin, Iterable):
        return isinstance(value, list) and all(admits(args[0], one) for one in value)
    if hint is float:
        return isinstance(value, int | float)
    return isinstance(value, hint)


def admits_fields(hint: Any, value: dict[str, Any]) -> bool:
    fields = typing_extensions.get_type_hints(hint, include_extras=True)
    required = {name for name, field in fields.items() if get_origin(field) in (Required, typing_extensions.Required)}
    return required <= value.keys() <= fields.keys() and all(admits(fields[name], one) for name, one in value.items())


def params(dialect: str) -> Any:
    if dialect == "openai_responses":
        return openai.types.responses.response_create_params.ResponseCreateParamsStreaming
    return openai.types.chat.completion_create_params.CompletionCreateParamsStreaming


LOOK = ToolSpec("look", "Looks at a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
CAT = Media("f1", "image/png", "cat.png")
PAPER = Media("f2", "application/pdf", "paper.pdf")
CALLS = Message("assistant", said("I look."), (ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}")))
TALKS: dict[str, tuple[Message, ...]] = {
    "text": (Message("user", said("hi")), Message("assistant", said("Hello.")), Message("user", said("and?"))),
    "calls": (CALLS, Message("tool", said("x"), answers="c1"), Message("tool", said("y"), answers="c2")),
    "image": (Message("user", (Text("Look:"), CAT)),),
    "document": (Message("user", (PAPER,)),),
    "image in a result": (CALLS, Message("tool", (Text("Here:"), CAT), answers="c1")),
    "document in a result": (CALLS, Message("tool", (PAPER,), answers="c1")),
}


def body(dialect: dialects.Name, *messages: Message, quirks: Quirks = Quirks()) -> dict[str, Any]:  # noqa: B008
    transcript = Transcript(messages)
    transcript.files |= {"f1": b"meow", "f2": b"%PDF"}
    prompt = Prompt(
        *("m", "Be brief.", transcript, (LOOK,), "It is noon."),
        temperature=0.5,
        top_p=0.9,
        effort="low",
        conversation="t1",
    )
    return msgspec.json.decode(dialects.load(dialect).encode(prompt, quirks, "host"))


@pytest.mark.parametrize("talk", TALKS)
@pytest.mark.parametrize("dialect", ["openai_chat", "openai_responses"])
def test_its_types_admit_what_we_send(dialect, talk):
    sent = body(dialect, *TALKS[talk], quirks=Quirks(conversation_field="prompt_cache_key"))
    assert admits(params(dialect), sent)


@pytest.mark.parametrize("case", recordings("openai_responses", broken=False))
def test_its_types_admit_answers_that_we_send_back(case):
    decoder = dialects.load("openai_responses").decoder("host", "m")
    decoder.feed(recording("openai_responses", case))
    reply = decoder.reply()
    answer = Message("assistant", said(reply.text), reply.calls, "", reply.reasoning, reply.opaque)
    sent = body("openai_responses", answer)
    assert admits(params("openai_responses"), sent)
    thoughts = recording("openai_responses", case).count(b'"response.output_item.done","sequence_number"')
    assert len(sent["input"]) == (thoughts if reply.text or reply.calls else 0) + 1


GOOD = {"role": "user", "content": [{"type": "input_text", "text": "hi"}]}


@pytest.mark.parametrize(
    "wrong",
    [
        {"input": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": {"url": "data:"}}]}]},
        {"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]},
        {"input": [{"type": "function_call_output", "call_id": "c", "output": {"a": 1}}]},
        {"input": [{"type": "reasoning", "encrypted_content": "x", "summary": []}]},
        {"input": [GOOD], "max_tokens": 1},
        {"input": [GOOD], "tools": [{"type": "function", "function": {"name": "look"}}]},
        {"input": [GOOD], "include": ["reasoning"]},
        {"input": [GOOD], "stream": False},
    ],
)
def test_its_types_do_not_admit_just_anything(wrong):
    right = {"model": "m", "stream": True, "input": [GOOD]}
    assert admits(params("openai_responses"), right)
    assert not admits(params("openai_responses"), right | wrong)


def test_its_types_do_not_admit_the_other_dialect():
    assert not admits(params("openai_chat"), body("openai_responses", *TALKS["text"]))
    assert not admits(params("openai_responses"), body("openai_chat", *TALKS["text"]))
