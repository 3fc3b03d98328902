"""What a dialect is: how blocks are written in it, how long that is, and how long it may be.

`LineDialect` writes blocks as lines, with markers and spaces before them: plain text. Telegram, Slack and Discord
differ from it in what they write for a run, for code and for a quote. HTML is in html.py.
"""

import re
from collections.abc import Sequence
from itertools import groupby
from typing import ClassVar, Protocol

from ...ports.channel import Rendered, Unit
from .tree import CODE, Container, ListItem, Quote, Run, TextBlock, separated

Weight = tuple[int, ...]
RULE = "———"
_ADDRESS = re.compile(r"(https?://\S+)", re.IGNORECASE)
NO_WIDTH = "\u200b"  # between two characters that would mean something together


class TextDialect(Protocol):
    """How a channel writes text."""

    limit: int  # of one message; 0: any
    unit: Unit
    table_width: int  # columns of a table that is shown in letters of one width; -1: it has tables of its own

    def render(self, blocks: Sequence[TextBlock]) -> Rendered: ...

    def weigh(self, rendered: Rendered, unit: Unit) -> Weight:
        """How long it is. Of blocks together it is no more than of each alone, with `between` for each."""

    def bounds(self, limit: int) -> Weight:
        """How long it may be, in the same measures."""

    @property
    def between(self) -> Weight: ...


def length(text: str, unit: Unit) -> int:
    """As the platform counts it."""
    match unit:
        case "char":
            return len(text)
        case "utf16":
            return len(text.encode("utf-16-le", "surrogatepass")) // 2
        case "byte":
            return len(text.encode("utf-8", "surrogatepass"))


class LineDialect:
    """Plain text, and what is like it."""

    limit = 0
    unit: Unit = "char"
    table_width = 78
    bullet: ClassVar[str] = "-"
    indents_code: ClassVar[bool] = True  # else code stands at the left, and outside of a quote
    between: Weight = (3,)  # an empty line, in a quote

    def render(self, blocks: Sequence[TextBlock]) -> Rendered:
        plain = PLAIN.join(blocks)
        return Rendered(self.join(blocks), self.tame(plain)) if self is not PLAIN else Rendered(plain, plain)

    def weigh(self, rendered: Rendered, unit: Unit) -> Weight:
        return (max(length(rendered.text, unit), length(rendered.plain, unit)),)

    def bounds(self, limit: int) -> Weight:
        return (limit,)

    def tame(self, text: str) -> str:
        """Text as it is, but for what the platform would take as more than text where it shows no markup."""
        return text

    def inline(self, runs: Sequence[Run]) -> str:
        return "".join(with_address(run) for run in runs)

    def code(self, block: TextBlock) -> str:
        return block.text

    def heading(self, block: TextBlock) -> str:
        return self.inline(block.runs)

    def quoted(self, text: str) -> str:
        return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))

    def inner_quote(self) -> str:
        return "> "

    def join(self, blocks: Sequence[TextBlock]) -> str:
        groups = [(quote, [*group]) for quote, group in groupby(blocks, self._outer_quote)]
        texts = [self.quoted(self._lines(group, 1)) if quote else self._lines(group, 0) for quote, group in groups]
        return "\n\n".join(texts)

    def _outer_quote(self, block: TextBlock) -> int:
        """The id of the quote around all of it, which the platform can show as one, or 0."""
        if not block.inside or not isinstance(block.inside[0], Quote) or self._stands_left(block):
            return 0
        return block.inside[0].id

    def _stands_left(self, block: TextBlock) -> bool:
        return block.kind == "code" and not self.indents_code

    def _lines(self, blocks: Sequence[TextBlock], outside: int) -> str:
        return "".join(gap + self._block(block, outside) for gap, block in separated(blocks))

    def _block(self, block: TextBlock, outside: int) -> str:
        first, further = self._prefixes(block, block.inside[outside:])
        if self._stands_left(block):
            marked = f"{first.rstrip()}\n" if block.opened and first.strip() else ""
            return marked + self._body(block)
        lines = [f"{further}{line}".rstrip() if not line else further + line for line in self._body(block).split("\n")]
        lines[0] = (first + lines[0][len(further) :]).rstrip() if not block.runs else first + lines[0][len(further) :]
        return "\n".join(lines)

    def _prefixes(self, block: TextBlock, inside: Sequence[Container]) -> tuple[str, str]:
        """What stands before its first line, and before each further one."""
        first, further, old = "", "", len(inside) - block.opened
        for number, container in enumerate(inside):
            if isinstance(container, ListItem):
                marker = f"{self.bullet if container.number is None else f'{container.number}.'} "
                further += " " * len(marker)
                first += marker if number >= old else " " * len(marker)
            else:
                further += self.inner_quote()
                first += self.inner_quote()
        return first, further

    def _body(self, block: TextBlock) -> str:
        match block.kind:
            case "code":
                return self.code(block)
            case "heading":
                return self.heading(block)
            case "rule":
                return RULE
            case _:
                return self.inline(block.runs)


def with_address(run: Run) -> str:
    """A run as plain text: a link with where it leads."""
    if not run.href or run.text in (run.href, run.href.removeprefix("mailto:"), run.href.removeprefix("tel:")):
        return run.text
    return f"{run.text} ({run.href})"


def unmentioned(text: str, mention: re.Pattern[str]) -> str:
    """Text in which what the pattern finds, an @ that would mention somebody, does not. An address stays one."""
    pieces = _ADDRESS.split(text)
    return "".join(mention.sub("%40" if at % 2 else f"@{NO_WIDTH}", piece) for at, piece in enumerate(pieces))


def is_code(run: Run) -> bool:
    return bool(run.style & CODE) and not run.href


PLAIN = LineDialect()
