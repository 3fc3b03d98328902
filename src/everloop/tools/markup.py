"""Markdown as blocks and spans, for documents that are not text: only what people use, and nothing that is slow."""

import re
from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

Kind = Literal["heading", "paragraph", "bullet", "number", "quote", "code", "table", "rule"]


class Block(Struct, frozen=True):
    """A piece of a document. `level` is a heading's, or how deep an item of a list lies; `rows` are a table's."""

    kind: Kind
    text: str = ""
    level: int = 0
    rows: tuple[tuple[str, ...], ...] = ()


class StyledText(Struct, frozen=True):
    """A piece of a line in one style."""

    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    link: str = ""


_HEADING = re.compile(r"(#{1,6}) +(.*)")
_BULLET = re.compile(r"( *)[-*+] +(.*)")
_NUMBER = re.compile(r"( *)\d{1,9}[.)] +(.*)")
_RULE = re.compile(r" {0,3}([-*_])(?: *\1){2,} *")
_SPAN = re.compile(
    r"`(?P<code>[^`\n]{1,500})`"
    r"|\[(?P<label>[^\[\]\n]{1,500})\]\((?P<link>[^()\s]{1,2000})\)"
    r"|\*\*(?P<bold>[^*\n]{1,2000})\*\*"
    r"|(?<!\w)__(?P<bold_too>[^_\n]{1,2000})__(?!\w)"
    r"|\*(?P<italic>[^*\s](?:[^*\n]{0,2000}))\*"
    r"|(?<!\w)_(?P<italic_too>[^_\s][^_\n]{0,2000})_(?!\w)"
)


def blocks_of(markdown: str) -> list[Block]:
    """The blocks of a text, in order."""
    return list(_MarkupReader(markdown.replace("\r\n", "\n").expandtabs(4).split("\n")).blocks())


def spans_of(text: str) -> list[StyledText]:
    """The spans of a line, in order; what is not closed is plain text."""
    found, at = [], 0
    for match in _SPAN.finditer(text):
        if match.start() > at:
            found.append(StyledText(text[at : match.start()]))
        at = match.end()
        group = match.groupdict()
        if group["code"]:
            found.append(StyledText(group["code"], code=True))
        elif group["label"]:
            found.append(StyledText(group["label"], link=group["link"]))
        elif bold := group["bold"] or group["bold_too"]:
            found.append(StyledText(bold, bold=True))
        else:
            found.append(StyledText(group["italic"] or group["italic_too"], italic=True))
    if at < len(text):
        found.append(StyledText(text[at:]))
    return found


class _MarkupReader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    def blocks(self) -> Iterator[Block]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if not line.strip():
                self._at += 1
            elif line.lstrip().startswith(("```", "~~~")):
                yield self._code(line.lstrip()[:3])
            elif self._is_table():
                yield self._table()
            else:
                yield self._one(line) or self._paragraph()

    def _one(self, line: str) -> Block | None:
        """A block that is one line, and in a list those that go on with it."""
        block = _alone(line)
        if block is None:
            return None
        self._at += 1
        if block.kind in ("bullet", "number"):
            more = [block.text, *self._plain_lines(indented=True)]
            return Block(block.kind, " ".join(more), block.level)
        return block

    def _paragraph(self) -> Block:
        first = self._lines[self._at].strip()
        self._at += 1
        return Block("paragraph", " ".join([first, *self._plain_lines(indented=False)]))

    def _plain_lines(self, indented: bool) -> Iterator[str]:
        while self._at < len(self._lines):
            line = self._lines[self._at]
            special = _alone(line) is not None or line.lstrip().startswith(("```", "~~~")) or self._is_table()
            if not line.strip() or special or (indented and not line.startswith("  ")):
                return
            self._at += 1
            yield line.strip()

    def _code(self, fence: str) -> Block:
        self._at += 1
        start = self._at
        while self._at < len(self._lines) and not self._lines[self._at].lstrip().startswith(fence):
            self._at += 1
        text = "\n".join(self._lines[start : self._at])
        self._at += 1
        return Block("code", text)

    def _is_table(self) -> bool:
        here = self._lines[self._at]
        below = self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""
        return "|" in here and {"|", "-"} <= set(below) <= set(" :|-")

    def _table(self) -> Block:
        rows = [_cells(self._lines[self._at])]
        self._at += 2
        while self._at < len(self._lines) and "|" in self._lines[self._at]:
            rows.append(_cells(self._lines[self._at]))
            self._at += 1
        width = max(map(len, rows))
        return Block("table", rows=tuple((*row, *[""] * (width - len(row))) for row in rows))


def _alone(line: str) -> Block | None:
    if _RULE.fullmatch(line):
        return Block("rule")
    if match := _HEADING.fullmatch(line):
        return Block("heading", match[2].rstrip("# "), len(match[1]))
    if match := _BULLET.fullmatch(line):
        return Block("bullet", match[2].strip(), len(match[1]) // 2)
    if match := _NUMBER.fullmatch(line):
        return Block("number", match[2].strip(), len(match[1]) // 2)
    if line.startswith(">"):
        return Block("quote", line.lstrip("> "))
    return None


def _cells(line: str) -> tuple[str, ...]:
    parts = line.strip().removeprefix("|").removesuffix("|").replace(r"\|", "\0").split("|")
    return tuple(part.replace("\0", "|").strip() for part in parts)
