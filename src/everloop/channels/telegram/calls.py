"""How an answer is said to Telegram: the parameters of calls, and files in a form (multipart). No clock, no network."""

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from ...core.mail import Address, ReplyTo
from ...core.people import Role
from ...errors import Undeliverable
from ...ports.channel import OutgoingFile, OutgoingPart, Rendered
from ...readings.commands import SlashCommand
from ..text.telegram import escape
from .codec import TelegramReply
from .manifest import LARGEST_PHOTO

DATA = 64  # bytes that stand behind a button
CAPTION = 1_024
NOTE = 400  # units that are left free for each file that may have to be named in the text
_NUMBER = re.compile(r"-?[0-9]{1,20}", re.ASCII)
_COMMAND = re.compile(r"/[a-z0-9_]{1,32}", re.ASCII)
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f\x7f"\\/]')

Params = Mapping[str, Any]


class Upload(Struct, frozen=True):
    """A file, the method that sends it, and the field in which it goes."""

    method: str
    field: str
    file: OutgoingFile


def chat_in(address: Address) -> int:
    """Raises Undeliverable."""
    if not _NUMBER.fullmatch(address.chat):
        raise Undeliverable(f"a chat of Telegram has a number, and {address.chat[:50]!r} is none")
    return int(address.chat)


def is_group(chat: int) -> bool:
    """Groups and channels have negative numbers; that of a chat of two is the other's own."""
    return chat < 0


def place(address: Address) -> dict[str, Any]:
    """Where something is sent."""
    chat = chat_in(address)
    if not address.thread:
        return {"chat_id": chat}
    if not _NUMBER.fullmatch(address.thread):
        raise Undeliverable(f"a topic of Telegram has a number, and {address.thread[:50]!r} is none")
    return {"chat_id": chat, "message_thread_id": int(address.thread)}


def letter_of(reply_to: ReplyTo) -> TelegramReply | None:
    """Which message an answer is about, if we have written this ReplyTo."""
    try:
        return msgspec.json.decode(reply_to, type=TelegramReply) if reply_to else None
    except msgspec.DecodeError:
        return None


def in_reply(address: Address, reply_to: ReplyTo) -> dict[str, Any]:
    """In a group the message that is answered is shown with the answer; in a chat of two everybody knows."""
    letter = letter_of(reply_to)
    if not letter or letter.chat != address.chat or not is_group(chat_in(address)):
        return {}
    return {"reply_parameters": {"message_id": letter.message, "allow_sending_without_reply": True}}


def marked_up(text: Rendered) -> dict[str, Any]:
    return {"text": text.text, "parse_mode": "HTML", "link_preview_options": {"is_disabled": True}}


def plain(text: Rendered) -> dict[str, Any]:
    return {"text": text.plain or text.text, "link_preview_options": {"is_disabled": True}}


def buttons(part: OutgoingPart) -> dict[str, Any]:
    """Under the last text of a question. A name that does not fit behind a button is typed, as the text says."""
    answers = [("Approve", f"approve {part.approval}"), ("Deny", f"deny {part.approval}")]
    if not part.approval or part.number + 1 != part.of or any(len(data.encode()) > DATA for _, data in answers):
        return {}
    return {"reply_markup": {"inline_keyboard": [[{"text": word, "callback_data": data} for word, data in answers]]}}


def words(part: OutgoingPart) -> Rendered:
    """The text of a part, with the files that cannot be sent and where they are."""
    absent = [file.mention for file in part.files if not file.data]
    if not absent:
        return Rendered(part.text, part.plain)
    notes = "\n".join(absent).encode("utf-8", "replace").decode()  # a name of a file may be no text
    return Rendered(f"{part.text}\n\n{escape(notes)}".strip(), f"{part.plain or part.text}\n\n{notes}".strip())


def draft_id(address: Address, reply_to: ReplyTo) -> int:
    """The same for all that is shown of one answer; never 0."""
    named = f"{address}\n{reply_to}".encode()
    return int.from_bytes(sha256(named).digest()[:4], "big") % 2_000_000_000 + 1


def menu(commands: Iterable[SlashCommand]) -> list[dict[str, str]]:
    """What people are offered when they type a slash: what a user may, as Telegram writes it."""
    offered = [each for each in commands if each.right.least <= Role.USER and _COMMAND.fullmatch(each.name)]
    return [{"command": each.name[1:], "description": each.help[:256]} for each in offered[:100]]


def uploads(file: OutgoingFile) -> Sequence[Upload]:
    """How a file is sent, best first: what is to be shown, and not as a document, may not be to Telegram's liking."""
    shown = {
        "image/jpeg": ("sendPhoto", "photo"),
        "image/png": ("sendPhoto", "photo"),
        "image/gif": ("sendAnimation", "animation"),
        "audio/ogg": ("sendVoice", "voice"),
        "audio/mpeg": ("sendAudio", "audio"),
        "audio/mp4": ("sendAudio", "audio"),
        "video/mp4": ("sendVideo", "video"),
    }.get(file.mime.partition(";")[0].strip().lower())
    document = Upload("sendDocument", "document", file)
    if not shown or (shown[0] == "sendPhoto" and len(file.data) > LARGEST_PHOTO):
        return [document]
    return [Upload(*shown, file), document]


def form(params: Params, upload: Upload) -> tuple[str, bytes]:
    """The content type and the body of a call with a file. The boundary is made of what it parts, so that it is not in
    it."""
    boundary = sha256(upload.file.data).hexdigest()
    fields = [
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{_written(value)}\r\n'
        for name, value in params.items()
    ]
    name = _NOT_IN_NAMES.sub("_", upload.file.name) or "file"
    mime = upload.file.mime if re.fullmatch(r"[\w.+-]+/[\w.+-]+", upload.file.mime) else "application/octet-stream"
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="{upload.field}"; filename="{name}"\r\n'
        f"Content-Type: {mime}\r\n\r\n"
    )
    ended = f"\r\n--{boundary}--\r\n"
    body = b"".join(("".join(fields).encode(), head.encode("utf-8", "replace"), upload.file.data, ended.encode()))
    return f"multipart/form-data; boundary={boundary}", body


def _written(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
