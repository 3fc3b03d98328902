"""What a person sees of a mail's HTML, as text. What it quotes stands behind `> `, what is hidden is left out."""

import re
from html.parser import HTMLParser

_BLOCKS = {
    "address", "article", "blockquote", "center", "div", "dd", "dl", "dt", "footer", "form", "h1", "h2", "h3", "h4",
    "h5", "h6", "header", "hr", "li", "main", "ol", "p", "pre", "section", "table", "tbody", "thead", "tr", "ul",
}  # fmt: skip
_APART = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "pre", "blockquote"}  # with an empty line
_UNSEEN = {"head", "script", "style", "template", "title", "noscript", "object", "svg"}
_EMPTY = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
_HIDDEN = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden|font-size\s*:\s*0(?![\d.])", re.IGNORECASE)
_QUOTES = re.compile(r"\b(gmail_quote|yahoo_quoted|protonmail_quote|moz-cite-prefix)\b")
_DEEPEST = 500


class _HtmlReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.lines: list[tuple[int, str]] = []  # how deep it is quoted, and what it says
        self._line = ""
        self._open: list[tuple[str, bool, bool, str]] = []  # tag, whether hidden, whether quoted, where a link leads
        self._pre = 0

    @property
    def _depth(self) -> int:
        return sum(quoted for _, _, quoted, _ in self._open)

    @property
    def _is_hidden(self) -> bool:
        return any(hidden for _, hidden, _, _ in self._open)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = {name: value or "" for name, value in attrs}
        if tag == "br" or tag in _BLOCKS:
            self._end_line(apart=tag in _APART)
        if tag in _EMPTY or len(self._open) >= _DEEPEST:
            if tag == "img" and said.get("alt", "").strip():
                self.handle_data(f"[{said['alt'].strip()}]")
            return
        if tag == "li":
            self._line = "- "
        if tag in ("td", "th") and self._line.strip():
            self._line += " | "
        hidden = tag in _UNSEEN or "hidden" in said or bool(_HIDDEN.search(said.get("style", "")))
        quoted = tag == "blockquote" or bool(_QUOTES.search(said.get("class", "")))
        self._pre += tag == "pre"
        self._open.append((tag, hidden, quoted, said.get("href", "") if tag == "a" else ""))

    def handle_endtag(self, tag: str) -> None:
        if tag not in (each for each, _, _, _ in self._open):
            return
        if tag in _BLOCKS:
            self._end_line(apart=tag in _APART)
        while True:  # what it holds ends with it
            last, _, _, href = self._open.pop()
            self._pre -= last == "pre"
            if last == "a" and href.startswith(("http://", "https://")) and href not in self._line:
                self._line += f" ({href})"
            if last == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._is_hidden:
            return
        if self._pre:
            *whole, rest = data.split("\n")
            for line in whole:
                self._line += line
                self._end_line()
            self._line += rest
            return
        text = re.sub(r"[ \t\r\n\f\xa0]+", " ", data)
        self._line += text.lstrip() if not self._line or self._line.endswith(" ") else text

    def close(self) -> None:
        super().close()
        self._end_line()

    def _end_line(self, apart: bool = False) -> None:
        line, self._line = self._line.rstrip(), ""
        if line and line != "-":
            self.lines.append((self._depth, line))
        if apart and self.lines and self.lines[-1][1]:
            self.lines.append((0, ""))


def text_of_html(html: str) -> str:
    reader = _HtmlReader()
    reader.feed(html)
    reader.close()
    lines = [f"{'> ' * depth}{line}".rstrip() for depth, line in reader.lines]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
