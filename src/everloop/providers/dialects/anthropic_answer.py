"""The answer of a host that speaks Anthropic's Messages, read as its bytes arrive."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from ...core.message import Opaque
from ...core.prompt import Finish, Usage
from ...core.tool import ToolCall
from ...ports.provider import Reply
from .call_pieces import short_id
from .decoder import UNREADABLE, EventDecoder
from .refusals import error_in_stream
from .rendered import to_json

NAME = "anthropic_messages"


class _AnthropicUsage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: dict[str, Any] | None = None


class _Block(Struct):
    type: str
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str = ""
    id: str = ""
    name: str = ""
    input: dict[str, Any] | None = None


class _AnthropicMessage(Struct):
    id: str | None = None
    model: str | None = None
    content: list[dict[str, Any]] = []
    stop_reason: str | None = None
    usage: _AnthropicUsage | None = None


class _Delta(Struct):
    type: str = ""
    text: str = ""
    thinking: str = ""
    signature: str = ""
    partial_json: str = ""
    stop_reason: str | None = None


class _AnthropicEvent(Struct):
    type: str = ""
    index: int = 0
    message: _AnthropicMessage | None = None
    content_block: dict[str, Any] | None = None
    delta: _Delta | None = None
    usage: _AnthropicUsage | None = None
    error: Any = None


class _EventKind(Struct):
    type: str


_decode = msgspec.json.Decoder(_AnthropicEvent).decode
_decode_kind = msgspec.json.Decoder(_EventKind).decode
_decode_message = msgspec.json.Decoder(_AnthropicMessage).decode
_KINDS = {"", "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta"}
_BLOCKS = {"text", "thinking", "redacted_thinking", "tool_use"}


class _Open:
    """A block as far as it has come."""

    __slots__ = ("call_id", "data", "input", "kind", "name", "pieces", "signature")

    def __init__(self, block: _Block) -> None:
        self.kind = block.type
        self.pieces: list[str] = []
        self.signature = block.signature or ""
        self.data = block.data
        self.call_id = block.id
        self.name = block.name
        self.input = block.input

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    @property
    def args(self) -> str:
        """Some hosts send the whole input at once instead of in pieces."""
        return self.text or (to_json(self.input).decode() if self.input else "{}")

    @property
    def thought(self) -> bytes:
        """A thought as it is sent back, or nothing if there is nothing in it."""
        if self.kind == "redacted_thinking":
            return to_json({"type": self.kind, "data": self.data})
        if self.kind == "thinking" and (self.signature or self.pieces):
            return to_json({"type": self.kind, "thinking": self.text, "signature": self.signature})
        return b""


class AnthropicDecoder(EventDecoder):
    NAME = NAME
    NOT_OURS = "is not an Anthropic message"

    def __init__(self, host: str, model: str) -> None:
        super().__init__(host, model)
        self._done = False
        self._id = ""
        self._stop = ""
        self._usage: dict[str, int] = {}
        self._blocks: dict[int, _Open] = {}  # in the order in which they began

    @property
    def done(self) -> bool:
        """Nothing more will come, whether or not the host closes the connection."""
        return self._done

    @property
    def complete(self) -> bool:
        """The host has said why the answer is at its end; the usage came with it."""
        return self._done or bool(self._stop)

    def _reply(self, text: str, reasoning: str) -> Reply:
        calls = self._calls()
        return Reply(
            text=text,
            calls=calls,
            usage=_usage_from(self._usage),
            finish=_FINISHES.get(self._stop) or ("calls" if calls else "stop"),
            model=self._model,
            reasoning=reasoning,
            opaque=self._opaque(),
        )

    def _read_body(self, body: bytes) -> None:
        if _kind_of(body) != "message":
            self._read_event(body)  # which raises the error that it may be
            raise self._explain_other(body)
        try:
            message = _decode_message(body)
        except UNREADABLE as error:
            raise self._explain_other(body) from error
        self._begin(message)
        self._stop = message.stop_reason or "end_turn"
        self._done = True

    def _read_event(self, data: bytes) -> None:
        try:
            event = _decode(data)
        except UNREADABLE as error:
            if _kind_of(data) in _KINDS:
                raise self._explain_other(data) from error
            return
        if event.error:
            raise error_in_stream(self._host, self._model, _with_status(event.error))
        if not event.type:
            raise self._explain_other(data)
        self._hear(event)

    def _hear(self, event: _AnthropicEvent) -> None:
        match event:
            case _AnthropicEvent(type="content_block_delta", index=index, delta=_Delta() as delta):
                self._grow(index, delta)
            case _AnthropicEvent(type="content_block_start", index=index, content_block=dict() as block):
                self._open(index, block)
            case _AnthropicEvent(type="message_start", message=_AnthropicMessage() as message):
                self._begin(message)
            case _AnthropicEvent(type="message_delta"):
                self._stop = (event.delta and event.delta.stop_reason) or self._stop
                self._count(event.usage)
            case _AnthropicEvent(type="message_stop"):
                self._done = True

    def _begin(self, message: _AnthropicMessage) -> None:
        self._id = message.id or ""
        self._model = message.model or self._model
        self._count(message.usage)
        for index, block in enumerate(message.content):
            self._open(index, block)

    def _open(self, index: int, fields: dict[str, Any]) -> None:
        if fields.get("type") not in _BLOCKS:
            return
        try:
            block = msgspec.convert(fields, _Block)
        except msgspec.ValidationError as error:
            raise self._explain_other(to_json(fields)) from error
        opened = self._blocks[index] = _Open(block)
        if block.text:
            self._say(opened, block.text)
        if block.thinking:
            self._think(opened, block.thinking)

    def _grow(self, index: int, delta: _Delta) -> None:
        block = self._blocks.get(index)
        if block is None:
            return
        match delta.type:
            case "text_delta":
                self._say(block, delta.text)
            case "input_json_delta":
                block.pieces.append(delta.partial_json)
            case "thinking_delta":
                self._think(block, delta.thinking)
            case "signature_delta":
                block.signature += delta.signature

    def _say(self, block: _Open, text: str) -> None:
        block.pieces.append(text)
        if text:
            self._fresh_text.append(text)

    def _think(self, block: _Open, thought: str) -> None:
        if not block.pieces and (self._thought or self._fresh_thought):
            self._fresh_thought.append("\n\n")
        block.pieces.append(thought)
        if thought:
            self._fresh_thought.append(thought)

    def _count(self, usage: _AnthropicUsage | None) -> None:
        """Counts are of the whole answer so far; a later event need not repeat those that it does not change."""
        if usage is None:
            return
        counts = {name: getattr(usage, name) for name in _COUNTS}
        counts["thinking"] = (usage.output_tokens_details or {}).get("thinking_tokens")
        self._usage |= {name: count for name, count in counts.items() if isinstance(count, int)}

    def _calls(self) -> tuple[ToolCall, ...]:
        calls = (block for block in self._blocks.values() if block.kind == "tool_use" and block.name)
        return tuple(
            ToolCall(call.call_id or short_id(f"{self._id}:{place}"), call.name, call.args)
            for place, call in enumerate(calls)
        )

    def _opaque(self) -> tuple[Opaque, ...]:
        """The thoughts. A message keeps no place for those that came between other blocks, and in another place the
        host refuses them, so that then none is kept: without any, the message is taken."""
        thoughts = [block.thought for block in self._blocks.values()]
        first = [thought for thought in thoughts if thought]
        if thoughts[: len(first)] != first:
            return ()
        return tuple(Opaque(self._signer, Raw(thought)) for thought in first)


def _kind_of(data: bytes) -> str:
    try:
        return _decode_kind(data).type
    except UNREADABLE:
        return ""


# https://platform.claude.com/docs/en/api/errors
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}


def _with_status(error: Any) -> Any:
    status = _STATUS.get(str(error.get("type"))) if isinstance(error, dict) else None
    return error if status is None else {**error, "status": status}


_FINISHES: dict[str, Finish] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refused",
}
_COUNTS = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")


def _usage_from(counts: dict[str, int]) -> Usage:
    """Anthropic's `input_tokens` leaves out what was read from the cache and what was written to it."""
    fresh, output, read, written = (counts.get(name, 0) for name in _COUNTS)
    return Usage(fresh + read + written, output, read, written, counts.get("thinking", 0))
