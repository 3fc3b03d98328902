"""The parser: CommonMark with tables and strikethrough, without HTML, and with what chats and models add to it.

Every rule of ours looks ahead over a bounded stretch, so that all of it stays linear in the length of the text.
"""

import re
from functools import cache
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block import reference as _reference
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

NESTING = 24  # markdown-it leaves away what is nested deeper: we take it as it is written before
AHEAD = 1_000  # characters in which a formula or a spoiler has to end
LINES = 200  # lines in which a formula has to end
_LABEL = re.compile(r"\[([^\[\]\n]{1,200})\](?!:)")
_MATH = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}


def tokens_of(markdown: str) -> list[Token]:
    return _parser().parse(markdown, {"labels": {_folded(label) for label in _LABEL.findall(markdown)}})


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": NESTING})
    parser.enable(["table", "strikethrough"])
    parser.disable(["html_block", "html_inline"])
    parser.validateLink = lambda url: True  # type: ignore[method-assign]  # links.py decides
    parser.block.ruler.at("reference", _used_reference)
    parser.block.ruler.before("table", "formula", _formula_block, {"alt": ["paragraph", "reference", "blockquote"]})
    parser.block.ruler.before("formula", "deep", _too_deep)
    parser.inline.ruler.before("escape", "formula", _formula)
    parser.inline.ruler.before("link", "spoiler", _spoiler)
    parser.inline.add_terminator_char("|")
    return parser


def _folded(label: str) -> str:
    return " ".join(label.split()).casefold()


def _used_reference(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A definition that nothing refers to stays text: nothing that was written vanishes. Neither is a footnote one."""
    line = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]]
    label = line[1:].partition("]")[0]
    if line[:1] != "[" or label.startswith("^") or _folded(label) not in state.env["labels"]:
        return False
    return _reference(state, start, end, silent)


def _too_deep(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.level < NESTING - 2 or silent:
        return False
    return _as_written(state, start, end)


def _as_written(state: StateBlock, start: int, end: int) -> bool:
    token = state.push("as_written", "", 0)
    token.content = state.getLines(start, end, state.blkIndent, False)
    state.line = end
    return True


def _formula_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A formula of its own lines is left as it is: `=` under a line would make a heading of it."""
    first = state.src[state.bMarks[start] + state.tShift[start] : state.eMarks[start]].rstrip()
    closing = _MATH.get(first[:2])
    if closing is None or first.startswith("\\(") or state.is_code_block(start):
        return False
    for line in range(start, min(end, start + LINES)):
        text = first[2:] if line == start else state.src[state.bMarks[line] : state.eMarks[line]].rstrip()
        if text.endswith(closing):
            return silent or _as_written(state, start, line + 1)
        if line > start and state.sCount[line] < state.blkIndent:
            return False
    return False


def _formula(state: StateInline, silent: bool) -> bool:
    end = _formula_end(state.src, state.pos, state.posMax)
    if not end:
        return False
    if not silent:
        state.push("formula", "", 0).content = state.src[state.pos : end]
    state.pos = end
    return True


def _formula_end(text: str, at: int, most: int) -> int:
    """Where the formula that begins here ends, or 0. Money is none: `$5 and $6`."""
    opening = text[at : at + 2]
    if opening == "\\[" and not text[at + 2 : at + 3].isspace():
        return 0  # a bracket that is no link's
    if closing := _MATH.get(opening):
        found = text.find(closing, at + 2, min(most, at + AHEAD))
        return found + 2 if found > at + 2 else 0
    if opening[:1] != "$" or opening[1:].isspace() or len(opening) < 2:
        return 0
    found = text.find("$", at + 1, min(most, at + AHEAD))
    whole = found > 0 and not text[found - 1].isspace() and "\n" not in text[at:found]
    return found + 1 if whole and not text[found + 1 : found + 2].isdigit() else 0


def _spoiler(state: StateInline, silent: bool) -> bool:
    """`||what is hidden||`, without a space after the first bars and before the last."""
    start, most = state.pos, state.posMax
    if state.src[start : start + 2] != "||" or state.src[start + 2 : start + 3].strip(" \n\t|") == "":
        return False
    found = state.src.find("||", start + 3, min(most, start + AHEAD))
    if found < 0 or state.src[found - 1].isspace():
        return False
    if not silent:
        state.push("spoiler_open", "", 1)
        state.pos, state.posMax = start + 2, found
        state.md.inline.tokenize(state)
        state.push("spoiler_close", "", -1)
    state.pos, state.posMax = found + 2, most
    return True


__all__: list[Any] = ["tokens_of"]
