"""Takes secrets out of what is written down of a request and its answer.

A header that is not known to be harmless is a secret, and so is a word of the query that looks like one. What was once
seen as a secret is taken out wherever it appears: in an address, in a body, and in an answer of several pieces where
it begins in one and ends in another.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from ..readings.encodings import forms_of

MASK = "***"

_SHORTEST = 8  # characters; a shorter word is no secret ("ollama", "none"), and would be found in any text
_SHORTEST_BEGINNING = 4
_HARMLESS = {
    "accept", "anthropic-beta", "anthropic-version", "content-type", "copilot-integration-id", "editor-plugin-version",
    "editor-version", "http-referer", "openai-beta", "originator", "user-agent", "x-title",
}  # fmt: skip
_USER = re.compile(r"(?<=://)[^/@?#]+(?=@)")
_LOGIN = re.compile(r"//([^/:@?#]*):([^/@?#]*)@")
_QUERY = re.compile(r"(?i)(?<=[?&])([^=&#]*(?:key|token|secret|sig|auth|pass|code)[^=&#]*=)([^&#]+)")


class Masking:
    """Knows the secrets it was given and those of every request it has seen."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._forms: set[bytes] = set()
        self._pattern: re.Pattern[bytes] | None = None
        self._learn(secrets)

    def see(self, url: str, headers: Mapping[str, str]) -> None:
        """Learn the secrets of a request."""
        self._learn(_secrets_in(url, headers))

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        return {name: self.text(headers[name]) if name.lower() in _HARMLESS else MASK for name in headers}

    def url(self, url: str) -> str:
        return self.text(_QUERY.sub(rf"\1{MASK}", _USER.sub(MASK, url)))

    def text(self, text: str) -> str:
        return self.data(text.encode()).decode()

    def data(self, data: bytes) -> bytes:
        return self._pattern.sub(MASK.encode(), data) if self._pattern else data

    def pieces(self, pieces: Sequence[bytes]) -> list[bytes]:
        """The pieces with their borders where they were. One that was nothing but a part of a secret is left out."""
        whole = b"".join(pieces)
        spans = [found.span() for found in self._pattern.finditer(whole)] if self._pattern else []
        if beginning := self._beginning_at_the_end_of(whole):
            spans.append((len(whole) - beginning, len(whole)))
        return [piece for piece in _without(whole, spans, pieces) if piece]

    def _learn(self, secrets: Iterable[str]) -> None:
        new = {form for secret in secrets if len(secret) >= _SHORTEST for form in map(str.encode, forms_of(secret))}
        if new - self._forms:
            self._forms |= new
            longest_first = sorted(self._forms, key=lambda form: (-len(form), form))
            self._pattern = re.compile(b"|".join(map(re.escape, longest_first)))

    def _beginning_at_the_end_of(self, data: bytes) -> int:
        """How many of the last bytes are the beginning of a secret, of which a cut has kept the rest from coming."""
        lengths = {
            length
            for form in self._forms
            for length in range(_SHORTEST_BEGINNING, len(form))
            if data.endswith(form[:length])
        }
        return max(lengths, default=0)


def _without(whole: bytes, spans: Sequence[tuple[int, int]], pieces: Sequence[bytes]) -> Iterator[bytes]:
    """Each piece without what lies in the spans; the mask stands where a span begins."""
    start = 0
    for piece in pieces:
        end, at, kept = start + len(piece), start, b""
        for first, last in spans:
            if first < end and last > start:
                kept += whole[at:first] + (MASK.encode() if first >= start else b"")
                at = min(last, end)
        yield kept + whole[at:end]
        start = end


def _secrets_in(url: str, headers: Mapping[str, str]) -> Iterator[str]:
    for name, value in headers.items():
        if name.lower() not in _HARMLESS:
            yield value
            yield from _words_of(value)
    for found in _QUERY.finditer(url):
        yield unquote(found[2])
    yield from _password_in(url)


def _password_in(url: str) -> Iterator[str]:
    """Alone, and as it is sent."""
    if found := _LOGIN.search(url):  # not urlsplit, which raises where an address is none
        user, password = unquote(found[1]), unquote(found[2])
        yield from (password, b64encode(f"{user}:{password}".encode()).decode())


def _words_of(value: str) -> Iterator[str]:
    """`Bearer …`, `Basic …`, `name=…; other=…`: the secret is a part of the header."""
    kind, _, rest = value.partition(" ")
    if kind.lower() == "basic":
        yield _decoded(rest).partition(":")[2]
    for word in re.split(r"[\s;,]+", value):
        yield word
        yield word.partition("=")[2]


def _decoded(text: str) -> str:
    try:
        return b64decode(text, validate=True).decode()
    except (NotBase64, UnicodeDecodeError):
        return ""
