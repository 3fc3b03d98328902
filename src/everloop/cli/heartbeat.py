"""`everloop heartbeat`: when HEARTBEAT.md was looked at, what was decided, and when it is looked at next."""

import argparse
import sys

import msgspec

from ..app.records import open_records
from ..core.people import OWNER, Role
from ..ports.schedules import Asker
from .table import to_json
from .terminal import Terminal

MORE = (
    "Every half hour (heartbeat.every) HEARTBEAT.md in your workspace is looked at, and the agent asked only if "
    "something in it is new or due, a file that it watches has changed, or a check says something else. It writes "
    "to you only if that is worth a message."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    show = words.add_parser("show", help="when it was looked at, what was decided, and what comes next (the default)")
    show.add_argument("--json", action="store_true", help="print one JSON object instead")
    words.add_parser("run", help="look at it now, also in quiet hours")
    words.add_parser("allow", help="let its checks run as they are written now, where you would be asked")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        desk = records.heartbeat
        match arguments.word:
            case "show" if arguments.json:
                terminal.answer(to_json(msgspec.to_builtins(await desk.shown(OWNER))))
            case "show":
                terminal.answer("\n".join(await desk.lines(OWNER)))
            case "run":
                terminal.answer(await desk.run(OWNER))
            case "allow":
                terminal.answer(await desk.allow(Asker(OWNER, Role.OWNER, by_hand=True)))
    return 0
