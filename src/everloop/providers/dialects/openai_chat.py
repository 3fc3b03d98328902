"""The chat-completions dialect: a prompt to the bytes of a request, the bytes of an answer to a reply.

Everything here is pure. A request is joined from bytes that are kept with the transcript, so that each message is
serialised once and the beginning of a request never differs from that of the one before: hosts cache by prefix.
"""

import json
from typing import Any

import msgspec
from msgspec import Struct

from everloop.core.message import Message
from everloop.core.prompt import Prompt
from everloop.core.tool import ToolCall, ToolSpec

from .call_pieces import NAME, extras_in, short_id
from .chat_answer import Decoder
from .refusals import error_from

__all__ = ["NAME", "Decoder", "Quirks", "encode", "error_from"]


class Quirks(Struct, frozen=True):
    """Where a host departs from the dialect."""

    token_limit_field: str = "max_tokens"  # empty: the host knows best how much fits
    streams_usage: bool = True  # understands stream_options
    reasoning_field: str = ""  # how it wants its reasoning back beside the calls that came of it
    conversation_field: str = ""  # takes a name under which to keep its cache
    short_call_ids: bool = False  # takes only ids of nine letters and digits
    extra_content: bool = False  # signs its calls, and refuses them without the signature


class _Kept:
    """Bytes that were rendered for a transcript; head and system are good for as long as `made_of` stays the same."""

    __slots__ = ("head", "made_of", "messages", "system")

    def __init__(self) -> None:
        self.made_of: tuple[Any, ...] = ()
        self.head = b""
        self.system: list[bytes] = []
        self.messages: list[bytes] = []


def encode(prompt: Prompt, quirks: Quirks) -> bytes:
    """The body of a streaming request."""
    kept = _bring_up_to_date(prompt, quirks)
    messages = kept.system + kept.messages
    if prompt.tail:
        _add_tail(messages, prompt)
    return kept.head + b",".join(messages) + b"]}"


def _bring_up_to_date(prompt: Prompt, quirks: Quirks) -> _Kept:
    by_quirks: dict[Quirks, _Kept] = prompt.transcript.rendered.setdefault(NAME, {})
    kept = by_quirks.get(quirks)
    if kept is None:
        kept = by_quirks[quirks] = _Kept()
    kept.messages += [_render(message, quirks) for message in prompt.transcript.messages[len(kept.messages) :]]
    made_of = (prompt.model, prompt.system, prompt.tools, prompt.max_tokens, prompt.temperature, prompt.conversation)
    if kept.made_of != made_of:
        kept.made_of = made_of
        kept.head = _render_head(prompt, quirks)
        kept.system = [_json({"role": "system", "content": prompt.system})] if prompt.system else []
    return kept


def _render_head(prompt: Prompt, quirks: Quirks) -> bytes:
    head: dict[str, Any] = {"model": prompt.model, "stream": True}
    if quirks.streams_usage:
        head["stream_options"] = {"include_usage": True}
    if quirks.token_limit_field and prompt.max_tokens:
        head[quirks.token_limit_field] = prompt.max_tokens
    if prompt.temperature is not None:
        head["temperature"] = prompt.temperature
    if quirks.conversation_field and prompt.conversation:
        head[quirks.conversation_field] = prompt.conversation
    if prompt.tools:
        head["tools"] = [_describe(tool) for tool in prompt.tools]
    return _json(head)[:-1] + b',"messages":['


def _describe(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.schema}
    return {"type": "function", "function": function}


def _render(message: Message, quirks: Quirks) -> bytes:
    match message.role:
        case "user":
            return _json({"role": "user", "content": message.text})
        case "tool":
            id = _call_id(message.answers, quirks)
            return _json({"role": "tool", "tool_call_id": id, "content": message.text})
        case "assistant":
            return _json(_answer(message, quirks))


def _answer(message: Message, quirks: Quirks) -> dict[str, Any]:
    if not message.calls:
        return {"role": "assistant", "content": message.text}
    answer: dict[str, Any] = {"role": "assistant", "content": message.text or None}
    if quirks.reasoning_field and message.reasoning:
        answer[quirks.reasoning_field] = message.reasoning
    answer["tool_calls"] = [_call(call, quirks) for call in message.calls]
    if quirks.extra_content:
        for call, extra in zip(answer["tool_calls"], extras_in(message), strict=False):
            call["extra_content"] = extra
    return answer


def _call(call: ToolCall, quirks: Quirks) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.args or "{}"}
    return {"id": _call_id(call.id, quirks), "type": "function", "function": function}


def _call_id(id: str, quirks: Quirks) -> str:
    if quirks.short_call_ids and not (len(id) == 9 and id.isascii() and id.isalnum()):
        return short_id(id)
    return id


def _add_tail(messages: list[bytes], prompt: Prompt) -> None:
    # The tail is written into the end of the last message. A message of its own would have to follow tool results,
    # where Mistral and strict templates refuse a user and most hosts a system message, and where templates that drop
    # the thoughts of earlier turns would take it for a new turn. What stands before the tail stays the same bytes.
    last = prompt.transcript.messages[-1] if prompt.transcript.messages else None
    if last is None or last.role == "assistant":
        messages.append(_json({"role": "user", "content": prompt.tail}))
    else:
        messages[-1] = messages[-1].removesuffix(b'"}') + _json("\n\n" + prompt.tail)[1:] + b"}"


_encode = msgspec.json.Encoder().encode


def _json(value: Any) -> bytes:
    try:
        return _encode(value)
    except UnicodeEncodeError:
        # Half a character, as in a file name that is not UTF-8: msgspec refuses it, and so would the host.
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
