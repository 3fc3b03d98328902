"""`everloop audit`: who did what, when, by which authority, and whether it is still as it was written."""

import argparse
import re
import sys
import time
from contextlib import suppress
from datetime import datetime

from ..app.records import Records, open_records
from ..errors import MailRefused
from ..ports.audit import DEEDS, AuditCheck, AuditRow
from ..readings.audited import described
from .table import how_many, table, to_json
from .terminal import Terminal, WrongUse
from .times import seconds_in

MORE = (
    "People are named by id alone. Each line is bound to the one before it by a hash: --verify names the first that "
    "was changed, removed or put in between. That lines are missing at the end shows only to whoever has noted the "
    "last one elsewhere: --head prints it, --against compares."
)
HEADS = (" LINE", "WHEN", "WHO", "BY", "WHAT", "SUBJECT", "DETAIL")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--since", metavar="WHEN", type=_since, default=0.0, help="a day (2026-11-01), or 30m, 8h, 7d")
    parser.add_argument("--who", metavar="WHO", default="", help="what they did, or had done to them: an id or a name")
    parser.add_argument("--what", metavar="DEED", type=_deed, default=None, help="person, person.role, login, tool …")
    parser.add_argument("--limit", metavar="N", type=how_many, default=100, help="the last N lines (default 100)")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    parser.add_argument("--verify", action="store_true", help="read all lines, and name the first that is not sound")
    parser.add_argument("--head", action="store_true", help="print the number and hash of the last line, to be noted")
    parser.add_argument("--against", metavar="HEAD", type=_head, default=None, help="with --verify: a noted head")


async def run(arguments: argparse.Namespace) -> int:
    if arguments.against and not arguments.verify:
        raise WrongUse("--against needs --verify")
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        if arguments.verify:
            return _tell(terminal, await records.store.check_audit(arguments.against or ""), arguments.json)
        if arguments.head:
            last = await records.store.audit_head()
            terminal.answer(f"{last.id}:{last.hash}" if last else "0:")
            return 0
        rows = await _found(records, arguments)
    if arguments.json:
        terminal.answer(to_json({"lines": rows}))
    else:
        terminal.answer(table(HEADS, [_row(row) for row in rows]) if rows else "Nothing of the kind was done.")
    return 0


async def _found(records: Records, asked: argparse.Namespace) -> list[AuditRow]:
    who = asked.who
    with suppress(MailRefused):  # someone who is not there any more, or the number of a thing
        who = who and (await records.members.find(who)).id
    rows = await records.store.audit(since=asked.since, who=who, what=asked.what or "", limit=asked.limit)
    return rows[::-1]


def _row(row: AuditRow) -> tuple[str, ...]:
    when = f"{datetime.fromtimestamp(row.at / 1000):%Y-%m-%d %H:%M:%S}"
    return str(row.id), when, row.actor or "–", row.authority, row.deed, row.subject, described(row.detail)


def _tell(terminal: Terminal, check: AuditCheck, as_json: bool) -> int:
    if as_json:
        terminal.answer(to_json(check))
    elif check.broken:
        lines = "No line before it" if not check.lines else f"The {check.lines} before it"
        sound = "is" if check.lines < 2 else "are"
        terminal.answer(f"Line {check.broken.line} is not sound: {check.broken.why}. {lines} {sound} as written.")
    else:
        terminal.answer(f"All {check.lines} lines are as they were written. The last is {check.head or 'none'}")
    return 1 if check.broken else 0


def _since(text: str) -> float:
    if re.fullmatch(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?", text):
        try:
            return datetime.fromisoformat(text).timestamp()
        except (ValueError, OverflowError):
            pass
    try:
        return time.time() - seconds_in(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            "it must be a day such as 2026-11-01, or a time such as 30m, 8h or 7d"
        ) from None


def _deed(text: str) -> str:
    known = {*DEEDS, *(deed.partition(".")[0] for deed in DEEDS)}
    if text not in known:
        kinds = ", ".join(sorted({deed.partition(".")[0] for deed in DEEDS}))
        raise argparse.ArgumentTypeError(f"it must be one of {kinds}, or such as person.role")
    return text


def _head(text: str) -> str:
    if not re.fullmatch(r"\d{1,18}:[0-9a-f]{0,64}", text):
        raise argparse.ArgumentTypeError("it must be what `everloop audit --head` has printed")
    return text
