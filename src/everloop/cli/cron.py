"""`everloop cron`: what the agent does later, or again and again."""

import argparse
import sys
from typing import Any

import msgspec

from ..app.schedule_hooks import path_of, secret_for
from ..app.schedules import NOTHING, OpenSchedules, ScheduleWords, open_schedules
from ..core.people import OWNER, Role
from ..errors import MailRefused
from ..ports.schedules import Asker, ScheduleRow
from .table import table, to_json
from .terminal import Terminal

MORE = (
    "WHEN is `at 08:00`, `at 2027-01-31 08:00`, `after 20m`, `every 2h`, `cron 0 8 * * 1-5` (minute, hour, day, "
    "month, weekday) or `hook`. A message is told as it is and costs nothing; a turn asks the agent; a command runs "
    "in the sandbox. They run where `everloop gateway` runs, or a chat of yours is open; what was missed is made up "
    "for, late."
)
HEADS = ("ID", "NAME", "DOES", "WHEN", "WHERE", "NEXT", " RUNS")
SESSION = "cli:direct"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listing = words.add_parser("list", help="your schedules, the next first (the default)")
    listing.add_argument("--all", action="store_true", help="also those of other people")
    add = words.add_parser("add", help="make a schedule")
    add.add_argument("when", metavar="WHEN")
    add.add_argument("text", metavar="TEXT", help="what is told, what the agent is asked, or the command")
    edit = words.add_parser("edit", help="change a schedule; what is not given stays as it is")
    edit.add_argument("id", metavar="ID")
    edit.add_argument("--when", metavar="WHEN", help="another time, as with add")
    edit.add_argument("--text", metavar="TEXT", help="another text")
    for word in (add, edit):
        _add_fields(word)
    for name, help in (
        ("remove", "remove it, with what is known of its runs"),
        ("enable", "let it run again"),
        ("disable", "stop it for now"),
        ("run", "run it now, beside its times"),
        ("log", "how its last runs went"),
        ("hook", "where programs have it run that was made with `hook` as WHEN, and the secret to sign with"),
    ):
        word = words.add_parser(name, help=help)
        word.add_argument("id", metavar="ID", help="its id in the list, or its name")
        if name == "log":
            word.add_argument("--json", action="store_true", help="print one JSON object instead")
    listing.add_argument("--json", action="store_true", help="print one JSON object instead of a table")


def _add_fields(word: argparse.ArgumentParser) -> None:
    word.add_argument("--do", dest="does", choices=("turn", "message", "command"), help="what it does (turn)")
    word.add_argument("--name", metavar="NAME", help="what it is called in lists and commands")
    word.add_argument("-s", "--session", metavar="KEY", help=f"where it answers ({SESSION})")
    word.add_argument("--zone", metavar="ZONE", help="by whose clock, as Europe/Berlin (schedules.timezone)")
    word.add_argument("--misfire", choices=("late", "skip", "ask"), help="what is done about a missed time (late)")
    word.add_argument("--overlap", choices=("skip", "queue", "both"), help="while the one before runs (skip)")
    word.add_argument("--retries", metavar="N", type=int, help="that a failed run is tried again (0)")
    word.add_argument("--max-runs", metavar="N", type=int, help="after which it is over (0: never)")
    word.add_argument("--until", metavar="TIME", help="after which it is over, as 2027-01-31 08:00")
    word.add_argument("--poll", dest="polls", metavar="URL", help="look at it each time, until the condition holds")
    word.add_argument("--condition", metavar="TEXT", help="`contains WORDS`, `lacks WORDS` or `changes`")


FIELDS = (
    *("when", "text", "does", "name", "session", "zone", "misfire", "overlap", "retries", "max_runs", "until"),
    *("polls", "condition"),
)


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    asker = Asker(OWNER, Role.OWNER, SESSION, by_hand=True)
    async with open_schedules() as opened:
        schedules = opened.words
        match arguments.word:
            case "list":
                rows = await schedules.desk.listed(asker, everyones=arguments.all)
                terminal.answer(_listed(schedules, rows, arguments.json))
            case "log":
                terminal.answer(await _log(schedules, asker, arguments.id, arguments.json))
            case "hook":
                terminal.answer(await _hook(opened, asker, arguments.id))
            case word:
                id = getattr(arguments, "id", "")
                terminal.answer(await schedules.act(asker, word, id, _fields(arguments)))
    return 0


async def _hook(opened: OpenSchedules, asker: Asker, id: str) -> str:
    schedule = (await opened.words.desk.find(asker, id)).schedule
    if not schedule.hook:
        raise MailRefused(f"{schedule.name} runs by the clock; one that programs have run is made with `hook` as WHEN")
    secret = await secret_for(opened.links, schedule.id)
    if not secret:
        raise MailRefused("the vault is locked, where the key lies from which its secret is made")
    return f"POST {path_of(schedule.id)}\n{secret}"


def _fields(arguments: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in FIELDS if (value := getattr(arguments, name, None)) is not None}


def _listed(schedules: ScheduleWords, rows: list[ScheduleRow], as_json: bool) -> str:
    if as_json:
        return to_json({"schedules": [_plain(schedules, row) for row in rows]})
    return table(HEADS, [_row(schedules, row) for row in rows]) if rows else NOTHING


def _plain(schedules: ScheduleWords, row: ScheduleRow) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(row)
    return {**told, "next_times": schedules.desk.next_times(row)}


def _row(schedules: ScheduleWords, row: ScheduleRow) -> tuple[str, ...]:
    each = row.schedule
    name = each.name if each.owner == OWNER else f"{each.name} ({each.owner})"
    return (
        each.id,
        name,
        each.does,
        each.when,
        each.session,
        schedules.standing(row).removeprefix("next "),
        str(row.fires),
    )


async def _log(schedules: ScheduleWords, asker: Asker, id: str, as_json: bool) -> str:
    if as_json:
        return to_json({"runs": [msgspec.to_builtins(run) for run in await schedules.desk.log(asker, id)]})
    return await schedules.runs(asker, id)
