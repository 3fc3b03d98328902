"""`everloop export`: everything that is kept, as files that people can read."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path

from .. import __version__
from ..app.house_export import write_house
from ..app.records import open_records
from .terminal import Terminal

MORE = (
    "Conversations are Markdown and JSONL, memory is Markdown, the rest are tables; README.md says what is where. No "
    "secret is among it. What somebody would be given themselves: everloop users export. To bring everything back: "
    "everloop backup."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target", metavar="FOLDER|FILE.zip", nargs="?", default="", help="a new one (default: a zip here)"
    )


async def run(arguments: argparse.Namespace) -> int:
    terminal, now = Terminal(sys.stdout, sys.stderr), datetime.now(UTC)
    path = Path(arguments.target or f"everloop {now:%Y-%m-%d}.zip")
    async with open_records() as records:
        count = await write_house(records, path, now.timestamp(), __version__)
    terminal.answer(f"{path} has all that is kept, of {count} people and groups. Begin with README.md.")
    return 0
