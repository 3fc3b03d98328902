"""What is set for a later version is never ignored in silence."""

from pathlib import Path

import pytest

from everloop.settings import Settings, load, unused

SET = """
[agents.defaults]
memory_window = 50
[channels.telegram]
enabled = true
token = "123:abc"
[channels.discord]
enabled = false
"""
TELEGRAM = "channels.telegram is set, but there is no such channel: nothing listens there."


def test_each_thing_that_does_nothing_yet_is_named_once_and_what_is_off_is_not(tmp_path: Path):
    (tmp_path / "config.toml").write_text(SET)
    assert unused(load(tmp_path, {})) == (TELEGRAM,)


def test_of_settings_that_all_count_nothing_is_said():
    assert unused(Settings()) == ()


@pytest.mark.parametrize("kept", ["telegram", 7, ["telegram"]])
def test_what_is_no_table_is_named_as_a_whole(kept):
    assert unused(Settings(channels=kept)) == (TELEGRAM.replace("telegram", "*"),)


@pytest.mark.parametrize(
    "off", [{"enabled": "false"}, {"enabled": "False"}, {"disabled": "true"}, {"Enabled": 0}, None]
)
def test_what_is_switched_off_in_words_is_off(off):
    is_off = off != {"Enabled": 0}
    assert unused(Settings(channels={"telegram": off})) == (() if is_off else (TELEGRAM,))


@pytest.mark.parametrize(("name", "called"), [("whatsapp", "WhatsApp"), ("qq", "QQ"), ("mochat", "Mochat")])
def test_what_another_agent_would_speak_on_is_said_to_be_missing_here(name, called):
    sentence = f"channels.{name} is set, but this version has no channel for {called}: nothing listens there."
    assert unused(Settings(channels={name: {"enabled": True, "bridgeUrl": "ws://x"}})) == (sentence,)
