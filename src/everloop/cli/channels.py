"""`everloop channels`: where people already are, and how the agent gets there."""

import argparse
import sys
from collections.abc import Coroutine
from typing import Any

from ..app.channel_desk import ChannelDesk, open_channel_desk
from ..ports.channel import Probed
from ..ports.listening import ChannelRow
from ..readings.visible import visible
from . import channel_values
from .table import table, to_json
from .terminal import Terminal, WrongUse, show_prompt
from .times import clock

MORE = (
    "`add` says where to get what it asks for, tries it with a real call and says what is missing. Secrets go to the "
    "vault, all else to the settings file. A gateway that runs opens the channel within seconds. In a script: "
    "everloop channels add telegram --set-file token=FILE, where - is stdin."
)
STATES = {
    "unset": "not set up",
    "off": "off",
    "wrong": "wrong",
    "stopped": "not running",
    "starting": "starting",
    "listening": "listening",
    "failed": "failing",
}
HEADS = ("NAME", "TITLE", "FROM", "STATE")
MORE_HEADS = ("NAME", "STATE", "SINCE", "LAST IN", "LAST OUT", " WAITING", " GIVEN UP")
NOT_TRIED = "It cannot be tried beforehand; everloop channels status tells how it goes."
NONE_SET = "No channel is set up. See: everloop channels list. `everloop channels add NAME` sets one up."
OPENS = (
    "A gateway that runs opens it within seconds; else start one: everloop gateway. How it goes: "
    "everloop channels status {name}"
)
NOBODY_ASKED = "removing a channel is asked at a terminal; in a script say --yes"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listing = words.add_parser("list", help="all channels that there are, and how each stands (the default)")
    add = words.add_parser("add", help="set one up: says where to get what it asks for, tries it, and keeps it")
    test = words.add_parser("test", help="try one as it is set, with a call that changes nothing")
    login = words.add_parser("login", help="set one up by logging in, where it has a login")
    status = words.add_parser("status", help="how those stand that are set up, and what to do")
    remove = words.add_parser("remove", help="take one out of the settings, with its secrets")
    for word in (listing, status):
        word.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    for word in (add, test, login, remove):
        word.add_argument("name", metavar="NAME", help="as `everloop channels list` has it")
    status.add_argument("name", metavar="NAME", nargs="?", default="", help="only this one")
    for word in (add, login):
        channel_values.add_arguments(word)
    add.add_argument("--no-test", action="store_true", help="keep it without trying it first")
    remove.add_argument("--yes", action="store_true", help="do not ask")


def run(arguments: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Not itself async: what is asked is asked before the event loop runs, in which a prompt would not hear Ctrl-C."""
    terminal = Terminal(sys.stdout, sys.stderr)
    match arguments.word:
        case "add":
            return _add(arguments, channel_values.of_setup(arguments, terminal), terminal)
        case "login":
            return _log_in(arguments.name, channel_values.of_login(arguments, terminal), terminal)
        case "remove":
            return _remove(arguments.name, arguments.yes or _is_sure(arguments.name), terminal)
        case "test":
            return _test(arguments.name, terminal)
        case word:
            return _show(word, arguments, terminal)


async def _add(arguments: argparse.Namespace, values: dict[str, Any], terminal: Terminal) -> int:
    async with open_channel_desk() as desk:
        added = await desk.add(arguments.name, values, test=not arguments.no_test)
    tell_added(added.row, added.probed, terminal, tried=not arguments.no_test)
    return 0


async def _log_in(name: str, values: dict[str, Any], terminal: Terminal) -> int:
    async with open_channel_desk() as desk:
        added = await desk.log_in(name, values)
    tell_added(added.row, added.probed, terminal, tried=True)
    return 0


def tell_added(row: ChannelRow, probed: Probed | None, terminal: Terminal, *, tried: bool) -> None:
    if tried:
        _tell_probed(probed, terminal)
    terminal.answer(f"{row.title} is set up.")
    if row.state != "listening":
        terminal.note(OPENS.format(name=row.name))


def _tell_probed(probed: Probed | None, terminal: Terminal) -> None:
    if probed is None:
        terminal.note(NOT_TRIED)
        return
    found = f"It answers: {probed.account}" + (f", {probed.link}" if probed.link else "")
    terminal.answer(visible(found))
    for sentence in probed.missing:
        terminal.tell(visible(f"Missing: {sentence}"))


async def _test(name: str, terminal: Terminal) -> int:
    async with open_channel_desk() as desk:
        probed = await desk.test(name)
    _tell_probed(probed, terminal)
    return 1 if probed and probed.missing else 0


async def _remove(name: str, is_sure: bool, terminal: Terminal) -> int:
    if not is_sure:
        terminal.answer("Nothing was removed.")
        return 1
    async with open_channel_desk() as desk:
        left = await desk.remove(name)
    secrets = "" if left else ", with its secrets"
    terminal.answer(f"{name} is removed{secrets}. Its conversations stay.")
    for each in left:
        terminal.note(f"The secret {each} was not made by `channels add`, and stays: everloop secrets forget {each}")
    return 0


def _is_sure(name: str) -> bool:
    if not sys.stdin.isatty():
        raise WrongUse(NOBODY_ASKED)
    show_prompt(f"Take {name} out of the settings, with its secrets? [y/N] ")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


async def _show(word: str, arguments: argparse.Namespace, terminal: Terminal) -> int:
    async with open_channel_desk() as desk:
        rows = await _wanted(desk, word, getattr(arguments, "name", ""))
    if arguments.json:
        terminal.answer(to_json({"channels": rows}))
    elif word == "list":
        terminal.answer(
            table(HEADS, [(each.name, each.title, each.by or "nobody", STATES[each.state]) for each in rows])
        )
        _tell_what_to_do([each for each in rows if each.state in ("wrong", "failed")], terminal)
    elif not rows:
        terminal.answer(NONE_SET)
    else:
        terminal.answer(table(MORE_HEADS, [_row(each) for each in rows]))
        _tell_what_to_do(rows, terminal)
    return 0


async def _wanted(desk: ChannelDesk, word: str, name: str) -> list[ChannelRow]:
    if name:
        return [await desk.row(name)]
    rows = await desk.rows()
    return rows if word == "list" else [each for each in rows if each.state != "unset"]


def _row(each: ChannelRow) -> tuple[str, ...]:
    times = [clock(at) if at else "–" for at in (each.since, each.traffic.last_in, each.traffic.last_out)]
    return each.name, STATES[each.state], *times, str(each.traffic.waiting), str(each.traffic.given_up)


def _tell_what_to_do(rows: list[ChannelRow], terminal: Terminal) -> None:
    """Of those of which the same is to be said, once."""
    told: dict[str, list[str]] = {}
    for each in rows:
        if sentence := ". ".join(part.rstrip(".") for part in (each.why, each.todo) if part):
            told.setdefault(sentence, []).append(each.name)
    for sentence, names in told.items():
        terminal.tell(visible(f"{', '.join(names)}: {sentence.replace('?. ', '? ')}"))
