"""An answer as a mail: text and HTML, files, and the headers that put it into its thread. No clock, no network.

The headers are written here and not by the library: it would encode a Message-ID that is longer than a line, which no
mail program finds again. None of them can be more than one line (header injection).
"""

import re
from datetime import UTC, datetime
from email.header import Header
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, formataddr

import msgspec
from msgspec import Struct, structs

from ...errors import Undeliverable
from ...ports.channel import OutgoingFile, OutgoingPart
from ...readings.keys import escaped, name_of
from ..text import EMAIL, render
from .addresses import UNVERIFIED, BadAddress, account_of
from .codec import MailThread
from .ids import our_id

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_NOTHING = MailThread("")


class Envelope(Struct, frozen=True):
    """`sender` and `recipient` are what the server is told; `id` is the mail's Message-ID."""

    sender: str
    recipient: str
    id: str
    data: bytes


def write_mail(part: OutgoingPart, address: str, name: str, now: float, limit: int) -> Envelope:
    """A mail from our `address`, of at most `limit` bytes: files that do not fit are named in the text. Raises
    Undeliverable for an address that is none."""
    thread = msgspec.json.decode(part.reply_to, type=MailThread) if part.reply_to else _NOTHING
    recipient = _recipient(part, thread)
    thread = thread if thread.to and account_of(thread.to) == account_of(recipient) else _NOTHING
    id = our_id(part.key, part.address.thread, account_of(address).rpartition("@")[2])
    head = {
        "From": formataddr((one_line(name), address)),
        "To": f"<{recipient}>",
        "Subject": _subject(part, thread),
        "Date": format_datetime(datetime.fromtimestamp(now, UTC)),
        "Message-ID": f"<{id}>",
        "Auto-Submitted": "auto-replied" if thread.id else "auto-generated",
        "X-Auto-Response-Suppress": "All",
    }
    if thread.id:
        head["In-Reply-To"] = f"<{thread.id}>"
        head["References"] = "\r\n ".join(f"<{each}>" for each in (*thread.references, thread.id))
    lines = "".join(f"{title}: {value}\r\n" for title, value in head.items())
    return Envelope(address, recipient, id, lines.encode() + _body(part, limit))


def one_line(text: str) -> str:
    return _CONTROL.sub(" ", text.encode("utf-8", "replace").decode()).strip()


def _recipient(part: OutgoingPart, thread: MailThread) -> str:
    """Whoever the chat is with, as they spell it themselves: nobody else is ever written to."""
    try:
        for unverified in ("", UNVERIFIED):
            if thread.to and escaped(unverified + account_of(thread.to)) == part.address.chat:
                local, _, _ = thread.to.rpartition("@")
                return f"{local}@{account_of(thread.to).rpartition('@')[2]}"
        return account_of(name_of(part.address.chat).removeprefix(UNVERIFIED))
    except BadAddress as error:
        raise Undeliverable(f"{part.address.chat[:100]} is no e-mail address: {error}") from error


def _subject(part: OutgoingPart, thread: MailThread) -> str:
    if thread.id:
        subject = f"Re: {one_line(thread.subject)}".strip()
    else:
        first = next(iter(part.text.strip().splitlines()), "")
        subject = one_line(first).strip("#*_`> ")[:70] or "A message"
    if subject.isascii() and "=?" not in subject:
        return subject
    return Header(subject, "utf-8", header_name="Subject", maxlinelen=75).encode(linesep="\r\n")


def _body(part: OutgoingPart, limit: int) -> bytes:
    enclosed, named, room = [], [], limit * 3 // 4 - 4 * len(part.text.encode("utf-8", "replace")) - 20_000
    for file in part.files:
        if file.data and len(file.data) <= room:
            room -= len(file.data)
            enclosed.append(file)
        else:
            why = file.why or ("it is too large" if file.data else "")
            named.append(one_line(structs.replace(file, data=b"", why=why).mention))
    text = "\n\n".join([part.text.encode("utf-8", "replace").decode(), *named]).strip()
    shown = render(text, EMAIL, 0)[0]
    message = EmailMessage(policy=SMTP)
    message.set_content(shown.plain, cte="quoted-printable")
    html = f"<!DOCTYPE html><html><body>{shown.text}</body></html>"
    message.add_alternative(html, subtype="html", cte="quoted-printable")
    for file in enclosed:
        _attach(message, file)
    return message.as_bytes()


def _attach(message: EmailMessage, file: OutgoingFile) -> None:
    name = one_line(file.name).replace("=?", "_?")  # the library would decode an encoded word, line breaks and all
    found = re.fullmatch(r"([a-z0-9!#$&^_.+-]+)/([a-z0-9!#$&^_.+-]+)", file.mime.lower())
    main, sub = (
        found.groups() if found and found[1] not in ("multipart", "message") else ("application", "octet-stream")
    )
    message.add_attachment(file.data, maintype=main, subtype=sub, filename=name or "file")
