"""HTML with lists, quotes and tables of its own: Matrix's subset of it (https://spec.matrix.org/latest/client-server-api,
m.room.message) and e-mail. Everything that somebody wrote is escaped; nothing is loaded from anywhere."""

import re
from collections.abc import Callable, Sequence
from html import escape

import msgspec

from ...ports.channel import Rendered, Unit
from .dialect import PLAIN, Weight, is_code, unmentioned
from .tables import lowered
from .tree import BOLD, CODE, ITALIC, SPOILER, STRIKE, Container, ListItem, Quote, Run, TextBlock
from .weaving import weave

_TAGS = {BOLD: "strong", ITALIC: "em", STRIKE: "del"}
_ROOM = re.compile(r"@(?=room\b)", re.IGNORECASE)


class HtmlDialect:
    """`table_width` of the plain text beside it is that of plain text."""

    limit = 0
    unit: Unit = "byte"
    table_width = -1
    between: Weight = (6,)

    def __init__(self, spoiler: str, limit: int = 0, tame: Callable[[str], str] = str) -> None:
        self.limit = limit
        self._spoiler = spoiler  # the tag for what is hidden; "": it is shown
        self._tame = tame

    def render(self, blocks: Sequence[TextBlock]) -> Rendered:
        plain = PLAIN.join([each for block in blocks for each in lowered(block, PLAIN.table_width)])
        return Rendered(_Writer(self).write(blocks), self._tame(plain))

    def weigh(self, rendered: Rendered, unit: Unit) -> Weight:
        """Both are sent, in JSON."""
        return (len(msgspec.json.encode(rendered.text)) + len(msgspec.json.encode(rendered.plain)),)

    def bounds(self, limit: int) -> Weight:
        return (limit,)

    def inline(self, runs: Sequence[Run]) -> str:
        woven = weave(runs, self._run, self._opening, self._closing)
        return "".join(closed + opened + text for closed, opened, text in woven).replace("\n", "<br>")

    def _run(self, run: Run) -> str:
        text = escape(self._tame(run.text))
        if run.href:
            return f'<a href="{escape(self._tame(run.href))}">{text}</a>'
        return f"<code>{text}</code>" if is_code(run) and run.style & CODE else text

    def _opening(self, style: int) -> str:
        return f"<{_TAGS.get(style) or self._spoiler}>" if style != SPOILER or self._spoiler else ""

    def _closing(self, style: int) -> str:
        return (
            f"</{(_TAGS.get(style) or self._spoiler).partition(' ')[0]}>" if style != SPOILER or self._spoiler else ""
        )

    def block(self, block: TextBlock) -> str:
        match block.kind:
            case "heading":
                return f"<h{block.level}>{self.inline(block.runs)}</h{block.level}>"
            case "code":
                named = f' class="language-{block.language}"' if block.language else ""
                return f"<pre><code{named}>{escape(self._tame(block.text))}</code></pre>"
            case "table":
                return self._table(block)
            case "rule":
                return "<hr>"
            case _ if block.tight:
                return self.inline(block.runs)
            case _:
                return f"<p>{self.inline(block.runs)}</p>"

    def _table(self, block: TextBlock) -> str:
        head, *rows = block.rows
        body = "".join(self._row(row, "td") for row in rows)
        return f"<table><thead>{self._row(head, 'th')}</thead>{f'<tbody>{body}</tbody>' if body else ''}</table>"

    def _row(self, row: Sequence[tuple[Run, ...]], tag: str) -> str:
        return f"<tr>{''.join(f'<{tag}>{self.inline(cell)}</{tag}>' for cell in row)}</tr>"


class _Writer:
    """Opens and closes what the blocks of one message stand inside of."""

    def __init__(self, dialect: HtmlDialect) -> None:
        self._dialect = dialect
        self._inside: list[Container] = []
        self._tags: list[tuple[str, ...]] = []  # of each of these, what is open
        self._out: list[str] = []

    def write(self, blocks: Sequence[TextBlock]) -> str:
        for block in blocks:
            self._stand_in(block)
            self._out.append(self._dialect.block(block))
        self._leave(0)
        return "".join(self._out)

    def _stand_in(self, block: TextBlock) -> None:
        common = 0
        for ours, theirs in zip(self._inside, block.inside, strict=False):
            if ours != theirs:
                break
            common += 1
        next_item = self._next_item(block, common)
        self._leave(common + (1 if next_item else 0))
        for number in range(common, len(block.inside)):
            new = number >= len(block.inside) - block.opened
            self._enter(block.inside[number], new=new, same_list=next_item and number == common)

    def _next_item(self, block: TextBlock, common: int) -> bool:
        """Whether it begins another item of the list in which we are."""
        if common >= len(self._inside) or common >= len(block.inside) or not self._tags[common]:
            return False
        ours, theirs = self._inside[common], block.inside[common]
        return isinstance(ours, ListItem) and isinstance(theirs, ListItem) and ours.list == theirs.list

    def _enter(self, container: Container, *, new: bool, same_list: bool) -> None:
        if same_list:
            self._out.append("</li><li>")
            self._inside[-1] = container
            return
        tags: tuple[str, ...] = ()
        if isinstance(container, Quote):
            tags = ("blockquote",)
            self._out.append("<blockquote>")
        elif new:  # what goes on with an item of the message before has no number of its own
            tags = ("ul" if container.number is None else "ol", "li")
            numbered = f'<ol start="{container.number}">' if container.number != 1 else "<ol>"
            self._out.append(("<ul>" if container.number is None else numbered) + "<li>")
        self._inside.append(container)
        self._tags.append(tags)

    def _leave(self, depth: int) -> None:
        while len(self._inside) > depth:
            self._inside.pop()
            self._out += [f"</{tag}>" for tag in reversed(self._tags.pop())]


def _quiet(text: str) -> str:
    return unmentioned(text, _ROOM)


MATRIX = HtmlDialect("span data-mx-spoiler", limit=40_000, tame=_quiet)  # an event has 65,536 bytes, encrypted as well
EMAIL = HtmlDialect("")
