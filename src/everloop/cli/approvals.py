"""`everloop approvals`: what waits for a person's permission, and what was allowed ahead."""

import argparse
import secrets
import sys
import time
from typing import Any

import msgspec

from ..app import Records, open_records
from ..core.approval import Grant
from ..core.errors import MailRefused
from ..core.tool import Risk
from .table import table, to_json
from .terminal import Terminal
from .times import UNITS, seconds_in

MORE = (
    "A turn that waits for permission holds no process: it goes on at once where everloop runs, or at the next start "
    "(everloop --continue). Nobody's answer within a day is a no."
)
HEADS = ("NAME", "SESSION", "FOR", "TOOL", "RISK", "LEFT")
GRANTS = ("NAME", "FOR", "TOOL", "COMMAND", "FOLDER", "RISK", " RUNS", "LEFT")
MANY = 1_000_000
HOUR = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listed = words.add_parser("list", help="show what waits for permission, each call or change in full (the default)")
    approve = words.add_parser("approve", help="allow a call, as it is shown, once, or a change of a prompt file")
    deny = words.add_parser("deny", help="do not allow it; a prompt file is put back to what it held")
    grants = words.add_parser("grants", help="show what was allowed ahead")
    revoke = words.add_parser("revoke", help="take back what was allowed ahead")
    for word in (listed, grants):
        word.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    for word in (approve, deny, revoke):
        word.add_argument("name", metavar="NAME", help="its name, or how that begins")
    approve.add_argument("--for", dest="seconds", metavar="TIME", type=seconds_in, help="and the like for 30m, 8h, 7d")
    approve.add_argument("--runs", metavar="N", type=_runs, help="and the like N times, within an hour or --for")
    approve.add_argument(
        "--argv",
        metavar="PATTERN",
        help="which commands are alike: word for word, * within a word, a last * for the rest (default: the same one)",
    )
    approve.add_argument("--folder", metavar="PATH", help="only in this folder of the workspace and below")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        match arguments.word:
            case "list":
                await _list(records, terminal, arguments.json)
            case "grants":
                await _list_grants(records, terminal, arguments.json)
            case "revoke":
                await _revoke(records, arguments.name, terminal)
            case word:
                await _decide(records, arguments, word == "approve", terminal)
    return 0


async def _list(records: Records, terminal: Terminal, as_json: bool) -> None:
    waiting = await records.approvals.waiting()
    if as_json:
        told = [
            {
                "name": each.id,
                "kind": each.kind,
                "session": each.session,
                "requester": each.requester,
                "tool": each.tool,
                "call": each.text,
                "risk": each.risk,
                "until": each.until,
            }
            for each in waiting
        ]
        terminal.answer(to_json({"approvals": told}))
    elif not waiting:
        terminal.answer("Nothing waits for permission.")
    for each in [] if as_json else waiting:
        row = (each.id, each.session, each.requester, each.tool, each.risk.level, _time_left(each))
        terminal.answer(f"{table(HEADS, [row])}\n\n{each.summary}\n")


async def _decide(records: Records, arguments: argparse.Namespace, allow: bool, terminal: Terminal) -> None:
    approvals = records.approvals
    approval = await approvals.find(arguments.name)
    if approval.held:
        if allow and any((arguments.seconds, arguments.runs, arguments.argv, arguments.folder)):
            raise MailRefused("a change of a file is accepted as it is shown; nothing of the kind is allowed ahead")
        terminal.answer(await approvals.decide_on_file(approval, allow, "owner"))
        return
    grant = _grant(arguments, approval.requester, approval.tool, approval.risk) if allow else None
    if grant:
        await approvals.grant(grant)
    await records.store.receive(approvals.answer(approval, allow, "owner"))
    terminal.answer(f"{approval.tool} ({approval.id}) is {'allowed' if allow else 'not allowed'}.")
    if grant:
        terminal.note(f"The like is allowed {_extent(grant)}; take it back with: everloop approvals revoke {grant.id}")
    terminal.note("It goes on at once where everloop runs; else start it: everloop --continue")


def _grant(arguments: argparse.Namespace, user: str, tool: str, risk: Risk) -> Grant | None:
    """What is allowed beyond this call. Raises MailRefused when that cannot be said in a pattern."""
    if not any((arguments.seconds, arguments.runs, arguments.argv, arguments.folder)):
        return None
    argv = tuple(arguments.argv.split()) if arguments.argv else risk.argv
    if tool == "exec" and not argv:
        raise MailRefused(
            "this command is more than a list of words (a pipe, a variable, a second command), and of such nothing can "
            "be allowed ahead; allow it once, without --for and --runs"
        )
    return Grant(
        *(secrets.token_hex(4), user, "owner", tool, argv),
        folder=(arguments.folder or "").strip("/"),
        risk=risk.level,
        runs=arguments.runs or MANY,
        until=time.time() + (arguments.seconds or HOUR),
    )


async def _list_grants(records: Records, terminal: Terminal, as_json: bool) -> None:
    grants = await records.store.grants()
    if as_json:
        terminal.answer(to_json({"grants": [{"name": grant.id, **msgspec.to_builtins(grant)} for grant in grants]}))
    elif not grants:
        terminal.answer("Nothing is allowed ahead.")
    else:
        terminal.answer(table(GRANTS, [_row(grant) for grant in grants]))


def _row(grant: Grant) -> tuple[str, ...]:
    return (
        *(grant.id, grant.user, grant.tool, " ".join(grant.argv) or "any", grant.folder or "any", f"≤ {grant.risk}"),
        *("any" if grant.runs > MANY // 2 else str(grant.runs), _left(grant.until)),
    )


async def _revoke(records: Records, name: str, terminal: Terminal) -> None:
    found = [grant for grant in await records.store.grants() if grant.id.startswith(name)]
    if len(found) != 1 or not await records.store.forget_grant(found[0].id):
        raise MailRefused(f"there is no grant {name!r}, or more than one; see: everloop approvals grants")
    terminal.answer(f"{found[0].id} is taken back.")


def _extent(grant: Grant) -> str:
    runs = "" if grant.runs > MANY // 2 else f"{grant.runs} times "
    return f"{runs}for {_left(grant.until)}{f' in {grant.folder}' if grant.folder else ''}"


def _time_left(approval: Any) -> str:
    return "no limit" if approval.held else _left(approval.until)


def _left(until: float) -> str:
    seconds = max(0, round(until - time.time()))
    # What is nearly a day is called one: "24h" and "1d" would be the same to a person, a second apart.
    size, unit = next((size, unit) for unit, size in reversed(UNITS.items()) if seconds >= 0.99 * size or unit == "s")
    return f"{round(seconds / size)}{unit}"


def _runs(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 10_000:
        raise argparse.ArgumentTypeError("it must be a number from 1 to 10000")
    return int(text)
