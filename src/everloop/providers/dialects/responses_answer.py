"""The answer of a host that speaks OpenAI's Responses, read as its bytes arrive."""

from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from ...core.message import Message, Opaque
from ...core.prompt import Finish, Usage
from ...core.tool import ToolCall
from ...errors import ProviderError
from ...ports.provider import Reply
from .decoder import UNREADABLE, EventDecoder, check_text
from .refusals import error_in_stream

NAME = "openai_responses"
BETWEEN = "\n\n"  # stands between the messages of one answer, and between its thoughts
_NOTHING = Raw()


class OutputItem(Struct, frozen=True, omit_defaults=True):
    """What stood at one place of an answer. Text and calls are kept elsewhere, thoughts exactly as they came."""

    kind: Literal["thought", "text", "call"]
    id: str = ""
    chars: int = 0  # how much of the answer's text it is
    phase: str = ""  # some models tell remarks on the way from the final answer, and want to be told in turn
    item: Raw = _NOTHING


class _Part(Struct):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(Struct):
    type: str = ""
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    content: list[_Part] | None = None
    summary: list[_Part] | None = None
    encrypted_content: str | None = None
    phase: str | None = None


class _ItemKind(Struct):
    type: str = ""


class _InputDetails(Struct):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(Struct):
    reasoning_tokens: int | None = None


class _ResponsesUsage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None


class _Incomplete(Struct):
    reason: str | None = None


class _ResponseBody(Struct):
    model: str | None = None
    status: str | None = None
    output: list[Raw] | None = None
    usage: _ResponsesUsage | None = None
    incomplete_details: _Incomplete | None = None
    error: Any = None


class _ResponsesEvent(Struct):
    type: str = ""
    delta: Any = ""
    output_index: int = 0
    summary_index: int = 0
    content_index: int = 0
    arguments: str | None = None
    item: Raw = _NOTHING
    response: Raw = _NOTHING
    error: Any = None
    code: Any = None
    message: Any = None


_event = msgspec.json.Decoder(_ResponsesEvent).decode
_kind = msgspec.json.Decoder(_ItemKind).decode
_item = msgspec.json.Decoder(_Item).decode
_response = msgspec.json.Decoder(_ResponseBody).decode
_places = msgspec.json.Decoder(list[OutputItem]).decode


class ResponsesDecoder(EventDecoder):
    NAME = NAME
    NOT_OURS = "is not a response"

    def __init__(self, host: str, model: str) -> None:
        super().__init__(host, model)
        self._finish: Finish | None = None
        self._refused = False
        self._forgets = False  # the host does not show the thought itself, so that it cannot be sent back
        self._usage = Usage()
        self._places: dict[int, OutputItem] = {}
        self._calls: dict[int, ToolCall] = {}
        self._open_calls: dict[int, _Item] = {}
        self._args: dict[int, list[str]] = {}
        self._chars: dict[int, int] = {}  # of the messages
        self._thinkers: set[int] = set()
        self._thought_part: tuple[int, int, int] | None = None

    @property
    def done(self) -> bool:
        """Nothing more will come, whether or not the host closes the connection."""
        return self._finish is not None

    @property
    def complete(self) -> bool:
        """The host has said that the answer is at its end; usage comes with it."""
        return self.done

    def _reply(self, text: str, reasoning: str) -> Reply:
        assert self._finish is not None
        return Reply(
            text=text,
            calls=tuple(call for _, call in sorted(self._calls.items())),
            usage=self._usage,
            finish=self._finish,
            model=self._model,
            reasoning=reasoning,
            opaque=self._opaque(),
        )

    def _end(self) -> None:
        if self._body.so_far:
            self._read_body(self._body.end())
        for data in self._events.end():
            try:
                event = _event(data)
            except UNREADABLE:  # cut off
                return
            self._hear(event)

    def _read_event(self, data: bytes) -> None:
        if data == b"[DONE]":
            return
        try:
            event = _event(data)
        except UNREADABLE as error:
            raise self._explain_other(data) from error
        self._hear(event)

    def _hear(self, event: _ResponsesEvent) -> None:
        if self.done or not isinstance(event.delta, str):
            return
        match event.type:
            case "response.output_text.delta":
                self._say(event.output_index, event.delta)
            case "response.refusal.delta":
                self._refused = True
                self._say(event.output_index, event.delta)
            case "response.reasoning_summary_text.delta" | "response.reasoning_text.delta":
                self._think(event.output_index, event.summary_index, event.content_index, event.delta)
            case "response.function_call_arguments.delta":
                self._args.setdefault(event.output_index, []).append(event.delta)
            case "response.function_call_arguments.done":
                self._args[event.output_index] = [event.arguments or ""]
            case "response.output_item.added":
                self._begin_item(event.output_index, event.item)
            case "response.output_item.done":
                self._end_item(event.output_index, event.item)
            case "response.created":
                self._model = self._parse_response(event.response).model or self._model
            case "response.completed" | "response.incomplete" | "response.failed":
                self._end_response(self._parse_response(event.response))
            case _ if event.type == "error" or event.error:
                raise self._explain_error(event.error or {"code": event.code, "message": event.message})

    def _say(self, index: int, text: str) -> None:
        if not text:
            return
        if self._chars and index not in self._chars:
            self._fresh_text.append(BETWEEN)
        self._chars[index] = self._chars.get(index, 0) + len(text)
        self._fresh_text.append(text)

    def _think(self, index: int, summary: int, content: int, text: str) -> None:
        if not text:
            return
        part = (index, summary, content)
        if self._thought_part not in (None, part):
            self._fresh_thought.append(BETWEEN)
        self._thought_part = part
        self._thinkers.add(index)
        self._fresh_thought.append(text)

    def _begin_item(self, index: int, raw: Raw) -> None:
        item = self._parse_item(raw)
        if item is not None and item.type == "function_call":
            self._open_calls[index] = item

    def _end_item(self, index: int, raw: Raw) -> None:
        item = self._parse_item(raw)
        if item is None:
            return
        match item.type:
            case "message":
                self._end_message(index, item)
            case "function_call":
                self._end_call(index, item)
            case "reasoning":
                self._end_thought(index, item, raw)

    def _end_message(self, index: int, item: _Item) -> None:
        parts = item.content or []
        self._refused = self._refused or any(part.refusal for part in parts)
        if index not in self._chars:
            self._say(index, "".join(part.text or part.refusal or "" for part in parts))
        self._places[index] = OutputItem("text", item.id or "", self._chars.get(index, 0), item.phase or "")

    def _end_call(self, index: int, item: _Item) -> None:
        self._open_calls.pop(index, None)
        args = item.arguments or "".join(self._args.get(index, ())) or "{}"
        self._calls[index] = ToolCall(item.call_id or item.id or "", item.name or "", args)
        self._places[index] = OutputItem("call", item.id or "")

    def _end_thought(self, index: int, item: _Item, raw: Raw) -> None:
        if index not in self._thinkers:
            for place, part in enumerate([*(item.summary or ()), *(item.content or ())]):
                self._think(index, place, 0, part.text or "")
        if item.encrypted_content:
            self._places[index] = OutputItem("thought", item=raw.copy())
        else:
            self._forgets = True

    def _end_response(self, response: _ResponseBody) -> None:
        if response.error or response.status == "failed":
            raise self._explain_error(response.error or {"message": "it gives no reason"})
        if not self._places and not self._open_calls:
            # A host that has told nothing of its items one by one tells all of them now.
            for index, raw in enumerate(response.output or ()):
                self._end_item(index, raw)
        for index, item in sorted(self._open_calls.items()):
            self._end_call(index, item)
        self._model = response.model or self._model
        self._usage = _usage_from(response.usage or _ResponsesUsage())
        self._finish = self._finish_of(response)

    def _finish_of(self, response: _ResponseBody) -> Finish:
        reason = response.incomplete_details.reason if response.incomplete_details else None
        if self._refused or reason == "content_filter":
            return "refused"
        if reason or response.status == "incomplete":
            return "length"
        return "calls" if self._calls else "stop"

    def _read_body(self, body: bytes) -> None:
        try:
            response = _response(body)
        except UNREADABLE as error:
            raise self._explain_other(body) from error
        if response.output is None and not response.error:
            raise self._explain_other(body)
        self._end_response(response)

    def _parse_response(self, raw: Raw) -> _ResponseBody:
        try:
            return _response(raw)
        except UNREADABLE as error:
            raise self._explain_other(bytes(raw)) from error

    def _parse_item(self, raw: Raw) -> _Item | None:
        """None for an item of a kind that we never ask for."""
        try:
            known = _kind(check_text(raw)).type in ("message", "function_call", "reasoning")
            return _item(raw) if known else None
        except UNREADABLE as error:
            raise self._explain_other(bytes(raw)) from error

    def _opaque(self) -> tuple[Opaque, ...]:
        """The order of the answer with its thoughts in it, where there is more to know than text and calls.

        Thoughts go back all or none, and ids with them: a host that finds the id of a call misses its thought.
        """
        places = [place for _, place in sorted(self._places.items())]
        if self._forgets:
            places = [replace(place, id="") for place in places if place.kind != "thought"]
        if not any(place.kind == "thought" or place.phase for place in places):
            return ()
        return (Opaque(self._signer, Raw(msgspec.json.encode(places))),)

    def _explain_error(self, error: Any) -> ProviderError:
        if isinstance(error, dict) and _is_about_the_request(str(error.get("code"))):
            error = {"status": 400, **error}
        return error_in_stream(self._host, self._model, error)


def places_in(message: Message, signer: str) -> list[OutputItem]:
    """What `Reply.opaque` has kept of the order of the message, if it was kept for the same signer."""
    return next((_places(opaque.block) for opaque in message.opaque if opaque.dialect == signer), [])


def _is_about_the_request(code: str) -> bool:
    """Codes of a response that failed for what was asked, so that asking again will not help."""
    return code.startswith(("invalid_", "image_", "unsupported_", "empty_image")) or "_policy" in code


def _usage_from(usage: _ResponsesUsage) -> Usage:
    read = usage.input_tokens_details or _InputDetails()
    written = usage.output_tokens_details or _OutputDetails()
    return Usage(
        input=usage.input_tokens or 0,
        output=usage.output_tokens or 0,
        cache_read=read.cached_tokens or 0,
        cache_write=read.cache_write_tokens or 0,
        reasoning=written.reasoning_tokens or 0,
    )
