"""`everloop secrets key` and `secrets credential`: what is a person's own in the vault, kept on their behalf."""

import argparse
from typing import Any

from ..app.credentials import checked_credential, keep_credential, kept_credentials
from ..app.own_keys import OwnKeyRow, keep_own_key, kept_keys
from ..app.records import open_records
from ..app.secrets import checked_name
from ..core.people import OWNER
from ..errors import EverloopError
from ..ports.credential import AUTHORIZATION, CredentialRow, KeptCredential
from ..ports.vault import CREDENTIAL, OWN_KEY
from .keys import read_key, typed_unseen
from .table import table, to_json
from .terminal import Terminal
from .times import clock

WHO = "whose it is: an id, an account or a name"


def add_arguments(words: Any, listing: argparse.ArgumentParser) -> None:
    listing.add_argument("--who", metavar="WHO", default="", help="what this person keeps, in place of the house's")
    key = words.add_parser("key", help="a person's own key of a model provider").add_subparsers(
        dest="deed", metavar="COMMAND", required=True
    )
    for deed, help in (("set", "keep one; it is asked for, or read from stdin"), ("forget", "keep it no longer")):
        parser = key.add_parser(deed, help=help)
        parser.add_argument("name", metavar="PROVIDER", help="whose models it opens, such as openai")
        parser.add_argument("--who", metavar="WHO", required=True, help=WHO)
    credential = words.add_parser("credential", help="what a person's tools may use").add_subparsers(
        dest="deed", metavar="COMMAND", required=True
    )
    keep = credential.add_parser("set", help="keep one; it is asked for, or read from stdin")
    forget = credential.add_parser("forget", help="keep it no longer")
    for parser in (keep, forget):
        parser.add_argument("name", metavar="NAME", help="what the model calls it by")
        parser.add_argument("--who", metavar="WHO", default=OWNER, help=f"{WHO} (default: the owner)")
    keep.add_argument(
        "--host", metavar="HOST", action="append", default=[], help="where it may be sent; may be repeated"
    )
    keep.add_argument("--header", default=AUTHORIZATION, help="in which header it is sent (default: Authorization)")
    keep.add_argument("--commands", action="store_true", help="commands may have it too, once a person has said yes")


def is_asked(arguments: argparse.Namespace) -> bool:
    return arguments.word in ("key", "credential") or bool(arguments.word == "list" and arguments.who)


async def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    given = _read(arguments)
    async with open_records() as records:
        person = await records.members.find(arguments.who)
        vault, name = records.vault_of(person.id), getattr(arguments, "name", "")
        match arguments.word, getattr(arguments, "deed", ""):
            case "key", "set":
                notes = await keep_own_key(vault, person.id, name, given, records.settings)
                told = f"Models of {name} answer {person.name} with a key of their own from now on."
                terminal.tell(" ".join([told, *notes]))
            case "credential", "set":
                row = await keep_credential(vault, name, _credential(arguments, given))
                terminal.tell(f"{name} is kept for the tools of {person.name}: {shown_use(row)}.")
            case word, "forget":
                if not await vault.forget((OWN_KEY if word == "key" else CREDENTIAL) + name):
                    raise EverloopError(f"{person.name} keeps no {word} {name!r}; see: everloop secrets list --who WHO")
                terminal.tell(f"The {word} {name} of {person.name} is forgotten.")
            case _:
                keys, credentials = await kept_keys(vault, records.settings), await kept_credentials(vault)
                kept = {"keys": keys, "credentials": credentials}
                terminal.answer(to_json(kept) if arguments.json else _listed(person.name, keys, credentials))
    return 0


def _listed(name: str, keys: list[OwnKeyRow], credentials: list[CredentialRow]) -> str:
    rows = [("key", each.provider, clock(each.at), each.problem or "model calls of theirs") for each in keys]
    rows += [("credential", each.name, clock(each.at), each.problem or shown_use(each)) for each in credentials]
    return table(("KIND", "NAME", "KEPT", "USE"), rows) if rows else f"{name} keeps nothing of their own."


def shown_use(row: CredentialRow) -> str:
    sent = f"sent to {', '.join(row.origins)} as {row.header}" if row.origins else ""
    return "; ".join(filter(None, (sent, f"to commands as ${row.variable}" if row.variable else "")))


def _credential(arguments: argparse.Namespace, value: str) -> KeptCredential:
    return KeptCredential(value, tuple(arguments.host), arguments.header, arguments.commands)


def _read(arguments: argparse.Namespace) -> str:
    """What is wrong beside the secret is said before it is asked for."""
    match arguments.word, getattr(arguments, "deed", ""):
        case "key", "set":
            return read_key(arguments.name)
        case "credential", "set":
            checked_credential(checked_name(arguments.name), _credential(arguments, "x" * 20))
            return typed_unseen(f"The credential {arguments.name}: ")
    return ""
