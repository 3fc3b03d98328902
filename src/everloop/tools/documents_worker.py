"""Reading and making documents, in a process of its own: see `documents`.

The request is a line such as `read pdf`, and then the document, or what is to be in it.
"""

import json
import sys
import zipfile
from collections.abc import Iterable, Iterator
from datetime import datetime
from io import BytesIO
from itertools import chain, islice, zip_longest
from typing import Any

from .markup import StyledText, spans_of
from .pdf_worker import make_pdf

_MOST = 4_000_000  # characters of a text
_ROWS = 100_000
_LARGEST_INSIDE = 300_000_000
_STYLES = {"bullet": "List Bullet", "number": "List Number", "quote": "Quote"}
_LONG_AGO = (1980, 1, 1, 0, 0, 0)


def main() -> None:
    verb, kind = sys.stdin.buffer.readline().decode().split()
    data = sys.stdin.buffer.read()
    if verb == "read":
        if kind != "pdf":
            _refuse_bombs(data)
        _tell(_READERS[kind](data))
    else:
        sys.stdout.buffer.write(_MAKERS[kind](**json.loads(data)))


def _refuse_bombs(data: bytes) -> None:
    with zipfile.ZipFile(BytesIO(data)) as archive:
        inside = sum(part.file_size for part in archive.infolist())
    if inside > _LARGEST_INSIDE:
        sys.exit(f"unpacked it would have {inside:,} bytes, of which at most {_LARGEST_INSIDE:,} are read")


def _tell(pieces: Iterable[str]) -> None:
    """Each piece at once, so that what was read is not lost when the rest takes too long."""
    room = _MOST
    for piece in pieces:
        sys.stdout.buffer.write(piece[:room].encode("utf-8", "replace"))
        sys.stdout.buffer.flush()
        room -= len(piece)
        if room <= 0:
            sys.stdout.buffer.write(f"\n[the text is cut after {_MOST:,} characters]".encode())
            return


def _pdf(data: bytes) -> Iterator[str]:
    from pypdf import PdfReader

    reader = PdfReader(BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        sys.exit("it is encrypted")
    count = len(reader.pages)
    for number, page in enumerate(reader.pages, 1):
        yield f"[page {number} of {count}]\n{page.extract_text().strip()}\n"


def _docx(data: bytes) -> Iterator[str]:
    from docx import Document
    from docx.table import Table

    for block in Document(BytesIO(data)).iter_inner_content():
        if isinstance(block, Table):
            for row in block.rows:
                yield f"| {' | '.join(' '.join(cell.text.split()) for cell in row.cells)} |\n"
            yield "\n"
        elif block.text.strip():
            yield f"{_prefix(block.style.name if block.style else '')}{block.text}\n\n"


def _prefix(style: str) -> str:
    if style == "Title":
        return "# "
    if style.startswith("Heading ") and style[8:].isdigit():
        return "#" * int(style[8:]) + " "
    return "- " if style.startswith("List ") else ""


def _xlsx(data: bytes) -> Iterator[str]:
    from openpyxl import load_workbook

    values = load_workbook(BytesIO(data), read_only=True, data_only=True)
    formulas = load_workbook(BytesIO(data), read_only=True)
    for name in values.sheetnames:
        yield f"[sheet {name}]\n"
        both = zip(values[name].iter_rows(values_only=True), formulas[name].iter_rows(values_only=True), strict=False)
        for value_row, formula_row in islice(both, _ROWS):
            # A value that no program has worked out yet is shown as its formula.
            cells = [
                formula if value is None else value for value, formula in zip(value_row, formula_row, strict=False)
            ]
            yield " | ".join("" if cell is None else str(cell) for cell in cells).rstrip(" |") + "\n"


def _make_docx(blocks: list[dict[str, Any]], sheets: dict[str, list[list[Any]]]) -> bytes:
    from docx import Document

    document = Document()
    tables: Iterator[dict[str, Any]] = chain.from_iterable(
        ({"kind": "heading", "text": name, "level": 2}, {"kind": "table", "rows": rows})
        for name, rows in sheets.items()
    )
    for block in chain(blocks, tables):
        match block["kind"]:
            case "heading":
                _write(document.add_heading(level=min(block["level"], 9)), block["text"])
            case "table":
                _add_table(document, block["rows"])
            case "code":
                document.add_paragraph().add_run(block["text"]).font.name = "Courier New"
            case "rule":
                document.add_paragraph("⁂")
            case kind:
                _write(document.add_paragraph(style=_style(kind, block.get("level", 0))), block["text"])
    out = BytesIO()
    document.save(out)
    return _timeless(out.getvalue())


def _style(kind: str, level: int) -> str | None:
    base = _STYLES.get(kind)
    return f"{base} {min(level, 2) + 1}" if base and level and base.startswith("List") else base


def _write(paragraph: Any, text: str) -> None:
    for span in spans_of(text):
        run = paragraph.add_run(_with_link(span))
        run.bold, run.italic = span.bold or None, span.italic or None
        if span.code:
            run.font.name = "Courier New"


def _with_link(span: StyledText) -> str:
    return f"{span.text} ({span.link})" if span.link and span.link != span.text else span.text


def _add_table(document: Any, rows: list[list[Any]]) -> None:
    width = max(map(len, rows), default=0)
    if not width:
        return
    table = document.add_table(0, width, style="Table Grid")
    for row in rows:
        for cell, value in zip_longest(table.add_row().cells, row):
            _write(cell.paragraphs[0], "" if value is None else str(value))


def _make_xlsx(blocks: list[dict[str, Any]], sheets: dict[str, list[list[Any]]]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.styles import Font
    from openpyxl.writer.excel import ExcelWriter

    book = Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for cell in sheet[1] if rows else ():
            cell.font = Font(bold=True)
    book.properties.created = book.properties.modified = datetime(*_LONG_AGO)
    out = BytesIO()
    ExcelWriter(book, zipfile.ZipFile(out, "w")).save()  # book.save would write the time of today
    return _timeless(out.getvalue())


def _timeless(data: bytes) -> bytes:
    """The same document without the time of its making, so that a second run makes the same bytes."""
    out = BytesIO()
    with zipfile.ZipFile(BytesIO(data)) as before, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as after:
        for part in before.infolist():
            after.writestr(zipfile.ZipInfo(part.filename, _LONG_AGO), before.read(part), zipfile.ZIP_DEFLATED)
    return out.getvalue()


_READERS = {"pdf": _pdf, "docx": _docx, "xlsx": _xlsx}
_MAKERS = {"docx": _make_docx, "pdf": make_pdf, "xlsx": _make_xlsx}
