"""The frames of the WebSocket: what clients send, as shapes, and what they are sent, as plain values.

docs/websocket.md has every field. This file only translates; who may say what, and when, is in connection.py.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from ...core.log import ModelSaid
from ...ports.conversation import Written
from ...ports.events import (
    AnswerPiece,
    CallMeasured,
    CommandDone,
    Draft,
    Event,
    HeartbeatTicked,
    ScheduleFired,
    SubagentCompleted,
    SubagentProgress,
    SubagentSpawned,
    SummaryBegan,
    SummaryWritten,
    Warned,
)
from ...ports.permission import Allowance, Approval
from ...readings.visible import UNSEEN
from ..file_links import told_with_links

# A $ alone would let a line break stand at the end, and a key that ends with a : is not written as it is kept.
Name = Annotated[str, Meta(min_length=1, max_length=200, pattern=rf"^[^\x00-\x1f{UNSEEN}]+$(?!\n)")]
_KEY = rf"^[^:\s\x00-\x1f{UNSEEN}]+:[^\x00-\x1f{UNSEEN}]*[^:\x00-\x1f{UNSEEN}]$(?!\n)"
Key = Annotated[str, Meta(min_length=3, max_length=200, pattern=_KEY)]
Seq = Annotated[int, Meta(ge=0, le=2**62)]

FILES = 20  # of one message


class File(Struct):
    """A file that comes with a message: one that is kept here already (`file`), or its bytes in base64 (`data`)."""

    name: Annotated[str, Meta(max_length=200)] = ""
    file: Annotated[str, Meta(max_length=200)] = ""
    mime: Annotated[str, Meta(max_length=100)] = ""
    data: bytes = b""


class Ahead(Struct, forbid_unknown_fields=True):
    """What is allowed beyond the call that was asked about: docs/approvals.md. All that is said must hold."""

    seconds: Annotated[int, Meta(ge=1, le=864_000_000)] = 3600
    runs: Annotated[int, Meta(ge=1, le=10_000)] | None = None
    here: bool = False
    host: Annotated[str, Meta(max_length=300)] = ""
    argv: Annotated[str, Meta(max_length=10_000)] = ""
    folder: Annotated[str, Meta(max_length=4_000)] = ""
    any: bool = False

    @property
    def allowance(self) -> Allowance:
        return Allowance(
            seconds=self.seconds,
            runs=self.runs or 0,
            here=self.here,
            host=self.host.strip(),
            argv=self.argv.strip(),
            folder=self.folder.strip(),
            any=self.any,
        )


class MessageFrame(Struct, tag="message"):
    id: Name
    session: Key = "api:default"
    content: str = ""
    files: Annotated[tuple[File, ...], Meta(max_length=FILES)] = ()
    model: Annotated[str, Meta(max_length=200)] = ""


class ResumeFrame(Struct, tag="resume"):
    session: Key
    thread: Name | None = None
    after: Seq = 0


class StopFrame(Struct, tag="stop"):
    session: Key
    id: Name | None = None


class ApproveFrame(Struct, tag="approve"):
    approval: Name
    allow: bool
    id: Name | None = None
    ahead: Ahead | None = None


class StatusFrame(Struct, tag="status"):
    session: Key | None = None


class WatchFrame(Struct, tag="watch"):
    """From now on, `news` of all sessions of this person: a turn has begun or ended, a question waits."""


class HistoryFrame(Struct, tag="history"):
    session: Key
    thread: Name | None = None
    before: Seq | None = None
    limit: Annotated[int, Meta(ge=1, le=500)] = 100


Frame = MessageFrame | ResumeFrame | StopFrame | ApproveFrame | StatusFrame | HistoryFrame | WatchFrame
read: Any = msgspec.json.Decoder(Frame).decode

NEEDS: dict[Any, str] = {
    MessageFrame: "chat",
    ResumeFrame: "read",
    StopFrame: "chat",
    ApproveFrame: "approve",
    StatusFrame: "read",
    HistoryFrame: "read",
    WatchFrame: "read",
}

# What is not named here is of the agent.
CATEGORIES: Mapping[type[Event], str] = {
    ScheduleFired: "cron",
    HeartbeatTicked: "heartbeat",
    SubagentSpawned: "subagent",
    SubagentProgress: "subagent",
    SubagentCompleted: "subagent",
    SummaryBegan: "context",
    SummaryWritten: "context",
    Warned: "warning",
    CallMeasured: "metrics",
    CommandDone: "command",
}


class Where(Struct, frozen=True):
    """What every frame tells: the session, its thread, and the thread's last durable position."""

    session: str | None = None
    thread: str | None = None
    seq: int | None = None


NOWHERE = Where()


def frame(type: str, where: Where, **fields: object) -> dict[str, Any]:
    return {"type": type, "session": where.session, "thread": where.thread, "seq": where.seq, **fields}


def msg_of(thread: str, called: int) -> str:
    """The name of a model call."""
    return f"{thread}:{called}"


def chunk(where: Where, id: str | None, piece: AnswerPiece) -> dict[str, Any]:
    msg = msg_of(piece.thread, piece.seq)
    told = frame("stream_chunk", where, id=id, msg=msg, n=piece.n, delta=piece.text, reasoning=piece.reasoning)
    return {**told, "progress": piece.progress} if piece.progress else told


def draft_frames(where: Where, id: str | None, draft: Draft) -> list[dict[str, Any]]:
    """The running answer so far, as whoever comes in the middle is told it."""
    assert where.thread is not None
    msg = msg_of(where.thread, draft.called)
    told = [frame("stream_start", where, id=id, msg=msg)]
    if said := draft.whole:
        told.append(chunk(where, id, said))
    if draft.kept is not None:
        told.append(frame("stream_end", where, id=id, msg=msg, kept=draft.kept))
    return told


def approval_frame(where: Where, asked: Approval) -> dict[str, Any]:
    told = {"kind": asked.kind, "tool": asked.tool, "text": asked.text, "risk": asked.risk, "until": asked.until}
    told["choices"] = asked.choices
    return frame("approval", where, approval=asked.id, requester=asked.requester, **told)


def event_frame(where: Where, event: Event) -> dict[str, Any]:
    data = event.data
    for key in ("mails", "files"):
        data.pop(key, None)
    return frame("event", where, category=CATEGORIES.get(type(event), "agent"), event=event.name, data=data)


def entry_of(thread: str, written: Written, ids: Mapping[int, str]) -> dict[str, Any]:
    """An entry of the log as docs/log.md has it, with its place and time; without what only a provider can read.

    What someone said through a WebSocket has the `id` that their client gave it, and files have their links.
    """
    entry = written.entry
    if isinstance(entry, ModelSaid):
        entry = msgspec.structs.replace(entry, opaque=())
    told: dict[str, Any] = {"seq": written.seq, "at": written.at, **msgspec.to_builtins(entry)}
    if id := ids.get(told.get("mail", 0)):
        told["id"] = id
    return {**told, **told_with_links(thread, written.seq, entry)}
