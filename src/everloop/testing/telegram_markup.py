"""Telegram's HTML, read as its Bot API reads it: the text that people see, its entities, or why it is refused."""

import re
from typing import Any

from msgspec import Struct

_TYPES = {
    "b": "bold", "strong": "bold", "i": "italic", "em": "italic", "u": "underline", "ins": "underline",
    "s": "strikethrough", "strike": "strikethrough", "del": "strikethrough", "tg-spoiler": "spoiler", "span": "spoiler",
    "a": "text_link", "code": "code", "pre": "pre", "blockquote": "blockquote", "tg-emoji": "custom_emoji",
}  # fmt: skip
_ATTRIBUTE = re.compile(r"""\s+([a-zA-Z-]+)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s"'>]+))?""")
_TAG_NAME = re.compile(r"[a-zA-Z-]+")
_REFERENCE = re.compile(r"&(?:(lt|gt|amp|quot)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));?")
_CHARACTERS = {"lt": "<", "gt": ">", "amp": "&", "quot": '"'}


class CannotParse(Exception):
    """What the Bot API says of it."""


class _OpenTag(Struct):
    name: str
    start: int
    attributes: dict[str, str]


def units(text: str) -> int:
    """UTF-16 code units, in which Telegram counts."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def parse_html(markup: str) -> tuple[str, list[dict[str, Any]]]:
    """Raises CannotParse."""
    return _Parser(markup).parse()


class _Parser:
    def __init__(self, markup: str) -> None:
        self._markup = markup
        self._at = 0
        self._text: list[str] = []
        self._length = 0
        self._open: list[_OpenTag] = []
        self._entities: list[dict[str, Any]] = []

    def parse(self) -> tuple[str, list[dict[str, Any]]]:
        while self._at < len(self._markup):
            if self._markup[self._at] == "<":
                self._tag()
            else:
                self._character()
        if self._open:
            last = self._open[-1].name
            raise CannotParse(f'can\'t find end tag corresponding to start tag "{last}"')
        entities = sorted(self._entities, key=lambda each: (each["offset"], -each["length"]))
        return "".join(self._text), [each for each in entities if each["length"]]

    def _character(self) -> None:
        if found := _REFERENCE.match(self._markup, self._at):
            named, decimal, hexadecimal = found.groups()
            self._say(_CHARACTERS[named] if named else chr(int(decimal or hexadecimal, 10 if decimal else 16)))
            self._at = found.end()
        else:
            self._say(self._markup[self._at])
            self._at += 1

    def _say(self, text: str) -> None:
        self._text.append(text)
        self._length += units(text)

    def _tag(self) -> None:
        start, self._at = self._at, self._at + 1
        closing = self._markup.startswith("/", self._at)
        name = _TAG_NAME.match(self._markup, self._at + closing)
        if not name:
            raise CannotParse(f'unsupported start tag "" at byte offset {self._bytes(start)}')
        self._at = name.end()
        if closing:
            self._close(name[0].lower(), start)
        else:
            self._begin(name[0].lower(), start)

    def _begin(self, name: str, start: int) -> None:
        attributes = {}
        while found := _ATTRIBUTE.match(self._markup, self._at):
            attributes[found[1].lower()] = (found[2] or "").strip("\"'")
            self._at = found.end()
        is_spoiler = attributes.get("class") == "tg-spoiler"
        if name not in _TYPES or (name == "span" and not is_spoiler):
            raise CannotParse(f'unsupported start tag "{name}" at byte offset {self._bytes(start)}')
        self._end_of_tag(start)
        self._open.append(_OpenTag(name, self._length, attributes))

    def _close(self, name: str, start: int) -> None:
        self._end_of_tag(start)
        if not self._open:
            raise CannotParse(f"unexpected end tag at byte offset {self._bytes(start)}")
        tag = self._open.pop()
        if tag.name != name:
            where = self._bytes(start)
            raise CannotParse(f'unmatched end tag at byte offset {where}, expected "</{tag.name}>", found "</{name}>"')
        entity: dict[str, Any] = {"type": _TYPES[name], "offset": tag.start, "length": self._length - tag.start}
        if name == "a":
            entity["url"] = _unescaped(tag.attributes.get("href", ""))
        self._entities.append(entity)

    def _end_of_tag(self, start: int) -> None:
        rest = self._markup[self._at :].lstrip()
        if not rest.startswith(">"):
            raise CannotParse(f"unclosed start tag at byte offset {self._bytes(start)}")
        self._at = len(self._markup) - len(rest) + 1

    def _bytes(self, at: int) -> int:
        return len(self._markup[:at].encode("utf-8", "surrogatepass"))


def _unescaped(text: str) -> str:
    return _REFERENCE.sub(lambda found: _CHARACTERS.get(found[1] or "", found[0]), text)
