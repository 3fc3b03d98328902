"""`everloop backup`: a copy of everything in one file, and back."""

import argparse
import asyncio
import getpass
import os
import re
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Any

from ..app.backup_making import is_named_sealed
from ..app.backups import PASSPHRASE, BackupFile, Backups, MadeBackup, backups_in, folder_of
from ..app.records import open_records
from ..app.restoring import Restored, RestorePlan, restore
from ..app.scheduled_backups import ScheduledBackups, change_schedule
from ..app.verifying import is_sealed_file, verify
from ..errors import BackupError
from ..ports.backup import HeldBack
from ..settings import home_of, load
from .table import table, to_json
from .terminal import Terminal, WrongUse
from .times import clock

MORE = (
    "A backup is made while everything runs, and holds the database, files, workspaces, memory, skills, personas and "
    "settings of one moment. With a passphrase (--encrypt, --passphrase-file, EVERLOOP_BACKUP_PASSPHRASE or "
    "backup.passphrase) it is encrypted, and holds the key of the vault. A restored copy sends nothing and begins "
    "nothing by itself, until `everloop backup adopt` says that it is the one that goes on."
)
HEADS = ("NAME", "MADE", "  SIZE", "ENCRYPTED")
EVERY = ("daily", "weekly", "off")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listed = words.add_parser("list", help="show the backups that there are (the default)")
    create = words.add_parser("create", help="make one now, while everything runs")
    for word in (listed, create):
        word.add_argument("--folder", default="", help="where they lie (default: backup.folder, or in the home)")
        word.add_argument("--json", action="store_true", help="print one JSON object")
    sealing = create.add_mutually_exclusive_group()
    sealing.add_argument("--encrypt", action="store_true", help="ask for a passphrase, and encrypt it")
    sealing.add_argument("--plain", action="store_true", help="do not encrypt it, whatever the settings say")
    check = words.add_parser("verify", help="read all of one, and restore nothing")
    back = words.add_parser("restore", help="unpack one into a new home")
    for word in (check, back):
        word.add_argument("file", metavar="FILE", help="a path, or a name from the list")
    for word in (create, check, back):
        word.add_argument("--passphrase-file", metavar="FILE", default="", help="its first line is the passphrase")
        word.add_argument("--passphrase", type=_refused, help=argparse.SUPPRESS)
    back.add_argument("--home", default="", help="the new home (default: EVERLOOP_HOME, or ~/.everloop)")
    back.add_argument("--replace", action="store_true", help="move a home that is there aside first")
    back.add_argument(
        "--same-place",
        action="store_true",
        help="this is now the one and only copy: go on as after a crash, with what was to be sent and done",
    )
    back.add_argument("--store", metavar="URL", default="", help="an empty PostgreSQL database (default: SQLite)")
    words.add_parser("adopt", help="say that this restored copy is the one that goes on: channels, schedules, logins")
    schedule = words.add_parser("schedule", help="have the gateway make them, or show what it does")
    schedule.add_argument("every", choices=EVERY, nargs="?", help="how often")
    schedule.add_argument("--folder", default=None, help="where they go")
    schedule.add_argument("--keep", type=int, default=None, metavar="N", help="how many stay (7)")
    schedule.add_argument(
        "--passphrase",
        type=_reference,
        default=None,
        metavar="REFERENCE",
        help="${vault:NAME}, or ${NAME} for a variable",
    )


def _refused(text: str) -> str:
    raise argparse.ArgumentTypeError(
        "it is not taken: other processes and the shell's history see what stands on a command line. Use "
        f"--passphrase-file, {PASSPHRASE}, or have it asked"
    )


def _reference(text: str) -> str:
    if text and not re.fullmatch(r"\$\{[\w:.-]+\}", text):
        raise argparse.ArgumentTypeError(
            "it is where the passphrase stands, and never the passphrase itself: ${vault:NAME} (everloop secrets set "
            "NAME keeps it), or ${NAME} for a variable"
        )
    return text


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    match arguments.word:
        case "list":
            terminal.answer(await _list(arguments))
        case "create":
            await _create(terminal, arguments)
        case "verify":
            terminal.answer(await _verify(arguments))
        case "restore":
            await _restore(terminal, arguments)
        case "adopt":
            terminal.answer(await _adopt())
        case _:
            terminal.answer(await _schedule(arguments))
    return 0


async def _list(given: argparse.Namespace) -> str:
    folder = _folder(given.folder)
    found = await asyncio.to_thread(backups_in, folder)
    if given.json:
        return to_json({"folder": str(folder), "backups": [_as_json(each) for each in found]})
    if not found:
        return f"There is no backup in {folder}. Make one: everloop backup create"
    return table(HEADS, [_row(each) for each in found])


def _as_json(each: BackupFile) -> dict[str, Any]:
    return {"name": each.name, "path": str(each.path), "made": each.made, "size": each.size, "encrypted": each.sealed}


def _row(each: BackupFile) -> tuple[str, ...]:
    return each.name, clock(each.made), sized(each.size), "yes" if each.sealed else "no"


async def _create(terminal: Terminal, given: argparse.Namespace) -> None:
    async with open_records() as records:
        backups = records.backups
        passphrase = "" if given.plain else await _passphrase_for(backups, given)
        folder = Path(given.folder) if given.folder else None
        made = await backups.create(folder, passphrase, _Progress(terminal) if sys.stderr.isatty() else None)
    if given.json:
        terminal.answer(to_json({**_as_json(made.file), "warnings": list(made.warnings)}))
        return
    terminal.answer(_made(made))
    for warning in made.warnings:
        terminal.tell(f"Warning: {warning}")


def _made(made: MadeBackup) -> str:
    sealed = "encrypted" if made.file.sealed else "not encrypted"
    rows, files = sum(made.summary.rows.values()), made.summary.members
    return f"{made.file.path}: {sized(made.file.size)}, {sealed}, {rows:,} rows and {files:,} files and folders."


async def _passphrase_for(backups: Backups, given: argparse.Namespace) -> str:
    if given.passphrase_file:
        return _first_line(given.passphrase_file)
    if found := await backups.passphrase():
        return found
    if not given.encrypt:
        return ""
    if not sys.stdin.isatty():
        raise WrongUse(f"--encrypt asks at a terminal; in a script, use --passphrase-file or {PASSPHRASE}")
    typed = getpass.getpass("Passphrase of the backup: ")
    if not typed:
        raise BackupError("no passphrase was given, and no backup was made")
    if getpass.getpass("Once more: ") != typed:
        raise BackupError("these are two passphrases, and no backup was made")
    return typed


async def _verify(given: argparse.Namespace) -> str:
    file = _file(given.file)
    passphrase = await asyncio.to_thread(_passphrase_of, file, given)
    found = await asyncio.to_thread(verify, file, passphrase, home_of(os.environ))
    about, summary = found.about, found.summary
    when = datetime.fromtimestamp(about.made, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    key = "with the key of the vault" if about.has_key else "without the key of the vault"
    return (
        f"{file.name} is whole: made {when} by everloop {about.everloop} ({about.store}, schema {about.schema}), "
        f"{summary.members:,} files and folders, {sized(summary.bytes)}, {sum(summary.rows.values()):,} rows, {key}."
    )


async def _restore(terminal: Terminal, given: argparse.Namespace) -> None:
    file = _file(given.file)
    passphrase = await asyncio.to_thread(_passphrase_of, file, given)
    home = Path(os.getcwd(), given.home) if given.home else home_of(os.environ)
    plan = RestorePlan(file, home, passphrase, given.store, given.same_place, given.replace)
    done = await restore(plan)
    terminal.answer(f"{home} is restored from {file.name}: {sum(done.summary.rows.values()):,} rows.")
    there = "" if home == home_of(os.environ) else f"EVERLOOP_HOME={quote(str(home))} "
    for line in told(done, there):
        terminal.tell(line)


def told(done: Restored, there: str = "") -> list[str]:
    """What somebody has to know who has just restored it; `there` makes a command one about that home."""
    lines = [f"What was there before lies in {done.aside}."] if done.aside else []
    lines += done.notes
    if not done.about.has_key:
        lines.append("The key of the vault is not in this backup: bring vault.key back, or enter keys and tokens anew.")
    if done.held is None:
        return [*lines, "It goes on as after a crash: what was to be sent is sent, unless it was sent before."]
    return [*lines, *_held(done.held, there)]


def _held(held: HeldBack, there: str) -> list[str]:
    return [
        "It is a copy: channels are off, and nothing is sent or begun by itself. Held back are "
        f"{held.answers} answers, {held.jobs} jobs and {held.logins} logins; {held.turns} turns were cut off.",
        f"If this is the one that goes on: {there}everloop backup adopt. Answers that may have been sent since: "
        f"{there}everloop outbox list",
    ]


async def _adopt() -> str:
    async with open_records() as records:
        done = await records.store.adopt()
    if done is None:
        return "This home is no copy, or was adopted before; nothing was changed."
    missed = f" {done.missed} were due only once, before now, and are not done." if done.missed else ""
    waiting = f" {done.answers} answers wait for a word: everloop outbox list." if done.answers else ""
    return f"This home goes on: channels listen within seconds, {done.jobs} jobs go on.{missed}{waiting}"


async def _schedule(given: argparse.Namespace) -> str:
    wanted = {"folder": given.folder, "keep": given.keep, "passphrase": given.passphrase}
    changes: dict[str, object] = {key: value for key, value in wanted.items() if value is not None}
    if given.keep is not None and given.keep < 1:
        raise WrongUse("--keep is at least 1")
    if given.every:
        changes["every"] = "" if given.every == "off" else given.every
    async with open_records() as records:
        settings = records.settings
        if changes:
            settings = await change_schedule(records.store, records.home, changes)
            await ScheduledBackups(records.backups, records.store, lambda: settings).follow()
        chosen, folder = settings.backup, folder_of(settings, records.home)
    if not chosen.every:
        return "No backup is made by itself. Have one made: everloop backup schedule daily"
    sealed = "encrypted" if chosen.passphrase or os.environ.get(PASSPHRASE) else "not encrypted"
    return f"One is made {chosen.every} where the gateway runs, into {folder}, {sealed}; the newest {chosen.keep} stay."


def _folder(named: str) -> Path:
    home = home_of(os.environ)
    return Path(named) if named else folder_of(load(home, os.environ), home)


def _file(named: str) -> Path:
    """A path, or a name in the folder of backups."""
    path = Path(named)
    return path if path.exists() or path.name != named else _folder("") / named


def _passphrase_of(file: Path, given: argparse.Namespace) -> str:
    """To open one: nothing is asked for a file that is not encrypted. Raises BackupError for one that should be: it may
    have been put in the place of another."""
    if not is_sealed_file(file):
        if given.passphrase_file or is_named_sealed(file):
            raise BackupError(f"{file.name} is not encrypted, and was to be: it is not the file that was made")
        return ""
    if given.passphrase_file:
        return _first_line(given.passphrase_file)
    if text := os.environ.get(PASSPHRASE):
        return text
    return getpass.getpass("Passphrase of the backup: ") if sys.stdin.isatty() else ""


def _first_line(name: str) -> str:
    try:
        with open(name, encoding="utf-8") as file:
            line = file.readline().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise BackupError(f"the file of --passphrase-file cannot be read ({why})") from error  # unnamed: see _refused
    if not line:
        raise BackupError(f"the first line of {name} is empty, and was to be the passphrase")
    return line


def sized(size: float) -> str:
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


PAUSE = 0.5  # seconds between two tellings


class _Progress:
    """Told in a line that is overwritten, from the thread that packs."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal
        self._told = 0.0

    def __call__(self, done: int, total: int) -> None:
        if time.monotonic() - self._told > PAUSE:
            self._told = time.monotonic()
            share = f"{min(99, done * 100 // total)} %" if total else ""
            self._terminal.status(f"{sized(done)} of about {sized(total)} {share}")
