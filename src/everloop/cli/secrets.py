"""`everloop secrets`: the tokens and passwords that settings refer to, kept in the vault and never shown."""

import argparse
import sys

from ..app.records import open_records
from ..app.secrets import checked_name, forget_secret, keep_secret, kept_secrets
from ..errors import EverloopError
from . import own_secrets
from .keys import typed_unseen
from .table import table, to_json
from .terminal import Terminal
from .times import clock

MORE = (
    "Write ${vault:NAME} where the settings of a channel want one. The vault is encrypted, and no command tells what "
    "it holds. Keys of model providers that everyone is answered with are kept with: everloop models key set. What is "
    "a person's own is kept with --who: by `secrets key` a key of a model provider, which is used for that person and "
    "nobody else, and paid by them; by `secrets credential` what their tools may send to the hosts that are named."
)
NO_SECRETS = (
    "The house keeps no secrets. Keep one with: everloop secrets set NAME\n"
    "What is a person's own is shown with: everloop secrets list --who WHO"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="COMMAND", required=True)
    listing = words.add_parser("list", help="their names, and when each was kept")
    listing.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    keep = words.add_parser("set", help="keep one; it is asked for, or read from stdin")
    keep.add_argument("name", metavar="NAME", help="what to call it")
    forget = words.add_parser("forget", help="keep it no longer")
    forget.add_argument("name", metavar="NAME", help="what it is called")
    own_secrets.add_arguments(words, listing)


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    if own_secrets.is_asked(arguments):
        return await own_secrets.run(arguments, terminal)
    given = _read(arguments.name) if arguments.word == "set" else ""
    async with open_records() as records:
        vault = records.vault
        match arguments.word:
            case "set":
                await keep_secret(vault, arguments.name, given)
                terminal.tell(f"{arguments.name} is kept in the vault: ${{vault:{arguments.name}}}")
            case "forget":
                if not await forget_secret(vault, arguments.name):
                    raise EverloopError(f"there is no secret {arguments.name!r}; see: everloop secrets list")
                terminal.tell(f"{arguments.name} is forgotten.")
            case _:
                kept = await kept_secrets(vault)
                rows = [{"name": name, "at": at} for name, at in kept.items()]
                terminal.answer(to_json({"secrets": rows}) if arguments.json else to_text(kept))
    return 0


def _read(name: str) -> str:
    return typed_unseen(f"The secret {checked_name(name)}: ")


def to_text(kept: dict[str, float]) -> str:
    if not kept:
        return NO_SECRETS
    return table(("NAME", "KEPT"), [(name, clock(at)) for name, at in kept.items()])
