"""What an IMAP server says (RFC 3501, 9051), as values. No network.

A response is a line, or several with literals between them: `* 1 FETCH (UID 7 BODY[] {5}`, five bytes, `)`. It comes
here as a list in which lines and literals take turns.
"""

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

Value = bytes | None | list["Value"]
_LITERAL = re.compile(rb"\{([0-9]{1,10})\+?\}\r?\n$")
_STATUS = re.compile(rb"(OK|NO|BAD|BYE|PREAUTH)(?: +\[([^\]\r\n]*)\])? ?(.*)", re.IGNORECASE | re.DOTALL)
_NUMBERED = re.compile(rb"([0-9]{1,10}) ([A-Za-z]+)(?: |$)")
_WORD = re.compile(rb'[^\s()"\[\]{]+')
DEEPEST = 50
LONGEST_TEXT = 300


class BadReply(Exception):
    """It is nothing that an IMAP server says."""


class ImapStatus(Struct, frozen=True):
    """`kind` is OK, NO, BAD, BYE or PREAUTH; `code` is what stands in brackets."""

    tag: str
    kind: str
    code: str
    text: str


class ImapCount(Struct, frozen=True):
    """`* 12 EXISTS` and the like."""

    kind: str
    number: int


class ImapFetch(Struct, frozen=True):
    values: Mapping[str, Value]

    def number(self, name: str) -> int:
        """Raises BadReply."""
        return _number(self.values.get(name))

    def data(self, name: str) -> bytes:
        """Raises BadReply."""
        value = self.values.get(name)
        if not isinstance(value, bytes):
            raise BadReply(f"there is no {name} in it")
        return value


class ImapWords(Struct, frozen=True):
    """`* SEARCH 1 2 3`, `* CAPABILITY IMAP4rev1 IDLE`."""

    kind: str
    words: tuple[str, ...]


class ImapContinue(Struct, frozen=True):
    """`+ go on`."""


class ImapOther(Struct, frozen=True):
    """What means nothing to us."""


Response = ImapStatus | ImapCount | ImapFetch | ImapWords | ImapContinue | ImapOther


def literal_after(line: bytes) -> int | None:
    """The bytes of the literal that a line ends with."""
    found = _LITERAL.search(line)
    return int(found[1]) if found else None


def read_response(pieces: Sequence[bytes]) -> Response:
    """Raises BadReply."""
    line = pieces[0].rstrip(b"\r\n")
    tag, _, rest = line.partition(b" ")
    if tag == b"+":
        return ImapContinue()
    if not tag or not tag.isascii():
        raise BadReply("a line without a tag")
    if status := _STATUS.fullmatch(rest):
        word, code, text = status.groups(b"")
        return ImapStatus(_text(tag), _text(word).upper(), _text(code), _text(text)[:LONGEST_TEXT])
    if tag != b"*":
        raise BadReply("a tag without a status")
    if numbered := _NUMBERED.match(rest):
        kind = _text(numbered[2]).upper()
        return _fetched(pieces, len(tag) + 1 + numbered.end()) if kind == "FETCH" else ImapCount(kind, int(numbered[1]))
    kind = _text(rest.partition(b" ")[0]).upper()
    if kind in ("SEARCH", "CAPABILITY"):
        return ImapWords(kind, tuple(_text(rest).split()[1:]))
    return ImapOther()


def _text(data: bytes) -> str:
    return "".join(each if each.isprintable() else " " for each in data.decode("utf-8", "replace"))


def _number(value: Value) -> int:
    if not isinstance(value, bytes) or not value.isdigit() or len(value) > 20:
        raise BadReply("there is no number where one should be")
    return int(value)


def _fetched(pieces: Sequence[bytes], at: int) -> ImapFetch:
    [values] = _values([pieces[0][at:], *pieces[1:]])
    if not isinstance(values, list) or len(values) % 2:
        raise BadReply("it fetched no list")
    names = [each.decode("ascii", "replace").upper() if isinstance(each, bytes) else "" for each in values[::2]]
    return ImapFetch(dict(zip(names, values[1::2], strict=True)))


def _values(pieces: Sequence[bytes]) -> list[Value]:
    """The values in a response. A literal is one, whatever is in it."""
    found: list[Value] = []
    open_lists = [found]
    for number, piece in enumerate(pieces):
        if number % 2:
            open_lists[-1].append(piece)
        else:
            _read_line(_LITERAL.sub(b"", piece) if number + 1 < len(pieces) else piece.rstrip(b"\r\n"), open_lists)
    if len(open_lists) != 1 or len(found) != 1:
        raise BadReply("its parentheses do not fit")
    return found


def _read_line(line: bytes, open_lists: list[list[Value]]) -> None:
    at = 0
    while at < len(line):
        each = line[at : at + 1]
        if each == b"(":
            inner: list[Value] = []
            open_lists[-1].append(inner)
            open_lists.append(inner)
            if len(open_lists) > DEEPEST:
                raise BadReply("its lists are too deep")
            at += 1
        elif each == b")":
            if len(open_lists) == 1:
                raise BadReply("its parentheses do not fit")
            open_lists.pop()
            at += 1
        elif each == b" ":
            at += 1
        elif each == b'"':
            at = _read_quoted(line, at + 1, open_lists[-1])
        else:
            at = _read_word(line, at, open_lists[-1])


def _read_quoted(line: bytes, at: int, into: list[Value]) -> int:
    text = bytearray()
    while at < len(line):
        each = line[at]
        if each == ord('"'):
            into.append(bytes(text))
            return at + 1
        if each == ord("\\"):
            at += 1
            if at == len(line):
                break
            each = line[at]
        text.append(each)
        at += 1
    raise BadReply("a quoted string does not end")


def _read_word(line: bytes, at: int, into: list[Value]) -> int:
    """An atom; the section of a BODY[…] is a part of it, with all that stands there."""
    found = _WORD.match(line, at)
    if not found:
        raise BadReply("a character that means nothing there")
    end = found.end()
    if line[end : end + 1] == b"[":
        closed = line.find(b"]", end)
        if closed < 0:
            raise BadReply("a section does not end")
        end = closed + 1
        if origin := re.compile(rb"<[0-9]+>").match(line, end):
            into.append(line[at:end])
            return origin.end()
    word = line[at:end]
    into.append(None if word.upper() == b"NIL" else word)
    return end
