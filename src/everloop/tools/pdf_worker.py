"""Making a PDF from blocks and tables, in the process of `documents_apart`.

A PDF brings its fonts along, so what can be written depends on those of this machine. What none of them has is refused:
a document with gaps in it is none.
"""

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .markup import spans_of

FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts", "/System/Library/Fonts", "/Library/Fonts")
# By family: the file of each style. The first family of which all are there is the text's, another the code's.
SANS = (
    ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSans-Oblique.ttf", "DejaVuSans-BoldOblique.ttf"),
    ("NotoSans-Regular.ttf", "NotoSans-Bold.ttf", "NotoSans-Italic.ttf", "NotoSans-BoldItalic.ttf"),
    tuple(f"LiberationSans-{style}.ttf" for style in ("Regular", "Bold", "Italic", "BoldItalic")),
    ("Arial.ttf", "Arial Bold.ttf", "Arial Italic.ttf", "Arial Bold Italic.ttf"),
)
MONO = (("DejaVuSansMono.ttf",), ("NotoSansMono-Regular.ttf",), ("LiberationMono-Regular.ttf",), ("Courier New.ttf",))
# For scripts that those do not have.
OTHERS = (
    *("NotoSansCJK-Regular.ttc", "wqy-zenhei.ttc", "DroidSansFallbackFull.ttf", "Arial Unicode.ttf", "PingFang.ttc"),
    *("NotoSansArabic-Regular.ttf", "NotoSansHebrew-Regular.ttf", "NotoSansDevanagari-Regular.ttf"),
    *("NotoSansThai-Regular.ttf", "NotoEmoji-Regular.ttf", "NotoSansSymbols2-Regular.ttf", "Symbola.ttf"),
)
STYLES = ("", "B", "I", "BI")
LONG_AGO = datetime(1980, 1, 1, tzinfo=UTC)
TEXT, CODE = "text", "code"
_SIZES = {1: 22, 2: 17, 3: 14, 4: 12, 5: 11, 6: 11}
_BASE = 11
_BULLET = "•"


def make_pdf(blocks: list[dict[str, Any]], sheets: dict[str, list[list[Any]]]) -> bytes:
    """The document, the same bytes for the same blocks. Ends the process with a sentence for what cannot be shown."""
    from fpdf import FPDF

    pdf = FPDF(format="A4")
    pdf.set_creation_date(LONG_AGO)
    pdf.set_margin(20)
    pdf.set_auto_page_break(auto=True, margin=20)
    _Fonts(pdf).check(_texts(blocks, sheets))
    pdf.add_page()
    page = _PdfPage(pdf)
    for block in blocks:
        page.add(block)
    for name, rows in sheets.items():
        page.add({"kind": "heading", "text": name, "level": 2})
        page.add({"kind": "table", "rows": rows})
    return bytes(pdf.output())


def _texts(blocks: list[dict[str, Any]], sheets: dict[str, list[list[Any]]]) -> Iterator[str]:
    for block in blocks:
        yield block.get("text", "")
        yield from (str(cell) for row in block.get("rows", ()) for cell in row)
    for name, rows in sheets.items():
        yield name
        yield from (str(cell) for row in rows for cell in row)


class _Fonts:
    """Fonts of this machine, put into the document under the names `text` and `code`."""

    def __init__(self, pdf: Any) -> None:
        self._pdf = pdf
        self._there = {path.name: path for folder in FOLDERS for path in sorted(Path(folder).rglob("*.tt[fc]"))}
        whole = [self._first(SANS), self._first(MONO)]
        self._plain = None in whole
        if self._plain:  # what every reader has, but only for Latin letters
            return
        for name, files in zip((TEXT, CODE), whole, strict=True):
            assert files is not None
            for style, file in zip(STYLES, (*files, *files[:1] * (4 - len(files))), strict=True):
                pdf.add_font(name, style, self._there[file])

    def _first(self, families: Iterable[tuple[str, ...]]) -> tuple[str, ...] | None:
        return next((files for files in families if all(file in self._there for file in files)), None)

    def check(self, texts: Iterable[str]) -> None:
        letters = {letter for text in texts for letter in text if not letter.isspace()} | {_BULLET}
        missing = {letter for letter in letters if not self._has(letter)}
        for file in OTHERS:
            if not missing or self._plain:
                break
            if file in self._there:
                missing -= self._take_in(file, missing)
        if missing:
            shown = " ".join(sorted(missing)[:10])
            sys.exit(
                f"no font of this machine has {shown}; install one that does (Debian: fonts-dejavu, fonts-noto-cjk), "
                "or make a docx or html"
            )
        self._pdf.set_fallback_fonts([name for name in self._pdf.fonts if name not in _own(self._pdf)])

    def _has(self, letter: str) -> bool:
        if self._plain:
            return letter in _WINDOWS
        return all(ord(letter) in self._pdf.fonts[name].cmap for name in (TEXT, CODE))

    def _take_in(self, file: str, missing: set[str]) -> set[str]:
        """Those of the missing letters that a further font has; it is put in only if it has any."""
        from fontTools.ttLib import TTFont

        with TTFont(self._there[file], fontNumber=0, lazy=True) as font:
            found = {letter for letter in missing if ord(letter) in font.getBestCmap()}
        if found:
            self._pdf.add_font(file, "", self._there[file])
        return found


def _own(pdf: Any) -> set[str]:
    return {name for name in pdf.fonts if name.rstrip("BI") in (TEXT, CODE)}


_WINDOWS = {bytes([code]).decode("cp1252", "ignore") for code in range(256)}


class _PdfPage:
    """Writes blocks one below the other."""

    def __init__(self, pdf: Any) -> None:
        self._pdf = pdf
        self._text = TEXT if TEXT in pdf.fonts else "helvetica"
        self._code = CODE if CODE in pdf.fonts else "courier"
        self._number = 0  # of the last item of the running list

    def add(self, block: dict[str, Any]) -> None:
        pdf, kind, level = self._pdf, block["kind"], block.get("level", 0)
        self._number = self._number + 1 if kind == "number" else 0
        match kind:
            case "heading":
                pdf.ln(4)
                self._line(block["text"], size=_SIZES[min(level, 6)], bold=True)
            case "table":
                self._table(block["rows"])
            case "code":
                pdf.set_font(self._code, size=9)
                pdf.set_fill_color(244, 244, 244)
                pdf.multi_cell(0, 5, block["text"], fill=True, new_x="LMARGIN", new_y="NEXT")
                pdf.set_fill_color(255, 255, 255)
            case "rule":
                pdf.ln(2)
                pdf.line(pdf.l_margin, pdf.get_y(), pdf.w - pdf.r_margin, pdf.get_y())
            case "bullet" | "number":
                mark = f"{self._number}." if kind == "number" else _BULLET
                self._line(block["text"], indent=4 + 6 * level, mark=mark)
            case "quote":
                self._line(block["text"], indent=8, italic=True)
            case _:
                self._line(block["text"])
        pdf.ln(1 if kind in ("bullet", "number") else 3)

    def _line(
        self,
        text: str,
        *,
        size: int = _BASE,
        bold: bool = False,
        italic: bool = False,
        indent: float = 0,
        mark: str = "",
    ) -> None:
        pdf, margin = self._pdf, self._pdf.l_margin
        pdf.set_left_margin(margin + indent + (6 if mark else 0))
        if mark:
            pdf.set_x(margin + indent)
            pdf.set_font(self._text, size=size)
            pdf.cell(6, size * 0.5, mark)
        pdf.set_x(pdf.l_margin)
        for span in spans_of(text):
            style = "B" * (bold or span.bold) + "I" * (italic or span.italic)
            pdf.set_font(self._code if span.code else self._text, style, size)
            link = span.link if span.link.startswith(("http://", "https://", "mailto:")) else ""
            pdf.set_text_color(*((0, 60, 160) if link else (0, 0, 0)))
            pdf.write(size * 0.5, span.text, link)
        pdf.set_text_color(0, 0, 0)
        pdf.ln(size * 0.5)
        pdf.set_left_margin(margin)
        pdf.set_x(margin)

    def _table(self, rows: list[list[Any]]) -> None:
        width = max(map(len, rows), default=0)
        if not width:
            return
        self._pdf.set_font(self._text, size=10)
        with self._pdf.table(first_row_as_headings=True, text_align="LEFT") as table:
            for row in rows:
                line = table.row()
                for cell in (*row, *[""] * (width - len(row))):
                    line.cell("" if cell is None else "".join(span.text for span in spans_of(str(cell))))
