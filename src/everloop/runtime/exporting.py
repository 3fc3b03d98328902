"""A conversation as lines of JSON, to be carried elsewhere: `jsonl` tells of the format, and reads it.

What is open (a question that waits, a call that runs, an answer that is still to come) is closed in the file with a
sentence: whoever brings it back runs nothing by that, and what is then exported once more is the same.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
from msgspec import structs

from ..core.log import IMPORTED, AgentTold, CallReturned, Compacted, Entry, GaveUp, UserSaid
from ..core.message import Message, Part, Text
from ..core.people import OWNER
from ..core.thread import Thread
from ..ports.conversation import Conversation, Written

WAITED = "This waited for permission when the conversation was exported, and was not run. Call again to have it asked."
RAN = "This was running when the conversation was exported, and may have taken effect. Inspect before you repeat it."
UNRUN = "This had not been run when the conversation was exported."
UNANSWERED = "the conversation was exported before this was answered"

_encode = msgspec.json.Encoder().encode


class Exporting:
    """Turns entries into lines, in order. A message is written when it enters the conversation, and stays when that is
    compacted. After the last entry, `close` writes what else belongs to it."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._thread = Thread()
        self._seen = 0  # messages of the transcript that have been written
        self._count = 0
        self._consolidated = 0
        self._names: dict[str, str] = {}  # of the calls, by the provider's ids
        self._used: list[str] = []  # the tools that were called since the last answer
        self._last = Written(0, conversation.created, UserSaid((), ""))

    def metadata(self) -> str:
        about, thread = self._conversation, self._thread
        told: dict[str, Any] = {
            "_type": "metadata",
            "created_at": stamp(about.created),
            "last_consolidated": self._consolidated,
            "key": about.session,
            "title": about.title,
        }
        if self._consolidated:
            told |= {"summary": thread.summary, "facts": thread.facts}
        return _line(told)

    def lines(self, written: Written) -> Iterator[str]:
        thread, entry = self._thread, written.entry
        unheard = [message for _, each in thread.unheard for message in each.messages]
        thread.add(entry)
        self._last = written
        messages = thread.transcript.messages
        fresh = unheard if isinstance(entry, Compacted) else messages[self._seen :]  # these are among what it keeps
        self._seen = len(messages)
        for message in filter(_says_something, fresh):
            yield _line(self._object(message, written))
            self._count += 1
        if isinstance(entry, Compacted):
            self._consolidated = max(0, self._count - len(entry.kept)) if thread.condensed else 0

    def close(self) -> Iterator[str]:
        """What is open gets an end that says so, and nothing is run for it."""
        thread, at = self._thread, self._last.at
        for place in tuple(thread.open_calls):
            text = WAITED if place in thread.pending else RAN if place in thread.started else UNRUN
            yield from self._closed(CallReturned(thread.answer, place, text, "cancelled"), at)
        while thread.owes_reply and not thread.undoing:  # of which each may let the next begin
            cut = thread.turn.cut.cut if thread.turn.cut else ""
            yield from self._closed(GaveUp("exported", UNANSWERED, cut=cut), at)

    def _closed(self, entry: Entry, at: float) -> Iterator[str]:
        return self.lines(Written(self._thread.seq + 1, at, entry))

    def _object(self, message: Message, written: Written) -> dict[str, Any]:
        told: dict[str, Any] = {"role": message.role, "content": _content(message)}
        if message.calls:
            told["tool_calls"] = [
                {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.args}}
                for call in message.calls
            ]
            self._names |= {call.id: call.name for call in message.calls}
            self._used += [call.name for call in message.calls]
        if message.role == "tool":
            told |= {"tool_call_id": message.answers, "name": self._names.get(message.answers, ""), **_result(message)}
            if isinstance(written.entry, CallReturned) and written.entry.outcome != "done":
                told["outcome"] = written.entry.outcome
        if message.role == "user":
            told["author"] = self._author(written.entry)
        if message.role == "assistant" and not message.calls:
            told |= {"tools_used": self._used} if self._used else {}
            self._used = []
        if message.reasoning:
            told["reasoning_content"] = message.reasoning
        if message.opaque:
            told["opaque"] = message.opaque
        return {**told, "timestamp": stamp(written.at)}

    def _author(self, entry: Entry) -> str:
        """What was said while a model was asked is taken in by a later entry, and only who began a turn steers it."""
        if isinstance(entry, UserSaid):
            return entry.author or OWNER
        if isinstance(entry, AgentTold):
            return entry.by or OWNER
        return self._thread.turn.requester or OWNER


def _says_something(message: Message) -> bool:
    """A client may have kept empty answers, of which nothing can be made again."""
    return message.role != "assistant" or bool(message.calls or message.text.strip())


def _content(message: Message) -> Any:
    """The plain text, unless it has to be said whose it is; of a result that stands beside it, and what comes from a
    file is marked by whoever brings it in."""
    if message.role == "assistant":
        return message.text
    parts = [_as_before(part) for part in message.parts]
    text = parts[0] if len(parts) == 1 else None
    plain = isinstance(text, Text) and (message.role == "tool" or not (text.origin or text.public))
    return text.text if isinstance(text, Text) and plain else parts


def _as_before(part: Part) -> Part:
    return structs.replace(part, origin="") if isinstance(part, Text) and part.origin == IMPORTED else part


def _result(message: Message) -> dict[str, Any]:
    text = message.parts[0]
    if not isinstance(text, Text) or not text.origin:
        return {}
    return {"origin": text.origin, **({"public": True} if text.public else {})}


def _line(value: dict[str, Any]) -> str:
    return _encode(value).decode()


def stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat()
