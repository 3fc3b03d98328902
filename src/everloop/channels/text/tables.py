"""Tables where there are none: in letters of one width if they are narrow enough, else row by row, `heading: value`."""

import unicodedata
from collections.abc import Iterator, Sequence

from .tree import BOLD, Row, Run, TextBlock, merged

LARGEST = 20_000  # cells of one table that are measured


def lowered(block: TextBlock, width: int) -> list[TextBlock]:
    """The blocks that show a table; any other block as it is."""
    if block.kind != "table":
        return [block]
    lines = None if _has_links(block.rows) else _aligned(block.rows, width)
    if lines is not None:
        code = TextBlock(kind="code", runs=(Run("\n".join(lines)),), inside=block.inside, opened=block.opened)
        return [code]
    return row_by_row(block)


def row_by_row(block: TextBlock) -> list[TextBlock]:
    """A paragraph for each row; a table that is only a head is its words."""
    head, *rows = block.rows
    blocks = [
        TextBlock(runs=merged(_told(head, row)), inside=block.inside, opened=0 if number else block.opened)
        for number, row in enumerate(rows)
    ]
    return [each for each in blocks if each.runs or each.opened] or [
        TextBlock(runs=merged(_told((), head)), inside=block.inside, opened=block.opened)
    ]


def _told(head: Row, row: Row) -> Iterator[Run]:
    """A line for each cell in which something stands."""
    written = False
    for number, cell in enumerate(row):
        if not cell:
            continue
        named = [Run(run.text, run.style | BOLD, run.href) for run in (head[number] if number < len(head) else ())]
        yield Run("\n" if written else "")
        yield from named
        yield Run(": " if named else "")
        yield from cell
        written = True


def _has_links(rows: Sequence[Row]) -> bool:
    """What is shown in letters of one width has no links."""
    return any(run.href and run.href != run.text for row in rows for cell in row for run in cell)


def _aligned(rows: Sequence[Row], width: int) -> list[str] | None:
    """The lines of the table, or None if it is too wide."""
    texts = [[" ".join("".join(run.text for run in cell).split()) for cell in row] for row in rows]
    columns = max(map(len, texts))
    if columns * len(texts) > LARGEST or not columns:
        return None
    widths = [max(_width(row[at]) if at < len(row) else 0 for row in texts) for at in range(columns)]
    if sum(widths) + 3 * (columns - 1) > width:
        return None
    head, *body = [_line(row, widths) for row in texts]
    return [head, "-+-".join("-" * each for each in widths), *body]


def _line(row: Sequence[str], widths: Sequence[int]) -> str:
    return " | ".join(text + " " * (width - _width(text)) for text, width in zip(row, widths, strict=False)).rstrip()


def _width(text: str) -> int:
    """Columns that it takes: letters of East Asia and emoji two, what is written over another none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(each) or each in "\u200d\ufe0f" else
               2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)  # fmt: skip
