"""What is secret in the settings of another agent is in the vault afterwards, and nowhere else."""

import json
import logging
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everloop.app.channels import expanded
from everloop.app.mcp_servers import servers_of
from everloop.app.models import keys_of
from everloop.app.moving import MovingReport, look, open_mover
from everloop.app.moving_look import ELSEWHERE
from everloop.app.moving_settings import ForeignSetting, settings_of
from everloop.app.opening import opened_home
from everloop.app.secrets import keep_secret
from everloop.errors import VaultLocked
from everloop.ports.mcp import McpServer
from everloop.settings import load
from everloop.settings.editor import SettingsEditor

MARK = "c4n4ry"


def canary(name: str) -> str:
    """A key that is known by how it begins."""
    return f"sk-{MARK}{name}000111222333"


SERVERS: dict[str, Any] = {
    "local": {
        "command": "little-mcp",
        "args": ["--api-key", canary("arg"), f"--token={canary('option')}", f"https://u:{canary('argurl')}@h.example/"],
        "env": {"GITHUB_PAT": canary("env"), "PLAIN": canary("shape"), "URL": f"https://x.example/?key={canary('q')}"},
    },
    "remote": {
        "url": f"https://mcp.example/?token={canary('url')}",
        "headers": {"Authorization": f"Bearer {canary('bearer')}", "X-Thing": canary("header"), "X-Plain": "yes"},
    },
}
CHANNELS: dict[str, Any] = {
    "telegram": {
        "enabled": True,
        "token": f"123456:{MARK}-telegram",
        "webhookSecretToken": f"{MARK}-hook",
        "webhookUrl": f"https://u:{MARK}-login@h.example/hook",
        "allowFrom": ["1"],
        "proxy": f"http://u:{MARK}-proxy@h.example",
    },
    "slack": {"enabled": True, "botToken": f"xoxb-{MARK}-slack", "appToken": f"xapp-{MARK}-slack"},
    "email": {"enabled": True, "fromAddress": "a@b.example", "imapUsername": "a", "imapPassword": f"{MARK}-mail"},
    "matrix": {"enabled": True, "homeserver": f"https://u:{MARK}-home@m.example", "accessToken": f"syt_{MARK}_m"},
    "feishu": {"enabled": True, "appSecret": f"{MARK}-feishu"},
}
NANOBOT: dict[str, Any] = {
    "agents": {"defaults": {"workspace": "~/.nanobot/workspace", "model": "custom/scripted"}},
    "providers": {
        "custom": {
            "apiKey": canary("provider"),
            "apiBase": "http://127.0.0.1:9/v1",
            "extraHeaders": {"X-Auth": f"{MARK}-auth", "X-Shape": canary("extra"), "X-Plain": "yes"},
            "extraBody": {"key": canary("body")},
            "proxy": f"http://u:{MARK}-proxy@h.example",
        },
        "vllm": {"apiBase": f"http://u:{MARK}-base@127.0.0.1:9/v1"},
        "openai": {"apiKey": canary("openai"), "apiBase": f"https://u:{MARK}-both@h.example/v1"},
    },
    "channels": CHANNELS,
    "api": {"apiKey": canary("api")},
    "gateway": {"host": "127.0.0.1", "token": f"{MARK}-gateway"},
    "tools": {
        "web": {
            "proxy": f"http://u:{MARK}-web@h.example",
            "search": {"provider": canary("engine"), "apiKey": canary("search"), "baseUrl": f"https://u:{MARK}@s/"},
        },
        "mcpServers": SERVERS,
        "later": {"password": f"{MARK}-later"},
    },
    "transcription": {"enabled": True, "apiKey": canary("voice"), "provider": canary("voice2")},
    "modelPresets": {"fast": {"model": "openai/gpt-5", "apiKey": canary("preset")}},
}
OPENCLAW: dict[str, Any] = {
    "gateway": {"port": 19789, "auth": {"mode": "token", "token": f"{MARK}-gateway"}},
    "models": {
        "providers": {
            "custom": {
                "baseUrl": "http://127.0.0.1:9/v1",
                "apiKey": canary("provider"),
                "headers": {"X-Auth": f"{MARK}-auth", "X-Shape": canary("extra"), "X-Plain": "yes"},
            },
            "vllm": {"baseUrl": f"http://u:{MARK}-base@127.0.0.1:9/v1"},
        }
    },
    "agents": {"defaults": {"model": {"primary": "custom/scripted"}, "memorySearch": {"apiKey": canary("memory")}}},
    "channels": CHANNELS,
    "env": {"OPENAI_API_KEY": canary("env")},
    "tools": {"web": {"search": {"provider": "brave", "apiKey": canary("search")}}},
    "skills": {"entries": {"a": {"apiKey": canary("skill")}}},
    "mcp": {"servers": SERVERS},
}
SOURCES = {"nanobot": ("config.json", NANOBOT), "openclaw": ("openclaw.json", OPENCLAW)}


def foreign(folder: Path, kind: str) -> Path:
    name, config = SOURCES[kind]
    (folder / "workspace").mkdir(parents=True)
    (folder / name).write_text(json.dumps(config))
    return folder


async def moved(home: Path, kind: str, source: Path) -> MovingReport:
    async with open_mover(home, kind, source) as mover:
        return await mover.move()


def kept_files(home: Path) -> str:
    return "".join(path.read_text("latin-1") for path in home.rglob("*") if path.is_file())


@pytest.mark.parametrize("kind", SOURCES)
async def test_no_secret_of_another_agent_is_written_told_or_logged(kind: str, tmp_path: Path, caplog: Any):
    caplog.set_level(logging.DEBUG)
    home, source = tmp_path / "home", foreign(tmp_path / "other", kind)
    foretold = await look(home, kind, source)
    report = await moved(home, kind, source)
    assert [each.name for each in foretold.taken] == [each.name for each in report.taken]
    rows = SettingsEditor(home, {}).read().rows
    told = [msgspec.json.encode(each).decode() for each in (foretold, report)] + [repr(load(home, {}))]
    for text in (*told, repr(rows), caplog.text, kept_files(home)):
        assert MARK not in text
    assert MARK in (source / SOURCES[kind][0]).read_text()


@pytest.mark.parametrize("kind", SOURCES)
async def test_whoever_needs_a_secret_that_was_taken_over_is_given_it(kind: str, tmp_path: Path):
    home = tmp_path / "home"
    await moved(home, kind, foreign(tmp_path / "other", kind))
    async with opened_home(home) as opened:
        servers = await servers_of(opened.settings.tools.mcp_servers, opened.vault)
        telegram = await expanded(switched_on(opened.settings), "telegram", opened.vault)
        matrix = await expanded(switched_on(opened.settings), "matrix", opened.vault)
        accounts = (await keys_of(home, opened.settings, opened.vault)).accounts
    local, remote = servers["local"], servers["remote"]
    assert isinstance(local, McpServer)
    assert isinstance(remote, McpServer)
    assert [*local.command] == ["little-mcp", *SERVERS["local"]["args"]]
    assert (local.env, remote.url, remote.headers) == (
        SERVERS["local"]["env"],
        SERVERS["remote"]["url"],
        SERVERS["remote"]["headers"],
    )
    assert isinstance(telegram, dict)
    assert isinstance(matrix, dict)
    assert (telegram["token"], telegram["webhook_secret"], telegram["webhook_url"], matrix["homeserver"]) == (
        *(CHANNELS["telegram"][key] for key in ("token", "webhookSecretToken", "webhookUrl")),
        CHANNELS["matrix"]["homeserver"],
    )
    assert accounts["custom"].headers == NANOBOT["providers"]["custom"]["extraHeaders"]
    assert (accounts["vllm"].api_base, accounts["vllm"].headers) == (
        "http://127.0.0.1:9/v1",
        {"Authorization": "Basic dTpjNG40cnktYmFzZQ=="},
    )


def switched_on(settings: Any) -> Any:
    tables = {name: {**table, "enabled": True} for name, table in settings.channels.items()}
    return msgspec.structs.replace(settings, channels=tables)


async def test_nothing_of_a_server_that_was_taken_over_is_allowed_by_itself(tmp_path: Path):
    home = tmp_path / "home"
    await moved(home, "nanobot", foreign(tmp_path / "other", "nanobot"))
    async with opened_home(home) as opened:
        assert (await opened.store.mcp.mcp_seen(), await opened.store.mcp.mcp_pins()) == ({"local", "remote"}, [])


async def test_a_vault_that_does_not_open_is_said_and_nothing_is_half_done(tmp_path: Path):
    home, source = tmp_path / "home", foreign(tmp_path / "other", "nanobot")
    async with opened_home(home) as opened:
        await keep_secret(opened.vault, "telegram.token", "something")
    (home / "vault.key").write_bytes(b"x" * 44)
    before = kept_names(home)
    with pytest.raises(VaultLocked):
        await moved(home, "nanobot", source)
    assert kept_names(home) == before


def kept_names(home: Path) -> list[str]:
    return sorted(path.name for path in home.rglob("*") if not path.name.startswith("everloop.db"))


async def test_another_secret_of_the_same_name_stays_and_is_told(tmp_path: Path):
    home, source = tmp_path / "home", foreign(tmp_path / "other", "nanobot")
    async with opened_home(home) as opened:
        await keep_secret(opened.vault, "telegram.token", "mine")
    report = await moved(home, "nanobot", source)
    assert [each for each in report.left if "telegram.token" in each] == [
        "setting channels.telegram: the vault holds another telegram.token already, which stays: "
        "everloop secrets forget telegram.token, then run this again"
    ]
    assert "telegram" not in load(home, {}).channels
    async with opened_home(home) as opened:
        assert await opened.vault.get("secret:telegram.token") == "mine"


async def test_a_key_is_not_taken_to_another_address_than_it_has_there(tmp_path: Path):
    home, source = tmp_path / "home", foreign(tmp_path / "other", "nanobot")
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text('[providers.custom]\napi_base = "https://mine.example/v1"\n')
    foretold = await look(home, "nanobot", source)
    report = await moved(home, "nanobot", source)
    told = [line.split(":")[0] for line in report.left if ELSEWHERE in line]
    assert told == [
        *(f"setting providers.custom.{key}" for key in ("api_key", "headers.X-Auth", "headers.X-Shape")),
        *("setting providers.custom.headers.X-Plain", "setting providers.openai.api_key"),
    ]
    assert [line for line in foretold.left if ELSEWHERE in line] == [line for line in report.left if ELSEWHERE in line]
    async with opened_home(home) as opened:
        kept = await opened.vault.names()
    assert not [name for name in kept if "custom" in name or "openai" in name]


def test_a_secret_where_no_reference_can_stand_is_left_and_named():
    found = list(
        settings_of({"tools": {"web": {"search": {"url": f"https://u:{MARK}@s.example"}}}, "a": {"token": "x"}})
    )
    assert [each.key if isinstance(each, ForeignSetting) else each.partition(" ")[0] for each in found] == [
        *("tools.web.search.url", "a.token"),
    ]
    assert all(isinstance(each, str) for each in found)
