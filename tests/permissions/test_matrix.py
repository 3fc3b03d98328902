"""The matrix of roles: as it is written down, whole, and as it is when somebody of each role really asks."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from msgspec import structs

import everloop
from everloop.app import serve
from everloop.app.access import new_invitation
from everloop.app.records import open_records
from everloop.core.log import CallReturned
from everloop.core.people import Role
from everloop.core.tool import Effect, may_use
from everloop.errors import SettingsError
from everloop.gateway import page
from everloop.gateway.access.permissions import PUBLIC, Permission
from everloop.gateway.access.scopes import SCOPES
from everloop.gateway.ws.frames import NEEDS
from everloop.ports.credential import KeptCredential
from everloop.readings.commands import COMMANDS, SlashCommand
from everloop.readings.found_tools import FINDERS
from everloop.settings import Settings
from everloop.testing import Call, Say, ScriptedModel, Shown
from everloop.tools.decorator import tool
from tests.tools.board import Board

from .asked import PEOPLE, SEARCH, all_rows, introduce, new_token, routes, specs
from .matrix import DOCS, ROLES, TABLE, command_rows, may_ask, page_of, route_rows, tool_rows, view_rows, written

pytestmark = pytest.mark.asyncio(loop_scope="module")
NAMED = {role.name.lower(): role for role in ROLES}


class Open:
    def __init__(self, home: Path, url: str, tokens: dict[Any, str], table: dict[tuple[str, str], Permission]) -> None:
        self.home, self.url, self.tokens, self.table = home, url, tokens, table

    def client(self, who: Any) -> aiohttp.ClientSession:
        headers = {"Authorization": f"Bearer {self.tokens[who]}"} if who != "" else {}
        return aiohttp.ClientSession(self.url, headers=headers)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Open]:
    """A gateway with somebody of each role, and the owner with tokens of one scope each."""
    folder = tmp_path_factory.mktemp("matrix")
    async with serve(folder / "home", {"gateway": {"port": 0}}, provider=ScriptedModel(lambda _: Say("ok"))) as opened:
        async with open_records(folder / "home") as records:
            tokens: dict[Any, str] = {**await introduce(records.store)}
            for scope in SCOPES:
                tokens[scope] = await new_token(
                    records.store, "owner", scope, (scope,), platforms=["discord"] if scope == "chat" else []
                )
        yield Open(folder / "home", opened.url, tokens, await routes(folder))


async def test_every_cell_is_as_it_is_written_down(tmp_path: Path):
    rows = await all_rows(tmp_path)
    assert written(rows) == TABLE.read_text(), "if this is meant: python -m tests.permissions"
    assert page_of(rows) == DOCS.read_text(), "if this is meant: python -m tests.permissions"


async def test_what_is_new_and_in_no_row_would_be_seen_and_is_for_the_owner_or_nobody(tmp_path: Path):
    """The control: one of each kind that nobody has classified."""

    @tool
    async def brand_new() -> str:
        """Do something."""
        return ""

    known = TABLE.read_text()
    tools = tool_rows({"brand_new": brand_new.spec}, ())
    commands = command_rows({"/brand": SlashCommand("/brand", "")})
    views = view_rows('{ name: "brand", group: "house", open: async () => null },')
    rows = [*tools, *commands, *views, *route_rows({("GET", "/brand"): Permission(("admin",), Role.OWNER)})]
    assert [(row.name, row.roles) for row in rows] == [
        ("brand_new", (Role.OWNER,)),
        ("/brand", (Role.OWNER,)),
        ("brand", ()),
        ("GET /brand", (Role.OWNER,)),
    ]
    assert not any(str(row) in known for row in rows)


def urls(table: dict[tuple[str, str], Permission]) -> dict[tuple[str, str], Permission]:
    """Each route, with something in place of what varies, but for the page's own files."""
    own = {route.path for route in page.routes()}
    kept = {key: needs for key, needs in table.items() if key[1] not in own and key[1] != "/ws"}
    return {(m, p.replace("{", "").replace("}", "")): needs for (m, p), needs in kept.items()}


async def statuses(door: Open, who: Any) -> dict[tuple[str, str], int]:
    """What each route answers to a request without a body: nothing is changed by that."""
    found = {}
    async with door.client(who) as client:
        for method, path in urls(door.table):
            async with client.request(method, path, allow_redirects=False) as answer:
                found[method, path] = answer.status
    return found


# What these need of a token, beside what every credential may: a login sets its own password, a token not so.
BY_TOKEN = {("POST", "/auth/password"): Permission(("admin",))}
# What a person has kept is taken away with all scopes, which is as good as the person.
WHOLE = [("DELETE", "/api/me/keys/name"), ("DELETE", "/api/me/credentials/name")]


def expected(status: int, needs: Permission, allowed: bool, known: bool) -> int:
    """What it is to be, by the declared cell: anything but a refusal where it is allowed."""
    if needs.is_public:
        return status if status not in (403,) else -1
    if not known:
        return 401
    return (status if status not in (401, 403) else -1) if allowed else 403


@pytest.mark.parametrize("who", ["", *ROLES])
async def test_every_route_answers_each_role_as_it_is_declared(door: Open, who: Any):
    found = await statuses(door, who)
    assert found == {
        key: expected(found[key], needs, allowed=who != "" and may_ask(BY_TOKEN.get(key, needs), who), known=who != "")
        for key, needs in urls(door.table).items()
    }


@pytest.mark.parametrize("role", ROLES)
async def test_every_route_answers_who_has_logged_in_as_it_is_declared(door: Open, role: Role):
    async with open_records(door.home) as records:
        link = await new_invitation(records.store, PEOPLE[role], 100)
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(door.url, headers={"Origin": door.url}, cookie_jar=jar) as client:
        await client.get(link, allow_redirects=False)
        table = {key: needs for key, needs in urls(door.table).items() if key != ("POST", "/auth/logout")}
        found = {}
        for method, path in table:
            async with client.request(method, path, allow_redirects=False) as answer:
                found[method, path] = answer.status
    assert found == {
        key: expected(found[key], needs, allowed=may_ask(needs, role, platforms=()), known=True)
        for key, needs in table.items()
    }


@pytest.mark.parametrize("scope", SCOPES)
async def test_every_route_answers_a_token_of_one_scope_as_it_is_declared(door: Open, scope: str):
    found = await statuses(door, scope)
    table = urls(door.table)
    may = {key: may_ask(BY_TOKEN.get(key, needs), Role.OWNER, (scope,)) for key, needs in table.items()}
    may |= dict.fromkeys(WHOLE, False)
    assert found == {key: expected(found[key], needs, allowed=may[key], known=True) for key, needs in table.items()}


async def test_a_cell_that_is_declared_otherwise_than_it_is_answered_would_be_seen(door: Open):
    async with door.client(Role.GUEST) as client, client.get("/api/usage") as answer:
        status = answer.status
    assert (status, expected(status, PUBLIC, True, True)) == (403, -1)
    assert expected(200, Permission(("read",), Role.ADMIN), allowed=False, known=True) == 403


FRAMES: dict[str, dict[str, Any]] = {
    "message": {"id": "m", "session": "api:matrix-{who}", "content": "hi"},
    "resume": {"session": "api:matrix-{who}"},
    "stop": {"session": "api:matrix-{who}"},
    "approve": {"approval": "none", "allow": True},
    "status": {},
    "history": {"session": "api:matrix-{who}"},
    "watch": {},
}


@pytest.mark.parametrize("role", ROLES)
async def test_every_frame_is_taken_of_each_role_as_it_is_declared(door: Open, role: Role):
    assert {frame.__struct_config__.tag for frame in NEEDS} == set(FRAMES)
    refused = []
    async with door.client(role) as client, client.ws_connect("/ws") as wire:
        for name, fields in FRAMES.items():
            given = {key: str(each).format(who=role.name) if key == "session" else each for key, each in fields.items()}
            await wire.send_json({"type": name, **given})
            await wire.send_json({"type": "status", "session": f"api:none-{name}"})
            while (frame := await wire.receive_json(timeout=60)).get("type") != "status_result":
                if frame["type"] == "error" and frame["code"] == "forbidden":
                    refused.append(name)
            if name == "status":
                await wire.receive_json(timeout=60)
    needs = {frame.__struct_config__.tag: scope for frame, scope in NEEDS.items()}
    assert refused == [name for name in FRAMES if not may_ask(Permission((needs[name],)), role)]


def said_forms() -> dict[str, Role]:
    """Every command as it can be said, and the least role that it is for."""
    forms = {name: command.right.least for name, command in COMMANDS.items()}
    forms |= {f"{name} x": c.right_to("x").least for name, c in COMMANDS.items() if c.takes}
    return forms | {f"{n} {word} x": each.right.least for n, c in COMMANDS.items() for word, each in c.words.items()}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[everloop.Agent]:
    roles = {person: role for role, person in PEOPLE.items() if role is not Role.OWNER}
    names = sorted(await specs(tmp_path_factory.mktemp("specs")))

    def plays(shown: Shown) -> Any:
        return Say("done") if shown.step or "tools" not in shown.asked else [Call(name, {}) for name in names]

    home = tmp_path_factory.mktemp("house") / "home"
    async with everloop.open(home, SEARCH, provider=ScriptedModel(plays), roles=roles, channels=[Board()]) as agent:
        for person in PEOPLE.values():  # the tools for credentials are for those who keep one
            await agent.credentials.keep(person, "api", KeptCredential("a-value-of-its-own", ("api.example.com",)))
        yield agent


@pytest.mark.parametrize("role", ROLES)
async def test_every_command_is_for_each_role_as_it_is_declared(house: everloop.Agent, role: Role):
    person = PEOPLE[role]
    session = "cli:commands" if person == "owner" else person
    refused = []
    for form in said_forms():
        told = await house.ask(form, session, author=person)
        if " is not for " in told.content:
            refused.append(form)
    assert refused == [form for form, least in said_forms().items() if role < least]


@pytest.mark.parametrize("role", ROLES)
async def test_every_tool_is_offered_to_each_role_and_run_for_it_as_it_is_declared(
    house: everloop.Agent, tmp_path: Path, role: Role
):
    """The model calls all that there are, whether it was offered them or not."""
    known, person = await specs(tmp_path), PEOPLE[role]
    session = f"board:{role.name}"  # on a channel that has all that a channel can have
    await house.ask("all tools", session, author=person)
    row = await house.store.session(session)
    told = [entry for entry in await house.store.read(row.id) if isinstance(entry, CallReturned)]
    may = {name for name, spec in known.items() if may_use(role, spec, Settings().users.guest_tools)} - {*FINDERS}
    names = sorted(known)  # FINDERS are there where others are not offered: tests/runtime/test_found_tools.py
    missing = {names[each.place] for each in told if each.text.startswith("Error: there is no tool")}
    assert (len(told), set(names) - missing) == (len(names), may)


async def test_a_role_that_is_taken_away_in_the_middle_of_a_turn_counts_when_the_call_runs(tmp_path: Path):
    ran: list[str] = []
    roles = {"web:ann": Role.USER}

    @tool(Effect.UNSAFE, permission=Role.GUEST)
    async def demote() -> str:
        """Take a role away."""
        roles["web:ann"] = Role.GUEST
        return "done"

    @tool(Effect.UNSAFE, permission=Role.USER)
    async def users_own() -> str:
        """Do what users may."""
        ran.append("users_own")
        return "done"

    model = ScriptedModel([[Call("users_own", {}), Call("demote", {}), Call("users_own", {})], Say("done")] * 2)
    async with everloop.open(tmp_path / "home", provider=model, tools=[demote, users_own], roles=roles) as agent:
        await agent.user("web:ann").ask("go")
        row = await agent.store.session("web:ann")
        told = [entry.text for entry in await agent.store.read(row.id) if isinstance(entry, CallReturned)]
    assert (ran, told) == (["users_own"], ["done", "done", "users_own is not for web:ann to use."])


@pytest.mark.parametrize(
    "named, why",
    [
        (["exec"], "users.guest_tools: 'exec' does more than read (its effect is verifiable)"),
        (["web_fetch", "write_file"], "users.guest_tools: 'write_file' does more than read"),
        (["run_python"], "users.guest_tools: 'run_python' does more than read"),
        (["web_serch"], "users.guest_tools: there is no tool 'web_serch'"),
        (["exec*"], "users.guest_tools: there is no tool 'exec*'"),
    ],
)
async def test_a_setting_that_would_give_guests_more_than_what_reads_is_refused(tmp_path: Path, named, why):
    with pytest.raises(SettingsError) as refused:
        async with everloop.open(tmp_path, {"users": {"guest_tools": named}}, provider=ScriptedModel([])):
            pass
    assert str(refused.value).startswith(why)


@pytest.mark.parametrize(
    "named, offered",
    [
        ([], ("message",)),
        (["message"], ("message",)),
        (["grep", "web_fetch"], ("grep", "web_fetch", "message")),
        (["read_file"], ("read_file", "message")),
    ],
)
async def test_a_guest_has_the_tools_that_the_owner_has_lifted(tmp_path: Path, named, offered):
    seen: list[tuple[str, ...]] = []

    def plays(shown: Shown) -> Say:
        seen.append(shown.tools)
        return Say("ok")

    settings = {"users": {"guest_tools": named}}
    async with everloop.open(tmp_path, settings, provider=ScriptedModel(plays)) as agent:
        await agent.ask("hi", "web:7", author="web:7")
    assert seen == [offered]


async def test_a_tool_that_comes_later_is_lifted_if_it_only_reads(tmp_path: Path):
    @tool(Effect.READ)
    async def looks() -> str:
        """Look."""
        return "seen"

    @tool(Effect.UNSAFE)
    async def acts() -> str:
        """Act."""
        return "done"

    lifted = frozenset({"looks", "acts"})
    allowed = [(role.name, may_use(role, each.spec, lifted)) for each in (looks, acts) for role in Role]
    assert [name for name, may in allowed if may] == ["GUEST", "USER", "ADMIN", "OWNER", "OWNER"]
    assert not may_use(Role.BLOCKED, structs.replace(looks.spec, permission=Role.GUEST), lifted)


async def test_a_guest_reads_what_came_with_a_message_and_no_file_of_a_workspace(tmp_path: Path):
    roles = {"web:user": Role.USER}
    paths = ["notes.txt", "../../../workspace/notes.txt", "/etc/hostname", "file:000000000000"]

    def plays(shown: Shown) -> Any:
        if shown.step:
            return Say("ok")
        found = shown.messages[-1].text
        refs = [found[found.index("file:") :][:17]] if "file:" in found else []
        return [Call("read_file", {"path": path}) for path in (*paths, *refs)]

    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "notes.txt").write_text("CANARY")
    (tmp_path / "letter.txt").write_text("dear agent")
    texts: dict[str, list[str]] = {}
    async with everloop.open(tmp_path, provider=ScriptedModel(plays), roles=roles) as agent:
        for person in ("web:7", "web:user"):
            await agent.user(person).ask("read", files=[tmp_path / "letter.txt"])
            row = await agent.store.session(person)
            told = [entry.text for entry in await agent.store.read(row.id) if isinstance(entry, CallReturned)]
            texts[person] = told
    refused = "guests read what came with a message, by its file:… reference, and nothing else"
    assert [refused in text for text in texts["web:7"]] == [True, True, True, False, False]
    assert [refused in text for text in texts["web:user"]] == [False] * 5
    assert "dear agent" in texts["web:7"][-1]
    assert "CANARY" not in str(texts)
