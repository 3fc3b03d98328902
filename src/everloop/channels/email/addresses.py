"""Who wrote a mail, read from its From header as strictly as it is worth: one header, one mailbox, nothing to guess.

Mail programs read odd headers in different ways, and whoever forges one counts on it. So there are two forms alone,
`anna@example.org` and `Anna <anna@example.org>`, with comments beside them; a group, a route, two mailboxes, a quoted
local part or an address that only appears when an encoded word is decoded is nobody's.
"""

import re
from email.errors import HeaderParseError
from email.header import decode_header

import idna
from msgspec import Struct

from .comments import uncommented

UNVERIFIED = "unverified:"  # before the account of someone who may be anyone; no address has a colon in it
LONGEST_HEADER = 2000  # characters that are read of one; the library takes longer and longer for more
LONGEST = 254  # characters of an address (RFC 5321)
_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~\u00a1-\U0010ffff-]+"
_LOCAL = re.compile(rf"{_ATOM}(?:\.{_ATOM})*")
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|<[^<>"]*>|[^"<>,;:()\\]+', re.DOTALL)


class BadAddress(ValueError):
    """It is nobody's address, or could be two people's; says why."""


class Mailbox(Struct, frozen=True):
    """`address` is as it was written, `account` the one spelling of it; `name` is for people alone."""

    address: str
    account: str
    name: str = ""


def account_of(address: str) -> str:
    """The one spelling of an address: ASCII letters in lower case, the domain as name servers know it. Other letters
    stay as they are: to fold them would make two people one. Raises BadAddress."""
    local, at, domain = address.rpartition("@")
    if not at or len(address) > LONGEST or not _LOCAL.fullmatch(local):
        raise BadAddress("it is no address that can be answered")
    if not local.isprintable():
        raise BadAddress("its address has characters that nobody can see")
    return f"{_lower(local)}@{domain_of(domain)}"


def domain_of(domain: str) -> str:
    """As name servers know it. Raises BadAddress."""
    try:
        plain = _lower(domain) if domain.isascii() else idna.encode(_lower(domain), strict=True).decode()
    except (idna.IDNAError, UnicodeError) as error:
        raise BadAddress("its domain is none") from error
    if len(plain) > 253 or not all(map(_LABEL.fullmatch, plain.split("."))):
        raise BadAddress("its domain is none")
    return plain


def read_mailbox(header: str) -> Mailbox:
    """The one mailbox of a From header, as it stands in the mail. Raises BadAddress."""
    if len(header) > LONGEST_HEADER:
        raise BadAddress("its From header is too long")
    try:
        text = uncommented(" ".join(header.split()))
    except ValueError as error:
        raise BadAddress("its From header does not end") from error
    pieces = _PIECE.findall(text)
    if "".join(pieces) != text:
        raise BadAddress("its From header names a group, several people or nobody")
    *before, last = [piece for piece in pieces if piece.strip()] or [""]
    if not last.startswith("<"):
        return _mailbox(text.strip(), "")
    if any(piece.startswith("<") for piece in before):
        raise BadAddress("its From header names several addresses")
    return _mailbox(last[1:-1].strip(), "".join(before))


def _mailbox(address: str, name: str) -> Mailbox:
    return Mailbox(address, account_of(address), decoded(_unquoted(name)))


def decoded(text: str, longest: int = 200) -> str:
    """A header's text for people: encoded words decoded, on one line, without what cannot be seen."""
    try:
        pieces = [_letters(piece, charset) for piece, charset in decode_header(text[:LONGEST_HEADER])]
    except (HeaderParseError, ValueError):  # base64 that is none
        pieces = [text[:LONGEST_HEADER]]
    seen = "".join(each if each.isprintable() else " " for each in "".join(pieces))
    return " ".join(seen.split())[:longest]


def _letters(piece: bytes | str, charset: str | None) -> str:
    if isinstance(piece, str):
        return piece.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    try:
        return piece.decode(charset or "utf-8", "replace")
    except (LookupError, UnicodeError):
        return piece.decode("latin-1")


def _lower(text: str) -> str:
    return "".join(each.lower() if each.isascii() else each for each in text)


def _unquoted(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name.strip().removeprefix('"').removesuffix('"'))
