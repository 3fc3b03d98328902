"""`everloop doctor`: what is wrong, and what to do about it. It also works where nothing else starts."""

import argparse
import asyncio
import os
import sys
from collections.abc import Sequence

from ..app.doctor import Progress, examined, mend_all
from ..ports.doctor import Diagnosis, Mended
from ..settings import home_of
from .logbook import keep_silent
from .table import to_json
from .terminal import Terminal

MORE = (
    "Nothing is changed without --fix, and nothing that costs is asked without --live. The exit code is 1 when "
    "something is broken; advice alone is 0."
)
MARKS = {"ok": "ok     ", "advice": "advice ", "broken": "BROKEN ", "skipped": "-      "}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--fix", action="store_true", help="mend what is safe: modes, leftovers, a missing folder")
    parser.add_argument("--live", action="store_true", help="also have the model answer and platforms check our tokens")
    parser.add_argument("--all", action="store_true", help="show what is well and what was skipped, too")
    parser.add_argument("--json", action="store_true", help="print one object: verdict, findings, mended")


async def run(arguments: argparse.Namespace) -> int:
    keep_silent()
    terminal, home = Terminal(sys.stdout, sys.stderr), home_of(os.environ)

    def show(progress: Progress) -> None:
        if sys.stderr.isatty():
            terminal.status(f"looking … {progress.done} of {progress.of} ({progress.check})")

    findings = await examined(home, live=arguments.live, told=show)
    mended: list[Mended] = []
    if arguments.fix and any(finding.mends for finding in findings):
        mended = await asyncio.to_thread(mend_all, findings, home)
        findings = await examined(home, live=arguments.live, told=show)
    terminal.clear()
    if arguments.json:
        terminal.answer(to_json({"verdict": verdict_of(findings), "findings": rows_of(findings), "mended": mended}))
    else:
        terminal.answer(to_text(findings, mended, arguments.all))
    return 1 if verdict_of(findings) == "broken" else 0


def verdict_of(findings: Sequence[Diagnosis]) -> str:
    """The gravest."""
    return next((each for each in ("broken", "advice") if any(one.verdict == each for one in findings)), "ok")


def rows_of(findings: Sequence[Diagnosis]) -> list[dict[str, object]]:
    return [
        {
            "check": each.check,
            "group": each.group,
            "verdict": each.verdict,
            "what": each.what,
            "todo": each.todo,
            "can_fix": bool(each.mends),
        }
        for each in findings
    ]


def to_text(findings: Sequence[Diagnosis], mended: Sequence[Mended], everything: bool) -> str:
    lines = [f"mended: {each.what}" + (f" ({each.failed})" if each.failed else "") for each in mended]
    for each in findings:
        if everything or each.verdict in ("advice", "broken"):
            lines.append(f"{MARKS[each.verdict]}{each.check}: {each.what}")
            if each.todo:
                lines.append(f"       → {each.todo}")
    return "\n".join([*lines, summary(findings)])


def summary(findings: Sequence[Diagnosis]) -> str:
    count = {verdict: sum(each.verdict == verdict for each in findings) for verdict in MARKS}
    if not count["broken"] and not count["advice"]:
        return f"All is well: {count['ok']} checks, {count['skipped']} skipped."
    fixable = any(each.mends for each in findings)
    told = f"{count['broken']} broken, {count['advice']} to consider, {count['ok']} well, {count['skipped']} skipped."
    return f"{told} everloop doctor --fix mends what is safe." if fixable else told
