"""Making documents from Markdown and tables: all that `create_document` does, loaded when it is first used."""

import asyncio
import csv
import io
from pathlib import PurePosixPath
from typing import Any

import msgspec

from ..errors import ToolError
from .documents import document_of, require_maker
from .markup import Block, StyledText, blocks_of, spans_of
from .write_file import encoded

_KINDS = ("md", "txt", "csv", "html", "docx", "pdf", "xlsx")
_CELLS = 500_000
_CHARACTERS = 1_000_000
_BAD_IN_SHEET_NAMES = str.maketrans("[]:*?/\\", "_______")


async def document(path: str, content: str, sheets: dict[str, Any]) -> bytes:
    """A document of the kind that the path's ending says. Raises ToolError."""
    kind = PurePosixPath(path).suffix.removeprefix(".").lower()
    if kind not in _KINDS:
        raise ToolError(f"{path!r}: the kind {kind or 'without an ending'!r} cannot be made, only {', '.join(_KINDS)}")
    require_maker(path, kind)
    return await _made(path, kind, content, _tables(sheets))


async def _made(path: str, kind: str, content: str, tables: dict[str, list[list[Any]]]) -> bytes:
    if len(content) > _CHARACTERS:
        raise ToolError(f"the content has more than {_CHARACTERS:,} characters")
    if kind in ("csv", "xlsx"):
        tables = tables or _tables_in(content)
        if not tables:
            raise ToolError(f"a {kind} is made of tables; give sheets, or a Markdown table as content")
    elif not content and not tables:
        raise ToolError("there is nothing to put into the document; give content or sheets")
    match kind:
        case "csv":
            return encoded(_csv(tables))
        case "xlsx":
            return await document_of(path, kind, [], _named(tables))
        case "docx" | "pdf":
            blocks = await asyncio.to_thread(blocks_of, content)
            return await document_of(path, kind, [msgspec.to_builtins(each) for each in blocks], tables)
        case "html":
            return encoded(await asyncio.to_thread(_page, content, tables, PurePosixPath(path).stem))
        case _:
            return encoded("\n".join((content, *map(_markdown, _blocks(tables)))) if tables else content)


def _tables(sheets: dict[str, Any]) -> dict[str, list[list[Any]]]:
    """What a model calls sheets, checked. Raises ToolError."""
    cells = 0
    for name, rows in sheets.items():
        if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
            raise ToolError(f"sheets.{name} must be a list of rows, each a list of cells")
        cells += sum(map(len, rows))
        for row in rows:
            if not all(cell is None or isinstance(cell, str | int | float | bool) for cell in row):
                raise ToolError(f"sheets.{name}: a cell is text, a number, true, false or null")
    if cells > _CELLS:
        raise ToolError(f"the tables have {cells:,} cells; at most {_CELLS:,} are taken")
    return sheets


def _tables_in(content: str) -> dict[str, list[list[Any]]]:
    found = [block.rows for block in blocks_of(content) if block.kind == "table"]
    return {f"Sheet{number}": [list(row) for row in rows] for number, rows in enumerate(found, 1)}


def _named(tables: dict[str, list[list[Any]]]) -> dict[str, list[list[Any]]]:
    """Names as a spreadsheet takes them: not long, not empty, without some signs, and no two the same."""
    named: dict[str, list[list[Any]]] = {}
    for name, rows in tables.items():
        short = base = name.translate(_BAD_IN_SHEET_NAMES).strip("' ")[:28] or "Sheet"
        number = 1
        while short.lower() in map(str.lower, named):
            number += 1
            short = f"{base[:26]}_{number}"
        named[short] = rows
    return named


def _blocks(tables: dict[str, list[list[Any]]]) -> list[Block]:
    found = []
    for name, rows in tables.items():
        cells = tuple(tuple("" if cell is None else str(cell) for cell in row) for row in rows)
        found += [Block("heading", name, 2), Block("table", rows=cells)]
    return found


def _csv(tables: dict[str, list[list[Any]]]) -> str:
    if len(tables) > 1:
        raise ToolError(f"a csv holds one table, and there are {len(tables)}; make an .xlsx, or one csv for each")
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(next(iter(tables.values())))
    return out.getvalue()


def _markdown(block: Block) -> str:
    if block.kind == "heading":
        return f"\n{'#' * block.level} {block.text}\n"
    if not block.rows:
        return ""
    lines = [
        "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in row) + " |" for row in block.rows
    ]
    return "\n".join([lines[0], "|" + " --- |" * len(block.rows[0]), *lines[1:], ""])


def escape(text: str) -> str:
    """Text as HTML. The standard library's `html` would bring its table of 2,000 names along."""
    for sign, name in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#x27;")):
        text = text.replace(sign, name)
    return text


def _page(content: str, tables: dict[str, list[list[Any]]], title: str) -> str:
    return html_of([*blocks_of(content), *_blocks(tables)], title)


def html_of(blocks: list[Block], title: str) -> str:
    """A whole page. All text is escaped: what is no Markdown is shown as it is written."""
    title = next((block.text for block in blocks if block.kind == "heading"), title)
    body, inside = [], ""
    for block in blocks:
        wanted = {"bullet": "ul", "number": "ol"}.get(block.kind, "")
        if wanted != inside:
            body += [f"</{inside}>"] if inside else []
            body += [f"<{wanted}>"] if wanted else []
            inside = wanted
        body.append(_html(block))
    body += [f"</{inside}>"] if inside else []
    return _PAGE.format(title=escape(title), body="\n".join(body))


_PAGE = """<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ font-family: system-ui, sans-serif; line-height: 1.5; max-width: 50rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse }} td, th {{ border: 1px solid #999; padding: .3rem .6rem; text-align: left }}
pre {{ overflow-x: auto; background: #f4f4f4; padding: 1rem }}
</style>
</head>
<body>
{body}
</body>
</html>
"""


def _html(block: Block) -> str:
    match block.kind:
        case "heading":
            return f"<h{block.level}>{_inline(block.text)}</h{block.level}>"
        case "bullet" | "number":
            indent = f' style="margin-left: {block.level * 1.5:g}rem"' if block.level else ""
            return f"<li{indent}>{_inline(block.text)}</li>"
        case "quote":
            return f"<blockquote>{_inline(block.text)}</blockquote>"
        case "code":
            return f"<pre><code>{escape(block.text)}</code></pre>"
        case "table":
            return _html_table(block.rows)
        case "rule":
            return "<hr>"
        case _:
            return f"<p>{_inline(block.text)}</p>"


def _html_table(rows: tuple[tuple[str, ...], ...]) -> str:
    lines = []
    for number, row in enumerate(rows):
        tag = "td" if number else "th"
        lines.append(f"<tr>{''.join(f'<{tag}>{_inline(cell)}</{tag}>' for cell in row)}</tr>")
    return "\n".join(("<table>", *lines, "</table>"))


def _inline(text: str) -> str:
    return "".join(map(_html_span, spans_of(text)))


def _html_span(span: StyledText) -> str:
    text = escape(span.text)
    if span.code:
        return f"<code>{text}</code>"
    if span.link:
        # A link may lead to a page or a file, but never be a program.
        safe = span.link.startswith(("http://", "https://", "mailto:", "#")) or ":" not in span.link
        return f'<a href="{escape(span.link)}">{text}</a>' if safe else f"{text} ({escape(span.link)})"
    if span.bold:
        return f"<strong>{text}</strong>"
    return f"<em>{text}</em>" if span.italic else text
