"""Webhooks in a platform's own markup: in parts, and with the same text without markup."""

import json
import subprocess
import sys

import pytest

import everloop
from everloop.channels.text import DIALECTS, LEAST
from everloop.channels.webhook import Webhook, open_channel
from everloop.channels.webhook.manifest import DIALECTS as NAMES
from everloop.channels.webhook.manifest import LEAST as SHORTEST
from everloop.channels.webhook.rendered import RenderedWebhook
from everloop.core.mail import Address, Outbound
from everloop.errors import SettingsError
from everloop.ports.channel import OutgoingPart, Rendered
from everloop.testing.conformance import CHECKS, Trial
from tests.channels.platform import NOW, SECRET, Receiver

SETTINGS = {"url": "https://bot.example/hook", "secret": "a-secret-for-webhooks-0123456789"}
ANSWER = Outbound("k", Address("webhook", "room"), "**hi** <b> [docs](https://e.com)")


class TelegramReceiver(Receiver):
    long = "# First\n\n" + "Then **a good deal** more of it, `x < y`. " * 60 + "\n\n```py\n" + "x = 1\n" * 100 + "```"

    def channel(self) -> Webhook:
        where = "https://bot.example/hook"
        return RenderedWebhook(where, [SECRET], self, lambda: NOW, dialect="telegram", limit=500)


@pytest.mark.parametrize("name", [name for name in CHECKS if "part" in name])  # the rest is any webhook's
async def test_its_parts_are_those_of_a_channel(name, tmp_path):
    await CHECKS[name](Trial(TelegramReceiver(), tmp_path / "home", everloop.open))


async def test_a_long_answer_is_posted_in_parts_with_and_without_markup(tmp_path):
    receiver = TelegramReceiver()
    trial = Trial(receiver, tmp_path / "home", everloop.open)
    async with trial.house(receiver.long):
        await receiver.say("e1", "one")
        await receiver.shown(len(trial.parts(receiver.long)))
    assert len(receiver.bodies) > 5
    assert receiver.bodies[0]["text"].startswith("<b>First</b>")
    assert receiver.bodies[0]["plain"].startswith("First")
    assert receiver.bodies[-1]["text"].startswith('<pre><code class="language-py">x = 1')
    assert all(len(body["plain"]) <= 460 for body in receiver.bodies)


def test_the_dialect_is_a_setting():
    def told(**more: object) -> tuple[Rendered, ...]:
        return open_channel({**SETTINGS, **more}, Receiver()).render(ANSWER)

    plain = "hi <b> docs (https://e.com)"
    assert told(dialect="slack") == (
        Rendered("*hi* &lt;b&gt; <https://e.com|docs>", "hi &lt;b&gt; docs (https://e.com)"),
    )
    assert told(dialect="plain", text_limit="200") == told(dialect="plain", text_limit=200) == (Rendered(plain, plain),)
    assert not hasattr(open_channel(SETTINGS, Receiver()), "render")


def test_there_is_a_dialect_for_each_name():
    assert (("markdown", *DIALECTS), LEAST) == (NAMES, SHORTEST)


@pytest.mark.parametrize(
    "dialect, told",
    [
        ("markdown", "opened, without markdown-it"),
        ("slack", "channels.webhook.dialect needs the extra [channels]: pip install 'everloop[channels]'"),
    ],
)
def test_where_the_library_is_missing_that_is_said_to_those_alone_who_need_it(dialect, told):
    code = f"""
import sys
sys.modules["markdown_it"] = None
from everloop.channels.webhook import open_channel
from everloop.errors import SettingsError
try:
    open_channel({{**{SETTINGS!r}, "dialect": "{dialect}"}}, None)
    print("opened, without markdown-it")
except SettingsError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(told)


@pytest.mark.parametrize(
    "values, why",
    [
        ({"dialect": "wiki"}, "is one of markdown, plain, telegram, slack, discord, matrix, email, not 'wiki'"),
        ({"dialect": "plain", "text_limit": 20}, "at least 200"),
        ({"dialect": "plain", "text_limit": -1}, ">= 0"),
        ({"text_limit": 500}, "needs a dialect but markdown"),
    ],
)
def test_a_dialect_that_cannot_be_is_refused(values, why):
    with pytest.raises(SettingsError, match=why):
        open_channel({**SETTINGS, **values}, Receiver())


async def test_without_a_dialect_nothing_has_changed():
    receiver = Receiver()
    await receiver.channel().send(OutgoingPart(key="k", address=ANSWER.address, text=ANSWER.text))
    assert "plain" not in receiver.bodies[0]
    assert json.dumps(receiver.bodies[0]["text"]) == json.dumps(ANSWER.text)
