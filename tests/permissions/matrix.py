"""Who may do what, worked out from the registries: every tool, command, route, frame, page view and setting, and for
each of them the roles that it is for. There is no other list: `table.txt` is a copy, by which a change of any cell is
seen in a diff, and docs/permissions.md is written from it (`python -m tests.permissions`)."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from everloop.core.people import Role
from everloop.core.tool import ToolSpec, may_use
from everloop.gateway import page
from everloop.gateway.access.permissions import Permission
from everloop.gateway.access.principal import Principal
from everloop.gateway.access.scopes import SCOPES
from everloop.gateway.http.errors import Refused
from everloop.gateway.ws.frames import NEEDS
from everloop.readings.commands import COMMANDS, EVERY, Right, SlashCommand
from everloop.settings import Settings
from everloop.settings.rows import leaves_of
from everloop.settings.shape import notes_of

ROLES = (Role.GUEST, Role.USER, Role.ADMIN, Role.OWNER)
TABLE = Path(__file__).parent / "table.txt"
DOCS = Path(__file__).parents[2] / "docs" / "permissions.md"
PAGE = Path(__file__).parent / "page.md"
HEAD = ("| | guest | user | admin | owner | |", "|---|---|---|---|---|---|")


class Row(NamedTuple):
    """`roles` are those that may, the lowest first, with all above them; `note` is what else it takes."""

    kind: str
    name: str
    roles: tuple[Role, ...]
    note: str = ""

    def __str__(self) -> str:
        cells = " ".join((role.name.lower() if role in self.roles else "-").ljust(5) for role in ROLES)
        return f"{self.kind:<8} {cells}  {self.name}{f'  [{self.note}]' if self.note else ''}"


def from_least(least: Role) -> tuple[Role, ...]:
    return tuple(role for role in ROLES if role >= least)


def tool_rows(specs: Mapping[str, ToolSpec], lifted: Iterable[str]) -> list[Row]:
    named = frozenset(lifted)
    return [
        Row("tool", name, tuple(role for role in ROLES if may_use(role, spec, named)), "lifted" * (name in named))
        for name, spec in sorted(specs.items())
    ]


def command_rows(commands: Mapping[str, SlashCommand] = COMMANDS) -> list[Row]:
    found: dict[str, Right] = {}
    for name, command in commands.items():
        found[name] = command.right
        if command.given:
            found[f"{name} …"] = command.given
        found |= {f"{name} {word}": each.right for word, each in command.words.items()}
    scopes = {EVERY: "every scope", "": ""}
    return [Row("command", name, from_least(r.least), scopes.get(r.scope, r.scope)) for name, r in found.items()]


def may_ask(
    needs: Permission, role: Role, scopes: Iterable[str] = tuple(SCOPES), platforms: Iterable[str] = ("discord",)
) -> bool:
    """As the gateway's guard judges it, of somebody with these scopes, and a token that names these platforms."""
    try:
        needs.check(Principal("someone", role, frozenset(scopes), "token", platforms=frozenset(platforms)))
    except Refused:
        return False
    return True


def route_rows(table: Mapping[tuple[str, str], Permission]) -> list[Row]:
    """Without HEAD, which needs what GET does, and without the files of the page, which are everybody's."""
    own = {route.path for route in page.routes()}
    rows = []
    for (method, path), needs in sorted(table.items(), key=lambda row: (row[0][1], row[0][0])):
        if method != "HEAD" and path not in own:
            roles = ROLES if needs.is_public else tuple(role for role in ROLES if may_ask(needs, role))
            note = "public" if needs.is_public else "+".join(needs.scopes)
            note += ", a token that names the platform" if needs.names_platform else ""
            rows.append(Row("route", f"{method} {path}", roles, note))
    return rows


def frame_rows() -> list[Row]:
    needs = {frame.__struct_config__.tag: scope for frame, scope in NEEDS.items()}
    return [
        Row("frame", name, tuple(role for role in ROLES if may_ask(Permission((scope,)), role)), scope)
        for name, scope in needs.items()
    ]


def view_rows(source: str = "") -> list[Row]:
    """Of `pages.js`: a view that says of no role that it is for it is shown to nobody."""
    text = source or (page.FOLDER / "pages.js").read_text()
    found = re.findall(r'\{ name: "([\w-]+)", (?:group: "[\w-]+", )?(?:least: "(\w+)", )?', text)
    roles = {role.name.lower(): from_least(role) for role in ROLES}
    return [Row("view", name, roles.get(least, ())) for name, least in found]


def setting_rows(settings: Permission) -> list[Row]:
    """Who may change each through the API: `settings` is what the route needs. What is set by hand only is nobody's."""
    may = tuple(role for role in ROLES if may_ask(settings, role))
    rows = []
    for leaf in leaves_of(Settings):
        by_hand = "by_hand" in notes_of(leaf.hint)
        rows.append(Row("setting", ".".join(leaf.path), () if by_hand else may, "by hand" * by_hand))
    return rows


def written(rows: Iterable[Row]) -> str:
    return "".join(f"{row}\n" for row in rows)


def page_of(rows: Iterable[Row]) -> str:
    """docs/permissions.md: in page.md each line `@kind` stands for the rows of a kind."""
    kept, lines = list(rows), []
    for line in PAGE.read_text().splitlines():
        if line.startswith("@"):
            lines += HEAD
            lines += [_line(row) for row in kept if row.kind == line[1:]]
        else:
            lines.append(line)
    return "\n".join(lines) + "\n"


def _line(row: Row) -> str:
    cells = " | ".join("yes" if role in row.roles else "–" for role in ROLES)
    return f"| `{row.name}` | {cells} | {row.note} |"
