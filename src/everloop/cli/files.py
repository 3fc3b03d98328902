"""`everloop files`: what is kept beside the conversations, and the removal of what nothing names any more."""

import argparse
import sys
import time
from collections.abc import Collection, Sequence
from typing import Any

from ..app.records import Records, open_records
from ..core.people import OWNER
from ..errors import MailRefused
from ..ports import KeptFile
from .own_files import WORDS, list_of, write_out
from .table import how_many, sized, table, to_json
from .terminal import Terminal
from .times import clock, seconds_in
from .whose import whose

MORE = (
    "What a conversation, a message or an answer names is never removed, also where that is archived or a summary now."
)
HEADS = ("FILE", " SIZE", "KEPT", "OWNER", "NAMED")
DAY = 86_400.0
WHO = "an id, an account or a name"
HOUR = 3600.0  # so long a turn may take between keeping a file and naming it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listed = words.add_parser("list", help="show what is kept, the largest first (the default)")
    listed.add_argument("--unused", action="store_true", help="only what nothing names any more")
    listed.add_argument(
        "--of",
        metavar="WHO",
        default="",
        help=f"what somebody has sent and was given: {WHO}",
    )
    listed.add_argument("-n", "--limit", metavar="N", type=how_many, default=20, help="at most N (default 20)")
    shown = words.add_parser("show", help="show what is known of a file")
    got = words.add_parser("get", help="write a file of a person's to PATH, or with - to stdout")
    removed = words.add_parser("remove", help="remove a file of a person's for good, whatever names it")
    for word in (shown, got, removed):
        word.add_argument("file", metavar="FILE", help="file:… and at least 12 digits")
        word.add_argument(
            "--of",
            metavar="WHO",
            default=OWNER,
            help=f"whose it is: {WHO} (default: the owner)",
        )
    got.add_argument("path", metavar="PATH", help="where to; a file that is there is left alone")
    cleaned = words.add_parser("clean", help="remove what nothing names any more")
    cleaned.add_argument(
        "--older-than",
        metavar="TIME",
        type=_age,
        default=30 * DAY,
        help="only what has been there for 12h, 7d, … (default 30d, at least 1h)",
    )
    cleaned.add_argument("--dry-run", action="store_true", help="only show what would be removed")
    for word in (listed, shown, cleaned):
        word.add_argument("--json", action="store_true", help="print one JSON object instead")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        if getattr(arguments, "of", ""):
            arguments.of = await whose(records, arguments.of)
        if arguments.word == "list" and arguments.of:
            terminal.answer(await list_of(records, arguments))
        elif arguments.word == "list":
            terminal.answer(await _list(records, arguments))
        elif arguments.word == "clean":
            terminal.answer(await _clean(records, arguments))
        elif arguments.word == "get" and arguments.path == "-":
            await write_out(records, arguments)
        else:
            terminal.answer(await WORDS[arguments.word](records, arguments))
    return 0


async def _list(records: Records, arguments: argparse.Namespace) -> str:
    files = await records.files.files()
    left = {file.ref for file in await records.files.unused(records.store)}
    wanted = [file for file in files if file.ref in left or not arguments.unused]
    shown = wanted[: arguments.limit]
    if arguments.json:
        told = [_described(file, left) for file in shown]
        return to_json({"files": told, **_totals(files, left)})
    return "\n".join((*([_table(shown, left)] if shown else []), _sentence(files, left)))


async def _clean(records: Records, arguments: argparse.Namespace) -> str:
    before = time.time() - arguments.older_than
    old = [file for file in await records.files.unused(records.store) if file.at < before]
    if arguments.dry_run:
        gone = old
    elif await records.store.waiting():
        raise MailRefused(
            "a turn was cut off, and has not yet told what it kept; let it end first (everloop --continue), or try "
            "again in a moment where everloop runs"
        )
    else:
        gone = [file async for file in records.files.remove(old, before)]
    if arguments.json:
        told = [_described(file, {each.ref for each in gone}) for file in gone]
        return to_json({"removed": told, "bytes": _bytes(gone), "dry_run": arguments.dry_run})
    done = "would be" if arguments.dry_run else "were" if len(gone) != 1 else "was"
    sentence = f"{_counted(gone)} {done} removed ({sized(_bytes(gone))})."
    listed = arguments.dry_run and gone
    return f"{_table(gone, {file.ref for file in gone})}\n{sentence}" if listed else sentence


def _table(files: Sequence[KeptFile], unused: Collection[str]) -> str:
    rows = [
        (file.ref[:17], sized(file.size), clock(file.at), file.owner, "no" if file.ref in unused else "yes")
        for file in files
    ]
    return table(HEADS, rows)


def _sentence(files: Sequence[KeptFile], unused: Collection[str]) -> str:
    if not files:
        return "No file is kept."
    left = [file for file in files if file.ref in unused]
    rest = f"{len(left):,} of them ({sized(_bytes(left))}) named nowhere" if left else "each of them named somewhere"
    return f"{_counted(files)}, {sized(_bytes(files))}; {rest}."


def _counted(files: Sequence[KeptFile]) -> str:
    return f"{len(files):,} file{'' if len(files) == 1 else 's'}"


def _totals(files: Sequence[KeptFile], unused: Collection[str]) -> dict[str, int]:
    left = [file for file in files if file.ref in unused]
    return {"count": len(files), "bytes": _bytes(files), "unused": len(left), "unused_bytes": _bytes(left)}


def _described(file: KeptFile, unused: Collection[str]) -> dict[str, Any]:
    return {"file": file.ref, "bytes": file.size, "at": file.at, "owner": file.owner, "named": file.ref not in unused}


def _bytes(files: Sequence[KeptFile]) -> int:
    return sum(file.size for file in files)


def _age(text: str) -> float:
    if (seconds := seconds_in(text)) < HOUR:
        raise argparse.ArgumentTypeError("it must be at least 1h: what a turn has just kept is named a little later")
    return seconds
