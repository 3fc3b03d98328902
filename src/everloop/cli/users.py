"""`everloop users`: who may speak with the agent, as what, and by which accounts."""

import argparse
import sys
from ipaddress import ip_address
from shlex import quote

from ..app.access import new_invitation
from ..app.records import Records, open_records
from ..app.whereabouts import page_address
from ..core.people import ROLES_GIVEN, Role
from ..ports.directory import Person, StandingCode
from ..settings import Settings
from .budgets import add_budget, change_budget, shown_budget
from .leaving import erase, export
from .table import table, to_json
from .terminal import Terminal
from .times import clock

MORE = (
    "A person is known by their accounts (telegram:12345), never by a name. Who writes on a channel from an account "
    "that is nobody's is told a code (users.strangers); `everloop users pair CODE` lets them in."
)
DAY = 86_400.0
HEADS = ("ID", "NAME", "ROLE", "SINCE", "ACCOUNTS")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    words = parser.add_subparsers(dest="word", metavar="WORD", required=True)
    listing = words.add_parser("list", help="everybody who is known, and as what (the default)")
    listing.add_argument("--json", action="store_true", help="print one JSON object instead of a table")
    showing = words.add_parser("show", help="one person")
    add = words.add_parser("add", help="introduce somebody")
    add.add_argument("name", metavar="NAME", help="what to call them")
    add.add_argument("--account", metavar="ACCOUNT", default="", help="the account they write from, as telegram:12345")
    pair = words.add_parser("pair", help="let in whoever was told this code; without one, show who waits")
    pair.add_argument("code", metavar="CODE", nargs="?", default="")
    pair.add_argument("--name", default="", help="what to call them (default: their account)")
    for word in (add, pair):
        word.add_argument("--role", choices=tuple(ROLES_GIVEN), default="user", help="what they may do (default: user)")
    invite = words.add_parser("invite", help="print a link by which somebody comes into the page, once")
    invite.add_argument("--days", type=int, choices=range(1, 31), metavar="N", default=3, help="for how long (3)")
    role = words.add_parser("role", help="say what somebody may do from now on")
    rename = words.add_parser("rename", help="call somebody otherwise")
    link = words.add_parser("link", help="let another account be the same person")
    unlink = words.add_parser("unlink", help="let an account be nobody's again")
    block = words.add_parser("block", help="hear somebody nowhere any more; what they have stays")
    unblock = words.add_parser("unblock", help="hear them again")
    add_budget(words)
    exported = words.add_parser("export", help="write all that is somebody's into a folder or a zip")
    erased = words.add_parser("erase", help="remove somebody for good, with all that is theirs; asked twice")
    for word in (showing, invite, role, rename, link, block, unblock, exported, erased):
        word.add_argument("who", metavar="WHO", help="an id, an account, or a name that one person alone has")
    role.add_argument("role", metavar="ROLE", choices=tuple(ROLES_GIVEN), help=", ".join(ROLES_GIVEN))
    rename.add_argument("name", metavar="NAME")
    exported.add_argument(
        "target", metavar="FOLDER|FILE.zip", nargs="?", default="", help="a new one (default: a zip here)"
    )
    erased.add_argument("--yes", action="store_true", help="do not ask")
    for word in (link, unlink):
        word.add_argument("account", metavar="ACCOUNT", help="as telegram:12345")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    async with open_records() as records:
        people = records.members
        match arguments.word:
            case "list":
                rows = await people.everybody()
                terminal.answer(to_json({"users": rows}) if arguments.json else _listed(rows))
            case "show":
                person = await people.find(arguments.who)
                budget = await shown_budget(records.budgets, person.id)
                terminal.answer(f"{_listed([person])}\n\n{budget}")
            case "budget":
                await change_budget(records, terminal, arguments)
            case "export":
                await export(records, terminal, arguments.who, arguments.target)
            case "erase":
                return await erase(records, terminal, arguments.who, arguments.yes)
            case "pair" if not arguments.code:
                terminal.answer(_waiting(await people.waiting()))
            case word:
                terminal.answer(await _change(records, word, arguments))
                if more := _what_next(records.settings, word, arguments):
                    terminal.note(more)
    return 0


async def _change(records: Records, word: str, given: argparse.Namespace) -> str:
    people = records.members
    match word:
        case "add":
            person = await people.add(given.name, ROLES_GIVEN[given.role], Role.OWNER, given.account)
            return f"{person.name} ({person.id}) is {given.role} from now on."
        case "pair":
            person = await people.pair(given.code, ROLES_GIVEN[given.role], Role.OWNER, given.name)
            return f"{person.name} ({person.id}) is {given.role} from now on, and can write again."
        case "invite":
            person = await people.invitable(given.who, Role.OWNER)
            path = await new_invitation(records.store, person.id, given.days * DAY)
            return f"{page_address(records.home, records.settings)}{path}"
        case "role":
            person = await people.change(given.who, Role.OWNER, role=ROLES_GIVEN[given.role])
            return f"{person.name} is {given.role} from now on."
        case "rename":
            await people.change(given.who, Role.OWNER, name=given.name)
            return f"That is {given.name.strip()} from now on."
        case "link":
            person = await people.link(given.who, given.account, Role.OWNER)
            return f"{given.account} is {person.name} from now on."
        case "unlink":
            await people.unlink(given.account, Role.OWNER)
            return f"{given.account} is nobody's from now on."
        case _:
            person = await people.change(given.who, Role.OWNER, blocked=word == "block")
            return f"{person.name} is {'heard nowhere any more' if word == 'block' else 'heard again'}."


def _what_next(settings: Settings, word: str, given: argparse.Namespace) -> str:
    """What somebody has to know who has just done this."""
    if word == "add" and not given.account:
        who = quote(given.name.strip())
        return (
            f"They cannot come in yet: `everloop users invite {who}` prints a link into the page, and "
            f"`everloop users link {who} ACCOUNT` lets them write from an account, such as telegram:12345."
        )
    if word == "pair" and not given.name:
        return "They are called as their account is. Another name: everloop users rename ACCOUNT NAME"
    if word == "invite" and not settings.gateway.allowed_hosts and _is_of_this_machine(settings.gateway.host):
        return (
            "Only this machine can open that link. To let somebody in from another, see “From other machines” in "
            "docs/gateway.md."
        )
    return ""


def _is_of_this_machine(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _listed(rows: list[Person]) -> str:
    return table(HEADS, [_row(each) for each in rows])


def _row(person: Person) -> tuple[str, ...]:
    state = " (being erased)" if person.erasing else " (blocked)" if person.blocked else ""
    role = f"{person.role.name.lower()}{state}"
    return person.id, person.name, role, clock(person.at), ", ".join(person.accounts)


def _waiting(codes: list[StandingCode]) -> str:
    if not codes:
        return "Nobody waits to be let in."
    cells = [(each.code, each.account, each.session, clock(each.at), clock(each.until)) for each in codes]
    return table(("CODE", "ACCOUNT", "CHAT", "ASKED", "UNTIL"), cells)
