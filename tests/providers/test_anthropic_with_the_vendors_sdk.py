"""Anthropic's own SDK reads our recordings as we do, and its types allow what we send.

The SDK takes seconds to import, so that this stands apart from the other tests of the dialect.
"""

from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest

from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Prompt, Transcript
from everloop.core.tool import ToolCall, ToolSpec
from everloop.ports.provider import Reply
from everloop.providers.dialects.anthropic_messages import decoder as Decoder
from everloop.providers.dialects.anthropic_messages import encode
from everloop.providers.dialects.quirks import Quirks

RECORDINGS = Path(__file__).parent / "recordings" / "anthropic_messages"
WHOLE = sorted(path.stem for path in RECORDINGS.glob("*.sse") if path.stem.split("_")[0] not in ("cut", "error"))
MODEL = "claude-sonnet-4-5"


@pytest.fixture(scope="module")
def sdk() -> ModuleType:
    return pytest.importorskip("anthropic")


def read(body: bytes) -> Reply:
    decoder = Decoder("host", MODEL)
    decoder.feed(body)
    return decoder.reply()


def ask_vendor(sdk: ModuleType, body: bytes) -> Any:
    """The message that the SDK makes of an answer."""
    import httpx2

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"Content-Type": "text/event-stream"}, content=body)

    transport = httpx2.MockTransport(answer)
    client = sdk.Anthropic(api_key="k", max_retries=0, http_client=httpx2.Client(transport=transport))
    hello = [{"role": "user", "content": "hi"}]
    with client.messages.stream(model="claude-sonnet-5-5", max_tokens=100, messages=hello) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("case", WHOLE)
def test_the_vendor_reads_a_recording_as_we_do(sdk: ModuleType, case: str):
    body = (RECORDINGS / f"{case}.sse").read_bytes()
    ours, theirs = read(body), ask_vendor(sdk, body)
    blocks = [block.model_dump(exclude_none=True) for block in theirs.content]
    assert ours.text == "".join(block["text"] for block in blocks if block["type"] == "text")
    assert ours.reasoning == "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    assert [(call.id, call.name, msgspec.json.decode(call.args)) for call in ours.calls] == [
        (block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"
    ]
    assert [msgspec.json.decode(opaque.block) for opaque in ours.opaque] == [
        block for block in blocks if block["type"] == "thinking"
    ]
    assert (ours.finish, ours.model) == (FINISH[theirs.stop_reason], theirs.model)
    counts = (theirs.usage.cache_read_input_tokens, theirs.usage.cache_creation_input_tokens)
    assert (ours.usage.input, ours.usage.output) == (
        theirs.usage.input_tokens + sum(counts),
        theirs.usage.output_tokens,
    )
    assert (ours.usage.cache_read, ours.usage.cache_write) == counts


FINISH = {"end_turn": "stop", "tool_use": "calls", "max_tokens": "length", "refusal": "refused"}


def test_the_vendor_finds_the_error_in_a_stream(sdk: ModuleType):
    with pytest.raises(sdk.APIStatusError, match="overloaded_error"):
        ask_vendor(sdk, (RECORDINGS / "error_overloaded.sse").read_bytes())


def consumed(value: Any) -> Any:
    """Pydantic checks an `Iterable` only while someone walks through it."""
    if isinstance(value, dict):
        return {key: consumed(item) for key, item in value.items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    return [consumed(item) for item in value]


def check(sdk: ModuleType, body: dict[str, Any]) -> None:
    """Raises ValidationError for wrong values. Keys that the SDK does not know are left out of what it gives back."""
    from anthropic.types.message_create_params import MessageCreateParamsStreaming
    from pydantic import TypeAdapter

    assert consumed(TypeAdapter(MessageCreateParamsStreaming).validate_python(body, strict=False)) == body


LOOK = ToolSpec("look", "Looks at a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
PNG, PDF = Media("f1", "image/png"), Media("f2", "application/pdf", "a.pdf")
HI = Message("user", said("hi"))


def after_call(*parts: Text | Media) -> tuple[Message, ...]:
    answer = read((RECORDINGS / "reasoning_and_call.sse").read_bytes())
    message = Message("assistant", said(answer.text), answer.calls, "", answer.reasoning, answer.opaque)
    return HI, message, Message("tool", parts, answers=answer.calls[0].id)


def foreign() -> Iterator[Message]:
    yield HI
    yield Message("assistant", said("Hm."), (ToolCall("call|1", "look", "{broken"), ToolCall("", "look", "")))
    yield Message("tool", said(""), answers="call|1")
    yield Message("tool", said("x"), answers="")


ASKED = {
    "text": Prompt(MODEL, "Be brief.", Transcript((HI,)), tail="It is noon."),
    "tools": Prompt(MODEL, "", Transcript((HI,)), (LOOK,)),
    "calls and results": Prompt(MODEL, "Be brief.", Transcript(after_call(Text("x"))), (LOOK,), "It is noon."),
    "image": Prompt(MODEL, "", Transcript((Message("user", (Text("see"), PNG)),))),
    "image in a result": Prompt(MODEL, "", Transcript(after_call(Text("x"), PNG)), (LOOK,)),
    "document": Prompt(MODEL, "", Transcript((Message("user", (PDF, Text("see"))),))),
    "thinking": Prompt(MODEL, "", Transcript(after_call(Text("x"))), (LOOK,), effort="high"),
    "effort": Prompt("claude-opus-4-6", "", Transcript((HI,)), effort="medium"),
    "no effort": Prompt("claude-opus-5-5", "", Transcript((HI,)), effort="none"),
    "of another host": Prompt(MODEL, "", Transcript(tuple(foreign())), (LOOK,)),
}


def encoded(case: str) -> dict[str, Any]:
    prompt = ASKED[case]
    prompt.transcript.files.update(f1=b"\x89PNG", f2=b"%PDF")
    body: dict[str, Any] = msgspec.json.decode(encode(prompt, Quirks(), "host"))
    return body


@pytest.mark.parametrize("case", ASKED)
def test_the_vendors_types_allow_what_we_send(sdk: ModuleType, case: str):
    check(sdk, encoded(case))


def test_the_cases_are_what_they_say():
    sent = {case: msgspec.json.encode(encoded(case)).decode() for case in ASKED}
    assert '"signature":"EqQB' in sent["calls and results"]
    assert '"budget_tokens":24576' in sent["thinking"]
    assert '"type":"image"' in sent["image in a result"]
    assert '"type":"document"' in sent["document"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tokens": None},
        {"thinking": {"type": "enabled"}},
        {"output_config": {"effort": "minimal"}},
        {"unheard_of": 1},
        {"tools": [{"name": "look", "parameters": {}}]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "txt": "x"}]}]},
        {"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b", "input": "{}"}]}]},
        {"messages": [{"role": "user", "content": [{"type": "image", "source": {"type": "base64", "data": "x"}}]}]},
        {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": 3}]}]},
    ],
)
def test_the_vendors_types_do_not_allow_everything(sdk: ModuleType, wrong: dict[str, Any]):
    from pydantic import ValidationError

    with pytest.raises((ValidationError, AssertionError)):
        check(sdk, encoded("text") | wrong)
