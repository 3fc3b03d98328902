"""`everloop import`: moving in from another agent, or with the conversations that a service has kept."""

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

import msgspec

from ..app.moving import KINDS, MovingOptions, MovingReport, TakenOver, look, open_mover
from ..readings.visible import in_one_line
from ..settings import home_of, path_in
from .table import to_json
from .terminal import Terminal

MORE = (
    "PATH is the home of the other agent (~/.nanobot, ~/.openclaw), or the ZIP file or folder that ChatGPT or Claude "
    "gives you when you export your data. Each thing comes once: run it again after an interruption, or later. What "
    "you have changed here since stays as it is. No model is asked for anything. Stop the other agent first."
)
SHOWN = 20  # of each kind
PLACES = {
    "nanobot": "its home, as ~/.nanobot",
    "openclaw": "its home, as ~/.openclaw",
    "chatgpt": "the export: a ZIP file or its folder",
    "claude": "the export: a ZIP file or its folder",
}
PLURAL = {
    "setting": "settings",
    "memory": "memory",
    "file": "files of the workspace",
    "skill": "skills",
    "job": "jobs",
    "conversation": "conversations",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    for kind in KINDS:
        word = words.add_parser(kind, help=f"move in from {kind}: {PLACES[kind]}")
        word.add_argument("path", metavar="PATH", help=PLACES[kind])
        word.add_argument("--dry-run", action="store_true", help="only tell what would be done; nothing is written")
        word.add_argument(
            "--grown", action="store_true", help="what has grown there since comes as another conversation"
        )
        word.add_argument("--json", action="store_true", help="print one JSON object instead")
        if kind in ("nanobot", "openclaw"):
            word.add_argument("--enable", action="store_true", help="let its jobs run at once, instead of paused")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    home, path = home_of(os.environ), path_in(Path(), arguments.path)
    options = MovingOptions(getattr(arguments, "enable", False), arguments.grown)
    if arguments.dry_run:
        report = await look(home, arguments.word, path, options)
    else:
        async with open_mover(home, arguments.word, path, options, terminal.status) as mover:
            report = await mover.move()
    if arguments.json:
        terminal.answer(to_json({"dry_run": arguments.dry_run, **msgspec.to_builtins(report)}))
    else:
        terminal.answer(_told(report, arguments.dry_run))
    return 0


def _told(report: MovingReport, dry: bool) -> str:
    lines: list[str] = []
    counts = Counter(each.what for each in report.taken)
    for what, plural in PLURAL.items():
        found = [each for each in report.taken if each.what == what]
        there = report.there.get(what, 0) if what != "memory" else sum(report.there.get(n, 0) for n in MEMORIES)
        if found or there:
            more = f", {there} were here already" if there else ""
            lines += ["", f"{plural[0].upper()}{plural[1:]}: {counts[what]}{more}", *_listed(found)]
    if report.left:
        lines += ["", f"Not taken over: {len(report.left)}"]
        lines += [f"  {in_one_line(each)[:400]}" for each in report.left[: SHOWN * 5]]
        lines += [f"  … and {len(report.left) - SHOWN * 5} more"] if len(report.left) > SHOWN * 5 else []
    return "\n".join([_summary(report, dry), *lines])


MEMORIES = ("MEMORY.md", "HISTORY.md")


def _summary(report: MovingReport, dry: bool) -> str:
    if not report.taken:
        return "There is nothing new to take over." if report.there else "There is nothing to take over."
    said = f"{len(report.taken)} things, with {report.messages} messages"
    return f"This would be taken over: {said}. Nothing was written." if dry else f"Taken over: {said}."


def _listed(found: list[TakenOver]) -> list[str]:
    lines = [
        f"  {in_one_line(each.name)[:80]}" + (f" ({in_one_line(each.note)})" if each.note else "") for each in found
    ]
    return [*lines[:SHOWN], *([f"  … and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else [])]
