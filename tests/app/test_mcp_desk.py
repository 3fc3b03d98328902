"""MCP servers as people set them up, look at them, allow, deny, try and remove them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from everloop.app.mcp_desk import McpDesk
from everloop.app.mcp_opening import open_mcp_desk
from everloop.core.tool import Effect
from everloop.errors import EverloopError, McpDown, McpLogin, SettingsError
from everloop.ports.mcp import McpHealth, McpOffer, McpServer
from tests.fake_mcp import FakeMcp, described, offering, reading

KEY = "sk-canary-000111222"
FILES = {"command": "files-server", "args": ["--here"], "env": {"API_KEY": KEY, "MODE": "fast"}}
FILE = """[tools.mcp_servers.files]
command = "files-server"
args = ["--here"]
env = { API_KEY = "${vault:mcp.files.API_KEY}", MODE = "fast" }
"""


class Packages:
    def __init__(self) -> None:
        self.removed: list[str] = []

    def question(self, name: str, command: Sequence[str], *, sandbox: bool) -> str:
        return f"Fetch {command[2]}?" if command[0] == "npx" and "@" not in command[2] else ""

    async def install(self, name: str, command: Sequence[str], *, sandbox: bool) -> tuple[tuple[str, ...], str]:
        return ((*command[:2], f"{command[2]}@1.2.3"), "d1g3st") if command[0] == "npx" else (tuple(command), "")

    async def remove(self, name: str) -> None:
        self.removed.append(name)


class Logins:
    def __init__(self, fake: FakeMcp) -> None:
        self.fake = fake
        self.kept: set[str] = set()

    def __call__(self) -> "Logins":
        return self

    async def log_in(
        self,
        server: McpServer,
        *,
        redirect: str,
        show_url: Callable[[str], Awaitable[None]],
        wait_for_code: Callable[[], Awaitable[str]],
    ) -> None:
        await show_url(f"https://login.example/?redirect={redirect}")
        if await wait_for_code() != "code":
            raise McpDown("that is not the code")
        self.kept.add(server.name)
        self.fake.down.pop(server.name, None)

    async def log_out(self, name: str) -> bool:
        is_in = name in self.kept
        self.kept.discard(name)
        return is_in


class Desk:
    """A desk with all that is outside of it."""

    def __init__(self, home: Path, fake: FakeMcp) -> None:
        self.home, self.fake = home, fake
        self.packages, self.logins = Packages(), Logins(fake)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[McpDesk]:
        async with open_mcp_desk(self.home, self.fake, self.packages, self.logins) as desk:
            yield desk

    @property
    def file(self) -> str:
        path = self.home / "config.toml"
        return path.read_text() if path.exists() else ""


@pytest.fixture
def stand(tmp_path: Path) -> Desk:
    return Desk(tmp_path, FakeMcp(files=offering(reading("list"), described("write", "Writes."))))


async def added(desk: McpDesk, name: str = "files", given: Any = FILES, **more: Any) -> Any:
    return await desk.add(name, given, (await desk.setup.review(name, given)).pin, **more)


def states(shown: Any) -> dict[str, str]:
    return {each.tool: each.state for each in shown.tools}


async def test_a_server_is_looked_at_and_then_set_up_with_its_secrets_in_the_vault(stand: Desk):
    async with stand.open() as desk:
        review = await desk.setup.review("files", FILES)
        before = stand.file
        shown = await desk.add("files", FILES, review.pin, {"list": Effect.READ})
        deeds = [line.deed for line in await desk._home.store.audit()]
    assert (before, stand.file, review.secrets) == ("", FILE, ("mcp.files.API_KEY",))
    assert [(each.tool, each.name, each.state, each.effect, each.hints) for each in review.tools] == [
        ("list", "mcp_files_list", "new", Effect.UNSAFE, {"readOnlyHint": True}),
        ("write", "mcp_files_write", "new", Effect.UNSAFE, {}),
    ]
    assert [(each.tool, each.state, each.effect) for each in shown.tools] == [
        ("list", "allowed", Effect.READ),
        ("write", "allowed", Effect.UNSAFE),
    ]
    row = shown.server
    assert (row.where, row.transport, row.state, row.allowed, row.todo) == (
        "files-server --here",
        "stdio",
        "running",
        2,
        "",
    )
    assert {"mcp.added", "settings.changed", "secret.kept"} <= set(deeds)
    assert (KEY in str((review, shown)), stand.fake.servers["files"].env["API_KEY"]) == (False, KEY)


async def test_the_number_of_tools_is_the_number_of_tools_and_what_there_is_to_read_stands_beside_it(stand: Desk):
    stand.fake.offers["files"] = offering(reading("list"), has_resources=True)
    async with stand.open() as desk:
        review = await desk.setup.review("files", FILES)
        row = (await desk.add("files", FILES, review.pin)).server
        only = (await desk.deny("files", ["list"])).server
        none = (await desk.deny("files")).server
    assert [each.tool for each in review.tools if each.is_tool] == ["list"]
    assert (row.allowed, row.new, row.resources, row.todo) == (1, 0, "allowed", "")
    assert (only.allowed, only.new, only.resources, only.todo) == (0, 1, "allowed", "")
    assert (none.allowed, none.new, none.resources) == (0, 1, "new")
    assert none.todo == "None of its tools is allowed: everloop mcp allow files"


async def test_nothing_is_written_where_it_cannot_be_reached_or_offers_something_else_than_was_shown(stand: Desk):
    stand.fake.down["away"] = McpDown(f"away says: {KEY} is unknown")
    async with stand.open() as desk:
        with pytest.raises(McpDown, match=r"^away says: … is unknown\. Nothing was written$"):
            await desk.setup.review("away", FILES)
        review = await desk.setup.review("files", FILES)
        stand.fake.offers["files"] = offering(described("list", "Now does something else."))
        with pytest.raises(EverloopError, match="files offers something else than was shown"):
            await desk.add("files", FILES, review.pin)
        with pytest.raises(EverloopError, match="files offers something else"):
            await desk.add("files", FILES, "")
        pins = await desk._home.store.mcp.mcp_pins()
    assert (stand.file, pins) == ("", [])


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("a b", FILES, "a server's name has up to 50 letters"),
        ("a", {"comand": "x"}, "did you mean command?"),
        ("a", {}, "has neither a command nor a url"),
        ("a", {"url": "ftp://x"}, "must begin with https:// or http://"),
        ("a", {"url": "https://x", "headers": {"A b": "c"}}, "headers has a name that no header can have"),
        ("a", {"url": "https://x", "headers": {"A": "c\nd"}}, "headers has a value that cannot be sent"),
        ("a", {"command": "x", "env": {"A=": "c"}}, "env has a name that no variable can have"),
        ("a", {"command": "x", "env": {"LD_PRELOAD": "y"}}, "before the command: env LD_PRELOAD=… COMMAND"),
        ("a", {"command": "x", "env": {"GLIBC_TUNABLES": "y"}}, "which would count outside of the sandbox, too"),
        ("a", {"command": "x", "transport": "http"}, "transport is http, which does not go with"),
        ("a", {"command": "x", "env": {"A": "${vault:gone}"}}, "needs gone from the vault"),
    ],
)
async def test_what_cannot_be_a_server_is_said_in_a_sentence(stand: Desk, name: str, given: Any, sentence: str):
    async with stand.open() as desk:
        with pytest.raises(EverloopError) as told:
            await desk.setup.review(name, given)
    assert sentence in str(told.value)


async def test_what_has_changed_is_shown_with_its_difference_and_allowed_as_it_was_shown(stand: Desk):
    async with stand.open() as desk:
        await added(desk)
        stand.fake.offers["files"] = offering(reading("list", "Lists, and sends it home."), described("new"))
        shown = await desk.look("files")
        rows = {each.tool: each for each in shown.tools}
        assert states(shown) == {"list": "changed", "write": "gone", "new": "new"}
        assert (shown.server.allowed, shown.server.changed, shown.server.new) == (0, 1, 1)
        assert shown.server.todo == "Look at what has changed, and allow it: everloop mcp allow files"
        assert '+ description: "Lists, and sends it home."' in rows["list"].difference
        stand.fake.offers["files"] = offering(reading("list", "Something else again."))
        with pytest.raises(EverloopError, match="list has changed since it was shown"):
            await desk.allow("files", {"list": rows["list"].digest})
        now = {each.tool: each for each in (await desk.look("files")).tools}
        allowed = await desk.allow("files", {"list": now["list"].digest}, Effect.READ)
        with pytest.raises(EverloopError, match="files has no tool 'nothing'"):
            await desk.allow("files", {"nothing": "x"})
    assert [(each.tool, each.state, each.effect) for each in allowed.tools][:1] == [("list", "allowed", Effect.READ)]


async def test_what_is_denied_is_new_again_and_what_is_allowed_again_keeps_its_effect(stand: Desk):
    async with stand.open() as desk:
        await added(desk, effects={"list": Effect.READ})
        assert states(await desk.deny("files", ["write"])) == {"list": "allowed", "write": "new"}
        with pytest.raises(EverloopError, match="'write' of files is not allowed anyway"):
            await desk.deny("files", ["write"])
        digests = {each.tool: each.digest for each in (await desk.look("files")).tools if each.digest}
        assert states(await desk.allow("files", digests)) == {"list": "allowed", "write": "allowed"}
        assert states(await desk.deny("files")) == {"list": "new", "write": "new"}
        [row] = await desk.rows()
        assert row.todo == "None of its tools is allowed: everloop mcp allow files"


async def test_the_settings_decide_on_effects_before_anybody_allows_and_leave_tools_out(stand: Desk):
    table = {**FILES, "effects": {"l*": "idempotent"}, "tools": ["list"]}
    async with stand.open() as desk:
        shown = await added(desk, given=table)
        assert states(shown) == {"list": "allowed", "write": "hidden"}
        digest = next(each.digest for each in (await desk.setup.review("files", table)).tools if each.tool == "list")
        with pytest.raises(EverloopError, match=r"files\.effects says otherwise of list"):
            await desk.allow("files", {"list": digest}, Effect.READ)
        write = (await desk.setup.review("files", {**table, "tools": ["*"]})).tools[1]
        with pytest.raises(EverloopError, match=r"write is left out by tools\.mcp_servers\.files\.tools"):
            await desk.allow("files", {"write": write.digest})
    assert [each.effect for each in shown.tools] == [Effect.IDEMPOTENT, Effect.UNSAFE]


async def test_a_removed_server_leaves_nothing_of_its_own(stand: Desk):
    async with stand.open() as desk:
        await added(desk)
        left = await desk.setup.remove("files")
        pins, names = await desk._home.store.mcp.mcp_pins(), await desk._home.vault.names()
        with pytest.raises(EverloopError, match="there is no MCP server 'files'"):
            await desk.setup.remove("files")
    assert (stand.file, left, pins, names, stand.packages.removed) == ("", [], [], [], ["files"])
    assert "files" in stand.fake.ended


async def test_a_server_of_another_clients_form_beside_everything_else_is_replaced_and_removed(stand: Desk):
    (stand.home / "config.json").write_text('{"mcpServers": {"files": {"command": "old"}}, "gateway": {"port": 1}}')
    async with stand.open() as desk:
        await added(desk, given={"command": "new"})
        written = (stand.home / "config.json").read_text()
        await desk.setup.remove("files")
    assert ('"old"' in written, '"new"' in written) == (False, True)
    assert '"files"' not in (stand.home / "config.json").read_text()


async def test_what_the_environment_says_is_not_changed_here(stand: Desk, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("EVERLOOP_TOOLS__MCP_SERVERS__FILES__TIMEOUT", "5")
    async with stand.open() as desk:
        review = await desk.setup.review("files", FILES)
        with pytest.raises(SettingsError, match=r"tools\.mcp_servers\.files is also set by the environment"):
            await desk.add("files", FILES, review.pin)
        assert await desk._home.store.mcp.mcp_pins() == []
    assert stand.file == ""


async def test_a_tool_is_tried_as_it_is_whether_or_not_it_is_allowed(stand: Desk):
    async with stand.open() as desk:
        await added(desk)
        await desk.deny("files", ["write"])
        tried = await desk.test("files", "write", {"a": 1})
        with pytest.raises(EverloopError, match="files has no tool 'drop'; it has: list, write"):
            await desk.test("files", "drop", {})
    assert (tried.text, stand.fake.called) == ("write done", [("files", "write", {"a": 1})])


async def test_a_server_that_wants_a_login_is_set_up_first_and_seen_when_somebody_has_logged_in(stand: Desk):
    stand.fake.offers["web"] = offering(described("search"))
    stand.fake.down["web"] = McpLogin("web wants somebody to log in")
    shown_urls: list[str] = []

    async def show(url: str) -> None:
        shown_urls.append(url)

    async def wait() -> str:
        return "code"

    async with stand.open() as desk:
        review = await desk.setup.review("web", {"url": "https://web.example/mcp?key=s3cret"})
        shown = await desk.add("web", {"url": "https://web.example/mcp?key=s3cret"}, review.pin)
        assert (review.tools, shown.tools, shown.server.where) == ([], [], "https://web.example/mcp?key=…")
        logged_in = await desk.log_in("web", "http://127.0.0.1:1/callback", show, wait)
        out = [await desk.log_out("web"), await desk.log_out("web")]
        await added(desk)
        with pytest.raises(EverloopError, match="files is a command: nobody logs in to it"):
            await desk.log_in("files", "", show, wait)
    assert (states(logged_in), out) == ({"search": "allowed"}, [True, False])
    assert shown_urls == ["https://login.example/?redirect=http://127.0.0.1:1/callback"]


async def test_what_a_command_would_fetch_is_asked_about_installed_and_pinned(stand: Desk):
    given = {"command": "npx", "args": ["-y", "some-server"]}
    stand.fake.offers["npm"] = offering(described("x"))
    async with stand.open() as desk:
        assert desk.setup.question("npm", given) == "Fetch some-server?"
        assert desk.setup.question("files", FILES) == ""
        installed = await desk.setup.install("npm", given)
        await added(desk, "npm", installed)
        await desk.setup.discard("npm")
        await desk.setup.discard("never")
        await added(desk)
        with pytest.raises(EverloopError, match="there is nothing to install for files"):
            await desk.setup.install_again("files")
    assert 'args = ["-y", "some-server@1.2.3"]\npackage = "d1g3st"\n' in stand.file
    assert stand.packages.removed == ["never"]


async def test_another_package_of_a_server_takes_its_tools_away_until_they_are_allowed(stand: Desk):
    (stand.home / "config.toml").write_text('[tools.mcp_servers.files]\ncommand = "npx"\nargs = ["-y", "x"]\n')
    async with stand.open() as desk:
        await desk.check()
        assert (await desk.setup.question_again("files"), states(await desk.show("files"))["list"]) == (
            "Fetch x?",
            "allowed",
        )
        await desk.setup.install_again("files")
        assert states(await desk.look("files"))["list"] == "setup"


async def test_all_are_checked_side_by_side_and_what_is_wrong_with_one_stands_in_its_row(stand: Desk):
    stand.fake.down["away"] = McpDown("away does not answer")
    (stand.home / "config.toml").write_text(
        "[tools.mcp_servers]\n"
        'files = {command = "a"}\naway = {command = "b"}\noff = {command = "c", enabled = false}\nbad = {command = 3}\n'
    )
    async with stand.open() as desk:
        rows = {row.name: row for row in await desk.check()}
        with pytest.raises(EverloopError, match="the MCP server off is switched off"):
            await desk.look("off")
        with pytest.raises(EverloopError, match="command must be text"):
            await desk.look("bad")
    assert {name: (row.state, row.allowed) for name, row in rows.items()} == {
        "files": ("running", 2),
        "away": ("waiting", 0),
        "off": ("off", 0),
        "bad": ("wrong", 0),
    }
    assert (rows["away"].why, rows["away"].restarts) == ("away does not answer", 2)
    assert "line 5: tools.mcp_servers.bad.command must be text" in rows["bad"].why


async def test_a_server_that_does_not_answer_keeps_nobody_from_seeing_all(tmp_path: Path):
    class Hanging(FakeMcp):
        async def look(self, server: McpServer) -> McpOffer:
            self.looked.append(server.name)
            return await asyncio.get_running_loop().create_future()  # for ever

        def health(self, name: str) -> McpHealth:
            return McpHealth("starting")

    stand = Desk(tmp_path, Hanging())
    (tmp_path / "config.toml").write_text('tools.mcp_servers.slow.command = "a"\n')
    async with stand.open() as desk:
        impatient = McpDesk(desk._home, desk.setup, desk._mcp, stand.logins, patience=0.0)
        [row] = await impatient.check()
    assert (row.state, row.todo) == ("starting", "It has not answered yet. Wait for it: everloop mcp test slow")
    assert stand.fake.looked == ["slow"]


async def test_a_restart_ends_the_connection_and_looks_again(stand: Desk):
    async with stand.open() as desk:
        await added(desk)
        assert states(await desk.restart("files")) == {"list": "allowed", "write": "allowed"}
    assert stand.fake.ended == ["files"]
