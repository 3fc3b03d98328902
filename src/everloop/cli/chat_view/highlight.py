"""Code in colours: the lines of a block, each with its own codes."""

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from .theme import Theme

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LONGEST_LINE = 2_000  # letters; beyond it is hardly for reading
_ROOTS = {
    "Keyword": "keyword",
    "Name.Builtin": "name",
    "Name.Function": "name",
    "Name.Class": "name",
    "Name.Decorator": "name",
    "Name.Tag": "keyword",
    "Name.Attribute": "name",
    "Name.Exception": "name",
    "Name.Namespace": "name",
    "Literal": "literal",
    "Literal.String": "string",
    "Comment": "comment",
    "Operator.Word": "keyword",
    "Operator": "operator",
    "Generic.Deleted": "removed",
    "Generic.Inserted": "added",
    "Generic.Heading": "bold",
    "Generic.Subheading": "hunk",
    "Generic.Prompt": "note",
    "Generic.Error": "error",
    "Generic.Strong": "bold",
    "Generic.Emph": "italic",
}


def highlighted(lines: list[str], language: str, theme: Theme) -> list[str]:
    """As many lines, which say the same. In plain letters where the language is not known, or a line is too long."""
    lexer = _lexer(language) if language and any(map(len, lines)) else None
    if lexer is None or max(map(len, lines)) > LONGEST_LINE:
        return lines
    source = "\n".join(lines) + "\n"
    tokens = [*lexer.get_tokens(source)]
    if "".join(text for _, text in tokens) != source:  # a lexer may leave something out, or put it in order
        return lines
    shown, row = [], []
    for kind, text in tokens:
        style = _style(kind)
        first, *rest = text.split("\n")
        row.append(theme.paint(first, style))
        for each in rest:
            shown.append("".join(row))
            row = [theme.paint(each, style)]
    return shown


@lru_cache(maxsize=64)
def _lexer(language: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_by_name  # takes its time, and is needed with the first block of code
    from pygments.util import ClassNotFound

    try:
        lexer: Lexer = get_lexer_by_name(language, stripnl=False, ensurenl=True)
    except ClassNotFound:
        return None
    return lexer


@cache
def _style(kind: Any) -> str:
    """Of a kind of token: that of the nearest of its kinds that has one."""
    words = list(kind)
    while words:
        if found := _ROOTS.get(".".join(words)):
            return found
        words.pop()
    return ""
