"""The settings of Telegram: what is wrong is told in a sentence without the token, and nothing is loaded in vain."""

import subprocess
import sys
from typing import Any

import pytest

from everloop.channels.telegram import SETUP, check_settings, open_channel
from everloop.errors import SettingsError
from everloop.net.trusted import TrustedHttp
from everloop.ports import Fetches, Hooked, Previews, Renders, Signals
from everloop.ports.channel import OpensChats, Probes, Reacts, Replaces
from tests.channels.telegram.stand import TOKEN

URL = "https://bot.example/hooks/telegram"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "channels.telegram.token is missing: @BotFather in Telegram gives you one (/newbot)"),
        ({"token": ""}, "channels.telegram.token is missing: @BotFather in Telegram gives you one (/newbot)"),
        (
            {"token": "sk-canary-no-token"},
            "channels.telegram.token is not one: it looks like 123456789:AAE…, copy it again from @BotFather",
        ),
        (
            {"token": f"{TOKEN}/../x"},
            "channels.telegram.token is not one: it looks like 123456789:AAE…, copy it again from @BotFather",
        ),
        (
            {"token": TOKEN, "tokn": "x"},
            "there is no setting channels.telegram.tokn; the keys here are token, mode, webhook_url, "
            "webhook_secret, api_url, menu, and what every channel has (enabled, allow_from, groups, …)",
        ),
        ({"token": TOKEN, "mode": "push"}, "channels.telegram.mode is one of polling, webhook"),
        ({"token": TOKEN, "menu": "perhaps"}, "channels.telegram.menu is true or false"),
        (
            {"token": TOKEN, "mode": "webhook"},
            'channels.telegram.webhook_url is missing: with mode = "webhook" it is the address under which Telegram '
            "reaches this gateway, such as https://example.org/hooks/telegram",
        ),
        (
            {"token": TOKEN, "mode": "webhook", "webhook_url": "http://bot.example"},
            "channels.telegram.webhook_url must begin with https:// (http:// only for this machine itself)",
        ),
        (
            {"token": TOKEN, "mode": "webhook", "webhook_url": URL, "webhook_secret": "short"},
            "channels.telegram.webhook_secret has 16 to 256 letters, digits, _ or -",
        ),
        (
            {"token": TOKEN, "api_url": "http://api.telegram.org"},
            "channels.telegram.api_url must begin with https:// (http:// only for this machine itself)",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_sentence(values: dict[str, Any], sentence: str):
    with pytest.raises(SettingsError) as raised:
        open_channel(values, TrustedHttp())
    assert str(raised.value) == sentence


def test_settings_tell_nobody_the_token():
    assert TOKEN not in repr(check_settings({"token": f" {TOKEN}\n"}))
    assert check_settings({"token": f" {TOKEN}\n"}).token == TOKEN


def test_it_is_called_only_where_that_is_wanted():
    fetching = open_channel({"token": TOKEN}, TrustedHttp())
    called = open_channel({"token": TOKEN, "mode": "webhook", "webhook_url": URL}, TrustedHttp())
    able = (Renders, Previews, Signals, Fetches, Reacts, Replaces, OpensChats, Probes)
    assert [[isinstance(each, ability) for ability in (*able, Hooked)] for each in (fetching, called)] == [
        [True] * 8 + [False],
        [True] * 9,
    ]


def test_what_is_asked_when_it_is_set_up_are_settings_of_it():
    assert [(field.name, field.secret) for field in SETUP.fields] == [("token", True)]


def test_to_know_of_it_loads_neither_markdown_nor_its_wire():
    heavy = "[name for name in sys.modules if 'markdown_it' in name or 'telegram.' in name or 'websockets' in name]"
    code = f"import sys, everloop.channels.telegram; print(sorted({heavy}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "['everloop.channels.telegram.manifest']\n"
