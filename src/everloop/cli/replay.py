"""`everloop replay`: a recorded turn once more, and where it differs from what was recorded."""

import argparse
import logging
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from .. import __version__
from ..app.records import Records, open_records
from ..app.replay import cut, masked, name_of, replay, source_of, tools_now, turns_in
from ..core.log import Entry
from ..core.tool import ToolSpec
from ..errors import ReplayRefused, VaultLocked
from .terminal import Terminal

MORE = "A turn is named as `everloop agent --json` names it: thread:seq, or `last`. Nothing is asked, run or sent."
SECRET = re.compile("KEY|TOKEN|SECRET|PASS", re.IGNORECASE)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "turn", metavar="TURN", help="thread:seq; the beginning of the thread's name is enough; or `last`"
    )
    parser.add_argument(
        "--as-test",
        dest="file",
        metavar="FILE",
        nargs="?",
        const="",
        help="write it as a test for pytest (default: a name made of the turn's); it holds the conversation",
    )


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        thread, seq = await _find(records, arguments.turn)
        entries = await records.store.read(thread)
        turn = f"{thread}:{_last(entries) if seq is None else seq}"
        secrets = await _secrets(records) if arguments.file is not None else []
    with _quiet():
        if arguments.file is None:
            return await _show(entries, turn, tools_now(records.settings), terminal)
        return await _write(masked(entries, secrets), turn, arguments.file, records, terminal)


async def _show(entries: Sequence[Entry], turn: str, tools: Mapping[str, ToolSpec], terminal: Terminal) -> int:
    record = cut(entries, _seq(turn), tools.values())
    replayed = await replay(record, tools)
    if replayed.difference:
        terminal.answer(str(replayed.difference))
        return 1
    believed = f", {replayed.believed} of them taken from the record" if replayed.believed else ""
    unfinished = "; the turn is not over yet" if record.unfinished else ""
    terminal.answer(f"the same: {len(record.turn)} entries{believed}{unfinished}")
    return 0


async def _write(entries: Sequence[Entry], turn: str, file: str, records: Records, terminal: Terminal) -> int:
    path = Path(file or f"test_{name_of(turn)}.py")
    record = cut(entries, _seq(turn), tools_now(records.settings).values())
    replayed = await replay(record)
    if replayed.difference:
        terminal.answer(str(replayed.difference))
        raise ReplayRefused("nothing was written: a test of this turn would fail already")
    _create(path, source_of(record, turn, __version__))
    terminal.answer(
        f"{path}: {len(record.turn)} entries. It holds the conversation; look at it before you give it away."
    )
    return 0


def _create(path: Path, text: str) -> None:
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise ReplayRefused(f"{path} cannot be written ({error.strerror})") from error


async def _find(records: Records, name: str) -> tuple[str, int | None]:
    """The thread and the seq of a turn; None is its last."""
    if name == "last":
        row = await records.store.latest("owner")
        if row is None:
            raise ReplayRefused("nothing has been recorded yet")
        return row.id, None
    beginning, _, seq = name.rpartition(":")
    if not beginning or not (seq.isascii() and seq.isdigit() and len(seq) < 16):
        raise ReplayRefused(f"a turn is named thread:seq, as `everloop agent --json` prints it, or last; not {name!r}")
    found = await records.store.named(beginning)
    if len(found) != 1:
        raise ReplayRefused(
            f"{'more than one' if found else 'no'} conversation has a name that begins with {beginning!r}"
        )
    return found[0], int(seq)


def _last(entries: Sequence[Entry]) -> int:
    if turns := turns_in(entries):
        return turns[-1]
    raise ReplayRefused("nothing has been said in the conversation that was active last")


def _seq(turn: str) -> int:
    return int(turn.rpartition(":")[2])


async def _secrets(records: Records) -> list[str]:
    """What must not stand in a file that people pass around, should a conversation have held it."""
    accounts = records.settings.providers.accounts.values()
    found = [account.api_key for account in accounts]
    found += [value for name, value in os.environ.items() if SECRET.search(name)]
    with suppress(VaultLocked):  # then nobody has read them here, either
        found += [await records.vault.get(name) or "" for name in await records.vault.names()]
    return [secret for secret in found if secret]


@contextmanager
def _quiet() -> Iterator[None]:
    """What happens again has been logged when it happened."""
    logging.disable()
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
