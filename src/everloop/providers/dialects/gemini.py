"""The Gemini dialect, generateContent: a prompt to the bytes of a request, the bytes of an answer to a reply.

Everything here is pure. Sides must take turns, so messages of one side become parts of one content: what is kept of
a message is its parts with what joins them to the message before, and a request only grows at its end.
"""

import re
from collections.abc import Mapping
from itertools import groupby
from typing import Any
from urllib.parse import quote

from ...core.message import Media, Message, Part, Text, text_of
from ...core.prompt import Effort, Prompt
from ...core.tool import ToolCall, ToolSpec, parse_args
from ...errors import ProviderError
from . import refusals, signer
from .gemini_answer import NAME, places_in, wait_in
from .gemini_answer import GeminiDecoder as decoder
from .gemini_schema import fitted
from .quirks import Quirks
from .rendered import RenderedPrompt, content_of, note_of, rendered_for, to_json

__all__ = ["LISTING", "NAME", "decoder", "encode", "error_from", "headers", "path"]

LISTING = "/v1beta/models?pageSize=1000"


def path(model: str) -> str:
    return f"/v1beta/models/{quote(model.removeprefix('models/'), safe='')}:streamGenerateContent?alt=sse"


def headers(key: str) -> dict[str, str]:
    return {"x-goog-api-key": key} if key else {}


def error_from(host: str, model: str, status: int, headers: Mapping[str, str], body: bytes) -> ProviderError:
    """The error for an answer that is not a 200."""
    return refusals.error_from(host, model, status, wait_in(body) | dict(headers), body)


def encode(prompt: Prompt, quirks: Quirks, host: str) -> bytes:
    """The body of a streaming request."""
    kept = _bring_up_to_date(prompt, quirks, host)
    pieces = kept.messages.copy()
    if prompt.tail:
        _add_tail(pieces, prompt)
    return kept.head + b"".join(pieces) + (b"]}]}" if pieces else b"]}")


def _bring_up_to_date(prompt: Prompt, quirks: Quirks, host: str) -> RenderedPrompt:
    kept = rendered_for(prompt.transcript, (NAME, host, prompt.model, prompt.sees, quirks))
    if kept.count < len(prompt.transcript.messages):
        _render_news(kept, _Pen(prompt, signer(NAME, host, prompt.model)))
    made_of = (
        *(prompt.system, prompt.tools),
        *(prompt.max_tokens, prompt.temperature, prompt.top_p, prompt.effort),
    )
    if kept.made_of != made_of:
        kept.made_of = made_of
        kept.head = _render_head(prompt, quirks)
    return kept


def _render_head(prompt: Prompt, quirks: Quirks) -> bytes:
    head: dict[str, Any] = {}
    if prompt.system:
        head["systemInstruction"] = {"parts": [{"text": prompt.system}]}
    if prompt.tools:
        head["tools"] = [{"functionDeclarations": [_describe(tool) for tool in prompt.tools]}]
    if settings := _settings(prompt, quirks):
        head["generationConfig"] = settings
    return to_json(head)[:-1] + (b"," if head else b"") + b'"contents":['


def _describe(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": fitted(tool.schema)}


def _settings(prompt: Prompt, quirks: Quirks) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    if quirks.token_limit_field and prompt.max_tokens:
        settings["maxOutputTokens"] = prompt.max_tokens
    if prompt.temperature is not None:
        settings["temperature"] = prompt.temperature
    if prompt.top_p is not None:
        settings["topP"] = prompt.top_p
    if thinking := _thinking(prompt.model, prompt.effort):
        settings["thinkingConfig"] = thinking
    return settings


_LATEST = (4, 0)
_MODERN = (3, 0)
_SILENT = ("image", "tts", "audio", "live", "embedding")
_BUDGETS = {"none": 0, "minimal": 1024, "low": 1024, "medium": 8192, "high": 24576}
_LEAST_OF_PRO = 128


def _generation(model: str) -> tuple[int, int]:
    """Which Gemini it is; (0, 0) for something else. A name without a number, such as gemini-flash-latest, moves on."""
    found = re.search(r"gemini-(?:[a-z-]*-)?(\d{1,2})(?!\d)(?:\.(\d+))?", model)
    if found:
        return int(found[1]), int(found[2] or 0)
    return _LATEST if "gemini" in model else (0, 0)


def _thinking(model: str, effort: Effort) -> dict[str, Any]:
    """Empty for models that do not think: they refuse to be told anything about it.

    So do models that think, when they are to show thoughts and to have none.
    """
    generation = _generation(model)
    if generation < (2, 5) or any(word in model for word in _SILENT):
        return {}
    thinking: dict[str, Any] = {}
    if generation >= _MODERN:
        if effort:
            thinking["thinkingLevel"] = _level(effort, model, generation)
        shows = effort != "none"
    elif effort:
        thinking["thinkingBudget"] = max(_BUDGETS[effort], _LEAST_OF_PRO if "pro" in model else 0)
        shows = thinking["thinkingBudget"] > 0
    else:
        shows = "lite" not in model  # which only thinks when it is asked to
    return thinking | ({"includeThoughts": True} if shows else {})


def _level(effort: Effort, model: str, generation: tuple[int, int]) -> str:
    """These models always think. The least that all of them take is LOW; Flash took MINIMAL before 3.7."""
    if effort in ("none", "minimal"):
        return "MINIMAL" if "flash" in model and generation < (3, 7) else "LOW"
    return effort.upper()


def _side(message: Message) -> bytes:
    return b"model" if message.role == "assistant" else b"user"


def _joint(before: bytes, side: bytes) -> bytes:
    if before == side:
        return b","
    return (b"]}," if before else b"") + b'{"role":"' + side + b'","parts":['


def _render_news(kept: RenderedPrompt, pen: "_Pen") -> None:
    messages = pen.prompt.transcript.messages
    before = _side(messages[kept.count - 1]) if kept.count else b""
    asked = next((message for message in reversed(messages[: kept.count]) if message.role == "assistant"), None)
    for role, run in groupby(messages[kept.count :], key=lambda message: message.role):
        for message, parts in pen.render(role, list(run), asked):
            kept.messages.append(_joint(before, _side(message)) + b",".join(parts))
            before = _side(message)
            asked = message if role == "assistant" else asked
    kept.count = len(messages)


def _add_tail(pieces: list[bytes], prompt: Prompt) -> None:
    # A text part beside a result lets Gemini 3 leak its thoughts, so that after a result the tail is written into its
    # end: https://ai.google.dev/gemini-api/docs/whats-new-gemini-3.5#inline-instructions
    last = prompt.transcript.messages[-1] if pieces else None
    if last and last.role == "tool" and pieces[-1].endswith(b'"}}}'):
        pieces[-1] = pieces[-1][:-4] + to_json("\n\n" + prompt.tail)[1:] + b"}}}"
    else:
        pieces.append(_joint(_side(last) if last else b"", b"user") + _text(prompt.tail))


# Gemini refuses a request over an image of another kind, such as a GIF.
_SHOWN = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif", "application/pdf")
# Gemini 3 refuses calls of the current turn that no thought was signed for; this is its word for calls that it never
# made itself: https://ai.google.dev/gemini-api/docs/thought-signatures
_NOT_MINE = "skip_thought_signature_validator"


class _Pen:
    """Writes messages as parts for one model."""

    __slots__ = ("_is_modern", "_reader", "prompt")

    def __init__(self, prompt: Prompt, reader: str) -> None:
        self.prompt = prompt
        self._reader = reader
        self._is_modern = _generation(prompt.model) >= _MODERN

    def render(self, role: str, run: list[Message], asked: Message | None) -> list[tuple[Message, list[bytes]]]:
        """The parts of messages that follow one another and have the same role. `asked` made the calls before."""
        match role:
            case "tool":
                return self._results(run, asked)
            case "assistant":
                return [(message, self._answer(message) or [_text(" ")]) for message in run]
        return [(message, [self._part(part) for part in message.parts] or [_text(" ")]) for message in run]

    def _part(self, part: Part) -> bytes:
        if isinstance(part, Text):
            return _text(part.text or " ")
        shown = self._inline(part)
        return to_json(shown) if shown else _text(note_of(part))

    def _inline(self, media: Media) -> dict[str, Any] | None:
        data = content_of(media, self.prompt) if media.mime in _SHOWN else None
        return {"inlineData": {"mimeType": media.mime, "data": data}} if data else None

    def _answer(self, message: Message) -> list[bytes]:
        places = places_in(message, self._reader)
        text, at = message.text, 0
        parts: list[bytes] = []
        for place, part in places:
            parts += _some(text[at : place.after])
            parts.append(bytes(place.part))
            at = place.after + (0 if part.thought else len(part.text or ""))
        parts += _some(text[at:])
        return parts if places else parts + self._calls(message)

    def _calls(self, message: Message) -> list[bytes]:
        calls: list[dict[str, Any]] = [
            {"functionCall": self._identify(call.id) | _function(call)} for call in message.calls
        ]
        if calls and self._is_modern:
            calls[0]["thoughtSignature"] = _NOT_MINE
        return [to_json(call) for call in calls]

    def _identify(self, id: str) -> dict[str, Any]:
        """Gemini 3 wants ids; some hosts of older models refuse them."""
        return {"id": id} if id and self._is_modern else {}

    def _results(self, run: list[Message], asked: Message | None) -> list[tuple[Message, list[bytes]]]:
        """In the order of the calls: where there are no ids, Gemini goes by that.

        Gemini 3 wants media inside of their result; older models know no such place, so that there they follow the
        last result of the run.
        """
        names = self._names(asked) if asked else {}
        order = list(names)
        run = sorted(run, key=lambda message: order.index(message.answers) if message.answers in names else len(order))
        rendered = [(message, [self._result(message, names)]) for message in run]
        if not self._is_modern:
            rendered[-1][1].extend(to_json(part) for message in run for part in self._shown(message))
        return rendered

    def _result(self, message: Message, names: dict[str, dict[str, Any]]) -> bytes:
        response = names.get(message.answers, {"name": "unknown"}).copy()
        if self._is_modern and (shown := self._shown(message)):
            response["parts"] = shown
        response["response"] = {"result": "\n".join(map(self._told, message.parts))}
        return to_json({"functionResponse": response})

    def _told(self, part: Part) -> str:
        if isinstance(part, Media) and self._inline(part) is None:
            return note_of(part)
        return text_of((part,))

    def _shown(self, message: Message) -> list[dict[str, Any]]:
        media = [self._inline(part) for part in message.parts if isinstance(part, Media)]
        return [part for part in media if part]

    def _names(self, asked: Message) -> dict[str, dict[str, Any]]:
        """What a result says of its call, by our id: its name, and the id with which the call is sent, if any."""
        sent = [part.function_call.id for _, part in places_in(asked, self._reader) if part.function_call]
        ids = [{"id": id} if id else {} for id in sent] or [self._identify(call.id) for call in asked.calls]
        return {call.id: id | {"name": call.name} for call, id in zip(asked.calls, ids, strict=True)}


def _function(call: ToolCall) -> dict[str, Any]:
    try:
        return {"name": call.name, "args": parse_args(call)}
    except ValueError:  # the result tells the model what was wrong
        return {"name": call.name, "args": {}}


def _some(text: str) -> list[bytes]:
    return [_text(text)] if text else []


def _text(text: str) -> bytes:
    return to_json({"text": text})
