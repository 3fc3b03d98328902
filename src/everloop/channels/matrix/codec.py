"""What Matrix events mean, and how ours are written. No clock, no network.

Anybody may send any JSON as an event: what is not of the form that the specification gives it is taken as absent.
"""

import json
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from ...core.mail import ReplyTo
from ...ports.channel import FileRef, Incoming
from ...readings.commands import COMMANDS
from .e2ee.attachments import secret_of

APPROVAL = "org.everloop.approval"  # in a question of ours: the name of what it is about
YES, NO = "✅", "❌"
_ANSWERS = {YES: "approve", "👍": "approve", "✔": "approve", "☑": "approve", NO: "deny", "👎": "deny", "✖": "deny"}
_FILES = ("m.image", "m.file", "m.audio", "m.video")
_MXC = re.compile(
    r"mxc://([A-Za-z0-9][A-Za-z0-9.-]*(?::[0-9]{1,5})?|\[[0-9a-fA-F:.]+\](?::[0-9]{1,5})?)/([A-Za-z0-9_-]{1,255})"
)
_ADDRESSED = re.compile(r"[:,]\s*\S|\s+[/!]")  # what follows our name when a message is for us, or is a command
_FALLBACK = re.compile(r"(?:> ?[^\n]*\n)+\n?")
_QUOTED = 2000  # characters of what is replied to
PRIVATE = "@"  # before the id of a room of two, which begins with !


class RoomEvent(Struct, frozen=True):
    """An event of a room, as far as it concerns us."""

    type: str
    sender: str
    event_id: str = ""
    content: dict[str, Any] = {}
    state_key: str | None = None
    redacts: str = ""
    unsigned: dict[str, Any] = {}


class OurAccount(Struct, frozen=True):
    user: str
    name: str = ""  # as people see it


class Relation(Struct, frozen=True):
    """What an event refers to: `thread` is the root of its thread, `reply` what somebody has answered on purpose."""

    thread: str = ""
    reply: str = ""
    replaced: str = ""
    reacted: str = ""


class MatrixReply(Struct, frozen=True, omit_defaults=True):
    """The ReplyTo of this channel."""

    event: str
    chat: str
    thread: str = ""
    account: str = ""


def read_event(value: Any) -> RoomEvent | None:
    """None for what is no event."""
    try:
        event = msgspec.convert(value, RoomEvent)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError):  # a name may be half of a surrogate pair
        return None
    return event if event.sender.startswith("@") else None


def relation_of(content: Mapping[str, Any]) -> Relation:
    related = _table(content, "m.relates_to")
    kind, event = text_at(related, "rel_type"), _event_at(related, "event_id")
    reply = _event_at(_table(related, "m.in_reply_to"), "event_id")
    match kind:
        case "m.replace":
            return Relation(replaced=event)
        case "m.annotation":
            return Relation(reacted=event)
        case "m.thread":
            return Relation(thread=event, reply="" if related.get("is_falling_back") is True else reply)
    return Relation(reply=reply)


def redacted_by(event: RoomEvent) -> str:
    """The event that is taken back: in rooms since version 11 the content names it."""
    return _event_at(event.content, "redacts") or event.redacts


def referred_to(event: RoomEvent) -> tuple[str, ...]:
    """The events that have to be known for this one to be understood."""
    if event.type == "m.room.redaction":
        return (redacted_by(event),)
    relation = relation_of(event.content)
    return tuple(filter(None, (relation.thread, relation.reply, relation.replaced, relation.reacted)))


class Reader:
    """Reads what is said in one room. `known` are the events that others refer to, as far as they could be had."""

    def __init__(self, room: str, us: OurAccount, known: Mapping[str, RoomEvent], *, direct: bool) -> None:
        self._chat = chat_of_room(room, direct=direct)
        self._us = us
        self._known = known
        self._direct = direct

    def read(self, event: RoomEvent, name: str = "") -> Incoming | None:
        """None for what is not for us, what we have said ourselves included."""
        if event.sender == self._us.user or not event.event_id or event.state_key is not None:
            return None
        match event.type:
            case "m.room.message" if relation_of(event.content).replaced:
                return self._edited(event, name)
            case "m.room.message":
                return self._said(event, event.content, relation_of(event.content), name)
            case "m.room.redaction":
                return self._withdrawn(event)
            case "m.reaction":
                return self._answered(event, name)
        return None

    def _said(self, event: RoomEvent, content: Mapping[str, Any], relation: Relation, name: str) -> Incoming | None:
        kind = text_at(content, "msgtype")
        files = (ref,) if kind in _FILES and (ref := _file_of(content)) else ()
        text = self._text_of(content, relation)
        if not kind or kind.startswith("m.key.") or not (text.strip() or files):  # m.key: clients, not people
            return None
        target, root = self._known.get(relation.reply), self._known.get(relation.thread)
        return Incoming(
            event=event.event_id,
            chat=self._chat,
            thread=relation.thread,
            account=event.sender,
            text=text,
            direct=self._direct,
            mentioned=self._is_named(content),
            reply_to=self._reply_to(event, relation.thread),
            files=files,
            voice=files if "org.matrix.msc3245.voice" in content else (),
            name=name,
            replies=any(each is not None and each.sender == self._us.user for each in (target, root)),
            quoted=without_fallback(text_at(target.content, "body"))[:_QUOTED] if target else "",
            bot=kind == "m.notice",
        )

    def _text_of(self, content: Mapping[str, Any], relation: Relation) -> str:
        kind, body = text_at(content, "msgtype"), text_at(content, "body")
        if relation.reply:
            body = without_fallback(body)
        if kind in _FILES:
            named = text_at(content, "filename")
            return body if named and named != body else ""  # what stands beside the name of a file is its caption
        if kind == "m.emote":
            return f"* {body}"
        if kind == "m.location":
            return f"{body}\n{text_at(content, 'geo_uri')}".strip()
        return as_command(self._unaddressed(body))

    def _unaddressed(self, body: str) -> str:
        """Without our name in front of it, as clients write a message that is for somebody."""
        for name in self._names():
            if body[: len(name)].lower() == name.lower() and _ADDRESSED.match(body[len(name) :]):
                return body[len(name) :].lstrip(":,").lstrip()
        return body

    def _names(self) -> list[str]:
        local = self._us.user.partition(":")[0]
        return [name for name in (self._us.user, self._us.name, local, local[1:]) if name]

    def _is_named(self, content: Mapping[str, Any]) -> bool:
        """By what the client says; where it does not, by a link to us, our id or our name."""
        if "m.mentions" in content:
            named = _table(content, "m.mentions").get("user_ids")
            return isinstance(named, list) and self._us.user in named
        linked = f"matrix.to/#/{self._us.user}"
        if linked in unquote(text_at(content, "formatted_body")):
            return True
        names = "|".join(re.escape(name) for name in (self._us.user, self._us.name) if name)
        return re.search(rf"(?<!\w)(?:{names})(?!\w)", text_at(content, "body"), re.IGNORECASE) is not None

    def _edited(self, event: RoomEvent, name: str) -> Incoming | None:
        """Anybody can say that they replace something: only its author does."""
        replaced = relation_of(event.content).replaced
        before = self._known.get(replaced)
        if before is None or before.sender != event.sender or before.type != event.type:
            return None
        said = self._said(event, _table(event.content, "m.new_content"), relation_of(before.content), name)
        return msgspec.structs.replace(said, replaces=replaced) if said else None

    def _withdrawn(self, event: RoomEvent) -> Incoming | None:
        """Its author's, also when it was somebody who keeps order in the room: the homeserver knows who may."""
        redacted = redacted_by(event)
        before = self._known.get(redacted)
        if before is None or before.sender == self._us.user or before.type != "m.room.message":
            return None
        thread = relation_of(before.content).thread
        return Incoming(
            event=event.event_id,
            chat=self._chat,
            thread=thread,
            account=before.sender,
            text="",
            direct=self._direct,
            reply_to=self._reply_to(before, thread),
            replaces=redacted,
            withdrawn=True,
        )

    def _answered(self, event: RoomEvent, name: str) -> Incoming | None:
        """A reaction to a question of ours, and to nobody else's, is its answer."""
        question = self._known.get(relation_of(event.content).reacted)
        key = text_at(_table(event.content, "m.relates_to"), "key").rstrip("\ufe0f")
        if question is None or question.sender != self._us.user or key not in _ANSWERS:
            return None
        approval, thread = text_at(question.content, APPROVAL), relation_of(question.content).thread
        if not approval:
            return None
        return Incoming(
            event=event.event_id,
            chat=self._chat,
            thread=thread,
            account=event.sender,
            text=f"/{_ANSWERS[key]} {approval}",
            direct=self._direct,
            mentioned=True,
            replies=True,
            reply_to=self._reply_to(question, thread),
            name=name,
        )

    def _reply_to(self, event: RoomEvent, thread: str) -> ReplyTo:
        told = MatrixReply(event.event_id, self._chat, thread, event.sender if not self._direct else "")
        return ReplyTo(msgspec.json.encode(told).decode())


def as_command(text: str) -> str:
    """Many clients keep a line that begins with a slash to themselves: a command may begin with ! as well."""
    word = text.split(maxsplit=1)[0] if text.startswith("!") else ""
    return f"/{text[1:]}" if word and f"/{word[1:]}" in COMMANDS else text


def without_fallback(body: str) -> str:
    """Without the lines in which older clients repeat what is replied to."""
    return body[found.end() :] if (found := _FALLBACK.match(body)) else body


def chat_of_room(room: str, *, direct: bool) -> str:
    """A room of two that is joined by others goes on as another conversation: the first is a person's own."""
    return PRIVATE + room if direct else room


def media_of(ref: FileRef) -> tuple[str, str, str]:
    """Server, id and name of a file. Raises ValueError."""
    url, name, *_ = json.loads(ref)
    if not (found := _MXC.fullmatch(url)):
        raise ValueError("a file has no address on a homeserver")
    return found[1], found[2], name


def secret_in(ref: FileRef) -> dict[str, str] | None:
    """What reads a file of an encrypted room; None: anybody does."""
    _, _, *secret = json.loads(ref)
    return secret[0] if secret else None


def _file_of(content: Mapping[str, Any]) -> FileRef | None:
    sealed = _table(content, "file")
    url = text_at(content, "url") or text_at(sealed, "url")
    name = text_at(content, "filename") or text_at(content, "body")
    secret = secret_of(sealed) if not text_at(content, "url") else None
    if not _MXC.fullmatch(url) or (secret is None and not text_at(content, "url")):
        return None
    return FileRef(json.dumps([url, name.rpartition("/")[2][:200] or "file", *([secret] if secret else [])]))


def text_at(table: Mapping[str, Any], name: str) -> str:
    value = table.get(name)
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _event_at(table: Mapping[str, Any], name: str) -> str:
    """The id of an event; what cannot be one names none."""
    id = text_at(table, name)
    return id if id.startswith("$") and len(id) <= 255 else ""


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = table.get(name)
    return value if isinstance(value, dict) else {}
