"""`everloop tasks`: what sub-agents work at, what one has done, and ending it."""

import argparse
import secrets
import sys
import time
from typing import Any

import msgspec

from ..app.records import Records, open_records
from ..core.mail import Address, Inbound, Stop
from ..core.people import OWNER
from ..errors import EverloopError
from ..ports.tasks import TaskRow
from ..readings.task_lines import cost_of, lasted, transcript
from .table import table, to_json
from .terminal import Terminal
from .times import clock

MORE = (
    "A task that the agent hands on (with the tool spawn) is a conversation of its own, and so is a turn that somebody "
    "has sent to the background (/bg); docs/subagents.md and docs/background.md tell more. "
    "One that is stopped here ends within seconds wherever it is worked at, with all that works for it."
)
NONE = "Nobody works at a task; what the agent hands on with `spawn` is listed here."
HEADS = ("ID", "TASK", "STATE", " STEPS", " COST", "SINCE", "TOOK", "WHOSE")
SHOWN = 50  # characters
MOST = 200_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listed = words.add_parser("list", help="show what sub-agents work at, and have worked at (the default)")
    listed.add_argument("--open", action="store_true", help="only what is not over")
    listed.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    show = words.add_parser("show", help="show what one has said and done")
    stop = words.add_parser("stop", help="end it, and all that works for it")
    for word in (show, stop):
        word.add_argument("id", metavar="ID", help="its id in the list, or the beginning of it")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        match arguments.word:
            case "list":
                found = [each for each in await records.store.tasks() if each.is_open or not arguments.open]
                terminal.answer(_listed(found, arguments.json))
            case "show":
                task = await _named(records, arguments.id)
                log = await records.store.history(task.thread)
                terminal.answer(transcript(task, log, MOST) or "Nobody has begun with it.")
            case _:
                terminal.answer(await _stop(records, await _named(records, arguments.id)))
    return 0


def _listed(found: list[TaskRow], as_json: bool) -> str:
    if as_json:
        told: list[dict[str, Any]] = [msgspec.to_builtins(each) for each in found]
        return to_json({"tasks": told})
    return table(HEADS, [_row(each, time.time()) for each in found]) if found else NONE


def _row(task: TaskRow, now: float) -> tuple[str, ...]:
    title = task.title if len(task.title) <= SHOWN else f"{task.title[: SHOWN - 1]}…"
    took = lasted((now if task.is_open else task.active) - task.created)
    steps, cost = str(task.steps), cost_of(task)
    return (task.thread[:8], title, task.stage, steps, cost, clock(task.created), took, task.owner)


async def _named(records: Records, id: str) -> TaskRow:
    """Raises EverloopError."""
    found = await records.store.tasks(id=id) if id else []
    if len(found) != 1:
        many = "several tasks have ids that begin" if found else "no task has an id that begins"
        raise EverloopError(f"{many} with {id[:50]!r}; see: everloop tasks list")
    return found[0]


async def _stop(records: Records, task: TaskRow) -> str:
    letter = Inbound(Address("cli", "tasks"), f"kill:{secrets.token_hex(8)}", Stop(OWNER), task.owner)
    stopped = await records.store.stop_task(letter, task.thread)
    if not stopped:
        raise EverloopError(f"{task.thread[:8]} is over already; nothing was changed")
    more = f", and {len(stopped) - 1} that worked for it" if len(stopped) > 1 else ""
    return f"It is stopped{more}."
