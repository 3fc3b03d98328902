"""The frame in which every dialect reads an answer: bytes come in, pieces to show go out, and at the end the reply.

A dialect says what its events mean; what it must never do twice, or forget, stands here.
"""

from abc import ABC, abstractmethod

import msgspec
from msgspec import Raw

from ...errors import HostFailed, ProviderError, StreamCut
from ...ports.provider import Delta, Reply
from . import signer
from .sse import Events, Pieces

UNREADABLE = (msgspec.DecodeError, ValueError, RecursionError)


class BodyDecoder(ABC):
    """The Decoder port without the meaning. A dialect fills `_fresh_text` and `_fresh_thought` as it reads.

    The body may be a stream of events or, from hosts that ignore `stream`, one JSON object.
    """

    NAME = ""  # of the dialect
    NOT_OURS = ""  # what is said of something else: "is not a chat completion"
    FIELDS: tuple[bytes, ...] = (
        b"data:",
        b"event:",
        b"id:",
        b"retry:",
    )  # a line that is the beginning of one has been cut off

    def __init__(self, host: str, model: str) -> None:
        self._host = host
        self._model = model
        self._asked = model
        self.heard = 0  # events that said something
        self._is_stream = False
        self._body = Pieces("an answer")  # what came as long as it is no stream
        self._ended = False
        self._fresh_text: list[str] = []
        self._fresh_thought: list[str] = []
        self._text: list[str] = []
        self._thought: list[str] = []

    @property
    def _signer(self) -> str:
        return signer(self.NAME, self._host, self._asked)

    @property
    @abstractmethod
    def complete(self) -> bool:
        """The host has said that the answer is at its end; only usage may still follow."""

    @property
    @abstractmethod
    def stray(self) -> bytes:
        """What belongs to no stream of events: an error page, or a plain JSON body."""

    def feed(self, data: bytes) -> Delta | None:
        """What these bytes add to the answer; `b""` is the end of the body. Raises ProviderError."""
        if data:
            self._take(data)
        elif not self._ended:
            self._ended = True
            self._end()
        return self._flush() if self._fresh_text or self._fresh_thought else None

    def reply(self) -> Reply:
        """The whole answer. Raises StreamCut if its end has not come, HostFailed if it is not of this dialect."""
        if not self._ended:
            self.feed(b"")
        if not self.complete:
            raise self._explain_missing_end()
        return self._reply("".join(self._text), "".join(self._thought).strip())

    @abstractmethod
    def _take(self, data: bytes) -> None: ...

    @abstractmethod
    def _end(self) -> None: ...

    @abstractmethod
    def _reply(self, text: str, reasoning: str) -> Reply: ...

    def _begin_stream(self, data: bytes) -> bytes:
        """What of these bytes belongs to a stream of events; what does not is kept as a body."""
        if not self._body.so_far:
            data = data.lstrip()
        if data and (self._body.so_far or data[:1] in (b"{", b"[")):
            self._body.add(data)
            return b""
        self._is_stream = bool(data)
        return data

    def _flush(self) -> Delta:
        delta = Delta("".join(self._fresh_text), "".join(self._fresh_thought))
        self._text.append(delta.text)
        self._thought.append(delta.reasoning)
        self._fresh_text.clear()
        self._fresh_thought.clear()
        return delta

    def _explain_missing_end(self) -> ProviderError:
        stray = self.stray
        if stray and not any(field.startswith(stray) for field in self.FIELDS):
            return self._explain_other(stray)
        return StreamCut(f"{self._host} broke off in the middle of its answer for {self._model}.")

    def _explain_other(self, data: bytes) -> HostFailed:
        excerpt = data[:80].decode("utf-8", "replace").strip()
        return HostFailed(
            f"{self._host} answered for {self._model} with something that {self.NOT_OURS} ({excerpt}). "
            f"Check the host's address."
        )


class EventDecoder(BodyDecoder):
    """A reading of server-sent events."""

    def __init__(self, host: str, model: str) -> None:
        super().__init__(host, model)
        self._events = Events()

    @property
    def stray(self) -> bytes:
        return self._events.stray.strip()

    @abstractmethod
    def _read_event(self, event: bytes) -> None: ...

    @abstractmethod
    def _read_body(self, body: bytes) -> None: ...

    def _take(self, data: bytes) -> None:
        if not self._is_stream:
            data = self._begin_stream(data)
        for event in self._events.feed(data):
            self.heard += 1
            self._read_event(event)

    def _end(self) -> None:
        if self._body.so_far:
            self._read_body(self._body.end())
        for event in self._events.end():
            if is_whole(event):  # else it is the last one, and broke off
                self._read_event(event)


def is_whole(data: bytes) -> bool:
    try:
        msgspec.json.decode(data)
    except UNREADABLE:
        return False
    return True


def check_text(raw: Raw) -> Raw:
    """What is kept as it came is not looked into, but has to be text to be sent back. Raises UnicodeDecodeError."""
    bytes(raw).decode()
    return raw
