"""One list of requests that every dialect must be able to make. The vendors' own types say whether they are right."""

import base64
import re
from typing import Any

import msgspec
import pytest
from tests.providers.test_conformance import DIALECTS, read, recording
from tests.providers.vendors import allowed

from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Prompt, Transcript
from everloop.core.tool import ToolCall, ToolSpec
from everloop.providers import dialects
from everloop.providers.dialects.quirks import Quirks

MODEL = {
    "openai_chat": "m",
    "openai_responses": "m",
    "anthropic_messages": "claude-sonnet-4-5",
    "gemini": "gemini-3.8-flash",
}
LOOK = ToolSpec("look", "Looks at a file.", {"type": "object", "properties": {"path": {"type": "string"}}})
CAT = Media("f1", "image/png", "cat.png")
PICTURE = b"\x89PNG of a cat"
HI = Message("user", said("hi"))
CALLING = Message("assistant", said("I look."), (ToolCall("c1", "look", '{"path":"a.txt"}'),))


def body(dialect: dialects.Name, *messages: Message, host: str = "host", **more: Any) -> dict[str, Any]:
    transcript = Transcript(messages)
    transcript.files["f1"] = PICTURE
    prompt = Prompt(MODEL[dialect], "Be brief.", transcript, (LOOK,), **more)
    sent: dict[str, Any] = msgspec.json.decode(dialects.load(dialect).encode(prompt, Quirks(), host))
    return sent


@pytest.mark.parametrize("dialect", DIALECTS)
def test_what_a_vendor_does_not_know_is_seen(dialect: dialects.Name):
    assert allowed(dialect, body(dialect, HI))
    assert not allowed(dialect, body(dialect, HI) | {"unheard_of": 1})


# Pictures

SEEN = {
    "shown by a person": (Message("user", (Text("Look:"), CAT)),),
    "shown by a tool": (HI, CALLING, Message("tool", (Text("Here:"), CAT), answers="c1")),
}


@pytest.mark.parametrize("by", SEEN)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_picture_is_sent_as_it_is_to_a_model_that_sees(dialect: dialects.Name, by: str):
    sent = body(dialect, *SEEN[by])
    assert allowed(dialect, sent)
    assert msgspec.json.encode(sent).count(base64.b64encode(PICTURE)) == 1


@pytest.mark.parametrize("by", SEEN)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_does_not_is_told_its_name(dialect: dialects.Name, by: str):
    sent = body(dialect, *SEEN[by], sees=False)
    assert allowed(dialect, sent)
    told = msgspec.json.encode(sent)
    assert (told.count(base64.b64encode(PICTURE)), told.count(b"[cat.png: not shown]")) == (0, 1)


# Effort

EFFORT: dict[str, dict[str, Any]] = {
    "openai_chat": {"reasoning_effort": "low"},
    "openai_responses": {
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
    },
    "anthropic_messages": {"thinking": {"type": "enabled", "budget_tokens": 2048}},
    "gemini": {
        "generationConfig": {
            "maxOutputTokens": 8192,
            "thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True},
        }
    },
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_effort_is_asked_for(dialect: dialects.Name):
    plain, hard = body(dialect, HI), body(dialect, HI, effort="low")
    assert allowed(dialect, hard)
    assert {key: value for key, value in hard.items() if plain.get(key) != value} == EFFORT[dialect]


# A talk that goes on elsewhere


def talk(dialect: dialects.Name) -> tuple[Message, ...]:
    """A conversation that was had in this dialect, with all that its hosts give and want back."""
    messages = [HI]
    for case in ("reasoning_and_call", "parallel_calls", "call_without_arguments", "reasoning"):
        whole, _ = read(dialect, recording(dialect, case))
        messages.append(Message("assistant", said(whole.text), whole.calls, "", whole.reasoning, whole.opaque))
        messages += [Message("tool", said("x"), answers=call.id) for call in whole.calls]
    return (*messages, Message("user", said("And now?")))


def calls_and_results(dialect: dialects.Name, sent: dict[str, Any]) -> tuple[list[str], list[str]]:
    """The ids by which the dialect joins them."""
    keys = {
        "openai_chat": (r'"id":"([^"]+)","type":"function"', r'"tool_call_id":"([^"]+)"'),
        "openai_responses": (r'"function_call","call_id":"([^"]+)"', r'"function_call_output","call_id":"([^"]+)"'),
        "anthropic_messages": (r'"tool_use","id":"([^"]+)"', r'"tool_use_id":"([^"]+)"'),
        "gemini": (r'"functionCall":\{"id":"([^"]+)"', r'"functionResponse":\{"id":"([^"]+)"'),
    }
    text = msgspec.json.encode(sent).decode()
    calls, results = (re.findall(key, text) for key in keys[dialect])
    return calls, results


def secrets_in(messages: tuple[Message, ...]) -> list[bytes]:
    """The signatures that only the host that gave them can read."""
    blocks = b"".join(bytes(opaque.block) for message in messages for opaque in message.opaque)
    return re.findall(rb"[\w+/=-]{60,}", blocks)


@pytest.mark.parametrize("after", DIALECTS)
@pytest.mark.parametrize("before", DIALECTS)
def test_a_talk_goes_on_in_another_dialect(before: dialects.Name, after: dialects.Name):
    messages = talk(before)
    sent = body(after, *messages, host="another")
    assert allowed(after, sent)
    calls, results = calls_and_results(after, sent)
    assert calls == results
    assert len(calls) == 4
    raw = msgspec.json.encode(sent)
    assert [secret for secret in secrets_in(messages) if secret in raw] == []


@pytest.mark.parametrize("dialect", ["openai_responses", "anthropic_messages", "gemini"])
def test_the_host_that_has_signed_something_gets_it_back(dialect: dialects.Name):
    messages = [HI, *talk(dialect)[1:3]]
    raw = dialects.load(dialect).encode(
        Prompt("m", "", Transcript(tuple(messages)), (LOOK,), effort="low"), Quirks(), "host"
    )
    assert [secret in raw for secret in secrets_in(tuple(messages))] == [True]
