"""Anthropic's Messages dialect: a prompt to the bytes of a request, the bytes of an answer to a reply.

Everything here is pure. A message of the wire is a list of blocks. The two sides take turns, so that messages of one
side that follow each other are joined, results of tools first. The host caches what stands before a mark; the marks
move, and nothing else of what was sent once ever changes but the tail.
"""

import re
import sys
from functools import lru_cache
from hashlib import sha1
from itertools import groupby
from typing import Any

from ...core.message import Media, Message, Part, Text
from ...core.prompt import Prompt
from ...core.tool import ToolCall, ToolSpec, parse_args
from . import signer
from .anthropic_answer import NAME
from .anthropic_answer import AnthropicDecoder as decoder
from .quirks import Quirks
from .refusals import error_from
from .rendered import RenderedPrompt, content_of, note_of, rendered_for, to_json

__all__ = ["LISTING", "NAME", "decoder", "encode", "error_from", "headers", "path"]

LISTING = "/v1/models?limit=1000"

_MARK = {"cache_control": {"type": "ephemeral"}}
_USER = b'{"role":"user","content":['
_ASSISTANT = b'{"role":"assistant","content":['
_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def path(model: str) -> str:
    return "/v1/messages"


def headers(key: str) -> dict[str, str]:
    # Of the two versions that there are, this is the one that every host of the dialect knows; the later one takes
    # a temperature from no model.
    return {"anthropic-version": "2023-06-01"} | ({"x-api-key": key} if key else {})


def encode(prompt: Prompt, quirks: Quirks, host: str) -> bytes:
    """The body of a streaming request."""
    kept = _bring_up_to_date(prompt, quirks, host)
    messages = kept.messages.copy()
    _mark(messages)
    _add_tail(messages, prompt.tail)
    return kept.head + b",".join(messages) + b"]}"


def _bring_up_to_date(prompt: Prompt, quirks: Quirks, host: str) -> RenderedPrompt:
    kept = rendered_for(prompt.transcript, (NAME, host, prompt.model, prompt.sees, quirks))
    reader = signer(NAME, host, prompt.model)
    if kept.count < len(prompt.transcript.messages):
        _render_news(kept, prompt, reader)
    effort = prompt.effort if quirks.effort and _may_think(prompt, reader) else ""
    made_of = (
        *(prompt.system, prompt.tools, prompt.max_tokens, prompt.output_limit),
        *(prompt.temperature, prompt.top_p, effort),
    )
    if kept.made_of != made_of:
        kept.made_of = made_of
        kept.head = _render_head(prompt, effort)
    return kept


def _render_head(prompt: Prompt, effort: str) -> bytes:
    limit = prompt.max_tokens or 8192
    head: dict[str, Any] = {"model": prompt.model, "max_tokens": limit, "stream": True}
    head |= _thinking(effort, limit, prompt.output_limit, _version(prompt.model))
    if "thinking" not in head:
        head |= _sampling(prompt)
    tools = [_describe(tool) for tool in prompt.tools]
    if prompt.system.strip():
        head["system"] = [{"type": "text", "text": prompt.system} | _MARK]
    elif tools:
        tools[-1] |= _MARK
    if tools:
        head["tools"] = tools
    return to_json(head)[:-1] + b',"messages":['


def _describe(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "input_schema": {"type": "object"} | tool.schema}


# Claude numbers its models `claude-opus-4-6`, older ones `claude-3-7-sonnet-20250219`. What a model takes goes by that
# number and not by its family. https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting
_NUMBER = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)")
_ADAPTIVE = (4, 6)  # thinks as much as the effort asks for; from 4.7 on a budget is refused
_NO_SAMPLING = (4, 7)  # refuses temperature and top_p
_ALWAYS_THINKS = (5, 0)  # thinks unasked; not each of them can be told not to
# Refuses a thought when anything that stood before it has changed, and the tail that it was shown is always gone by
# then; without the thought, it takes the answer. https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
_BINDS_THOUGHTS = (5, 1)


@lru_cache(maxsize=64)
def _version(model: str) -> tuple[int, int]:
    """That of a model which is no Claude, or does not say, is older than all."""
    found = _NUMBER.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 24576}
_ROOM = 4096  # for the answer after the thoughts, which count against the limit of tokens


_LEAST = 1024  # tokens of a budget; less is refused


def _thinking(effort: str, limit: int, most: int, version: tuple[int, int]) -> dict[str, Any]:
    """`most` is what the model can say at all, thoughts included, if that is known."""
    if effort == "none":
        return {"output_config": {"effort": "low"}} if version >= _ALWAYS_THINKS else {}
    if not effort:
        return {}
    budget, room = _BUDGETS[effort], min(limit, _ROOM)
    enough = {"max_tokens": min(max(limit, budget + room), most or sys.maxsize)}
    if version < _ADAPTIVE:
        budget = min(budget, enough["max_tokens"] - room)
        if budget < _LEAST:
            return {}
        return enough | {"thinking": {"type": "enabled", "budget_tokens": budget}}
    effort = "low" if effort == "minimal" else effort
    # From 4.7 on, thoughts come without their text unless it is asked for.
    return enough | {"thinking": {"type": "adaptive", "display": "summarized"}, "output_config": {"effort": effort}}


def _may_think(prompt: Prompt, reader: str) -> bool:
    """With a budget, the host refuses to go on with calls that another model made, or that were made without thoughts:
    a turn is thought about from its first call on, or not at all."""
    if prompt.effort in ("", "none") or _version(prompt.model) >= _ADAPTIVE:
        return True
    first: Message | None = None
    for message in reversed(prompt.transcript.messages):
        if message.role == "user":
            break
        first = message if message.calls else first
    return first is None or bool(_thoughts(first, reader))


def _sampling(prompt: Prompt) -> dict[str, Any]:
    """Newer models take one of the two, the newest none. Other dialects go up to a temperature of 2."""
    if _version(prompt.model) >= _NO_SAMPLING:
        return {}
    if prompt.temperature is not None:
        return {"temperature": min(prompt.temperature, 1.0)}
    return {} if prompt.top_p is None else {"top_p": prompt.top_p}


def _render_news(kept: RenderedPrompt, prompt: Prompt, reader: str) -> None:
    reader = "" if _version(prompt.model) >= _BINDS_THOUGHTS else reader
    news = enumerate(prompt.transcript.messages[kept.count :], kept.count)
    for is_answer, run in groupby(news, lambda item: item[1].role == "assistant"):
        if is_answer:
            _join(kept.messages, _ASSISTANT, [block for at, said in run for block in _answer(said, at, reader)])
        else:
            _join(kept.messages, _USER, _heard(list(run), prompt))
    kept.count = len(prompt.transcript.messages)


def _join(messages: list[bytes], opening: bytes, blocks: list[bytes]) -> None:
    """Add blocks to the last message if it is of the same side, else as a new one. Nothing is no message."""
    if not blocks:
        return
    if messages and messages[-1].startswith(opening):
        messages[-1] = messages[-1][:-2] + b"," + b",".join(blocks) + b"]}"
        return
    if not messages and opening == _ASSISTANT:
        _join(messages, _USER, [_text("(The conversation begins with an answer.)")])
    messages.append(opening + b",".join(blocks) + b"]}")


def _answer(message: Message, at: int, reader: str) -> list[bytes]:
    """Thoughts must come first and cannot stand alone."""
    said = [_text(message.text)] if message.text.strip() else []
    said += [_call(call, at) for call in message.calls]
    return _thoughts(message, reader) + said if said else []


def _thoughts(message: Message, reader: str) -> list[bytes]:
    return [bytes(opaque.block) for opaque in message.opaque if opaque.dialect == reader]


def _call(call: ToolCall, at: int) -> bytes:
    name = re.sub(r"[^a-zA-Z0-9_-]", "_", call.name)[:128] or "_"
    use = to_json({"type": "tool_use", "id": _call_id(call.id, at), "name": name})
    return use[:-1] + b',"input":' + _input(call) + b"}"


def _input(call: ToolCall) -> bytes:
    """The arguments as they were written, if they are what the host takes."""
    try:
        parse_args(call)
    except ValueError:
        return to_json({"_raw": call.args})
    return call.args.strip().encode() or b"{}"


def _call_id(id: str, at: int) -> str:
    """Other hosts' ids may have other letters, and may come again in a later answer, which is refused here; `at`
    is the answer's place in the transcript."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", id):
        id = sha1(id.encode("utf-8", "replace"), usedforsecurity=False).hexdigest()[:16]
    return id if id.startswith("toolu_") else f"{id}_{at}"


def _heard(run: list[tuple[int, Message]], prompt: Prompt) -> list[bytes]:
    """What the user's side says at one time: the results of calls, and then the rest. A result whose call is not in
    the answer before it is refused, so that it is shown as what someone said."""
    results: list[bytes] = []
    rest: list[bytes] = []
    messages = prompt.transcript.messages
    asked = next((at for at in range(run[0][0] - 1, -1, -1) if messages[at].role == "assistant"), None)
    calls = {call.id for call in messages[asked].calls} if asked is not None else set()
    for _, message in run:
        blocks = [block for part in message.parts for block in _part(part, prompt)]
        if asked is not None and message.role == "tool" and message.answers in calls:
            results.append(_result(_call_id(message.answers, asked), blocks))
        else:
            rest += blocks
    return results + rest


def _result(id: str, blocks: list[bytes]) -> bytes:
    result = to_json({"type": "tool_result", "tool_use_id": id})
    return result[:-1] + b',"content":[' + b",".join(blocks) + b"]}" if blocks else result


def _part(part: Part, prompt: Prompt) -> list[bytes]:
    """One block, or none for a text of nothing but spaces, which is refused."""
    if isinstance(part, Text):
        return [_text(part.text)] if part.text.strip() else []
    return [_media(part, prompt)]


def _media(media: Media, prompt: Prompt) -> bytes:
    kind = "image" if media.mime in _IMAGES else "document" if media.mime == "application/pdf" else ""
    data = content_of(media, prompt) if kind else None
    if data is None:
        return _text(note_of(media))
    block: dict[str, Any] = {"type": kind, "source": {"type": "base64", "media_type": media.mime, "data": data}}
    if kind == "document" and media.name:
        block["title"] = media.name
    return to_json(block)


def _text(text: str) -> bytes:
    return to_json({"type": "text", "text": text})


def _mark(messages: list[bytes]) -> None:
    """Mark the end of what stays, and the user's side before the last answer, where the request before had its mark.

    The host looks back from a mark for what it has cached by 20 blocks only, and one answer with ten calls and their
    results has more. With that of the system prompt these are three marks; a request may have four.
    """
    last = len(messages) - 1
    for place in (last, last - 2 + last % 2):  # the user's messages have even places
        if place >= 0:
            messages[place] = messages[place][:-3] + b"," + to_json(_MARK)[1:] + b"]}"


def _add_tail(messages: list[bytes], tail: str) -> None:
    # A request that ends with an answer would ask for the answer to be continued, which newer models refuse.
    if tail.strip():
        _join(messages, _USER, [_text(tail)])
    elif not messages or messages[-1].startswith(_ASSISTANT):
        _join(messages, _USER, [_text("Go on.")])
