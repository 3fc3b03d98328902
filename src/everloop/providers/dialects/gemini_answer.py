"""The answer of a Gemini host, read as its bytes arrive.

Gemini signs its thoughts on the very parts that came of them, and wants each signature back on the same part. So what
is kept of an answer is every part that is signed or is a call, byte for byte, and how much text stood before it.
"""

import re
from typing import Any

import msgspec
from msgspec import Raw, Struct

from ...core.message import Message, Opaque
from ...core.prompt import Finish, Usage
from ...core.tool import ToolCall
from ...errors import HostFailed, ProviderError, RateLimited
from ...ports.provider import Reply
from . import refusals
from .call_pieces import short_id
from .decoder import UNREADABLE, EventDecoder, check_text, is_whole

NAME = "gemini"


class FunctionCall(Struct):
    name: str = ""
    args: Raw = Raw(b"{}")
    id: str = ""


class GeminiPart(Struct, rename="camel"):
    text: str | None = None
    thought: bool = False
    thought_signature: str = ""
    function_call: FunctionCall | None = None


class PlacedPart(Struct, array_like=True):
    """A part as it came, and how many characters of the answer's text came before it."""

    after: int
    part: Raw


class _Content(Struct):
    parts: list[Raw] | None = None


class _Candidate(Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None


class _Feedback(Struct, rename="camel"):
    block_reason: str = ""


class _GeminiUsage(Struct, rename="camel"):
    prompt_token_count: int = 0
    tool_use_prompt_token_count: int = 0
    candidates_token_count: int = 0
    thoughts_token_count: int = 0
    cached_content_token_count: int = 0


class _GeminiChunk(Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    prompt_feedback: _Feedback | None = None
    usage_metadata: _GeminiUsage | None = None
    error: Any = None
    response_id: str = ""
    model_version: str = ""


_decode_chunk = msgspec.json.Decoder(_GeminiChunk).decode
_decode_body = msgspec.json.Decoder(list[_GeminiChunk] | _GeminiChunk).decode
_decode_part = msgspec.json.Decoder(GeminiPart).decode
_decode_places = msgspec.json.Decoder(list[PlacedPart]).decode


class GeminiDecoder(EventDecoder):
    """A body that is no stream may be an array, too. No event says that it was the last, so that only the end of the
    body is the end."""

    NAME = NAME
    NOT_OURS = "Gemini would not say"
    FIELDS = (b"data:",)

    def __init__(self, host: str, model: str) -> None:
        super().__init__(host, model)
        self._id = ""
        self._finish = ""
        self._blocked = ""
        self._counts = _GeminiUsage()
        self._calls: list[FunctionCall] = []
        self._places: list[PlacedPart] = []
        self._signed = False
        self._length = 0  # of the text

    @property
    def done(self) -> bool:
        """Nothing more will come, whether or not the host closes the connection."""
        return self._ended and self.complete

    @property
    def complete(self) -> bool:
        """The host has said that the answer is at its end; only usage may still follow."""
        return bool(self._finish or self._blocked)

    def _reply(self, text: str, reasoning: str) -> Reply:
        return Reply(
            text=text,
            calls=tuple(self._name_calls()),
            usage=_usage_from(self._counts),
            finish="refused" if self._blocked else _finish_from(self._finish, bool(self._calls)),
            model=self._model,
            reasoning=reasoning,
            opaque=(Opaque(self._signer, Raw(msgspec.json.encode(self._places))),) if self._signed else (),
        )

    def _end(self) -> None:
        super()._end()
        # Google breaks an answer off with an error that is no event, written over several lines.
        if not self.complete and is_whole(self._events.stray):
            self._read_event(self._events.stray)
        reason = self._blocked or self._finish
        if reason and not self._length and (self._blocked or _FINISHES.get(reason) == "refused"):
            self._say(f"{self._host} withheld the answer ({reason}).")

    def _read_event(self, event: bytes) -> None:
        if event.strip() == b"[DONE]":  # Google sends none, but gateways do
            return
        try:
            chunk = _decode_chunk(event)
        except UNREADABLE as error:
            raise self._explain_other(event) from error
        self._read_chunk(chunk)

    def _read_body(self, body: bytes) -> None:
        try:
            told = _decode_body(body)
        except UNREADABLE as error:
            raise self._explain_other(body) from error
        chunks = told if isinstance(told, list) else [told]
        for chunk in chunks:
            self._read_chunk(chunk)
        if not any(chunk.candidates or chunk.prompt_feedback for chunk in chunks):
            raise self._explain_other(body)

    def _read_chunk(self, chunk: _GeminiChunk) -> None:
        if chunk.error:
            raise error_in_stream(self._host, self._model, chunk.error)
        self._id = self._id or chunk.response_id
        self._model = chunk.model_version or self._model
        self._counts = chunk.usage_metadata or self._counts
        if chunk.candidates:
            self._read_candidate(chunk.candidates[0])
        elif chunk.prompt_feedback:
            self._blocked = chunk.prompt_feedback.block_reason

    def _read_candidate(self, candidate: _Candidate) -> None:
        for raw in (candidate.content and candidate.content.parts) or ():
            self._read_part(raw)
        if candidate.finish_reason and candidate.finish_reason != "FINISH_REASON_UNSPECIFIED":
            self._finish = candidate.finish_reason
        if self._finish in _FAULTS:
            raise HostFailed(f"{self._host} gave up on its answer for {self._model}: {self._finish}. Try again later.")

    def _read_part(self, raw: Raw) -> None:
        try:
            part = _decode_part(check_text(raw))
        except UNREADABLE as error:
            raise self._explain_other(bytes(raw)) from error
        if part.thought_signature or part.function_call:
            self._places.append(PlacedPart(self._length, raw.copy()))
            self._signed = self._signed or bool(part.thought_signature)
        if part.function_call:
            part.function_call.args = part.function_call.args.copy()
            self._calls.append(part.function_call)
        elif part.text and part.thought:
            self._fresh_thought.append(part.text)
        elif part.text:
            self._say(part.text)

    def _name_calls(self) -> list[ToolCall]:
        """Models before Gemini 3 give no ids: then they follow from the answer's id and the call's place."""
        return [
            ToolCall(call.id or short_id(f"{self._id}:{place}"), call.name, _arguments(call))
            for place, call in enumerate(self._calls)
        ]

    def _say(self, text: str) -> None:
        self._length += len(text)
        self._fresh_text.append(text)


def places_in(message: Message, signer: str) -> list[tuple[PlacedPart, GeminiPart]]:
    """What the decoder has kept of an answer, if it was kept for the same signer and the calls are still those."""
    block = next((opaque.block for opaque in message.opaque if opaque.dialect == signer), Raw(b"[]"))
    places = [(place, _decode_part(place.part)) for place in _decode_places(block)]
    names = [part.function_call.name for _, part in places if part.function_call]
    return places if names == [call.name for call in message.calls] else []


def error_in_stream(host: str, model: str, error: Any) -> ProviderError:
    """The error for an `error` object that came inside an answer."""
    found = refusals.error_in_stream(host, model, error)
    if isinstance(found, RateLimited):
        return refusals.error_from(host, model, 429, wait_in(body := msgspec.json.encode(error)), body)
    return found


def wait_in(body: bytes) -> dict[str, str]:
    """How long to wait, as a header would say it: Google says it in the body."""
    found = re.search(rb'"retryDelay":\s*"(\d+(?:\.\d+)?)s"', body)
    return {"retry-after": found[1].decode()} if found else {}


def _arguments(call: FunctionCall) -> str:
    args = bytes(call.args).decode()
    return "{}" if args == "null" else args


_FINISHES: dict[str, Finish] = {
    "MAX_TOKENS": "length",
    "CONTINUATION": "length",
    "SAFETY": "refused",
    "RECITATION": "refused",
    "LANGUAGE": "refused",
    "BLOCKLIST": "refused",
    "PROHIBITED_CONTENT": "refused",
    "SPII": "refused",
    "MODEL_ARMOR": "refused",
    "IMAGE_SAFETY": "refused",
    "IMAGE_PROHIBITED_CONTENT": "refused",
    "IMAGE_RECITATION": "refused",
}
_FAULTS = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE", "OTHER")


def _finish_from(reason: str, has_calls: bool) -> Finish:
    """Gemini says STOP after calls, too."""
    return _FINISHES.get(reason) or ("calls" if has_calls else "stop")


def _usage_from(counts: _GeminiUsage) -> Usage:
    return Usage(
        input=counts.prompt_token_count + counts.tool_use_prompt_token_count,
        output=counts.candidates_token_count + counts.thoughts_token_count,
        cache_read=counts.cached_content_token_count,
        reasoning=counts.thoughts_token_count,
    )
