"""Changes of files: as unified text for those who are asked, and in colours with the numbers of lines."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from ...readings.held import compared
from ...readings.visible import in_one_line, visible
from .inked import Inked, Line, cut, painted, whole_rows
from .theme import Theme

AROUND = 3  # lines before and after a change
_COMPARED = 2_000  # changed lines that are compared with each other; beyond they are shown as removed and added
_LINE_COMPARED = 400  # letters of a line of which the words are compared
_ALIKE = 0.5  # of two lines, so that what differs in them is worth showing
_WORDS = re.compile(r"\w+|\s+|[^\w\s]")
_EMPTY_END = "\\ No newline at end of file"
Reading = Callable[[str], str | None]


class DiffRow(NamedTuple):
    """A line of a diff: `sign` is a space, + or -, or @ for lines that are left out."""

    sign: str
    number: int
    text: str


def diff(before: str, after: str, path: str, theme: Theme, width: int, first: int = 1) -> str:
    """The change in colours, headed by the path and how many lines were added and removed; "" if there is none.
    `first` is the number of the first line of both."""
    rows = list(rows_of(before, after, first))
    if not rows:
        return ""
    return "\n".join([headline(path, rows, theme), *shown_rows(rows, theme, width)])


def headline(path: str, rows: Sequence[DiffRow], theme: Theme) -> str:
    parts = [theme.paint(in_one_line(path), "bold")]
    for sign, style in ("+", "added"), ("-", "removed"):
        if many := sum(row.sign == sign and row.text != _EMPTY_END for row in rows):
            parts.append(theme.paint(f"{sign}{many:,}", style))
    return " ".join(parts)


def rows_of(before: str, after: str, first: int = 1) -> Iterator[DiffRow]:
    old, new = _lines(before), _lines(after)
    last = 0
    for group in _groups(old, new):
        if group[0][1] > last:
            yield DiffRow("@", 0, "")
        for kind, a, b, c, d in group:
            if kind == "equal":
                yield from (DiffRow(" ", c + at + first, text) for at, text in enumerate(old[a:b]))
            else:
                yield from (DiffRow("-", a + at + first, text) for at, text in enumerate(old[a:b]))
                yield from (DiffRow("+", c + at + first, text) for at, text in enumerate(new[c:d]))
        last = group[-1][2]


def _lines(text: str) -> list[str]:
    """With a word on it where the last one does not end, so that two texts that differ in this alone differ."""
    lines = text.split("\n")
    if lines[-1]:
        return [*lines, _EMPTY_END]
    return lines[:-1]


Opcode = tuple[str, int, int, int, int]


def _groups(old: list[str], new: list[str]) -> Iterator[list[Opcode]]:
    """What differs, with some lines around it. What both begin and end with is not compared again."""
    start = next((at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    rest = min(len(old), len(new)) - start
    end = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    if start + end == len(old) == len(new):
        return
    first, last = max(0, start - AROUND), max(0, end - AROUND)
    a, b = old[first : len(old) - last], new[first : len(new) - last]
    if max(len(old), len(new)) - start - end > _COMPARED:
        yield _whole(a, b, start - first, end - last, first)
        return
    from difflib import SequenceMatcher  # only a change needs it

    for group in SequenceMatcher(None, a, b, autojunk=False).get_grouped_opcodes(AROUND):
        yield [(kind, i + first, j + first, k + first, m + first) for kind, i, j, k, m in group]


def _whole(a: list[str], b: list[str], before: int, after: int, first: int) -> list[Opcode]:
    i, j = len(a) - after, len(b) - after
    return [
        ("equal", first, first + before, first, first + before),
        ("replace", first + before, first + i, first + before, first + j),
        ("equal", first + i, first + len(a), first + j, first + len(b)),
    ]


def shown_rows(rows: Sequence[DiffRow], theme: Theme, width: int) -> list[str]:
    digits = len(str(max((row.number for row in rows), default=0)))
    shown: list[str] = []
    at = 0
    while at < len(rows):
        end = at
        while end < len(rows) and rows[end].sign in "+-":
            end += 1
        if end == at:
            shown += _row(rows[at], [Inked(_clean(rows[at].text))], digits, theme, width)
            at += 1
            continue
        for row, inks in _with_words(rows[at:end]):
            shown += _row(row, inks, digits, theme, width)
        at = end
    return shown


def _with_words(rows: Sequence[DiffRow]) -> Iterator[tuple[DiffRow, Line]]:
    """Removed and added lines, with what differs between two that stand for each other."""
    removed, added = ([row for row in rows if row.sign == sign] for sign in "-+")
    pairs = dict[int, tuple[Line, Line]]()
    if len(removed) == len(added):
        for at, (one, other) in enumerate(zip(removed, added, strict=True)):
            if alike := _compared(_clean(one.text), _clean(other.text)):
                pairs[at] = alike
    for side, many in enumerate((removed, added)):
        style = ("removed", "added")[side]
        for at, row in enumerate(many):
            yield row, list(pairs[at][side]) if at in pairs else [Inked(_clean(row.text), style)]


def _compared(one: str, other: str) -> tuple[Line, Line] | None:
    if max(len(one), len(other)) > _LINE_COMPARED:
        return None
    from difflib import SequenceMatcher

    a, b = _WORDS.findall(one), _WORDS.findall(other)
    matcher = SequenceMatcher(None, a, b, autojunk=False)
    if matcher.ratio() < _ALIKE:
        return None
    left: Line = []
    right: Line = []
    for kind, i, j, k, m in matcher.get_opcodes():
        differs = "" if kind == "equal" else "_word"
        left.append(Inked("".join(a[i:j]), f"removed{differs}"))
        right.append(Inked("".join(b[k:m]), f"added{differs}"))
    return left, right


def _row(row: DiffRow, inks: Line, digits: int, theme: Theme, width: int) -> list[str]:
    if row.sign == "@":
        return [theme.paint(f"{'⋮':>{digits}}", "number")]
    if row.text == _EMPTY_END:
        return [theme.paint(f"{' ' * (digits + 3)}{_EMPTY_END}", "note")]
    number = theme.paint(f"{row.number:>{digits}}", "number")
    style = {"+": "added", "-": "removed"}.get(row.sign, "")
    first, *further = cut(inks, max(8, width - digits - 3))
    head = f"{number} {theme.paint(row.sign, style)} {painted(first, theme)}".rstrip(" ")
    return [head, *(f"{' ' * (digits + 3)}{painted(line, theme)}" for line in further)]


def _clean(text: str) -> str:
    return visible(text.removesuffix("\r")).expandtabs(4)


def coloured(unified: str, theme: Theme, width: int) -> str:
    """Unified text, as `diff_of_call` returns it and as patches are written, in colours; every line of it."""
    return "\n".join(line for text in visible(unified).split("\n") for line in coloured_line(text, theme, width))


def coloured_line(text: str, theme: Theme, width: int) -> list[str]:
    if text.startswith(("--- ", "+++ ", "*** ")):
        style = "bold"
    else:
        style = {"+": "added", "-": "removed", "@": "hunk"}.get(text[:1], "")
    return whole_rows(text.expandtabs(4), style, theme, width)


def diff_of_call(tool: str, args: str, read: Reading) -> str | None:
    """What a call would change in files, as unified text; None for one that changes none, or would fail."""
    try:
        given = msgspec.json.decode(args or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return _change(tool, given, read) if isinstance(given, dict) else None


def _change(tool: str, given: dict[str, Any], read: Reading) -> str | None:
    path = given.get("path")
    match tool, given:
        case "apply_patch", {"patch": str(patch)}:
            return patch
        case "write_file", {"content": str(content)} if isinstance(path, str):
            return unified(read(path) or "", content, path)
        case "edit_file", {"old_text": str(old), "new_text": str(new)} if isinstance(path, str):
            before = read(path)
            if before is None:
                return None
            if "\r\n" in before and "\r" not in old + new:
                old, new = old.replace("\n", "\r\n"), new.replace("\n", "\r\n")
            return unified(before, before.replace(old, new), path) if old and before.count(old) == 1 else None
    return None


def unified(before: str, after: str, path: str) -> str:
    name = in_one_line(path)
    rows = compared(_lines(before), _lines(after))
    shown = [row[1:] if row[1:] == _EMPTY_END else row for row in rows]
    return "\n".join([f"--- {name}", f"+++ {name}", *shown]) if rows else ""
