"""From markdown to blocks."""

import re
from collections.abc import Iterator, Sequence

from markdown_it.token import Token

from .links import clean, linked, linkified
from .syntax import tokens_of
from .tree import BOLD, CODE, ITALIC, SPOILER, STRIKE, Container, ListItem, Quote, Row, Run, TextBlock, merged

LONGEST = 256_000  # characters of a text that is read as markdown; a longer one is shown as it is written
_STYLES = {"strong": BOLD, "em": ITALIC, "s": STRIKE, "spoiler": SPOILER}
_TASK = re.compile(r"\[([ xX])\](?=\s)")
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,30}")


def read(markdown: str) -> list[TextBlock]:
    """The blocks of it; none if there is nothing to be seen in it."""
    text = clean(markdown)
    if len(text) > LONGEST:
        return _as_written(text)
    return _Reader().read(tokens_of(text)) or _as_written(text)


def _as_written(text: str) -> list[TextBlock]:
    paragraphs = re.split(r"\n[ \t]*\n", text)
    return [TextBlock(runs=(Run(each.strip("\n")),)) for each in paragraphs if each.strip()]


class _Reader:
    def __init__(self) -> None:
        self._blocks: list[TextBlock] = []
        self._inside: list[Container] = []
        self._fresh = 0  # of those, the innermost in which nothing stands yet
        self._lists: list[tuple[int, int | None]] = []  # its id, and the number of the next item
        self._ids = 0
        self._tight = False
        self._level = 0
        self._rows: list[Row] = []
        self._row: list[tuple[Run, ...]] = []
        self._cell = False

    def read(self, tokens: Sequence[Token]) -> list[TextBlock]:
        for token in tokens:
            self._take(token)
        return self._blocks

    def _take(self, token: Token) -> None:
        match token.type:
            case "blockquote_open":
                self._enter(Quote(self._id()))
            case "bullet_list_open":
                self._lists.append((self._id(), None))
            case "ordered_list_open":
                self._lists.append((self._id(), int(token.attrs.get("start", 1))))
            case "bullet_list_close" | "ordered_list_close":
                self._lists.pop()
            case "list_item_open":
                list_id, number = self._lists[-1]
                self._lists[-1] = list_id, None if number is None else number + 1
                self._enter(ListItem(self._id(), list_id, number))
            case "blockquote_close" | "list_item_close":
                self._leave()
            case "paragraph_open":
                self._tight = token.hidden
            case "heading_open":
                self._level = int(token.tag[1:])
            case "heading_close":
                self._level = 0
            case "inline":
                self._take_inline(token)
            case "fence" | "code_block":
                self._take_code(token)
            case "as_written":
                self._add(TextBlock(runs=(Run(clean(token.content)),)))
            case "hr":
                self._add(TextBlock(kind="rule"))
            case _ if token.type.startswith(("table", "tr", "th", "td")):
                self._take_table(token)

    def _take_inline(self, token: Token) -> None:
        runs = runs_of(token.children or [])
        if self._cell:
            self._row.append(tuple(Run(_BREAK.sub(" ", run.text), run.style, run.href) for run in runs))
        elif self._level:
            self._add(TextBlock(kind="heading", runs=runs, level=self._level))
        else:
            self._add(TextBlock(runs=self._task(runs), tight=self._tight))

    def _task(self, runs: tuple[Run, ...]) -> tuple[Run, ...]:
        """A box before an item that has one."""
        if not (self._fresh and isinstance(self._inside[-1], ListItem) and runs and not runs[0].style):
            return runs
        return (Run(_TASK.sub(lambda box: "☐" if box[1] == " " else "☑", runs[0].text, count=1))
                if _TASK.match(runs[0].text) else runs[0], *runs[1:])  # fmt: skip

    def _take_code(self, token: Token) -> None:
        language = _LANGUAGE.match(token.info.strip()) if token.type == "fence" else None
        code = clean(token.content).removesuffix("\n")
        self._add(TextBlock(kind="code", runs=(Run(code),) if code else (), language=language[0] if language else ""))

    def _take_table(self, token: Token) -> None:
        match token.type:
            case "th_open" | "td_open":
                self._cell = True
            case "th_close" | "td_close":
                self._cell = False
            case "tr_close":
                self._rows.append(tuple(self._row))
                self._row = []
            case "table_close":
                self._add(TextBlock(kind="table", rows=tuple(self._rows)))
                self._rows = []

    def _id(self) -> int:
        self._ids += 1
        return self._ids

    def _enter(self, container: Container) -> None:
        self._inside.append(container)
        self._fresh += 1

    def _leave(self) -> None:
        if self._fresh and isinstance(self._inside[-1], ListItem):
            self._add(TextBlock(tight=True))  # an item of no words
        self._fresh = max(0, self._fresh - 1)
        self._inside.pop()

    def _add(self, block: TextBlock) -> None:
        self._blocks.append(_placed(block, tuple(self._inside), self._fresh))
        self._fresh = 0


def _placed(block: TextBlock, inside: tuple[Container, ...], opened: int) -> TextBlock:
    return TextBlock(
        kind=block.kind,
        runs=block.runs,
        inside=inside,
        opened=opened,
        tight=block.tight,
        language=block.language,
        level=block.level,
        rows=block.rows,
    )


def runs_of(tokens: Sequence[Token]) -> tuple[Run, ...]:
    """What stands in a line, or in several."""
    joined = merged(_runs(tokens))
    return merged(piece for run in joined for piece in linkified(run))


def _runs(tokens: Sequence[Token]) -> Iterator[Run]:
    depth = dict.fromkeys(_STYLES, 0)
    style, href, label = 0, "", list[Run]()
    within = False  # of a link
    for token in tokens:
        kind, _, end = token.type.rpartition("_")
        if kind in _STYLES:
            depth[kind] += 1 if end == "open" else -1
            style = sum(bit for name, bit in _STYLES.items() if depth[name])
        elif token.type == "link_open":
            within, href, label = True, str(token.attrs.get("href", "")), []
        elif token.type == "link_close":
            within = False
            yield from linked(merged(label), href)
        elif token.type == "image":
            pieces = [*_image(token, style, within)]
            label.extend(pieces)
            yield from () if within else pieces
        else:
            piece = _piece(token, style)
            label.append(piece)
            if not within:
                yield piece


def _image(token: Token, style: int, within: bool) -> Iterator[Run]:
    """An image is a link to it; in a link its words alone are left."""
    words = clean("".join(child.content for child in token.children or [])) or "image"
    return iter([Run(words, style)]) if within else linked((Run(words, style),), str(token.attrs.get("src", "")))


def _piece(token: Token, style: int) -> Run:
    match token.type:
        case "softbreak" | "hardbreak":
            return Run("\n", style)
        case "code_inline":
            return Run(clean(token.content), style | CODE)
        case _:
            return Run(clean(token.content), style)
