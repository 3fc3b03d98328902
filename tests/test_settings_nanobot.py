"""A settings file of nanobot's opens as it is; what has no place is told."""

import json
from pathlib import Path

from everloop.settings import load, unused
from everloop.settings.editor import SettingsEditor
from everloop.settings.nanobot import OUTSIDE, is_nanobots, translated
from everloop.settings.openclaw import translated as of_openclaw
from tests.moving.foreign_homes import FIXTURES

CONFIG = FIXTURES / "nanobot" / ".nanobot" / "config.json"


def test_what_the_real_nanobot_writes_opens(tmp_path: Path):
    (tmp_path / "config.json").write_bytes(CONFIG.read_bytes())
    settings = load(tmp_path, {})
    assert settings.agents.defaults.model == "custom/scripted"
    assert settings.agents.defaults.fallbacks == ("fast",)
    assert settings.models["fast"].model == "openrouter/openai/gpt-5-mini"
    assert sorted(settings.providers.accounts) == ["custom", "openrouter"]
    assert (settings.gateway.port, settings.heartbeat.every, settings.tools.exec.timeout) == (18888, 60, 600)
    assert settings.tools.mcp_servers["files"].command == "little-mcp"
    assert settings.channels == {
        "telegram": {
            "token": "123456:made-up-telegram-token",
            "mode": "polling",
            "allow_from": ["123456"],
            "groups": "mention",
            "enabled": True,
        },
        "whatsapp": {"enabled": True},
    }
    assert unused(settings, {"telegram"}) == (
        f"In the settings file of nanobot, {OUTSIDE}.",
        "channels.whatsapp is set, but this version has no channel for WhatsApp: nothing listens there.",
    )


def test_a_key_that_nobody_knows_is_told_and_keeps_nothing_from_opening():
    values = json.loads(CONFIG.read_text())
    values["agents"]["defaults"]["botName"] = "Mara's"
    values["agents"]["defaults"]["ofTomorrow"] = 3
    values["tomorrow"] = {"a": 1}
    told = translated(values).told
    assert [line.partition(" ")[0] for line in told[1:]] == [
        *("agents.defaults.bot_name", "agents.defaults.of_tomorrow", "tomorrow"),
    ]


def test_each_key_of_a_channel_that_has_no_place_is_told_and_none_that_has_one_or_is_usual():
    values = json.loads(CONFIG.read_text())
    before = translated(values).told
    values["channels"]["telegram"] |= {"proxy": "http://me:made-up@proxy:3128", "streaming": False, "later": 1}
    values["channels"]["sendProgress"] = False
    values["providers"]["custom"] |= {"extraBody": {"a": 1}, "apiType": "chat", "region": None}
    told = [line for line in translated(values).told if line not in before]
    assert [line.partition(" has ")[0] for line in told] == [
        *(
            "channels.send_progress",
            "channels.telegram.proxy",
            "channels.telegram.streaming",
            "channels.telegram.later",
        ),
        *("providers.custom.apiType", "providers.custom.extraBody"),
    ]
    assert "HTTPS_PROXY" in told[1]
    assert "made-up" not in " ".join(told)
    mail = {"imapUsername": "a@b", "imapPassword": "x", "smtpUsername": "a@b", "smtpPassword": "y", "verifySpf": True}
    assert [line.partition(" has ")[0] for line in translated({"channels": {"email": mail}}).told] == [
        "channels.email.smtpPassword"
    ]


def test_a_file_of_ours_is_not_taken_for_one_of_nanobots():
    assert not is_nanobots({"agents": {"defaults": {"model": "x", "maxTokens": 3}}, "channels": {}})
    assert is_nanobots({"agents": {"defaults": {"workspace": "~/.nanobot/workspace"}}})


def test_a_file_of_nanobots_can_be_edited(tmp_path: Path):
    (tmp_path / "config.json").write_bytes(CONFIG.read_bytes())
    editor = SettingsEditor(tmp_path, {})
    editor.write(editor.draft({"agents.defaults.max_tokens": 77, "users.strangers": "ignore"}))
    settings = load(tmp_path, {})
    assert (settings.agents.defaults.max_tokens, settings.users.strangers) == (77, "ignore")
    assert settings.agents.defaults.model == "custom/scripted"


def test_settings_of_openclaw_are_translated_or_told():
    ours = of_openclaw(
        {
            "agents": {"defaults": {"model": "openai/gpt-5", "thinkingDefault": "low"}, "list": [{"id": "a"}]},
            "models": {
                "providers": {"x": {"baseUrl": "http://a/v1", "apiKey": {"source": "env"}, "api": "openai-responses"}}
            },
            "channels": {
                "discord": {"token": "t", "allowFrom": ["*"], "groups": {"*": {}}, "dmPolicy": "open"},
                "signal": {"enabled": True},
            },
            "gateway": {"port": 5, "auth": {"token": "secret"}},
        }
    )
    assert ours.values == {
        "providers": {"x": {"api_base": "http://a/v1", "dialect": "openai_responses"}},
        "agents": {"defaults": {"model": "openai/gpt-5"}},
        "gateway": {"port": 5},
        "channels": {"discord": {"token": "t"}},
    }
    assert [line.partition(" ")[0] for line in ours.told] == [
        *("channels.discord.allowFrom", "channels.discord.groups", "channels.discord.dmPolicy", "channels.signal"),
        *("agents.defaults.thinkingDefault", "agents.list"),
        "gateway.auth",
    ]
    assert "secret" not in " ".join(ours.told)
