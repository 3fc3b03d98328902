"""Signed webhooks: a channel like any other, which nobody speaks through who does not know the secret."""

import json

import pytest

import everloop
from everloop.app.channels import known, opened, values_of
from everloop.channels.webhook import Webhook, open_channel
from everloop.channels.webhook.codec import check, parse, secret_of, signature
from everloop.core.mail import Address, ReplyTo
from everloop.errors import ChannelDown, SettingsError, Undeliverable
from everloop.ports.channel import Delivered, Incoming, OutgoingPart
from everloop.settings import Settings
from everloop.testing.conformance import CHECKS, Trial
from tests.channels.platform import NOW, SECRET, Receiver, said, signed

URL = "https://bot.example/hook"


@pytest.mark.parametrize("name", CHECKS)
async def test_it_is_a_channel(name, tmp_path):
    await CHECKS[name](Trial(Receiver(), tmp_path / "home", everloop.open))


async def test_a_channel_that_checks_no_signature_is_found_out(tmp_path):
    class Credulous(Receiver):
        def channel(self) -> Webhook:
            channel = super().channel()
            hooks = channel.hooks

            async def believe(request):
                await deliver_to[0](Incoming(event="e9", chat="room", account="eve", text="give me all"))
                return (await hooks(deliver_to[0])[0].answer(request)).__class__(202)

            def open_hooks(deliver):
                deliver_to.append(deliver)
                (hook,) = hooks(deliver)
                return [type(hook)(hook.method, hook.path, believe)]

            deliver_to: list = []
            channel.hooks = open_hooks
            return channel

    with pytest.raises(AssertionError, match="what is not signed is refused"):
        await CHECKS["what is forged is refused"](Trial(Credulous(), tmp_path / "home", everloop.open))


def test_the_signature_is_that_of_standard_webhooks():
    """The example of https://github.com/standard-webhooks/standard-webhooks, which its libraries are tested with."""
    secret = secret_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    made = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_one_of_several_signatures_is_enough_while_a_secret_is_changed():
    request = signed(said("hi"), secret=b"the previous secret of someone")
    headers = {**request.headers, "webhook-signature": f"v1,abc {request.headers['webhook-signature']}"}
    assert check(headers, request.body, [SECRET, b"the previous secret of someone"], NOW) == "e1"


@pytest.mark.parametrize("at", [NOW - 300, NOW, NOW + 300])
def test_what_is_signed_within_the_window_is_let_in(at):
    request = signed(said("hi"), at=at)
    assert check(request.headers, request.body, [SECRET], NOW) == "e1"


async def deliver(incoming: Incoming, resume: str = "") -> Delivered:
    return Delivered(refused="the message is empty" if not incoming.text else "")


@pytest.mark.parametrize(
    "body, sentence",
    [
        (b"", "the body is no message"),
        (b"\xff", "the body is no message"),
        (b"[1]", "the body is no message"),
        (b'{"chat": "room"}', "missing required field `author`"),
        (b'{"chat": "", "author": "anna", "text": "x"}', "$.chat"),
        (said("hi", role="owner"), "unknown field `role`"),
        (said("hi", direct="yes"), "$.direct"),
        (b"[" * 100_000, "the body is no message"),
    ],
)
async def test_what_is_signed_and_no_message_is_told_why(body, sentence):
    (hook,) = Receiver().channel().hooks(deliver)
    answer = await hook.answer(signed(body))
    assert (answer.status, sentence in json.loads(answer.body)["error"]) == (400, True)


async def test_what_the_house_refuses_is_told_as_such():
    (hook,) = Receiver().channel().hooks(deliver)
    answer = await hook.answer(signed(said("")))
    assert (answer.status, json.loads(answer.body)) == (422, {"error": "the message is empty"})


def test_an_author_is_never_more_than_an_account():
    incoming = parse("e1", said("hi", author="owner"))
    assert (incoming.account, incoming.chat, incoming.event) == ("owner", "room", "e1")


def part(**more) -> OutgoingPart:
    return OutgoingPart(**{"key": "reply:t:3", "address": Address("webhook", "room"), "text": "hello", **more})


def test_a_message_may_tell_the_server_of_its_chat():
    assert [parse("msg_1", said("hi", **more)).server for more in ({}, {"server": "acme"})] == ["", "acme"]


async def test_an_answer_names_what_it_answers_in_the_senders_own_words():
    receiver = Receiver()
    there = parse("msg_1", said("hi", chat="a room: 7", thread="x/y")).reply_to
    place = Address("webhook", "a%20room%3A%207", "x%2Fy")
    receipts = [await receiver.channel().send(part(reply_to=there, address=place)) for _ in range(2)]
    assert receipts[0] == receipts[1] == receiver.bodies[0]["id"]
    assert receiver.bodies[0] == receiver.bodies[1]
    assert receiver.bodies[0] == {
        "id": receipts[0],
        "in_reply_to": "msg_1",
        "chat": "a room: 7",
        "thread": "x/y",
        "kind": "reply",
        "text": "hello",
        "part": 1,
        "of": 1,
        "approval": "",
        "files": [],
    }
    assert receiver.seen == ["hello"]


@pytest.mark.parametrize("status", [400, 410, 413, 422])
async def test_what_the_receiver_will_never_take_is_given_up(status):
    with pytest.raises(Undeliverable, match=str(status)):
        await Receiver(status).channel().send(part())


@pytest.mark.parametrize(
    "status, headers, after",
    [
        (500, {}, None),
        (404, {}, None),
        (302, {"Location": "https://evil.example"}, None),
        (429, {"retry-after": "7"}, 7.0),
        (503, {"Retry-After": "Mon, 21 Sep 2026 14:13:30 GMT"}, 10.0),
        (503, {"Retry-After": "Sat, 01 Jan 2000 00:00:00 GMT"}, 0.0),
        (503, {"Retry-After": "soon"}, None),
        (503, {"Retry-After": "Fri, 01 Jan 99999999999999999999 00:00:00 GMT"}, None),
        (503, {"Retry-After": "-5"}, None),
    ],
)
async def test_anything_else_is_tried_again_when_the_receiver_says(status, headers, after):
    with pytest.raises(ChannelDown) as raised:
        await Receiver(status, headers).channel().send(part())
    assert raised.value.retry_after == after


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({}, "url is missing"),
        ({"url": URL}, "secret is missing"),
        ({"url": URL, "secret": ""}, "channels.webhook.secret: it must have at least 16 bytes"),
        ({"url": URL, "secret": "short"}, "channels.webhook.secret: it must have at least 16 bytes"),
        ({"url": URL, "secret": "whsec_?"}, "channels.webhook.secret: what follows whsec_ must be base64"),
        ({"url": URL, "secret": "s" * 16, "previous_secret": "x"}, "channels.webhook.previous_secret"),
        ({"url": "http://bot.example", "secret": "s" * 16}, "channels.webhook.url must begin with https://"),
        ({"url": "ftp://127.0.0.1", "secret": "s" * 16}, "channels.webhook.url must begin with https://"),
        (
            {"url": URL, "secret": "s" * 16, "secrets": "x"},
            "there is no setting channels.webhook.secrets; the keys here are url, secret, previous_secret, enabled",
        ),
        ({"url": URL, "secret": 7}, "secret"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_sentence(values, sentence):
    with pytest.raises(SettingsError) as raised:
        open_channel(values, Receiver())
    assert sentence in str(raised.value)
    assert "s" * 16 not in str(raised.value)


def test_the_channels_of_the_settings_are_those_that_somebody_brings():
    wanted = {"url": "http://127.0.0.1:1/x", "secret": "${HOOK_SECRET}", "previousSecret": "p" * 16}
    settings = Settings(channels={"webhook": wanted, "nobodys": {"token": "x"}})
    channel = opened("webhook", values_of("webhook", wanted, {"HOOK_SECRET": "s" * 32}), Receiver())
    assert (channel.manifest.name, known(settings)) == ("webhook", {"webhook"})
    off = Settings(channels={"webhook": {**wanted, "enabled": False}})
    assert known(off) == frozenset()


def test_a_variable_that_is_not_set_is_named():
    with pytest.raises(SettingsError, match=r"channels.webhook.secret needs the environment variable HOOK_SECRET"):
        values_of("webhook", {"url": URL, "secret": "${HOOK_SECRET}"}, {})


def test_what_a_reply_goes_to_is_nothing_without_a_letter():
    assert part().reply_to == ReplyTo("")
