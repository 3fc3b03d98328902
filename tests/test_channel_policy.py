"""What holds for every channel is taken out of its table, and checked; the rest is the channel's own."""

import re
from pathlib import Path

import pytest

from everloop.app.channels import values_of, wrong_in
from everloop.app.policies import policy_of
from everloop.errors import SettingsError
from everloop.ports.policy import USUAL_POLICY, ChannelPolicy, ChatPolicy
from everloop.settings import Settings
from everloop.settings.channel_policy import Split, split

SECRET = "a-secret-for-webhooks-0123456789"
WEBHOOK = {"url": "https://example.com/answers", "secret": SECRET}


def test_a_table_is_taken_apart():
    table = {
        "token": "${TOKEN}",
        "enabled": True,
        "allowFrom": [42, "U1"],
        "groups": "reply",
        "chats": {-100: {"rule": "always", "allowFrom": [7], "off": False}, "Room A": {"off": True}},
        "bots": [9],
        "gather": 2,
        "per_minute": "20",
        "per_minute_all": 100,
        "progress": True,
        "strangers": "pair",
        "chat": "the channel's own",
    }
    assert split("fake", table) == Split(
        ChannelPolicy(
            allow_from=("42", "U1"),
            groups="reply",
            chats={"-100": ChatPolicy(rule="always", allow_from=("7",)), "Room A": ChatPolicy(off=True)},
            bots=("9",),
            gather=2.0,
            per_minute=20,
            per_minute_all=100,
            progress=True,
            strangers="pair",
        ),
        {"token": "${TOKEN}", "chat": "the channel's own"},
    )


def test_without_any_of_it_all_is_as_usual():
    assert split("fake", {"bots": "ignore"}) == Split(USUAL_POLICY, {})
    assert policy_of(Settings(), "fake") == USUAL_POLICY


@pytest.mark.parametrize(
    "table, sentence",
    [
        ({"groups": "sometimes"}, "channels.fake.groups is one of mention, reply, always, never"),
        ({"strangers": "all"}, "channels.fake.strangers is one of pair, guest, ignore"),
        ({"allow_from": "anna"}, 'channels.fake.allow_from is a list of account ids, such as ["123456789"]'),
        ({"allow_from": [True]}, 'channels.fake.allow_from is a list of account ids, such as ["123456789"]'),
        ({"allow_from": [""]}, 'channels.fake.allow_from is a list of account ids, such as ["123456789"]'),
        ({"bots": "some"}, 'channels.fake.bots is "ignore", or a list of the ids of bots that may speak'),
        ({"gather": 6}, "channels.fake.gather is a number of seconds from 0 to 5"),
        ({"gather": True}, "channels.fake.gather is a number of seconds from 0 to 5"),
        ({"gather": float("nan")}, "channels.fake.gather is a number of seconds from 0 to 5"),
        ({"per_minute": -1}, "channels.fake.per_minute is a number of messages, 0 for no limit"),
        ({"progress": "maybe"}, "channels.fake.progress is true or false"),
        ({"chats": ["a"]}, "channels.fake.chats is a table with a table for each chat"),
        ({"chats": {"a": "always"}}, "channels.fake.chats.a must be a table of settings"),
        ({"chats": {"a": {"rule": "x"}}}, "channels.fake.chats.a.rule is one of mention, reply, always, never"),
        ({"chats": {"a": {"of": True}}}, "there is no setting channels.fake.chats.a.of; did you mean off?"),
        (
            {"chats": {"a": {"xyz": 1}}},
            "there is no setting channels.fake.chats.a.xyz; the keys here are rule, allow_from, off",
        ),
        ({"allow_form": []}, "there is no setting channels.fake.allow_form; did you mean allow_from?"),
        ({"perMinutes": 3}, "there is no setting channels.fake.per_minutes; did you mean per_minute?"),
        ({"stranger": "pair"}, "there is no setting channels.fake.stranger; did you mean strangers?"),
    ],
    ids=str,
)
def test_what_is_wrong_is_told_in_a_sentence(table, sentence):
    with pytest.raises(SettingsError, match=f"^{re.escape(sentence)}$"):
        split("fake", table)


def test_a_channel_never_sees_what_holds_for_all():
    table = {**WEBHOOK, "allow_from": ["1"], "groups": "never", "gather": 0}
    assert values_of("webhook", table, {}) == WEBHOOK
    policy = ChannelPolicy(allow_from=("1",), groups="never", gather=0.0)
    assert policy_of(Settings(channels={"webhook": table}), "webhook") == policy


@pytest.mark.parametrize("secret", [SECRET, "${NOT_SET_HERE}"], ids=["known", "of a variable that is elsewhere"])
def test_it_is_checked_also_where_no_channel_is_opened(tmp_path: Path, secret):
    table = {**WEBHOOK, "secret": secret}
    assert wrong_in(Settings(channels={"webhook": {**table, "groups": "never"}}), tmp_path, {}) == ()
    (wrong,) = wrong_in(Settings(channels={"webhook": {**table, "groups": "x"}}), tmp_path, {})
    assert wrong.why == "channels.webhook.groups is one of mention, reply, always, never"
