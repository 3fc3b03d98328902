"""`everloop outbox`: answers that a channel could not deliver."""

import argparse
import sys
import time
from typing import Any

import msgspec

from ..app.records import Records, open_records
from ..errors import EverloopError
from ..ports.rows import Undelivered
from .table import table, to_json
from .terminal import Terminal
from .times import clock

MORE = (
    "An answer is tried for a day, less and less often; then it is given up, and waits here to be tried again or "
    "dropped. It is sent where the gateway runs, within seconds. What is said on a platform waits until a bot fetches "
    "it (/message/outbox)."
)
HEADS = ("ID", "CHAT", "STATE", " TRIES", "SINCE", "WHY", "TEXT")
STATES = {"failed": "given up", "pending": "tried again", "sending": "being sent"}
WAITS = "waits for the gateway"
FOR_A_BOT = "waits for a bot"
SHOWN = 40  # characters


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listed = words.add_parser("list", help="show what could not be delivered, and why (the default)")
    listed.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    retry = words.add_parser("retry", help="try it again, now and for another day")
    drop = words.add_parser("drop", help="never send it")
    for word in (retry, drop):
        word.add_argument("id", metavar="ID", help="its number in the list, or `all` that was given up")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        found = await records.store.undelivered()
        match arguments.word:
            case "list":
                terminal.answer(_listed(found, arguments.json))
            case word:
                terminal.answer(await _change(records, word, _named(found, arguments.id)))
    return 0


def _listed(found: list[Undelivered], as_json: bool) -> str:
    if as_json:
        told: list[dict[str, Any]] = [msgspec.to_builtins(each) for each in found]
        return to_json({"outbox": told})
    return table(HEADS, [_row(each) for each in found]) if found else "Nothing waits to be delivered."


def _row(each: Undelivered) -> tuple[str, ...]:
    text = each.text if len(each.text) <= SHOWN else f"{each.text[: SHOWN - 1]}…"
    since = clock(each.queued) if each.queued else "?"  # what an older everloop has queued does not say
    return (str(each.id), each.chat, _state(each, time.time()), str(each.attempts), since, each.why, text)


def _state(each: Undelivered, now: float) -> str:
    state, waits = STATES[each.state], each.due > now
    if each.state == "failed":
        return state
    if each.polled:
        return f"a bot has it until {clock(each.due)}" if waits and each.state == "sending" else FOR_A_BOT
    if each.state == "pending":
        return f"{state} at {clock(each.due)}" if waits else WAITS
    return state


def _named(found: list[Undelivered], id: str) -> list[Undelivered]:
    """Raises EverloopError."""
    if id == "all":
        return [each for each in found if each.state == "failed"]
    wanted = [each for each in found if str(each.id) == id]
    if not wanted:
        raise EverloopError(f"nothing undelivered has the number {id[:50]!r}; see: everloop outbox list")
    return wanted


async def _change(records: Records, word: str, wanted: list[Undelivered]) -> str:
    store = records.store
    act = store.send_again if word == "retry" else store.drop
    done = [each for each in wanted if await act(each.id)]
    if wanted and not done:
        raise EverloopError(f"{wanted[0].id} is being sent, or is about to be; nothing was changed")
    if not wanted:
        return "Nothing was given up; see: everloop outbox list"
    answers = "1 answer" if len(done) == 1 else f"{len(done)} answers"
    if word == "drop":
        return f"{answers} will not be sent."
    return f"{answers} will be sent again: within seconds where `everloop gateway` runs, else once it is started."
