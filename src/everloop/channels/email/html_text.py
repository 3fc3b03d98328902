"""What a person sees of a mail's HTML, as text. What it quotes stands behind `> `, what is hidden is left out."""

import re
from collections import Counter

from .html_tokens import HtmlTag, tokens_of

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
_DEEPEST_QUOTE = 5


class _HtmlReader:
    """Goes through the tags of a mail, and knows what is open."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []  # how deep it is quoted, and what it says
        self._line: list[str] = []  # the pieces of a line: one after the other they would be copied again and again
        self._open: list[tuple[str, bool, bool, str]] = []  # tag, whether hidden, whether quoted, where a link leads
        self._names: Counter[str] = Counter()  # of what is open
        self._quoted = self._hidden = 0

    def begin(self, tag: HtmlTag) -> None:
        name, said = tag.name, tag.attributes
        if name == "br" or name in _BLOCKS:
            self.end_line(apart=name in _APART)
        if name in _EMPTY or len(self._open) >= _DEEPEST:
            if name == "img" and said.get("alt", "").strip():
                self.say(f"[{said['alt'].strip()}]")
            return
        if name == "li":
            self._line = ["- "]
        if name in ("td", "th") and self._line:
            self._line.append(" | ")
        hidden = name in _UNSEEN or "hidden" in said or bool(_HIDDEN.search(said.get("style", "")))
        quoted = name == "blockquote" or bool(_QUOTES.search(said.get("class", "")))
        self._count(name, hidden, quoted, 1)
        self._open.append((name, hidden, quoted, said.get("href", "") if name == "a" else ""))

    def end(self, name: str) -> None:
        if not self._names[name]:
            return
        if name in _BLOCKS:
            self.end_line(apart=name in _APART)
        while True:  # what it holds ends with it
            last, hidden, quoted, href = self._open.pop()
            self._count(last, hidden, quoted, -1)
            if last == "a" and href.startswith(("http://", "https://")) and href not in "".join(self._line[-1:]):
                self._line.append(f" ({href})")
            if last == name:
                return

    def say(self, text: str) -> None:
        if self._hidden:
            return
        if self._names["pre"]:
            *whole, rest = text.split("\n")
            for line in whole:
                self._line.append(line)
                self.end_line()
            self._line.append(rest)
            return
        text = re.sub(r"[ \t\r\n\f\xa0]+", " ", text)
        if text := text.lstrip() if not self._line or self._line[-1].endswith(" ") else text:
            self._line.append(text)

    def end_line(self, apart: bool = False) -> None:
        line, self._line = "".join(self._line).rstrip(), []
        if line and line != "-":
            self.lines.append((self._quoted, line))
        if apart and self.lines and self.lines[-1][1]:
            self.lines.append((0, ""))

    def _count(self, name: str, hidden: bool, quoted: bool, by: int) -> None:
        self._names[name] += by
        self._hidden += by if hidden else 0
        self._quoted += by if quoted else 0


def text_of_html(html: str) -> str:
    reader = _HtmlReader()
    for token in tokens_of(html):
        match token:
            case HtmlTag(closes=False):
                reader.begin(token)
            case HtmlTag(name=name):
                reader.end(name)
            case text:
                reader.say(text)
    reader.end_line()
    lines = [f"{'> ' * min(depth, _DEEPEST_QUOTE)}{line}".rstrip() for depth, line in reader.lines]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
