"""`everloop approvals`: what waits for a person's permission, and what was allowed ahead."""

import argparse
import sys
import time

import msgspec

from ..app.records import Records, open_records
from ..core.people import OWNER
from ..errors import GrantRefused
from ..ports.permission import HOUR, Allowance, Approval, Grant
from ..readings.grants import MANY, described, extent, runs_of, time_of
from ..readings.held import is_private
from ..readings.questions import summary_of
from .table import table, to_json
from .terminal import Terminal
from .times import seconds_in

MORE = (
    "A turn that waits for permission holds no process: it goes on at once where everloop runs, or at the next start "
    "(everloop --continue). Nobody's answer within a day is a no."
)
HEADS = ("NAME", "SESSION", "FOR", "TOOL", "RISK", "LEFT")
GRANTS = ("NAME", "FOR", "TOOL", "ALLOWED", "RISK", " RUNS", "LEFT")


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
    _add_choices(approve)


def _add_choices(approve: argparse.ArgumentParser) -> None:
    like = approve.add_argument_group(
        "allowing the like ahead",
        "Any of these allows further calls too, for an hour unless --for says otherwise; all that is said must hold. "
        "Without --argv, --host and --any that is the very same call.",
    )
    like.add_argument("--for", dest="seconds", metavar="TIME", type=seconds_in, help="for 30m, 8h, 7d")
    like.add_argument("--runs", metavar="N", type=_runs, help="N times")
    like.add_argument("--here", action="store_true", help="only in this conversation")
    like.add_argument("--host", metavar="HOST", help="all addresses of this host; *.example.com is all below it")
    like.add_argument(
        "--argv",
        metavar="PATTERN",
        help="commands that fit: word for word, * within a word, a last * for the rest; in the folder of this one and "
        "below, in the background only if this one is, and no longer",
    )
    like.add_argument("--folder", metavar="PATH", help="only in this folder of the workspace and below")
    like.add_argument("--any", action="store_true", help="anything of this tool")


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
    waiting = [each for each in await records.approvals.waiting() if not _is_anothers(each)]
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
                "choices": each.choices,
            }
            for each in waiting
        ]
        terminal.answer(to_json({"approvals": told}))
    elif not waiting:
        terminal.answer("Nothing waits for permission.")
    for each in [] if as_json else waiting:
        left = "no limit" if each.held else time_of(each.until - time.time())
        row = (each.id, each.session, each.requester, each.tool, each.risk.level, left)
        terminal.answer(f"{table(HEADS, [row])}\n\n{summary_of(each)}\n")


async def _decide(records: Records, arguments: argparse.Namespace, allow: bool, terminal: Terminal) -> None:
    approvals = records.approvals
    approval = await approvals.find(arguments.name)
    chosen = _chosen(arguments) if allow else None
    if approval.held:
        terminal.answer(await approvals.decide_on_file(approval, allow, "owner", chosen))
        return
    letter, grant = await approvals.decide(approval, allow, "owner", chosen)
    await records.store.receive(letter)
    kept = await approvals.keep(letter, grant)
    terminal.answer(f"{approval.subject} ({approval.id}) is {'allowed' if allow else 'not allowed'}.")
    if grant and kept:
        terminal.note(f"So is, {extent(grant, time.time())}: {described(grant, grant.thread)}")
        terminal.note(f"Take it back with: everloop approvals revoke {grant.id}")
    terminal.note("It goes on at once where everloop runs; else start it: everloop --continue")


def _chosen(arguments: argparse.Namespace) -> Allowance | None:
    names = ("seconds", "runs", "here", "host", "argv", "folder", "any")
    said = {name: value for name in names if (value := getattr(arguments, name)) not in (None, False)}
    for name in ("host", "argv", "folder"):
        if not said.get(name, "x").strip():
            raise GrantRefused(f"--{name} is empty; leave it out, or say which")
    return Allowance(**{"seconds": HOUR, **said}) if said else None


async def _list_grants(records: Records, terminal: Terminal, as_json: bool) -> None:
    grants = await records.approvals.grants()
    if as_json:
        terminal.answer(to_json({"grants": [_told(grant) for grant in grants]}))
    elif not grants:
        terminal.answer("Nothing is allowed ahead.")
    else:
        terminal.answer(table(GRANTS, [_row(grant) for grant in grants]))
    for grant in [] if as_json else grants:
        if grant.digest:
            terminal.answer(f"\nThe call that {grant.id} allows again:\n{grant.call}")


def _told(grant: Grant) -> dict[str, object]:
    return {"name": grant.id, "allowed": described(grant), **msgspec.to_builtins(grant)}


def _row(grant: Grant) -> tuple[str, ...]:
    return (
        *(grant.id, grant.user, grant.tool, described(grant), f"≤ {grant.risk}"),
        *("any" if grant.runs > MANY // 2 else str(grant.runs), time_of(grant.until - time.time())),
    )


async def _revoke(records: Records, name: str, terminal: Terminal) -> None:
    grant = await records.approvals.revoke(name, "owner")
    terminal.answer(f"{grant.id} is taken back.")


def _runs(text: str) -> int:
    try:
        return runs_of(text)
    except GrantRefused as error:
        raise argparse.ArgumentTypeError("it must be a number from 1 to 10000") from error


def _is_anothers(approval: Approval) -> bool:
    """What is remembered for somebody else, which is theirs alone to see."""
    return bool(approval.held and is_private(approval.held) and approval.held.owner != OWNER)
