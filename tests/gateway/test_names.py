"""Names cannot collide: two different places, people or messages are never one, whatever strangers call themselves."""

import itertools
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from everloop.core.mail import Address
from everloop.gateway.api.shapes import Moving
from everloop.gateway.http.errors import Refused
from everloop.gateway.openai.to_inbound import _address as openai_address
from everloop.gateway.platform.to_inbound import PlatformMessage, address_of
from everloop.gateway.ws.frames import StopFrame
from everloop.readings.keys import LONGEST, author_of, escaped, exact
from everloop.testing import Say, ScriptedModel, Shown

# Few letters, so that inputs that are nearly alike are drawn often; separators, escapes, forms of the same letter.
PIECES = [
    "",
    "@",
    "/",
    ":",
    "%",
    "%40",
    "%2F",
    "%3A",
    "%25",
    "!",
    "7",
    "a",
    "A",
    "é",
    "e\u0301",
    "@7",
    "//",
    "a" * 300,
    "Ω" * 90,
]
NAMES = st.one_of(st.lists(st.sampled_from(PIECES), max_size=3).map("".join), st.text(max_size=6)).map(
    lambda s: s[:200]
)
GIVEN = NAMES.filter(bool)
PLACES = st.tuples(GIVEN, NAMES, GIVEN, NAMES, NAMES)  # platform, server, user, channel, thread


def message(place: tuple[str, ...]) -> PlatformMessage:
    platform, server, user, channel, thread = place
    return PlatformMessage(platform, user, "hi", server, channel, thread)


def meaning(place: tuple[str, ...]) -> tuple[str, ...]:
    """In a channel it does not matter who speaks."""
    platform, server, user, channel, thread = place
    return (platform, server, channel, thread) if channel else (platform, server, "", thread, user)


@given(PLACES, PLACES)
@example(("discord", "", "7", "", ""), ("discord", "", "8", "@7", ""))
@example(("discord", "", "@7", "", ""), ("discord", "", "8", "@@7", ""))
@example(("discord", "", "7", "", ""), ("discord", "", "8", "%407", ""))
@example(("a", "b/c", "7", "d", ""), ("a/b", "c", "7", "d", ""))
@example(("a", "b", "7", "c:d", ""), ("a", "b", "7", "c", "d"))
@example(("a", "", "7", "é", ""), ("a", "", "7", "e\u0301", ""))
@example(("a", "", "7", "x" * 200, ""), ("a", "", "7", "x" * 199, ""))
@example(("a", "", "7", "Ω" * 200, ""), ("a", "", "7", "Ω" * 199, ""))
def test_two_places_of_a_platform_never_have_one_key(one, other):
    keys = [str(address_of(message(place))) for place in (one, other)]
    assert (keys[0] == keys[1]) == (meaning(one) == meaning(other))
    assert all(str(exact(key)) == key and key.isprintable() and len(key) < 1200 for key in keys)


def test_the_property_notices_the_key_as_it_was_made_before():
    """The control: with a channel whose @ is not escaped, the two of the example are one."""

    def before(place: tuple[str, ...]) -> str:
        platform, server, user, channel, thread = place
        return f"platform:{platform}/{server}/{channel or f'@{user}'}:{thread}"

    one, other = ("discord", "", "7", "", ""), ("discord", "", "8", "@7", "")
    assert before(one) == before(other)
    assert address_of(message(one)) != address_of(message(other))


@given(st.tuples(GIVEN, GIVEN), st.tuples(GIVEN, GIVEN))
@example(("a:b", "c"), ("a", "b:c"))
@example(("a%3Ab", "c"), ("a:b", "c"))
def test_two_people_never_have_one_name(one, other):
    assert (author_of(*one) == author_of(*other)) == (one == other)


@given(NAMES)
def test_a_name_is_escaped_as_addresses_are(name):
    """So that keys that were made with the library's own function are found again."""
    assert escaped(name) == quote(name, safe="@") or len(quote(name, safe="@")) > LONGEST


@given(NAMES, NAMES)
def test_an_escaped_name_has_no_separators_and_is_one_name_only(one, other):
    assert (escaped(one) == escaped(other)) == (one == other)
    assert not set(escaped(one)) & set("/: \n")
    assert len(escaped(one)) <= LONGEST


@pytest.mark.parametrize(
    "place, key",
    [
        (("discord", "1", "7", "42", ""), "platform:discord/1/42"),
        (("discord", "1", "7", "42", "9"), "platform:discord/1/42:9"),
        (("telegram", "", "7", "", ""), "platform:telegram//@7"),
        (("telegram", "", "-100123", "", ""), "platform:telegram//@-100123"),
        (("matrix", "", "@bob:example.org", "", ""), "platform:matrix//@@bob%3Aexample.org"),
        (("slack", "T0", "U1", "general chat", ""), "platform:slack/T0/general%20chat"),
        (("mail", "", "x", "me@example.org", ""), "platform:mail//me@example.org"),
        (("x", "y" * 200, "z", "w" * 200, "v" * 200), f"platform:x/{'y' * 200}/{'w' * 200}:{'v' * 200}"),
    ],
)
def test_ordinary_places_have_the_keys_that_they_had(place, key):
    assert str(address_of(message(place))) == key
    assert author_of("discord", "7") == "discord:7"
    assert author_of("matrix", "@bob:example.org") == "matrix:@bob:example.org"


def _socket(key: str) -> str:
    return msgspec.convert({"type": "stop", "session": key}, StopFrame).session


def _api(key: str) -> str:
    if key.endswith("\n"):  # refused where it is used: its pattern is told to clients, who know no other
        raise Refused(400, "invalid_request", "A session key holds no line break.")
    return str(msgspec.convert({"session": key}, Moving).session)


def _openai(key: str) -> str:
    return str(openai_address(key))


KEYS = st.lists(st.sampled_from(["a", "b", ":", "::", "%", "@", "é", "e\u0301", "\n", " ", "A"]), min_size=1).map(
    "".join
)


@pytest.mark.parametrize("door", [_socket, _api, _openai])
@given(key=KEYS)
@example(key="a:b:")
@example(key="a:b\n")
@example(key="a:b")
@example(key="a:b:c")
def test_a_key_that_a_client_says_is_taken_as_it_is_or_refused(door: Any, key: str):
    try:
        taken = door(key)
    except (msgspec.ValidationError, Refused):
        return
    assert taken == key == str(Address.parse(key))
    assert "\n" not in key or door is _openai  # whose headers hold none


@pytest.mark.parametrize("key", ["a:b", "a:b:c", "api:x/y@z", "cli:direct"])
def test_ordinary_keys_are_taken_by_all(key: str):
    assert [_socket(key), _api(key), _openai(key), str(exact(key))] == [key] * 4


async def test_in_a_channel_called_at_seven_nobody_is_told_what_seven_said(openings):
    def lines(shown: Shown) -> Say:
        return Say(str(shown.said))

    door = await openings(ScriptedModel(lines))
    async with door.client(await door.token()) as client:

        async def say(user: str, text: str, **more: str) -> str:
            sent = {"platform": "discord", "platform_user_id": user, "content": text, **more}
            return (await (await client.post("/message", json=sent)).json())["content"]

        await say("7", "plum is my secret")
        own = await say("7", "and now?")
        others = [
            await say("8", "what?", platform_channel_id=channel)
            for channel in ("@7", "%407", "@@7", "7", "/@7", "@7/", "@7:", ":@7")
        ]
    assert "plum" in own
    assert [told for told in others if "plum" in told] == []


async def test_the_api_takes_no_key_with_a_line_break(openings):
    door = await openings(ScriptedModel([Say("hello")]))
    async with door.client(await door.token()) as client:
        await client.post("/message", json={"platform": "d", "platform_user_id": "7", "content": "hi"})
        (listed,) = (await (await client.get("/api/sessions")).json())["sessions"]
        path = f"/api/sessions/{listed['id']}/resume"
        keys = ("api:x\n", "api:x:", "api:x")
        found = [(await client.post(path, json={"session": key})).status for key in keys]
    assert found == [400, 400, 200]


async def test_the_same_id_in_two_places_is_two_messages(openings):
    door = await openings(ScriptedModel(lambda shown: Say(f"heard {shown.asked}")))
    forms = list(itertools.product(("c", "c/1", "c:1"), ("1", "1/1", "/1", "\x00")))
    async with door.client(await door.token()) as client:
        told = []
        for n, (channel, id) in enumerate(forms):
            sent = {"platform": "d", "platform_user_id": "7", "platform_channel_id": channel, "id": id}
            answer = await (await client.post("/message", json={**sent, "content": f"message {n}"})).json()
            told.append(answer["content"])
    assert [each.splitlines()[-1] for each in told] == [f"message {n}" for n in range(len(forms))]
