"""`everloop tokens`: make, show and revoke the tokens by which programs use the gateway, also while it runs."""

import argparse
import sys
from datetime import datetime

from ..app.access import new_token, token_scopes
from ..app.records import open_records
from ..errors import EverloopError
from ..ports.rows import TokenRow
from .table import table, to_json
from .terminal import Terminal

MORE = "A token is printed once, when it is made; only a hash of it is kept. Send it as `Authorization: Bearer TOKEN`."
DAY = 86_400
OWNER = "owner"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="COMMAND", required=True)
    listing = words.add_parser("list", help="the tokens that hold, and what they may do")
    listing.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    create = words.add_parser("create", help="make a token and print it, alone, on stdout")
    create.add_argument("name", metavar="NAME", type=_name, help="what to call it")
    scopes = ", ".join(token_scopes())
    create.add_argument(
        "--scope", action="append", choices=token_scopes(), help=f"allow only this ({scopes}); repeatable"
    )
    create.add_argument(
        "--platform",
        action="append",
        default=[],
        metavar="PLATFORM",
        help="let a bot speak for the people of this platform (/message), such as discord; repeatable (default: none)",
    )
    create.add_argument("--days", metavar="N", type=_days, default=0, help="let it hold for N days (default: for ever)")
    revoke = words.add_parser("revoke", help="let a token hold no longer, at once")
    revoke.add_argument("name", metavar="NAME", help="its name or id")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        book = records.store
        match arguments.word:
            case "create":
                scopes = arguments.scope or token_scopes()
                seconds, platforms = arguments.days * DAY, arguments.platform
                terminal.answer(await new_token(book, OWNER, arguments.name, scopes, seconds, platforms))
            case "revoke":
                if not await book.forget_token(OWNER, arguments.name):
                    raise EverloopError(f"there is no token {arguments.name!r}; see: everloop tokens list")
                terminal.tell(f"{arguments.name} is revoked.")
            case _:
                rows = await book.tokens(OWNER)
                terminal.answer(to_json({"tokens": rows}) if arguments.json else to_text(rows))
    return 0


def to_text(rows: list[TokenRow]) -> str:
    if not rows:
        return "There are no tokens. Make one with: everloop tokens create NAME"
    cells = [
        (row.name, row.id, " ".join(row.scopes), ", ".join(row.platforms) or "-", _day(row.at), _day(row.until))
        for row in rows
    ]
    return table(("NAME", "ID", "SCOPES", "PLATFORMS", "MADE", "UNTIL"), cells)


def _day(at: float) -> str:
    return datetime.fromtimestamp(at).strftime("%Y-%m-%d") if at else "-"


def _name(text: str) -> str:
    if not text.strip() or len(text) > 100 or not text.isprintable():
        raise argparse.ArgumentTypeError("a name is 1 to 100 characters that can be shown")
    return text


def _days(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:6]) <= 36_500:
        raise argparse.ArgumentTypeError("it must be a number of days from 1 to 36500")
    return int(text)
