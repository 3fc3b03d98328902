"""A call of a tool: what is called, what it says while it runs, and what stays of it."""

import re
from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from ...readings.tool_hints import tool_hint
from ...readings.visible import in_one_line, visible
from ..cells import beginning, parts
from ..shown_events import left_of_stop
from .diffs import Reading, coloured, diff
from .theme import Theme

LONG_OUTPUT, LONG_CHANGE = 12, 80  # lines that stay of what is longer
SPARE = 3  # lines that are not worth folding
KEPT = 400  # lines that are remembered while it runs
LONGEST = 2_000  # letters of a line that are shown
_INDENT = "  "
_AT_LINE = re.compile(r" at line (\d{1,9})\.")
_CUT = re.compile(r"… \[\d+ \w+ left out")  # as whoever has run it writes where there was too much
_FAILED = re.compile(r"\[exit code [1-9]")
_MARKS = {"done": "✓", "handed": "→", "denied": "✗", "failed": "✗", "unknown": "?", "cancelled": "■"}
_TOLD = {
    "denied": "not allowed",
    "failed": "failed",
    "unknown": "nobody knows whether it took effect",
    "cancelled": "stopped",
    "abandoned": "given up",
    "repeated": "not run: the same call again",
    "handed": "works in the background",
}
_STYLES = {"done": "done", "handed": "done", "unknown": "warning", "cancelled": "warning", "repeated": "warning"}


class ToolView:
    """One for each call that runs. With `read`, which returns what a file of the workspace holds, a file that is
    written is compared with what it held when this was made."""

    def __init__(
        self, tool: str, args: str, theme: Theme, width: Callable[[], int], read: Reading | None = None
    ) -> None:
        self._tool = tool
        self._given = _decoded(args)
        self._args = args
        self._theme = theme
        self._width = width
        self._before = _held(tool, self._given, read)
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._open = ""  # the line that has not ended
        self._count = 0  # of lines that have
        self._doing = ""

    def head(self) -> str:
        """One line: what is called."""
        return self._headed("●", "tool")

    def output(self, text: str) -> None:
        """More of what it says."""
        *ended, last = (self._open + text).split("\n")
        self._open = last[:LONGEST]
        self._lines.extend(line.removesuffix("\r")[:LONGEST] for line in ended)
        self._count += len(ended)

    def progress(self, steps: int, doing: str) -> None:
        """Of a sub-agent: how far it is, and which tool it calls."""
        self._doing = f"step {steps}: {in_one_line(doing)}"

    def live(self, rows: int) -> str:
        """The last lines of its output, with how many there are."""
        if self._doing:
            return self._theme.paint(self._fit(f"{_INDENT}{self._doing}"), "output")
        count = self._count + bool(self._open)
        if not count or rows < 1:
            return ""
        room = rows - 1 if count > rows else rows
        last = [*self._lines, self._open] if self._open else [*self._lines]
        shown = [self._theme.paint(self._fit(_INDENT + _clean(line)), "output") for line in last[-room:] if room]
        if count > rows:
            shown.insert(0, self._theme.paint(f"{_INDENT}… {count:,} lines", "note"))
        return "\n".join(shown)

    def done(self, outcome: str, text: str) -> str:
        """What stays of it: its head, and its output folded, the change that it made, or why it failed."""
        style = _STYLES.get(outcome, "error")
        mark = _MARKS.get(outcome, "✗")
        if outcome == "done" and _FAILED.match(text):  # the call was made, and its command came to nothing
            style, mark = "error", "✗"
        head = self._headed(mark, style)
        if outcome == "cancelled":
            text = left_of_stop(text)
        if outcome == "done":
            return "\n".join(filter(None, (head, self._change(text) or self._folded(text))))
        told = self._theme.paint(f"{_INDENT}{_TOLD.get(outcome, in_one_line(outcome))}", style)
        return "\n".join(filter(None, (head, told, self._folded(text, style if style == "error" else "output"))))

    def _headed(self, mark: str, style: str) -> str:
        theme = self._theme
        name, _, what = called(self._tool, self._given, self._args).partition(" ")
        mark_and_name = f"{theme.paint(mark, style)} {theme.paint(name, 'tool')}"
        room = self._width() - len(name) - 3
        return f"{mark_and_name} {theme.paint(beginning(what, room), 'args')}" if what and room > 4 else mark_and_name

    def _change(self, text: str) -> str:
        """The change that a call has made, if it has made one and that is known."""
        if text.endswith("nothing was changed."):
            return ""
        given, path = self._given, self._given.get("path")
        theme, width = self._theme, self._width() - len(_INDENT)
        match self._tool, given:
            case "edit_file", {"old_text": str(old), "new_text": str(new)} if isinstance(path, str):
                shown = self._edit(old, new, path, text)
            case "write_file", {"content": str(content)} if isinstance(path, str) and self._before is not None:
                shown = diff(self._before, content, path, theme, width)
            case "apply_patch", {"patch": str(patch)}:
                shown = coloured(patch.strip("\n"), theme, width)
            case _:
                return ""
        head, left_out, tail = folded(shown.split("\n") if shown else [], LONG_CHANGE)
        note = [theme.paint(left_out, "note")] if left_out else []
        return indented([*head, *note, *tail, *self._rows([text], "note")])

    def _edit(self, old: str, new: str, path: str, told: str) -> str:
        """With the lines around it, if the file is known, else with the number that the tool has told."""
        theme, width, before = self._theme, self._width() - len(_INDENT), self._before or ""
        if before.count(old) == 1:
            return diff(before, before.replace(old, new), path, theme, width)
        found = _AT_LINE.search(told)
        return diff(old, new, path, theme, width, first=int(found[1]) if found else 1)

    def _folded(self, text: str, style: str = "output") -> str:
        head, left_out, tail = folded(text.rstrip("\n").split("\n"), LONG_OUTPUT) if text.strip() else ([], "", [])
        note = [self._theme.paint(left_out, "note")] if left_out else []
        return indented([*self._rows(head, style), *note, *self._rows(tail, style)])

    def _rows(self, lines: list[str], style: str) -> list[str]:
        room = max(8, self._width() - len(_INDENT))
        rows = (row for line in lines for row in parts(_clean(line) or " ", room))
        return [self._theme.paint(row.rstrip(), style) for row in rows]

    def _fit(self, line: str) -> str:
        return beginning(line, self._width())


def called(tool: str, given: dict[str, Any], args: str) -> str:
    """The name of a tool, and what it is called with, in one line."""
    match tool, given:
        case "exec", {"command": str(command)}:
            what = command
        case "spawn", {"task": str(task)}:
            what = task
        case _, {"path": str(path)}:
            what = path
        case _ if len(given) > 1:
            what = ", ".join(
                f"{name}: {value if isinstance(value, str) else _json(value)}" for name, value in given.items()
            )
        case _:
            what = next((value if isinstance(value, str) else _json(value) for value in given.values()), "")
    return in_one_line(f"{tool} {what}" if given else tool_hint(tool, args)).strip()


def folded(lines: list[str], most: int) -> tuple[list[str], str, list[str]]:
    """The head and the tail of more lines than these, and what is said between them."""
    if len(lines) <= most + SPARE:
        return lines, "", []
    tail = most // 2
    is_all = not any(_CUT.match(line) for line in lines[most - tail : -tail])
    return lines[: most - tail], f"… {'' if is_all else 'over '}{len(lines) - most:,} more lines", lines[-tail:]


def indented(rows: list[str]) -> str:
    return "\n".join(f"{_INDENT}{row}" if row else "" for row in rows)


def _decoded(args: str) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(args or "{}")
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def _held(tool: str, given: dict[str, Any], read: Reading | None) -> str | None:
    path = given.get("path")
    if read is None or tool not in ("write_file", "edit_file") or not isinstance(path, str):
        return None
    return read(path) or ""


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _clean(line: str) -> str:
    shown = line if len(line) <= LONGEST else f"{line[:LONGEST]}… ({len(line):,} letters)"
    return visible(shown.removesuffix("\r")).expandtabs(8)
