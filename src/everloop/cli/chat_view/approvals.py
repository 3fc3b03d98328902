"""A question that somebody has to decide on: all of it, with what would change."""

import re
from typing import Any

import msgspec

from ...ports.permission import Approval
from ...readings.questions import asked_of
from ...readings.visible import visible
from .diffs import Reading, coloured, coloured_line, diff_of_call
from .inked import whole_rows
from .theme import Theme

LONG = 40  # lines after which whoever is asked is told that there is more above
_ARGUMENT = re.compile(r"  (\w+): (.*)")
_OF_SEVERAL = "    | "


def question(approval: Approval, theme: Theme, width: int, read: Reading | None = None) -> str:
    """Never shortened. With `read`, which returns what a file of the workspace holds, a call that would change one is
    shown with its change, too."""
    first, *rest = visible(asked_of(approval)).split("\n")
    lines = whole_rows(first.expandtabs(4), "question", theme, width)
    for line in rest:
        lines += (
            coloured_line(line, theme, width) if approval.held else whole_rows(line.expandtabs(4), "", theme, width)
        )
    if change := _change(approval, read):
        lines += [theme.paint("What would change:", "question"), *coloured(change, theme, width).split("\n")]
    if len(lines) > LONG:
        lines.append(theme.paint(f"(this question has {len(lines):,} lines: scroll up to see all of it)", "warning"))
    return "\n".join(lines)


def _change(approval: Approval, read: Reading | None) -> str | None:
    if read is None or approval.wanted is None:
        return None
    return diff_of_call(approval.tool, args_of(approval.text), read)


def args_of(text: str) -> str:
    """The arguments of a call, read from how it is shown (readings/questions.py). One that cannot be read is left out:
    what is asked is the text, and this is only for showing what it would change."""
    given: dict[str, Any] = {}
    several = ""  # the argument whose lines follow
    for line in text.split("\n")[1:]:
        if several and line.startswith(_OF_SEVERAL):
            given.setdefault(several, []).append(line.removeprefix(_OF_SEVERAL))
        elif found := _ARGUMENT.fullmatch(line):
            several = "" if found[2] else found[1]
            if found[2]:
                given |= _decoded(found[1], found[2])
    joined = {name: "\n".join(value) if isinstance(value, list) else value for name, value in given.items()}
    return msgspec.json.encode(joined).decode()


def _decoded(name: str, value: str) -> dict[str, Any]:
    try:
        decoded = msgspec.json.decode(value)
    except (msgspec.DecodeError, UnicodeError):
        return {}
    return {name: decoded} if isinstance(decoded, str) else {}
