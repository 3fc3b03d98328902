"""What a mail holds: its text, however it is written, and the files that came with it."""

import mimetypes
import re
from email.message import Message

from msgspec import Struct

from .addresses import decoded
from .html_text import text_of_html

LONGEST_TEXT = 200_000  # characters
MOST_PARTS = 200
DEEPEST = 30
_DECORATION = 10_000  # bytes of an image within the text that is a logo rather than a picture


class EnclosedFile(Struct, frozen=True):
    name: str
    data: bytes


class MailBody(Struct, frozen=True):
    text: str
    files: tuple[EnclosedFile, ...]


def body_of(message: Message) -> MailBody:
    files: list[EnclosedFile] = []
    text = _text(message, files, 0)
    return MailBody(text[:LONGEST_TEXT], tuple(files))


def _text(part: Message, files: list[EnclosedFile], depth: int) -> str:
    kind = part.get_content_type()
    if kind.startswith("multipart/"):
        parts = part.get_payload()
        if not isinstance(parts, list) or depth >= DEEPEST:
            return _letters(part)
        children = [each for each in parts[:MOST_PARTS] if isinstance(each, Message)]
        return _alternative(children, files, depth) if kind == "multipart/alternative" else _all(children, files, depth)
    if kind in ("text/plain", "text/html") and part.get_content_disposition() != "attachment":
        return text_of_html(_letters(part)) if kind == "text/html" else _letters(part)
    if len(files) < MOST_PARTS:
        _enclose(part, kind, files)
    return ""


def _all(parts: list[Message], files: list[EnclosedFile], depth: int) -> str:
    texts = [_text(each, files, depth + 1).strip("\r\n") for each in parts]
    return "\n\n".join(text for text in texts if text)


def _alternative(parts: list[Message], files: list[EnclosedFile], depth: int) -> str:
    """The plain one, unless it says nothing."""
    plain = [each for each in parts if each.get_content_type() == "text/plain"]
    others = [each for each in parts if each.get_content_type() != "text/plain"]
    written = "".join(_letters(each) for each in plain)
    below = _all(others, files, depth) if others else ""  # a file may be there, too
    return written if written.strip() else below


def _letters(part: Message) -> str:
    data = part.get_payload(decode=True)
    if not isinstance(data, bytes):
        return ""
    for charset in (_charset(part), "utf-8"):
        try:
            return data.decode(charset)
        except (LookupError, UnicodeError):
            continue
    return data.decode("cp1252", "replace")


def _charset(part: Message) -> str:
    named = (part.get_content_charset() or "utf-8").lower()
    return {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "utf-8", "gb2312": "gb18030"}.get(named, named)


def _enclose(part: Message, kind: str, files: list[EnclosedFile]) -> None:
    if kind == "message/rfc822":
        inner = part.get_payload()
        data = inner[0].as_bytes() if isinstance(inner, list) and inner and isinstance(inner[0], Message) else b""
    else:
        payload = part.get_payload(decode=True)
        data = payload if isinstance(payload, bytes) else b""
    is_inline = part.get("Content-ID") is not None and part.get_content_disposition() != "attachment"
    if data and not (is_inline and kind.startswith("image/") and len(data) < _DECORATION):
        files.append(EnclosedFile(_name(part, kind, len(files) + 1), data))


def _name(part: Message, kind: str, number: int) -> str:
    """Without a folder: whoever sends a file does not say where it is kept."""
    given = re.split(r"[/\\]", decoded(part.get_filename() or "", 1000))[-1].strip(" .")
    stem, dot, ending = given.rpartition(".")
    short = f"{stem[:150]}.{ending[:20]}" if dot else given[:150]
    return short or f"attachment-{number}{mimetypes.guess_extension(kind) or ''}"
