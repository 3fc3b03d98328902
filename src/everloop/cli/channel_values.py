"""What `everloop channels add` and `login` are given: as options, from files, from stdin, or typed by whoever is asked.

What is secret is typed unseen, and never shown again.
"""

import argparse
import getpass
import sys
from collections.abc import Iterable
from typing import Any

import msgspec

from ..app.channel_packages import login_of, setup_of
from ..errors import EverloopError
from ..ports.channel import SetupField
from ..readings.visible import visible
from .parser import Parser
from .terminal import Terminal, WrongUse, show_prompt


def add_arguments(word: argparse.ArgumentParser) -> None:
    word.add_argument("values", metavar="KEY=VALUE", nargs="*", help="a setting; what is not given is asked for")
    assert isinstance(word, Parser)
    word.further = "values"
    word.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="the same")
    word.add_argument(
        "--set-file",
        metavar="KEY=FILE",
        action="append",
        default=[],
        help="a setting whose value a file holds; - is stdin",
    )


def of_setup(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """The settings of a channel that is to be set up. Raises EverloopError, WrongUse."""
    setup = setup_of(arguments.name)
    given = _given(arguments)
    missing = [field for field in setup.fields if field.name not in given]
    if sys.stdin.isatty() and any(not field.optional for field in missing):
        terminal.tell(f"Setting up {setup.title}.")
        for number, step in enumerate(setup.steps, 1):
            terminal.tell(f"  {number}. {step}")
    return {**given, **_asked(missing)}


def of_login(arguments: argparse.Namespace, terminal: Terminal) -> dict[str, Any]:
    """What a login asks for. Raises EverloopError, WrongUse."""
    found = login_of(arguments.name)
    if found is None:
        title = setup_of(arguments.name).title
        raise WrongUse(f"{title} has no login; set it up with: everloop channels add {arguments.name}")
    given = _given(arguments)
    return {**given, **_asked([field for field in found[0] if field.name not in given])}


def _given(arguments: argparse.Namespace) -> dict[str, Any]:
    pairs = [_pair(each) for each in (*arguments.values, *arguments.set)]
    files = [(key, _from_file(path)) for key, path in (_pair(each, "FILE") for each in arguments.set_file)]
    return {**{key: _value(text) for key, text in pairs}, **dict(files)}


def _pair(text: str, what: str = "VALUE") -> tuple[str, str]:
    """What stands behind the = may be a secret, and is never quoted."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise WrongUse(f"a setting is given as KEY={what}")
    return key, value


def _value(text: str) -> Any:
    """A list is written as JSON; anything else is text, and read as its setting wants it."""
    if not text.startswith("["):
        return text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text


def _from_file(path: str) -> str:
    try:
        if path == "-":
            return sys.stdin.buffer.read().decode().strip()
        with open(path, encoding="utf-8") as file:
            return file.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise EverloopError(f"{path} cannot be read ({getattr(error, 'strerror', 'it is no text')})") from error


def _asked(missing: Iterable[SetupField]) -> dict[str, str]:
    """Of whoever sits at the terminal; what a pipe brings is the one secret that is missing. What nobody says is left
    out: who keeps it knows whether it can be."""
    missing = list(missing)
    if sys.stdin.isatty():
        return {field.name: answer for field in missing if (answer := _ask(field))}
    needed = [field for field in missing if not field.optional]
    if len(needed) == 1 and needed[0].secret and (piped := _from_file("-")):
        return {needed[0].name: piped}
    return {}


def _ask(field: SetupField) -> str:
    question = visible(f"{field.question}{' (may be left out)' if field.optional else ''}: ")
    try:
        if field.secret:
            return getpass.getpass(question).strip()
        show_prompt(question)
        return sys.stdin.readline().strip()
    except EOFError:
        return ""
