"""`everloop models`: which models there are, whether one works, and the keys and logins that open them."""

import argparse
import sys
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from ..app.keys import LOGINS
from . import keys, survey, trial
from .terminal import Terminal

if TYPE_CHECKING:
    Words = argparse._SubParsersAction[argparse.ArgumentParser]

MORE = "Without one of these words, `list` is meant: `everloop models openai` lists OpenAI's."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="action", metavar="COMMAND", required=True)
    listing = _word(words, "list", "show the providers that can be asked, or the models of one")
    listing.add_argument("name", metavar="NAME", nargs="?", help="a provider, or a pattern such as 'openai/gpt-5*'")
    listing.add_argument("--all", action="store_true", help="also the providers that have no key, and what they need")
    listing.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    trying = _word(words, "test", "ask a model for an answer and a tool call, with timings")
    trying.add_argument("name", metavar="NAME", nargs="?", default="", help="provider/model or a preset (the default)")
    trying.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    key = _word(words, "key", "keep keys in the vault")
    keys = key.add_subparsers(dest="key_action", metavar="COMMAND", required=True)
    keeping = _word(keys, "set", "keep the key of a provider; it is read from stdin, or asked for without being shown")
    keeping.add_argument("name", metavar="NAME", help="a provider")
    _word(keys, "list", "show which providers have a key in the vault")
    _word(keys, "forget", "remove a key from the vault").add_argument("name", metavar="NAME", help="a provider")
    for word, help in (("login", "log in to a provider that has no keys"), ("logout", "forget a login")):
        _word(words, word, help).add_argument("name", choices=LOGINS, metavar="NAME", help=" or ".join(LOGINS))


def _word(words: "Words", name: str, help: str) -> argparse.ArgumentParser:
    return words.add_parser(name, help=help, description=help)


def run(arguments: argparse.Namespace) -> Coroutine[Any, Any, int]:
    """Not itself async: a key is asked for before the event loop runs, in which a prompt would not hear Ctrl-C."""
    terminal, name = Terminal(sys.stdout, sys.stderr), getattr(arguments, "name", None)
    match arguments.action, getattr(arguments, "key_action", ""), name:
        case "list", _, None:
            return survey.list_hosts(arguments.all, arguments.json, terminal)
        case "list", _, str(name):
            return survey.list_models(name, arguments.json, terminal)
        case "test", _, str(name):
            return trial.try_model(name, arguments.json, terminal)
        case "key", "set", str(name):
            return keys.keep_key(keys.find_host(name), keys.read_key(name), terminal)
        case "key", "forget", str(name):
            return keys.forget(name, terminal)
        case "login", _, str(name):
            return keys.login(name, terminal)
        case "logout", _, str(name):
            return keys.forget(name, terminal, login=True)
    return keys.list_keys(terminal)
