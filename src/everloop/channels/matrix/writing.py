"""How our own events are written, and where they go. No clock, no network."""

from hashlib import sha256
from typing import Any

import msgspec

from ...core.mail import Address, ReplyTo
from ...readings.keys import escaped, name_of
from .codec import PRIVATE, MatrixReply


def room_of(address: Address, reply_to: ReplyTo) -> str:
    """The room of an address. Raises ValueError for one that is too long to be read from it."""
    there = reply_of(reply_to)
    chat = there.chat if there and escaped(there.chat) == address.chat else name_of(address.chat)
    room = chat.removeprefix(PRIVATE)
    if not room.startswith("!") or ("!" in address.chat and chat == address.chat):
        raise ValueError(f"{address.chat} is no room")
    return room


def thread_of(address: Address, reply_to: ReplyTo) -> str:
    there = reply_of(reply_to)
    return there.thread if there and escaped(there.thread) == address.thread else name_of(address.thread)


def reply_of(reply_to: ReplyTo) -> MatrixReply | None:
    try:
        return msgspec.json.decode(reply_to, type=MatrixReply) if reply_to else None
    except msgspec.DecodeError:
        return None


def transaction_of(*names: str) -> str:
    """The same of the same names: a homeserver drops what comes a second time."""
    return "everloop" + sha256("\n".join(names).encode()).hexdigest()[:40]


def message_of(text: str, plain: str, *, notice: bool, mention: str = "") -> dict[str, Any]:
    """Nobody is called by what a model has written, but who is answered may be."""
    return {
        "msgtype": "m.notice" if notice else "m.text",
        "body": plain or text,
        **({"format": "org.matrix.custom.html", "formatted_body": text} if plain and plain != text else {}),
        "m.mentions": {"user_ids": [mention]} if mention else {},
        "com.beeper.linkpreviews": [],
    }


def related(content: dict[str, Any], reply_to: ReplyTo, thread: str) -> dict[str, Any]:
    """In its thread, or in a room of several as a reply."""
    there = reply_of(reply_to)
    if thread:
        last = there.event if there and there.thread == thread else thread
        relation = {"rel_type": "m.thread", "event_id": thread, "is_falling_back": True}
        return {**content, "m.relates_to": {**relation, "m.in_reply_to": {"event_id": last}}}
    if there and there.account:
        return {**content, "m.relates_to": {"m.in_reply_to": {"event_id": there.event}}}
    return content


def replacing(content: dict[str, Any], replaced: str) -> dict[str, Any]:
    """The new text of a message. Clients that know no edits see its beginning: both texts do not fit into an event."""
    return {
        "msgtype": content["msgtype"],
        "body": f"* {content['body'][:200]}",
        "m.mentions": content["m.mentions"],  # a draft has called nobody
        "m.new_content": {name: value for name, value in content.items() if name != "m.relates_to"},
        "m.relates_to": {"rel_type": "m.replace", "event_id": replaced},
    }


def file_message(name: str, mime: str, size: int, url: str, sealed: dict[str, Any] | None = None) -> dict[str, Any]:
    """`sealed` is what reads it, in an encrypted room."""
    kind = mime.partition("/")[0]
    return {
        "msgtype": f"m.{kind}" if kind in ("image", "audio", "video") else "m.file",
        "body": name,
        "filename": name,
        **({"file": {**sealed, "url": url}} if sealed else {"url": url}),
        "info": {"mimetype": mime, "size": size},
        "m.mentions": {},
    }
