"""The prompt cache contract, for every dialect: over the turns of a thread, what was sent before is sent again to the
byte, so that a host that caches by prefix reads only what is new.

A request is the prefix (system, tools), the conversation, and a tail of the moment. Anthropic's marks, which say where
the cache ends, move with the conversation; they are taken out before comparing, as its host does.
"""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.core.message import Media, Message, Opaque, Part, Text, said
from everloop.core.prompt import Prompt, Transcript
from everloop.core.tool import ToolCall, ToolSpec
from everloop.providers import dialects
from everloop.providers.dialects.quirks import Quirks

DIALECTS = ("openai_chat", "openai_responses", "anthropic_messages", "gemini")
LOOK = ToolSpec("look", "Looks.", {"type": "object", "properties": {"path": {"type": "string"}}, "required": []})
CAT = Media("file:1", "image/png", "cat.png")
QUIRKS = Quirks(conversation_field="prompt_cache_key")

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20).filter(str.strip)


@st.composite
def turns(draw: st.DrawFn) -> list[Message]:
    """One turn: what the user says, perhaps calls with their results, an answer."""
    parts: tuple[Part, ...] = (Text(draw(texts)),)
    if draw(st.booleans()):
        parts += (CAT,)
    messages = [Message("user", parts)]
    for _ in range(draw(st.integers(0, 2))):
        names = draw(st.lists(st.sampled_from(["c1", "c2", "c3"]), min_size=1, max_size=3, unique=True))
        calls = tuple(ToolCall(name, "look", '{"path":"a"}') for name in names)
        messages.append(Message("assistant", said(draw(texts)), calls, reasoning=draw(st.sampled_from(["", "hm"]))))
        for name in names:
            shown: tuple[Part, ...] = (CAT,) if draw(st.booleans()) else ()
            messages.append(Message("tool", (*said(draw(texts)), *shown), answers=name))
    messages.append(Message("assistant", said(draw(texts)), opaque=(Opaque("someone else", msgspec.Raw(b"{}")),)))
    return messages


def stable(dialect: str, body: bytes) -> bytes:
    """A request without what may move: the marks of the cache. Its end, from the tail on, is cut off by the caller."""
    if dialect == "anthropic_messages":
        return re.sub(rb',"cache_control":\{"type":"ephemeral"\}', b"", body)
    return body


@pytest.mark.parametrize("dialect", DIALECTS)
@given(conversation=st.lists(turns(), min_size=2, max_size=4))
def test_what_was_sent_before_is_sent_again_to_the_byte(dialect: dialects.Name, conversation: list[list[Message]]):
    speaks = dialects.load(dialect)
    transcript = Transcript()
    transcript.files["file:1"] = b"\x89PNG"
    before = b""
    for number, turn in enumerate(conversation):
        for place, message in enumerate(turn):
            transcript.add(message)
            asked = message.role == "user" or (message.role == "tool" and turn[place + 1].role == "assistant")
            if not asked:
                continue
            tail = f"Current time: {number}:{place}"
            prompt = Prompt("claude-sonnet-4-5", "Be brief.", transcript, (LOOK,), tail, conversation="t1")
            body = stable(dialect, speaks.encode(prompt, QUIRKS, "host"))
            head = body[: body.rindex(tail.encode())]
            # What stood before the tail of the last request begins this one, but for the few bytes that led to it.
            kept = before[: len(before) - len(lead_in(before))]
            assert body.startswith(kept)
            assert len(kept) > 0.9 * (len(before) - 60)
            before = head


def lead_in(head: bytes) -> bytes:
    """The punctuation between the conversation and its tail."""
    found = re.search(rb'(\\n\\n|[\[\]{},:"]|type|text|input_text|role|user|content|parts|output|\s)*$', head)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_changed_prefix_is_noticed(dialect: dialects.Name):
    """The control: were the prefix not stable, the comparison above would see it."""
    speaks = dialects.load(dialect)
    one, other = (
        speaks.encode(Prompt("m", system, Transcript((Message("user", said("hi")),)), (LOOK,)), QUIRKS, "host")
        for system in ("Be brief.", "Be long.")
    )
    assert not other.startswith(one[: len(one) - 40])
