"""What a mail says, and who says so: from its bytes to an Incoming. No clock, no network."""

import re
from email.errors import MessageError, MissingHeaderBodySeparatorDefect
from email.message import Message
from email.parser import BytesParser
from email.policy import compat32
from email.utils import parsedate_to_datetime
from hashlib import sha256

import msgspec
from msgspec import Struct

from ...core.mail import ReplyTo
from ...ports.channel import FileRef, Incoming
from .addresses import UNVERIFIED, BadAddress, Mailbox, decoded, read_mailbox
from .authentication import judge, read_results
from .automatic import why_not_a_person
from .bodies import EnclosedFile, body_of
from .ids import conversation, ids_in, shortened, thread_in
from .quotes import is_forward, parted

# what the parser of mails, which is an old one, may raise on what is none
MALFORMED = (AttributeError, IndexError, KeyError, LookupError, MessageError, RecursionError, TypeError, ValueError)
_REPLY = ("re:", "aw:", "sv:", "antw:", "fwd:", "fw:", "wg:")
_LONGEST_SUBJECT = 200
MOST_CONTENT_HEADERS = 1000
LONGEST_CONTENT_HEADER = 2000  # bytes
_CONTENT_HEADER = re.compile(rb"(?im)^content-(?:type|disposition)[ \t]*:[^\n]*(?:\n[ \t][^\n]*)*")


class UnreadableMail(Exception):
    """It is no mail that somebody could be answered to; says why."""


class Ours(Struct, frozen=True):
    """Who we are, and whom we believe: the names of the server that says who wrote a mail, or with `trusts_anyone` the
    mail itself."""

    account: str
    servers: tuple[str, ...] = ()
    trusts_anyone: bool = False

    @property
    def domain(self) -> str:
        return self.account.rpartition("@")[2]


class MailThread(Struct, frozen=True, omit_defaults=True):
    """What an answer needs to know of the mail that it answers: the channel's ReplyTo."""

    to: str
    subject: str = ""
    id: str = ""
    references: list[str] = []


class ParsedMail(Struct, frozen=True):
    """`ignored` says why nobody is to be told of it; `date` is what it says itself, in seconds."""

    incoming: Incoming
    files: dict[FileRef, EnclosedFile]
    ignored: str = ""
    verified: bool = True
    date: float | None = None
    servers: tuple[str, ...] = ()


def read_mail(raw: bytes, place: str, ours: Ours, oversized: int = 0) -> ParsedMail:
    """`place` is the mail's own, by which its files are called. With `oversized`, the bytes that it has, only its
    headers are here. Raises UnreadableMail."""
    _check_size(raw)
    try:
        return _read(raw, place, ours, oversized)
    except BadAddress as error:
        raise UnreadableMail(str(error)) from error
    except MALFORMED as error:
        raise UnreadableMail(f"it cannot be understood ({type(error).__name__})") from error


def _check_size(raw: bytes) -> None:
    """The library takes the square of a header's length to read it, and of such headers a mail may have many."""
    found = [match.end() - match.start() for match in _CONTENT_HEADER.finditer(raw)]
    if len(found) > MOST_CONTENT_HEADERS or max(found, default=0) > LONGEST_CONTENT_HEADER:
        raise UnreadableMail("it has more parts, or longer descriptions of them, than any mail needs")


def _read(raw: bytes, place: str, ours: Ours, oversized: int) -> ParsedMail:
    message = BytesParser(policy=compat32).parsebytes(raw, headersonly=bool(oversized))
    if any(isinstance(defect, MissingHeaderBodySeparatorDefect) for defect in message.defects):
        raise UnreadableMail("its headers end in the middle, where others may read on")
    headers = _headers(message)
    author = _author(headers)
    results = headers.get("authentication-results", [])
    verdict = judge(results, ours.servers, author.account.rpartition("@")[2])
    known = verdict == "pass" or ours.trusts_anyone
    account = author.account if known else f"{UNVERIFIED}{author.account}"
    own = (ids_in(" ".join(headers.get("message-id", [])[:1])) or [f"{sha256(raw).hexdigest()}@none.invalid"])[0]
    named = [id for name in ("references", "in-reply-to") for id in ids_in(" ".join(headers.get(name, [])[:1]))]
    ignored = why_not_a_person(headers, author.account, ours.account)
    if thread_in(own, ours.domain) is not None:
        ignored = "we wrote it"
    elif verdict == "fail" and not ours.trusts_anyone:
        ignored = ignored or "its sender is forged, says our mail server (DMARC)"
    text, quoted, files = _said(message, headers, place, oversized)
    subject = _subject(headers)
    incoming = Incoming(
        event=sha256(f"{account}\n{own}".encode()).hexdigest(),
        chat=account,
        thread=conversation(named, own, ours.domain),
        account=account,
        text=text,
        reply_to=_reply_to(author, subject, own, named),
        files=tuple(files),
        name=author.name if known else f"{author.name or author.address} (not verified)",
        replies=any(thread_in(id, ours.domain) is not None for id in named),
        quoted=quoted,
        unproven=not known,
    )
    servers = tuple(read_results(each).server for each in results[:1])
    return ParsedMail(incoming, files, ignored, known, _date(headers), servers)


def _headers(message: Message) -> dict[str, list[str]]:
    """As they stand there, topmost first, on one line each. What is not ASCII is UTF-8, or cannot be read."""
    headers: dict[str, list[str]] = {}
    for name, value in message.raw_items():
        text = str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        headers.setdefault(name.strip().lower(), []).append(" ".join(text.split()))
    return headers


def _author(headers: dict[str, list[str]]) -> Mailbox:
    found = headers.get("from", [])
    if len(found) != 1:
        raise BadAddress("it has no From header" if not found else "it has several From headers")
    author = read_mailbox(found[0])
    if "\ufffd" in author.account:
        raise BadAddress("its address cannot be read")
    return author


def _said(
    message: Message, headers: dict[str, list[str]], place: str, oversized: int
) -> tuple[str, str, dict[FileRef, EnclosedFile]]:
    subject = decoded(" ".join(headers.get("subject", [])[:1]), _LONGEST_SUBJECT)
    if oversized:
        return f"[a mail of {oversized / 1e6:.0f} MB came, which is too large to be read. Subject: {subject}]", "", {}
    body = body_of(message)
    text, quoted = parted(_plain(body.text), forward=is_forward(subject))
    is_first = not any(name in headers for name in ("references", "in-reply-to"))
    if subject and (not text or (is_first and not text.startswith("/"))):
        text = f"Subject: {subject}\n\n{text}".strip()
    return text, quoted, {FileRef(f"{place}/{number}"): file for number, file in enumerate(body.files)}


def _plain(text: str) -> str:
    """Without what no text has: NUL, and halves of characters."""
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def _subject(headers: dict[str, list[str]]) -> str:
    """Without the words that say that it is an answer."""
    subject = decoded(" ".join(headers.get("subject", [])[:1]), _LONGEST_SUBJECT)
    while (lower := subject.lower()).startswith(_REPLY):
        subject = subject[lower.index(":") + 1 :].strip()
    return subject


def _reply_to(author: Mailbox, subject: str, own: str, named: list[str]) -> ReplyTo:
    references = shortened([*dict.fromkeys(id for id in named if id != own), own])
    told = MailThread(author.address, subject, own, references[:-1])
    return ReplyTo(msgspec.json.encode(told).decode())


def _date(headers: dict[str, list[str]]) -> float | None:
    try:
        return parsedate_to_datetime(headers.get("date", [""])[0]).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
