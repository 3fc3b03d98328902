"""A message as values: blocks in their order, each with runs of text of one look and with what it stands inside of.

There is no tree to walk down: how deep quotes and lists are nested is a field of a block, and whether a word is bold
and struck one of a run. So nothing recurses, a cut is a slice, and a renderer cannot leave anything open.
"""

from collections.abc import Iterable, Iterator
from typing import Literal

from msgspec import Struct, structs

BOLD, ITALIC, STRIKE, SPOILER, CODE = 1, 2, 4, 8, 16
STYLES = (BOLD, ITALIC, STRIKE, SPOILER)  # those that can be nested in each other


class Run(Struct, frozen=True, gc=False):
    """Text of one look. With `href` it is a link, whole."""

    text: str
    style: int = 0
    href: str = ""


class Quote(Struct, frozen=True, gc=False):
    id: int


class ListItem(Struct, frozen=True, gc=False):
    """One item of the list with this id; `number` is None where it has a bullet."""

    id: int
    list: int
    number: int | None = None


Container = Quote | ListItem
Row = tuple[tuple[Run, ...], ...]


class TextBlock(Struct, frozen=True, kw_only=True):
    """What stands by itself. The innermost `opened` of what it is `inside` begin with it. `tight`: no empty line before
    it where the block before is of the same list. `continued`: it goes on with what was cut before it."""

    kind: Literal["text", "heading", "code", "table", "rule"] = "text"
    runs: tuple[Run, ...] = ()
    inside: tuple[Container, ...] = ()
    opened: int = 0
    tight: bool = False
    continued: bool = False
    language: str = ""  # of code
    level: int = 0  # of a heading
    rows: tuple[Row, ...] = ()  # of a table; the first is its head

    @property
    def text(self) -> str:
        return "".join(run.text for run in self.runs)


def merged(runs: Iterable[Run]) -> tuple[Run, ...]:
    """The same with neighbours of one look as one. A link is one in any case, with the look that all of it has."""
    groups: list[tuple[Run, list[str]]] = []
    for run in runs:
        if not run.text:
            continue
        if groups and _go_together(groups[-1][0], run):
            last, texts = groups[-1]
            texts.append(run.text)
            if last.style != run.style:
                groups[-1] = Run(last.text, last.style & run.style, last.href), texts
        else:
            groups.append((run, [run.text]))
    return tuple(run if len(texts) == 1 else Run("".join(texts), run.style, run.href) for run, texts in groups)


def _go_together(before: Run, run: Run) -> bool:
    return before.href == run.href and (before.style == run.style or bool(run.href))


def sliced(runs: Iterable[Run], start: int, end: int) -> Iterator[Run]:
    """The runs of the text from `start` to `end`."""
    at = 0
    for run in runs:
        after = at + len(run.text)
        if after > start and at < end:
            yield structs.replace(run, text=run.text[max(0, start - at) : end - at])
        at = after
        if at >= end:
            return


def separated(blocks: Iterable[TextBlock]) -> Iterator[tuple[str, TextBlock]]:
    """Each block with the line ends that stand before it."""
    before: TextBlock | None = None
    for block in blocks:
        yield ("" if before is None else _gap(before, block)), block
        before = block


def _gap(before: TextBlock, block: TextBlock) -> str:
    together = before.inside and block.inside and _place(before.inside[0]) == _place(block.inside[0])
    return "\n" if block.tight and together else "\n\n"


def _place(container: Container) -> int:
    return container.list if isinstance(container, ListItem) else container.id
