"""Secrets in the arguments and the address of an MCP server: kept in the vault, given to the server, told to nobody."""

from pathlib import Path
from typing import Any

import pytest

from everloop.app.mcp_servers import server_of, without_secrets_of
from everloop.app.mcp_tables import new_server
from everloop.app.secrets import keep_secret, kept_secrets, take_out
from everloop.settings import load
from everloop.settings.mcp import McpServerSection
from everloop.settings.shape import without_secrets
from tests.app.test_mcp_desk import Desk, added, states
from tests.fake_mcp import FakeMcp, described, offering

TOKEN, PASSWORD, HEADER = "plainword-canary", "hunter2-canary", "header-canary-1"
COMMAND = {
    "command": "files-server",
    "args": ["--token", TOKEN, f"--db=postgres://me:{PASSWORD}@db/x", "--max-tokens", "500", "--token", TOKEN],
    "env": {"DATABASE_URL": f"postgres://me:{PASSWORD}@db/x", "MODE": "fast"},
}
WRITTEN = ["--token", "${vault:mcp.files.token}", "--db=postgres://me:${vault:mcp.files.password}@db/x"]


@pytest.fixture
def stand(tmp_path: Path) -> Desk:
    return Desk(tmp_path, FakeMcp(files=offering(described("write", "Writes."))))


async def test_they_are_kept_in_the_vault_and_the_server_is_started_with_them(stand: Desk):
    async with stand.open() as desk:
        review = await desk.setup.review("files", COMMAND)
        shown = await added(desk, given=COMMAND)
        kept = [*await kept_secrets(desk._home.vault)]
        noted = [*await desk._home.store.audit()]
    assert review.secrets == ("mcp.files.password", "mcp.files.token") == tuple(sorted(kept))
    section = load(stand.home, {}).tools.mcp_servers["files"]
    assert [*section.args] == [*WRITTEN, "--max-tokens", "500", "--token", "${vault:mcp.files.token}"]
    assert section.env == {"DATABASE_URL": "postgres://me:${vault:mcp.files.password}@db/x", "MODE": "fast"}
    started = stand.fake.servers["files"]
    assert (started.command[1:], started.env) == (tuple(COMMAND["args"]), COMMAND["env"])
    told = f"{stand.file} {review} {shown} {noted} {without_secrets(load(stand.home, {}))}"
    assert [each for each in (TOKEN, PASSWORD) if each in told] == []


async def test_what_was_allowed_stays_while_the_secret_does_and_another_secret_is_another_server(stand: Desk):
    async with stand.open() as desk:
        await added(desk, given=COMMAND)
    async with stand.open() as desk:
        same = states(await desk.show("files"))
        await keep_secret(desk._home.vault, "mcp.files.token", "another-canary")
    async with stand.open() as desk:
        other = states(await desk.show("files"))
    assert (same, other) == ({"write": "allowed"}, {"write": "setup"})


async def test_an_address_keeps_its_secrets_in_the_vault_too(stand: Desk):
    given = {
        "url": f"https://me:{PASSWORD}@host/mcp?team=blue&token={TOKEN}",
        "headers": {"X-Team": f"Bearer {HEADER}"},
    }
    async with stand.open() as desk:
        await added(desk, given=given)
    section = load(stand.home, {}).tools.mcp_servers["files"]
    assert section.url == "https://me:${vault:mcp.files.password}@host/mcp?team=blue&token=${vault:mcp.files.token}"
    assert section.headers == {"X-Team": "Bearer ${vault:mcp.files.key}"}
    started = stand.fake.servers["files"]
    assert (started.url, started.headers) == (given["url"], given["headers"])


async def test_a_server_that_is_removed_takes_no_secret_of_another_along(stand: Desk):
    """Names may have dots in them: `mcp.a.b.KEY` is a secret of `a.b`, whatever `a` calls its own."""
    fake = stand.fake
    fake.offers.update(dict.fromkeys(("a", "a.b", "c"), fake.offers["files"]))
    async with stand.open() as desk:
        await added(desk, "a.b", {"command": "x", "env": {"KEY_TOKEN": TOKEN}})
        await added(desk, "a", {"command": "x", "env": {"b.KEY_TOKEN": PASSWORD, "OWN_TOKEN": HEADER}})
        await added(desk, "c", {"command": "x", "env": {"KEY_TOKEN": "${vault:mcp.a.OWN_TOKEN}"}})
        vault = desk._home.vault
        kept = await take_out(vault, frozenset({"mcp.a.b.KEY_TOKEN"}))
        assert [*kept.values()] == [TOKEN]
        before = {*await kept_secrets(vault)}
        left = await desk.setup.remove("a")
        after = {*await kept_secrets(vault)}
    assert (before - after, left) == ({"mcp.a.b_KEY_TOKEN"}, ["mcp.a.OWN_TOKEN"])


def test_one_name_for_two_secrets_becomes_two():
    new = new_server("x", {"command": "c", "args": ["--token", "one-canary", "--token", "two-canary"]})
    assert new.secrets == {"mcp.x.token": "one-canary", "mcp.x.token_2": "two-canary"}
    assert new.command == ("c", "--token", "one-canary", "--token", "two-canary")


def test_what_is_installed_for_a_command_keeps_its_secrets():
    given = {"command": "npx", "args": ["-y", "pack@1", "--token", TOKEN]}
    new = new_server("x", given)
    assert new.command == ("npx", *given["args"])
    assert new.section.args == ("-y", "pack@1", "--token", "${vault:mcp.x.token}")


def test_what_a_table_wants_beyond_what_each_server_has_is_told():
    url = {"url": "https://host/${TEAM}", "headers": {"X": "Bearer ${vault:k}"}, "permission": "guest"}
    some = {"sampling": True, "effects": {"a*": "read", "b": "idempotent", "*": "read"}}
    program = {"command": "c", "args": ["--token", TOKEN], "workspace": True, "network": ["a", "b"], "sandbox": False}
    assert new_server("x", url | some).beyond_usual == (
        "be given TEAM, the secret k",
        "be used by guests",
        "have models asked",
        "have tools count as read or idempotent",
    )
    assert new_server("x", program).beyond_usual == ("run outside of the sandbox", "see your workspace", "reach a, b")
    assert new_server("x", {"command": "c", "args": ["--token", TOKEN]}).beyond_usual == ()


@pytest.mark.parametrize(
    "section",
    [
        McpServerSection(command="c", args=("--token", TOKEN)),
        McpServerSection(command="c", args=("--with", "${vault:other}")),
        McpServerSection(url=f"https://me:{TOKEN}@host/"),
        McpServerSection(command="c", env={"DATABASE_URL": f"postgres://u:{TOKEN}@h/x"}),
    ],
)
def test_what_is_said_of_a_server_has_no_secret_of_it(section: Any):
    server = server_of("x", section, {"vault:other": TOKEN})
    assert without_secrets_of(server, f"it failed: {TOKEN} at port 80") == "it failed: … at port 80"
    plain = server_of("x", McpServerSection(command="c", args=("--with", TOKEN)), {})
    assert TOKEN in without_secrets_of(plain, f"it failed: {TOKEN}")
