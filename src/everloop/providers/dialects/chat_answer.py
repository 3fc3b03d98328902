"""The answer of a chat-completions host, read as its bytes arrive."""

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import msgspec
from msgspec import Struct

from ...core.prompt import Finish, Usage
from ...errors import HostFailed
from ...ports.provider import Reply
from .call_pieces import NAME, CallPieces, mend
from .decoder import BodyDecoder
from .refusals import error_in_stream
from .sse import MOST_BYTES, Lines, Pieces
from .thinking import Thinking


class _Choice(Struct, gc=False):
    delta: dict[str, Any] | None = None
    message: dict[str, Any] | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None


class _ChatChunk(Struct, gc=False):
    choices: list[_Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    id: Any = None
    model: Any = None


_decode = msgspec.json.Decoder(_ChatChunk).decode
_DONE = b"[DONE]"
_OTHER_LINES = (b":", b"event:", b"id:", b"retry:")
_UNREADABLE = (msgspec.DecodeError, ValueError)


class ChatDecoder(BodyDecoder):
    """It takes lines apart by itself: hosts of this dialect break the rules of events in more ways than others, and
    most of all that is read comes through here."""

    NAME = NAME
    NOT_OURS = "is not a chat completion"

    def __init__(self, host: str, model: str) -> None:
        super().__init__(host, model)
        self._lines = Lines()
        self._event = Pieces("an event")  # of several lines, that is not whole
        self._tried = 0  # bytes that were read in vain to learn whether it is
        self._stray = b""  # a line that belongs to no stream of events
        self.done = False  # nothing more will come, whether or not the host closes the connection
        self._id = ""
        self._finish = ""
        self._refused = False
        self._usage: dict[str, Any] = {}
        self._calls: CallPieces | None = None
        self._thinking = Thinking()
        self._half = ""  # the first half of a character

    @property
    def complete(self) -> bool:
        """The host has said that the answer is at its end; only usage may still follow."""
        return self.done or bool(self._finish)

    @property
    def stray(self) -> bytes:
        return self._stray

    def _reply(self, text: str, reasoning: str) -> Reply:
        calls = self._calls.calls(self._id) if self._calls else ()
        return Reply(
            text=text,
            calls=calls,
            usage=_usage_from(self._usage),
            finish="refused" if self._refused else _finish_from(self._finish, bool(calls)),
            model=self._model,
            reasoning=reasoning,
            opaque=self._calls.opaque(self._signer) if self._calls else (),
        )

    def _take(self, data: bytes) -> None:
        if self._is_stream or (data := self._begin_stream(data)):
            self._read_lines(self._lines.split(data))

    def _read_lines(self, lines: list[bytes]) -> None:
        for line in lines:
            if line and (data := line.removeprefix(b"data:")) != line:
                self._read_data(data.strip())
            elif not line or line.isspace():
                if self._event.so_far:
                    self._end_event()
            elif not line.startswith(_OTHER_LINES):
                self._stray = self._stray or line

    def _read_data(self, data: bytes) -> None:
        if self._event.so_far:
            self._read_further_line(data)
        elif data == _DONE:
            self.done = True
        else:
            try:
                chunk = _decode(data)
            except _UNREADABLE:
                self._read_other(data)
            else:
                self._read_chunk(chunk)

    def _read_other(self, data: bytes) -> None:
        """The beginning of an object is never an object, so it is either a line of several, or broken."""
        if chunk := _parse(data):
            self._read_chunk(chunk)
            return
        self.done = self.done or data.startswith(_DONE)
        if data and not self.done:
            self._event.add(data)

    def _read_further_line(self, data: bytes) -> None:
        """Some hosts leave the blank line out, so that an event may be whole without one. To look after each line would
        take a time that grows with the square of the event."""
        self._event.add(b"\n" + data if data else b"")
        if data.endswith(b"}") and self._tried < MOST_BYTES:
            self._tried += len(self._event.so_far)
            if chunk := _parse(bytes(self._event.so_far)):
                self._forget_event()
                self._read_chunk(chunk)

    def _end_event(self) -> None:
        event = self._forget_event()
        if chunk := _parse(event):
            self._read_chunk(chunk)
        else:
            raise self._explain_other(event)

    def _forget_event(self) -> bytes:
        self._tried = 0
        return self._event.end()

    def _read_body(self, body: bytes) -> None:
        if chunk := _parse(body):
            self._read_chunk(chunk)
        if not chunk or not chunk.choices:
            raise self._explain_other(body)
        self.done = True

    def _read_chunk(self, chunk: _ChatChunk) -> None:
        self.heard += 1
        if chunk.error:
            raise error_in_stream(self._host, self._model, chunk.error)
        if not self._id and chunk.id:
            self._id = str(chunk.id)
            self._model = str(chunk.model or self._model)
        if chunk.usage:
            self._usage = chunk.usage
        if not chunk.choices:
            return
        choice = chunk.choices[0]
        if said := choice.delta or choice.message:
            self._read_said(said)
        if choice.usage:
            self._usage = choice.usage
        if choice.finish_reason:
            self._finish = choice.finish_reason
            if self._finish in _FAULTS:
                raise HostFailed(
                    f"{self._host} gave up on its answer for {self._model}: {self._finish}. Try again later."
                )

    def _read_said(self, said: dict[str, Any]) -> None:
        thought = ""
        for name, value in said.items():
            if not value or name == "role":
                continue
            if name == "content":
                self._say(value) if isinstance(value, str) else self._read_parts(value)
            elif name == "tool_calls":
                self._read_calls(value)
            elif name == "refusal":
                self._say(_text_in(value))
                self._refused = True
            elif not thought and _names_reasoning(name):
                # Some hosts send the same thought under two names.
                thought = _text_in(value)
        if thought:
            self._fresh_thought.append(mend(thought))

    def _read_parts(self, content: Any) -> None:
        for part in content if isinstance(content, list) else [content]:
            if isinstance(part, dict) and _names_reasoning(str(part.get("type"))):
                self._fresh_thought.append(_text_in(part))
            else:
                self._say(_text_in(part))

    def _read_calls(self, pieces: Any) -> None:
        self._calls = self._calls or CallPieces()
        try:
            self._calls.add(pieces)
        except msgspec.ValidationError as error:
            raise self._explain_other(msgspec.json.encode(pieces)) from error

    def _say(self, text: str) -> None:
        if self._half or "\ud800" <= text[-1:] <= "\udfff":
            text = self._mend(text)
        if self._thinking.speaking:
            self._fresh_text.append(text)
        else:
            said, thought = self._thinking.part(text)
            self._keep(said, thought)

    def _mend(self, text: str) -> str:
        text, self._half = self._half + text, ""
        if "\ud800" <= text[-1:] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return mend(text)

    def _end(self) -> None:
        half, self._half = self._half, ""
        if self._is_stream:
            if self._lines.so_far or self._event.so_far:
                self._read_lines([self._lines.end()])
        elif self._body.so_far:
            self._read_body(self._body.end())
        if half:
            self._keep(*self._thinking.part(mend(half)))
        if not self._thinking.speaking:
            self._keep(*self._thinking.end())

    def _keep(self, said: str, thought: str) -> None:
        if said:
            self._fresh_text.append(said)
        if thought:
            self._fresh_thought.append(thought)


def _parse(data: bytes) -> _ChatChunk | None:
    try:
        return _decode(data)
    except _UNREADABLE:
        if b"\\ud" not in data.lower():
            return None
    # A host that cuts text by UTF-16 units sends halves of a character as escapes, which only `json` reads.
    try:
        return msgspec.convert(json.loads(data), _ChatChunk)
    except _UNREADABLE:
        return None


@lru_cache(maxsize=256)
def _names_reasoning(name: str) -> bool:
    name = name.lower()
    is_thought = any(word in name for word in ("reasoning", "thinking", "thought"))
    return is_thought and not any(word in name for word in ("signature", "opaque", "encrypted", "_id"))


def _text_in(value: Any) -> str:
    """The text in a value of one of the forms in which hosts send thoughts and parts."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "".join(_text_in(item) for item in value)
    if isinstance(value, dict):
        keys = ("text", "content", "summary", "thinking", "reasoning", "thought")
        return next((text for key in keys if (text := _text_in(value.get(key)))), "")
    return ""


_FINISHES: dict[str, Finish] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "refused",
    "safety": "refused",
    "sensitive": "refused",
}
_FAULTS = ("error", "insufficient_system_resource", "network_error")


def _finish_from(reason: str, has_calls: bool) -> Finish:
    """Several hosts say `stop` after calls, so that the calls themselves decide."""
    return _FINISHES.get(reason.lower()) or ("calls" if has_calls else "stop")


def _usage_from(usage: dict[str, Any]) -> Usage:
    input, output, *cached = _counts(usage, _COUNTED)
    read, said = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    known, written = _counts(read, _READ) if read else (0, 0)
    (reasoning,) = _counts(said, _SAID) if said else (0,)
    return Usage(input, output, max(known, *cached), written, reasoning)


_COUNTED = ("prompt_tokens", "completion_tokens", "prompt_cache_hit_tokens", "cached_tokens")
_READ = ("cached_tokens", "cache_write_tokens")
_SAID = ("reasoning_tokens",)


def _counts(counts: Any, names: Sequence[str]) -> list[int]:
    found = []
    for name in names:
        count = counts.get(name) if isinstance(counts, dict) else None
        found.append(int(count) if isinstance(count, (int, float)) else 0)
    return found
