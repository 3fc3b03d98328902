"""One character that is none keeps nobody from being heard."""

import json

import msgspec
import pytest

from everloop.channels.discord.gateway import GatewayEvent
from everloop.channels.slack.api import _reply
from everloop.channels.slack.socket_mode import _decoded
from everloop.channels.telegram.api import _read
from everloop.channels.telegram.codec import read
from everloop.channels.wellformed import read_json

HALVES = [b"\\ud800", b"a\\udc00b", b"\\ud83d and \\ude00", b"\xff\xfe"]


@pytest.mark.parametrize("half", HALVES)
def test_half_a_character_is_replaced_and_the_rest_is_read(half):
    body = b'{"update_id":7,"message":{"message_id":1,"chat":{"id":5},"text":"hi %s there \\ud83d\\ude00"}}' % half
    update = read(body)
    assert update.message.text.startswith("hi ")
    assert update.message.text.endswith(" there 😀")
    assert "\ufffd" in update.message.text or "?" in update.message.text
    assert _read(b'{"ok":true,"result":[%s]}' % body) is not None
    assert _reply("m", 200, {}, b'{"ok":true,"text":"%s"}' % half).fields["ok"] is True
    assert _decoded(b'{"type":"%s"}' % half).keys() == {"type"}
    frame = b'{"op":0,"s":3,"t":"MESSAGE_CREATE","d":{"content":"%s"}}' % half
    event = read_json(frame.decode("utf-8", "replace"), GatewayEvent)  # a WebSocket's texts are UTF-8
    assert (event.s, [*json.loads(bytes(event.d))]) == (3, ["content"])


@pytest.mark.parametrize("body", [b"", b"{", b'{"op":', b"[" * 100_000, b'{"op":NaN}', b"nothing"])
def test_what_is_no_json_is_still_refused(body):
    with pytest.raises(msgspec.DecodeError):
        read_json(body, GatewayEvent)


def test_what_is_of_another_form_is_refused_as_before():
    with pytest.raises(msgspec.ValidationError):
        read_json(b'{"op":"x"}', GatewayEvent)
