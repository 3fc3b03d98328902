"""How Slack is set up: the settings, the manifest that one pastes, the trial; and that no token is told to anybody."""

import json
import logging
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from everloop.app.channels import opened, values_of, wrong_in
from everloop.channels.slack import MANIFEST, SETUP, check_keys, check_settings, open_channel
from everloop.channels.slack.manifest import SCOPES, SlackSettings
from everloop.channels.slack.wire import SlackChannel
from everloop.errors import ChannelDown, ChannelRefused, SettingsError
from everloop.net.trusted import TrustedHttp
from everloop.ports.channel import (
    Fetches,
    HookRequest,
    OpensChats,
    Previews,
    Probed,
    Probes,
    Reacts,
    Renders,
    Replaces,
    Signals,
)
from everloop.settings import Settings
from everloop.testing.slack_server import SlackFault
from tests.channels.slack.open import Heard, open_slack, part
from tests.channels.slack.platform import settings_of

GOOD = {"bot_token": "xoxb-1", "app_token": "xapp-1"}


def test_the_manifest_that_one_pastes_asks_for_what_is_needed():
    page = (Path(__file__).parents[3] / "docs" / "channels-slack.md").read_text()
    manifest = json.loads(page.partition("```json")[2].partition("```")[0])
    assert sorted(manifest["oauth_config"]["scopes"]["bot"]) == sorted(SCOPES)
    histories = {f"message.{scope.removesuffix(':history')}" for scope in SCOPES if scope.endswith(":history")}
    assert {*manifest["settings"]["event_subscriptions"]["bot_events"]} == histories
    settings = manifest["settings"]
    assert [settings[name] for name in ("socket_mode_enabled", "token_rotation_enabled")] == [True, False]
    assert (settings["interactivity"], manifest["features"]["slash_commands"][0]["command"]) == (
        {"is_enabled": True}, "/everloop",
    )  # fmt: skip


def test_the_link_of_the_first_step_brings_the_manifest_of_the_page_along():
    page = (Path(__file__).parents[3] / "docs" / "channels-slack.md").read_text()
    link = urlsplit(SETUP.steps[0].rpartition(" ")[2])
    asked = parse_qs(link.query)
    assert (link.scheme, link.netloc, link.path, asked["new_app"]) == ("https", "api.slack.com", "/apps", ["1"])
    assert json.loads(asked["manifest_json"][0]) == json.loads(page.partition("```json")[2].partition("```")[0])


def test_every_setting_is_on_its_page():
    page = (Path(__file__).parents[3] / "docs" / "channels-slack.md").read_text()
    assert [name for name in SlackSettings.__struct_fields__ if f"`{name}`" not in page] == []


def test_to_import_it_loads_neither_the_network_nor_markdown():
    code = "import sys, everloop.channels.slack; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"markdown_it", "websockets", "aiohttp", "everloop.channels.slack.wire"} & {*loaded} == set()
    assert "everloop.channels.slack.manifest" in loaded


def test_it_can_do_what_slack_can():
    channel = open_channel(GOOD, TrustedHttp())
    abilities = (Fetches, OpensChats, Previews, Probes, Reacts, Renders, Replaces, Signals)
    assert [each.__name__ for each in abilities if not isinstance(channel, each)] == []
    assert (channel.hooks(Heard()), MANIFEST.traits.once, SETUP.title) == ([], False, "Slack")


async def test_the_trial_says_who_we_are_and_what_is_missing():
    async with open_slack() as (slack, channel):
        assert await channel.probe() == Probed(account="everloop in Team", link="https://team.slack.com/team/U0BOT")
        slack.scopes = ",".join(scope for scope in SCOPES if scope not in ("files:read", "im:write"))
        missing = (await channel.probe()).missing
        assert [each.split()[2] for each in missing] == ["im:write,", "files:read,"]
        assert missing[1] == (
            "The scope files:read, to open files that people send. Add it under OAuth & Permissions, then install the "
            "app again."
        )


@pytest.mark.parametrize(
    "method, fault, error, words",
    [
        ("auth.test", SlackFault(error="invalid_auth"), ChannelRefused, "bot_token .invalid_auth."),
        ("auth.test", SlackFault(error="token_revoked"), ChannelRefused, "bot_token .token_revoked."),
        ("auth.test", SlackFault(429, retry_after=5), ChannelDown, "wait"),
        ("auth.test", SlackFault(500), ChannelDown, "500"),
        ("auth.test", SlackFault(half=True), ChannelDown, "broke off"),
        ("apps.connections.open", SlackFault(error="invalid_auth"), ChannelRefused, "app_token .invalid_auth."),
        ("apps.connections.open", SlackFault(error="missing_scope"), ChannelRefused, "connections:write"),
        ("apps.connections.open", SlackFault(error="internal_error"), ChannelDown, "internal_error"),
    ],
)
async def test_who_is_not_let_in_is_told_what_to_do(method, fault, error, words):
    async with open_slack() as (slack, channel):
        for ask in (channel.probe(), channel.run(Heard(), "")):
            slack.fail(method, fault)
            with pytest.raises(error, match=words):
                await ask


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({}, "bot_token is missing"),
        ({"bot_token": "xoxb-1"}, "channels.slack.app_token begins with xapp-"),
        ({"bot_token": "xapp-secret-1", "app_token": "xoxb-secret-2"}, "channels.slack.bot_token begins with xoxb-"),
        ({**GOOD, "bot_token": "xoxb-secret\n"}, "channels.slack.bot_token begins with xoxb-"),
        ({**GOOD, "mode": "rtm"}, "channels.slack.mode is one of socket, events, not 'rtm'"),
        ({**GOOD, "mode": "events"}, "channels.slack.signing_secret is the Signing Secret"),
        ({**GOOD, "token": "xoxb-secret"}, "there is no setting channels.slack.token; the keys here are bot_token"),
        ({**GOOD, "api_url": "http://slack.example/"}, "channels.slack.api_url must begin with https://"),
        ({**GOOD, "files_url": "ftp://127.0.0.1/"}, "channels.slack.files_url must begin with https://"),
        ({**GOOD, "api_url": "https://[::1"}, "channels.slack.api_url must begin with https://"),
        ({**GOOD, "bot_token": 7}, "bot_token"),
        ({**GOOD, "reply_in_thread": "perhaps"}, "reply_in_thread"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_sentence(values, sentence):
    with pytest.raises(SettingsError) as raised:
        open_channel(values, TrustedHttp())
    assert sentence in str(raised.value)
    assert "secret-" not in str(raised.value)


def test_what_holds_for_every_channel_is_not_its_own(tmp_path):
    table = {**GOOD, "enabled": True, "groups": "always", "allowFrom": ["U0ANNA"], "replyInThread": False}
    assert opened("slack", values_of("slack", table, {}), TrustedHttp()).manifest is MANIFEST
    assert wrong_in(Settings(channels={"slack": table}), tmp_path, {}) == ()
    (wrong,) = wrong_in(Settings(channels={"slack": {**table, "mode": "rtm"}}), tmp_path, {})
    assert "channels.slack.mode is one of socket, events" in wrong.sentence


def test_settings_may_come_from_the_environment():
    assert check_settings({**GOOD, "reply_in_thread": "false"}).reply_in_thread is False
    check_keys({"bot_token": "${X}"})


def test_whoever_has_a_signing_secret_and_no_token_of_the_app_is_called_by_slack():
    events, socket = {"bot_token": "xoxb-1", "signing_secret": "s" * 16}, {**GOOD, "signing_secret": "s" * 16}
    assert [check_settings(each).mode for each in (events, socket, GOOD)] == ["events", "socket", "socket"]


async def test_no_token_is_told_to_anybody(caplog):
    """Each way to fail, with a host that repeats what it was sent."""
    caplog.set_level(logging.DEBUG)
    said: list[str] = []
    faults = (
        SlackFault(500), SlackFault(429), SlackFault(403), SlackFault(cut=True), SlackFault(half=True),
        SlackFault(error="xoxb-fake-bot xapp-fake-app"), SlackFault(error="invalid_auth"),
    )  # fmt: skip
    async with open_slack() as (slack, channel):
        for method in ("auth.test", "apps.connections.open", "chat.postMessage"):
            for fault in faults:
                asks = (channel.probe, lambda: channel.run(Heard(), ""), lambda: channel.send(part()))
                for ask in asks[:2] if method != "chat.postMessage" else asks[2:]:
                    slack.fail(method, fault)
                    try:
                        await ask()
                    except Exception as error:
                        said += [str(error), repr(error), repr(error.__cause__)]
        (hook,) = SlackChannel(check_settings(settings_of(slack, mode="events")), TrustedHttp()).hooks(Heard())
        said.append(str(await hook.answer(HookRequest("POST", slack.signed(b"x", secret="y"), b"x"))))
        said += [record.getMessage() for record in caplog.records if record.name.startswith("everloop")]
        secrets = (slack.bot_token, slack.app_token, slack.signing_secret, "ticket-")
        told = [words for words in said if any(secret in words for secret in secrets)]
        assert (told, len(said) > 50) == ([], True)
