"""The marks within a paragraph: bold, italic, struck, code, links. What is said by an entity (`&#27;`) is made visible
after it was read."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from ...readings.visible import visible
from .inked import Inked

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_MARKS = re.compile(r"[*_`\[\]<&\\~!]|://")
_ADDRESS = re.compile(r"(https?://[^\s<>\"'`]*[^\s<>\"'`.,;:!?)\]}*_])")
_SHORT = 200  # letters
_STYLES = {"strong": "bold", "em": "italic", "s": "strike"}


def inked(text: str) -> tuple[Inked, ...]:
    """The runs of a paragraph; line ends stay line ends."""
    if not _MARKS.search(text):
        return (Inked(text),)
    return _short(text) if len(text) < _SHORT else _parsed(text)


def _parsed(text: str) -> tuple[Inked, ...]:
    (whole,) = _parser().parseInline(text)
    return tuple(each for each in _runs(whole.children or []) if each.text)


_short = lru_cache(maxsize=512)(_parsed)  # cells of a table are drawn again and again while it grows


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # takes its time, and is needed with the first mark

    parser: Any = MarkdownIt("commonmark", {"html": False}).enable("strikethrough")
    parser.validateLink = lambda url: True  # an address is shown, whatever it is, and never followed
    parser.normalizeLink = lambda url: url
    made: MarkdownIt = parser
    return made


def _runs(tokens: "list[Token]") -> Iterator[Inked]:
    styles: list[str] = []
    href = label = title = ""
    for token in tokens:
        kind = token.type
        if kind == "link_open":
            href, title, label = _attribute(token, "href"), _attribute(token, "title"), ""
            styles.append("link")
        elif kind == "link_close":
            styles.remove("link")
            yield from _address(href, label, title)
            href = ""
        elif kind.endswith("_open"):
            styles.append(_STYLES[kind[:-5]])
        elif kind.endswith("_close"):
            styles.remove(_STYLES[kind[:-6]])
        else:
            text = _said(token)
            label += text
            yield from _looking(text, kind, " ".join(styles), href)
            if kind == "image":
                yield from _address(_attribute(token, "src"), text, _attribute(token, "title"))


def _attribute(token: "Token", name: str) -> str:
    return visible(str(token.attrs.get(name, ""))).expandtabs(4)


def _said(token: "Token") -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    return visible(token.content).expandtabs(4)


def _looking(text: str, kind: str, style: str, href: str) -> Iterator[Inked]:
    if kind == "code_inline":
        yield Inked(text, f"{style} code".strip(), href)
    elif kind == "image":
        yield Inked(f"[image: {text}]" if text else "[image]", f"{style} image".strip(), href)
    elif href or "://" not in text:
        yield Inked(text, style, href)
    else:
        for at, part in enumerate(_ADDRESS.split(text)):
            yield Inked(part, f"{style} link".strip() if at % 2 else style, part if at % 2 else "")


def _address(href: str, label: str, title: str) -> Iterator[Inked]:
    """Where a link leads, unless that is what it says."""
    if title or (href and label.strip() not in (href, href.removeprefix("mailto:"))):
        yield Inked(" (")
        yield Inked(href.replace(" ", "%20"), "address", href)
        yield Inked(f"{' ' * bool(href)}“{title}”)" if title else ")")
