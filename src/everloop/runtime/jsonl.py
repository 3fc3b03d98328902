"""Conversations as lines of JSON, to be carried elsewhere and brought back.

The first line is an object with `_type` "metadata". Each other line is a message as models are shown it, with `role`,
`content` and `timestamp`. Nothing of what was said is lost: calls stand in `tool_calls`, their results are messages of
the role `tool` with the `tool_call_id`, and what only some messages have (images, reasoning) has a key of its own.

`exporting` writes it. What is read may be a stranger's: every line is checked, and an error names the line.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from ..core.log import IMPORTED, CallReturned, Compacted, Entry, ModelCalled, ModelSaid, Outcome, UserSaid
from ..core.mail import Address
from ..core.message import Media, Opaque, Part, Text, said
from ..core.people import OWNER
from ..core.thread import Thread
from ..core.tool import ToolCall
from ..errors import MailRefused
from ..ports.conversation import Written
from ..readings.visible import in_one_line, refuse_unseen

LONGEST = 32 * 1024 * 1024  # bytes of a line
DIRECT = "cli:direct"
LONGEST_TITLE = 200
MISSING = "The file that this conversation came from holds no result of this call; it may have been run."

Shape = TypeVar("Shape")

_encode = msgspec.json.Encoder().encode


class ImportedConversation(Struct, frozen=True):
    """A conversation from a file, as the entries that lead to it."""

    key: str
    title: str
    created: float
    written: list[Written]
    consolidated: int = 0  # messages at the beginning that a summary stands for
    summary: str = ""
    facts: tuple[str, ...] = ()


class _Metadata(Struct):
    type: str | None = msgspec.field(name="_type", default=None)
    created_at: str | None = None
    key: str | None = None
    title: str | None = None
    last_consolidated: int | None = None
    summary: str | None = None
    facts: tuple[str, ...] | None = None


class _Function(Struct):
    name: str
    arguments: str | dict[str, Any]


class _FileCall(Struct):
    id: str
    function: _Function


class _FileMessage(Struct):
    role: str
    content: str | list[dict[str, Any]] | None = None
    timestamp: str | None = None
    tools_used: list[str] | None = None
    tool_calls: list[_FileCall] | None = None
    tool_call_id: str | None = None
    author: str | None = None
    origin: str | None = None
    public: bool | None = None
    outcome: Outcome = "done"
    reasoning_content: str | None = None
    opaque: list[Opaque] | None = None


def read_conversation(lines: Iterable[bytes], now: float) -> ImportedConversation:
    """What such a file holds; where it does not say when that was, it is `now`. Raises MailRefused, which names the
    line."""
    numbered = ((number, line.strip()) for number, line in enumerate(lines, 1))
    filled = ((number, line) for number, line in numbered if line)
    first, line = next(filled, (1, b""))
    about = _decoded(first, line, _Metadata)
    if about.type != "metadata":
        raise _wrong(first, 'the first line is not {"_type":"metadata",…}')
    try:
        refuse_unseen(about.key or "", "a session key")
        key = str(Address.parse(about.key)) if about.key else DIRECT
    except (ValueError, MailRefused) as error:
        raise _wrong(first, str(error)) from error
    created = _time(first, about.created_at, now)
    bringing = _Bringing(created)
    for number, line in filled:
        bringing.add(number, line)
    bringing.end()
    title = in_one_line(" ".join((about.title or "").split()))[:LONGEST_TITLE]
    return ImportedConversation(
        key,
        title,
        created,
        bringing.written,
        about.last_consolidated or 0,
        about.summary or "",
        about.facts or (),
    )


def with_summary(brought: ImportedConversation, entries: Sequence[Entry]) -> list[Entry]:
    """The entries of a conversation that rests, and the summary that its file holds of its beginning: the model is
    shown what it was shown there. Whoever made the file may have been a stranger."""
    thread = Thread.of(*entries)
    kept = thread.transcript.messages[brought.consolidated :]
    told = brought.consolidated > 0 and bool(brought.summary.strip() or brought.facts)
    if not told or (kept and kept[0].role == "tool") or brought.consolidated > len(thread.transcript.messages):
        return list(entries)
    standing = structs.replace(thread.standing, outside=True)
    covers = (1, thread.seq)
    return [*entries, Compacted(brought.summary, tuple(kept), standing, brought.facts, covers)]


class _Bringing:
    """Turns messages into entries that lead to the same conversation."""

    def __init__(self, at: float) -> None:
        self.written: list[Written] = []
        self._at = at
        self._answer = 0
        self._open: dict[int, ToolCall] = {}  # by their places
        self._line = 0  # of the answer that holds them

    def add(self, number: int, line: bytes) -> None:
        message = _decoded(number, line, _FileMessage)
        self._at = _time(number, message.timestamp, self._at)
        if self._open and message.role != "tool":
            raise _wrong(
                number, f"the call {next(iter(self._open.values())).id!r} of line {self._line} has no result yet"
            )
        match message.role:
            case "user":
                self._add(UserSaid(_parts(number, message), message.author or OWNER))
            case "assistant":
                self._add_answer(number, message)
            case "tool":
                self._add_result(number, message)
            case role:
                raise _wrong(number, f"the role is {role!r}, and only user, assistant and tool are taken")

    def end(self) -> None:
        """Calls at the very end may be without a result: someone was still to be asked, or they ran."""
        for place in self._open:
            self._add(CallReturned(self._answer, place, MISSING, "cancelled"))
        if not self.written:
            raise MailRefused("the file holds no message")

    def _add_answer(self, number: int, message: _FileMessage) -> None:
        if not self.written:
            raise _wrong(number, "the conversation begins with an answer")
        calls = tuple(ToolCall(call.id, call.function.name, _args(call)) for call in message.tool_calls or ())
        text = _text(number, message)
        if not calls and not text.strip():
            raise _wrong(number, "the assistant says nothing: there is neither content nor tool_calls")
        self._add(ModelCalled(IMPORTED))
        self._add(
            ModelSaid(
                text,
                calls,
                finish="calls" if calls else "stop",
                model=IMPORTED,
                reasoning=message.reasoning_content or "",
                opaque=tuple(message.opaque or ()),
            )
        )
        self._answer, self._open, self._line = len(self.written), dict(enumerate(calls)), number

    def _add_result(self, number: int, message: _FileMessage) -> None:
        place = next((place for place, call in self._open.items() if call.id == message.tool_call_id), None)
        if place is None:
            raise _wrong(number, f"no call {message.tool_call_id!r} waits for a result here")
        del self._open[place]
        text, *rest = _parts(number, message)
        media = tuple(part for part in rest if isinstance(part, Media))
        if not isinstance(text, Text) or len(media) < len(rest):
            raise _wrong(number, "the content of a result is a text, or a text and then images")
        origin, public = message.origin or text.origin, bool(message.public)
        self._add(
            CallReturned(self._answer, place, text.text, message.outcome, media=media, origin=origin, public=public)
        )

    def _add(self, entry: Entry) -> None:
        self.written.append(Written(len(self.written) + 1, self._at, entry))


def _parts(number: int, message: _FileMessage) -> tuple[Part, ...]:
    if message.content is None or message.content == []:
        raise _wrong(number, f"a message of the role {message.role} needs content")
    if isinstance(message.content, str):
        return said(message.content)
    try:
        return msgspec.convert(tuple(message.content), tuple[Part, ...])
    except msgspec.ValidationError as error:
        raise _wrong(number, f"a part of the content is neither a text nor a file that we keep ({error})") from error


def _text(number: int, message: _FileMessage) -> str:
    if not message.content:
        return ""
    parts = _parts(number, message)
    if len(parts) != 1 or not isinstance(parts[0], Text):
        raise _wrong(number, "the content of an answer is one text")
    return parts[0].text


def _args(call: _FileCall) -> str:
    given = call.function.arguments
    return given if isinstance(given, str) else _encode(given).decode()


def _decoded(number: int, line: bytes, shape: type[Shape]) -> Shape:
    if len(line) > LONGEST:
        raise _wrong(number, f"it is longer than {LONGEST:,} bytes")
    try:
        return msgspec.json.decode(line, type=shape)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise _wrong(number, f"it is not such an object ({error})") from error


def _time(number: int, text: str | None, otherwise: float) -> float:
    if not text:
        return otherwise
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise _wrong(number, f"{text!r} is no time such as 2026-11-15T09:30:00") from error


def _wrong(number: int, what: str) -> MailRefused:
    return MailRefused(f"line {number}: {what}; nothing was imported")
