"""MCP servers in the settings: our form, that of earlier agents and that of other clients; one that is wrong keeps
nothing else from being read."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from everloop.errors import SettingsError
from everloop.settings import load, without_secrets
from everloop.settings.editor import SettingsEditor
from everloop.settings.mcp import McpOAuthSection, McpServerSection
from everloop.settings.mcp_forms import normal_form, servers_in


def loaded(home: Path, servers: Any, **more: Any) -> dict[str, McpServerSection]:
    (home / "config.json").write_bytes(msgspec.json.encode({"tools": {"mcpServers": servers}, **more}))
    return load(home, {}).tools.mcp_servers


FORMS = [
    ({"command": "npx", "args": ["-y", "x"]}, McpServerSection(command="npx", args=("-y", "x"))),
    ({"command": "npx -y 'a b'"}, McpServerSection(command="npx", args=("-y", "a b"))),
    ({"command": ["npx", "-y"], "args": ["x"]}, McpServerSection(command="npx", args=("-y", "x"))),
    (
        {"type": "stdio", "command": "a", "env": {"A": "${X}", "N": 3, "B": True}},
        McpServerSection(command="a", env={"A": "${X}", "N": "3", "B": "true"}, transport="stdio"),
    ),
    (
        {"type": "streamable-http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${env:T}"}},
        McpServerSection(url="https://x/mcp", headers={"Authorization": "Bearer ${T}"}, transport="http"),
    ),
    ({"type": "SSE", "url": "https://x/sse"}, McpServerSection(url="https://x/sse", transport="sse")),
    ({"httpUrl": "https://x"}, McpServerSection(url="https://x")),
    ({"serverUrl": "https://x", "toolTimeout": 30}, McpServerSection(url="https://x", timeout=30.0)),
    ({"command": "a", "enabledTools": ["b"], "disabled": False}, McpServerSection(command="a", tools=("b",))),
    ({"command": "a", "disabled": True}, McpServerSection(command="a", enabled=False)),
    (
        {"command": "a", "enabled": False, "alwaysAllow": ["b"], "description": "x"},
        McpServerSection(command="a", enabled=False),
    ),
    (None, McpServerSection(enabled=False)),
    ({"url": "https://x", "oauth": True}, McpServerSection(url="https://x")),
    (
        {"url": "https://x", "oauth": {"clientId": "me", "scope": "a b", "callbackPort": 8080}},
        McpServerSection(url="https://x", oauth=McpOAuthSection(client_id="me", scopes=("a", "b"))),
    ),
    (
        {"command": "a", "network": ["x.org"], "workspace": True, "sandbox": False, "permission": "user"},
        McpServerSection(command="a", network=("x.org",), workspace=True, sandbox=False, permission="user"),
    ),
    (
        {"command": "a", "effects": {"get_*": "read"}, "sampling": True},
        McpServerSection(command="a", effects={"get_*": "read"}, sampling=True),
    ),
]


@pytest.mark.parametrize(("written", "read"), FORMS)
def test_every_form_is_read(tmp_path: Path, written: Any, read: McpServerSection):
    assert loaded(tmp_path, {"a": written}) == {"a": read}


def test_servers_beside_everything_else_are_read_as_those_of_the_tools_which_count_first(tmp_path: Path):
    found = loaded(tmp_path, {"a": {"command": "ours"}}, mcpServers={"a": {"command": "x"}, "b": {"command": "y"}})
    assert found == {"a": McpServerSection(command="ours"), "b": McpServerSection(command="y")}
    (tmp_path / "config.json").write_text('{"mcpServers": {"b": {"command": "y"}}, "tools": {"approvals": "deny"}}')
    both = load(tmp_path, {}).tools
    assert (both.approvals, both.mcp_servers) == ("deny", {"b": McpServerSection(command="y")})


WRONG = [
    ({"commnd": "x"}, "there is no setting tools.mcpServers.a.commnd; did you mean command?"),
    (3, "must be a table of settings"),
    ({"command": 3}, "tools.mcpServers.a.command must be text"),
    ({"command": "x", "args": "y"}, "tools.mcpServers.a.args must be a list of text"),
    ({"command": "x 'y"}, "command is no line of a shell (a quotation mark is missing)"),
    ({"url": "x", "transport": "smoke"}, 'must be "auto" or "stdio" or "http" or "sse"'),
    ({"url": "x", "timeout": 0}, "tools.mcpServers.a.timeout must be a number of at least 1 and at most 86400"),
    ({"url": "x", "effects": {"a": "harmless"}}, "tools.mcpServers.a.effects must be a table of text"),
    ({"url": "x", "wrong": "x"}, "there is no setting wrong"),
    ({"url": "x", "env": {"A": ["s3cret"]}}, "tools.mcpServers.a.env must be a table of text"),
]


@pytest.mark.parametrize(("written", "sentence"), WRONG)
def test_what_one_has_wrong_is_noted_with_its_place_and_keeps_nothing_from_being_read(
    tmp_path: Path, written: Any, sentence: str
):
    found = loaded(tmp_path, {"a": written, "b": {"command": "y"}})
    assert found["b"] == McpServerSection(command="y")
    assert (sentence in found["a"].wrong, "config.json, line 1" in found["a"].wrong) == (True, True)
    assert "s3cret" not in found["a"].wrong


def test_what_one_has_wrong_is_told_with_the_place_of_the_key_alone(tmp_path: Path):
    (tmp_path / "config.toml").write_text('[tools.mcp_servers.a]\nurl = "https://x"\ncomand = "y"\n')
    assert load(tmp_path, {}).tools.mcp_servers["a"].wrong == (
        f"{tmp_path}/config.toml, line 3: there is no setting tools.mcp_servers.a.comand; did you mean command?"
    )


@pytest.mark.parametrize("kept", [3, "x", ["a"]])
def test_what_is_no_table_at_all_is_one_server_that_is_wrong(tmp_path: Path, kept: Any):
    assert [*loaded(tmp_path, kept)] == ["*"]
    assert "must be a table of settings" in loaded(tmp_path, kept)["*"].wrong


def test_references_stay_as_they_are_written_and_what_is_set_is_shown_without_secrets(tmp_path: Path):
    table = {"url": "https://u:p@x/y?k=1", "headers": {"A": "${vault:a}"}, "env": {"B": "plain"}}
    loaded(tmp_path, {"a": table})
    settings = load(tmp_path, {})
    assert settings.tools.mcp_servers["a"].headers == {"A": "${vault:a}"}
    shown = without_secrets(settings)["tools"]["mcp_servers"]["a"]
    assert (shown["url"], shown["headers"], shown["env"]) == ("https://…@x/y?k=…", "…", "…")
    assert "plain" not in repr(settings)


def test_the_form_shows_a_server_and_changes_what_neither_runs_nor_sends_anything(tmp_path: Path):
    (tmp_path / "config.toml").write_text('[tools.mcp_servers.a]\nurl = "https://x"\nheaders = {A = "s3cret"}\n')
    book = SettingsEditor(tmp_path, {})
    rows = {row.key: row for row in book.read().rows if row.key.startswith("tools.mcp_servers.a.")}
    assert (rows["tools.mcp_servers.a.url"].value, rows["tools.mcp_servers.a.url"].by_hand) == ("https://x", True)
    assert (rows["tools.mcp_servers.a.headers"].value, rows["tools.mcp_servers.a.headers"].is_set) == (None, True)
    assert rows["tools.mcp_servers.a.permission"].options == ("guest", "user", "admin", "owner")
    draft = book.draft({"tools.mcp_servers.a.timeout": 5, "tools.mcp_servers.a.permission": "user"})
    changed = draft.edition.settings.tools.mcp_servers["a"]
    assert (changed.timeout, changed.permission, changed.headers) == (5.0, "user", {"A": "s3cret"})
    for key, value in (("command", "sh"), ("url", "https://y"), ("sandbox", False), ("env", {"A": "b"})):
        with pytest.raises(SettingsError, match="is only changed by hand"):
            book.draft({f"tools.mcp_servers.a.{key}": value})
    assert "a" not in book.draft({"tools.mcp_servers.a": None}).edition.settings.tools.mcp_servers


@pytest.mark.parametrize(
    "document",
    [
        {"mcpServers": {"a": {"command": "x"}}},
        {"tools": {"mcp_servers": {"a": {"command": "x"}}}},
        {"mcp": {"servers": {"a": {"command": "x"}}}},
        {"servers": {"a": {"command": "x"}}, "inputs": []},
        {"a": {"command": "x"}},
    ],
)
def test_the_servers_of_another_clients_file_are_found(document: Any):
    assert {name: normal_form(table) for name, table in servers_in(document).items()} == {
        "a": {"command": "x", "args": []}
    }


@pytest.mark.parametrize("document", [{}, [], 3, {"a": 3}, {"theme": {"dark": True}}])
def test_a_file_without_servers_is_refused(document: Any):
    with pytest.raises(SettingsError, match="there are no MCP servers in it"):
        servers_in(document)
