"""Tasks and what was done at them, as people read them in a chat or a terminal."""

from collections.abc import Sequence
from itertools import count

from ..ports.conversation import Written
from ..ports.tasks import TaskRow
from .spoken import spoken
from .visible import in_one_line, visible

LONGEST = 1500  # characters of one thing that was said
WHO = {"user": "task", "assistant": "sub-agent", "tool": "tool", "house": "everloop"}
IN_BACKGROUND = WHO | {"user": "user", "assistant": "agent"}


def numbered(rows: Sequence[TaskRow]) -> dict[int, TaskRow]:
    """The tasks of a conversation by their numbers in it, which stay. A turn in the background has been given its own,
    and takes it along; those of sub-agents, of which none is ever taken away, are the rest, in order."""
    fixed = {row.number: row for row in rows if row.number}
    free = (number for number in count(1) if number not in fixed)
    handed_on = {next(free): row for row in rows if not row.number}
    return dict(sorted((fixed | handed_on).items()))


def line_of(number: int, task: TaskRow, now: float) -> str:
    ended = now if task.is_open else task.active
    parts = [task.stage, f"{task.steps} step(s)", cost_of(task), lasted(ended - task.created)]
    return f"{number}. {in_one_line(task.title)} — {', '.join(parts)}"


def cost_of(task: TaskRow) -> str:
    return "price not known" if task.cost is None else f"${task.cost:.4f}"


def lasted(seconds: float) -> str:
    whole = max(0, int(seconds))
    if whole < 60:
        return f"{whole} s"
    return f"{whole // 60} min" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"


def transcript(task: TaskRow, log: Sequence[Written], most: int) -> str:
    """What was said and done at it, the last of it if it is more than so many characters. A turn in the background has
    its conversation before it."""
    found = (spoken(each.entry) for each in log if not task.number or each.at >= task.created)
    who = IN_BACKGROUND if task.number else WHO
    said = [f"{who[each.who]}: {_cut(visible(each.with_calls('→ ')))}" for each in found if each]
    text = "\n".join(said)
    return text if len(text) <= most else f"[…]\n{text[-most:]}"


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} […]"
