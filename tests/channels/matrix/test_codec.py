"""What Matrix events mean, and which settings are none: without a server."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.channels.matrix import check_settings, open_channel
from everloop.channels.matrix.codec import (
    OurAccount,
    Reader,
    RoomEvent,
    media_of,
    read_event,
    referred_to,
    without_fallback,
)
from everloop.channels.matrix.homeserver import HomeserverRefused, unheard, unsent
from everloop.channels.matrix.joining import MOST_OF_ONE_SERVER, MOST_WAITING, Joining
from everloop.channels.matrix.rooms import Rooms, RoomTroubles, other_of_two
from everloop.channels.matrix.writing import replacing, transaction_of
from everloop.core.mail import Address, Outbound
from everloop.errors import ChannelDown, ChannelRefused, HostHungUp, HostUnreachable, SettingsError, Undeliverable
from everloop.ports.channel import FileRef, Incoming
from tests.effort import examples

US = OurAccount("@bot:x.org", "The Bot")
GOOD = {"homeserver": "https://matrix.example", "access_token": "t" * 20}

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
NAMES = (
    "msgtype body formatted_body filename url m.mentions m.relates_to m.new_content rel_type event_id m.in_reply_to "
    "is_falling_back user_ids key redacts org.matrix.msc3245.voice org.everloop.approval geo_uri"
)
contents = st.dictionaries(st.sampled_from(NAMES.split()), anything | st.just("m.text") | st.just("$known"), max_size=8)
events = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["m.room.message", "m.room.redaction", "m.reaction", "m.room.member"]) | st.text(),
        "sender": st.sampled_from(["@anna:x.org", "@bot:x.org"]),
        "event_id": st.just("$e") | anything,
        "content": contents
        | st.fixed_dictionaries({"m.relates_to": contents, "msgtype": st.just("m.text")})
        | anything,
    }
)


@given(event=events, other=contents, direct=st.booleans())
@examples(500)
def test_whatever_somebody_sends_is_read_or_left_alone(event: Any, other: dict[str, Any], direct: bool):
    known = {"$known": RoomEvent("m.room.message", "@anna:x.org", "$known", other)}
    if (read := read_event(event)) is None:
        return
    assert all(isinstance(each, str) for each in referred_to(read))
    heard = Reader("!r", US, known, direct=direct).read(read, "Anna")
    if heard is not None:
        assert (heard.account, heard.direct) == ("@anna:x.org", direct)
        json.dumps([heard.text, heard.quoted, heard.thread]).encode()
        (heard.text + heard.quoted + heard.thread + heard.reply_to).encode()


@pytest.mark.parametrize(
    "value",
    [None, [], "x", {}, {"type": "m.x"}, {"type": 1, "sender": "@a:b"}, {"type": "m.x", "sender": "@a:b", "\ud800": 1}],
)
def test_what_is_no_event_is_none(value: Any):
    assert read_event(value) is None


@pytest.mark.parametrize(("kind", "heard"), [("m.text", "x"), ("m.key.verification.request", "")])
def test_what_clients_say_to_each_other_is_not_heard(kind: str, heard: str):
    event = RoomEvent("m.room.message", "@a:b", "$1", {"msgtype": kind, "body": "x"})
    read = Reader("!r", US, {}, direct=True).read(event, "Anna")
    assert (read.text if read else "") == heard


def test_half_a_character_is_replaced():
    event = read_event(
        {
            "type": "m.room.message",
            "sender": "@a:b",
            "event_id": "$1",
            "content": {"msgtype": "m.text", "body": "\ud800"},
        }
    )
    assert event is not None
    heard = Reader("!r", US, {}, direct=True).read(event)
    assert heard is not None
    assert heard.text == "?"


@pytest.mark.parametrize("id", ["", "x", "$" * 256, 7, None, ["$1"]])
def test_what_names_no_event_belongs_to_none(id: Any):
    content = {"msgtype": "m.text", "body": "x", "m.relates_to": {"rel_type": "m.thread", "event_id": id}}
    event = RoomEvent("m.room.message", "@a:b", "$1", content)
    heard = Reader("!r", US, {}, direct=False).read(event)
    assert (referred_to(event), heard and heard.thread) == ((), "")


@pytest.mark.parametrize(
    "body, left",
    [
        ("> <@a:b> x\n\ny", "y"),
        ("> <@a:b> x\n> more\n\ny\n> z", "y\n> z"),
        ("y\n> x", "y\n> x"),
        ("> x", "> x"),
        ("", ""),
    ],
)
def test_what_older_clients_repeat_is_taken_away(body: str, left: str):
    assert without_fallback(body) == left


@pytest.mark.parametrize(
    "url",
    ["", "https://x.org/a", "mxc://x.org/../../admin", "mxc://x.org/a?b", "mxc://../a", "mxc://x.org/", "mxc:///a"],
)
def test_a_file_is_only_what_a_homeserver_has(url: str):
    content = {"msgtype": "m.file", "body": "x", "url": url}
    assert Reader("!r", US, {}, direct=True).read(RoomEvent("m.room.message", "@a:b", "$1", content)) is None
    with pytest.raises(ValueError, match="no address"):
        media_of(FileRef(json.dumps([url, "x"])))


def test_the_name_of_a_file_is_no_path_and_its_caption_is_what_is_said():
    content = {"msgtype": "m.file", "body": "look", "filename": "../../etc/passwd", "url": "mxc://x.org:8448/a_B-1"}
    heard = Reader("!r", US, {}, direct=False).read(RoomEvent("m.room.message", "@a:b", "$1", content))
    assert heard is not None
    assert (heard.text, media_of(heard.files[0])) == ("look", ("x.org:8448", "a_B-1", "passwd"))


def test_a_name_is_short_and_text():
    rooms = Rooms(None, US.user, RoomTroubles())  # type: ignore[arg-type]
    named = {"membership": "join", "displayname": "\ud800" * 500}
    rooms.note("!r", [RoomEvent("m.room.member", "@a:b", "$1", named, state_key="@a:b")])
    assert (rooms.name("!r", "@a:b"), rooms.name("!r", "@c:d")) == ("?" * 100, "c")


def member(user: str, membership: str) -> dict[str, Any]:
    return {"type": "m.room.member", "sender": user, "state_key": user, "content": {"membership": membership}}


@pytest.mark.parametrize(
    "members, other",
    [
        ([member(US.user, "join"), member("@a:b", "join")], "@a:b"),
        ([member(US.user, "join"), member("@a:b", "invite")], "@a:b"),
        ([member(US.user, "join"), member("@a:b", "leave")], ""),
        ([member(US.user, "join"), member("@a:b", "join"), member("@c:d", "leave")], ""),
        ([member(US.user, "join"), member("@a:b", "join"), member("@c:d", "ban")], ""),
        ([member(US.user, "join"), member("@a:b", "join"), {"state_key": 7}], ""),
        ([member(US.user, "join")], ""),
        ([], ""),
    ],
)
def test_a_room_is_of_two_when_nobody_else_was_ever_there(members: list[Any], other: str):
    assert other_of_two(members, US.user) == other


def test_both_texts_of_an_edit_fit_into_an_event():
    channel = open_channel(GOOD, None)  # type: ignore[arg-type]
    for part in channel.render(Outbound("k", Address("matrix", "x"), "ü & <b>bold</b> 🎉 `code`\n\n" * 5000)):
        content = {"msgtype": "m.text", "body": part.plain, "m.mentions": {}, "formatted_body": part.text}
        assert len(json.dumps(replacing(content, "$" + "e" * 43), ensure_ascii=False).encode()) < 60_000


def test_a_key_has_always_the_same_transaction_and_no_other_key_has_it():
    made = {transaction_of(*names) for names in (("a",), ("b",), ("a", "b"), ("reaction", "a", "b"))}
    assert (len(made), transaction_of("a") in made) == (4, True)


@pytest.mark.parametrize(
    "error, kind",
    [
        (HomeserverRefused(401, "M_UNKNOWN_TOKEN"), ChannelDown),
        (HomeserverRefused(403, "M_FORBIDDEN"), Undeliverable),
        (HomeserverRefused(404, "M_NOT_FOUND"), Undeliverable),
        (HomeserverRefused(404, ""), ChannelDown),
        (HomeserverRefused(413, "M_TOO_LARGE"), Undeliverable),
        (HomeserverRefused(400, "M_LIMIT_EXCEEDED"), ChannelDown),
        (HomeserverRefused(429, "M_LIMIT_EXCEEDED", 7.0), ChannelDown),
        (HomeserverRefused(502, ""), ChannelDown),
        (HostUnreachable("x"), ChannelDown),
        (HostHungUp("x"), HostHungUp),
    ],
)
def test_a_refusal_means_try_again_or_never(error: Exception, kind: type[Exception]):
    meant = unsent(error)
    assert type(meant) is kind
    assert getattr(meant, "retry_after", None) == getattr(error, "retry_after", None)


def test_only_a_refused_token_ends_the_listening_for_good():
    assert type(unheard(HomeserverRefused(401, "M_UNKNOWN_TOKEN"))) is ChannelRefused
    assert type(unheard(HomeserverRefused(500, "M_UNKNOWN"))) is ChannelDown


@pytest.mark.parametrize(
    "values, sentence",
    [
        ({"homeserver": ""}, "channels.matrix.homeserver must begin with https://"),
        ({"homeserver": "matrix.org"}, "channels.matrix.homeserver must begin with https://"),
        ({"homeserver": "http://matrix.org"}, "channels.matrix.homeserver must begin with https://"),
        ({"homeserver": "https://u:p@x.org"}, "and nothing more"),
        ({"homeserver": "https://x.org?a"}, "and nothing more"),
        ({"homeserver": "https://[x"}, "channels.matrix.homeserver"),
        ({"access_token": ""}, "channels.matrix.access_token is empty"),
        ({"access_token": "a b"}, "channels.matrix.access_token is empty, or has characters"),
        ({"access_token": "a\r\nX: y"}, "channels.matrix.access_token is empty, or has characters"),
        ({"user_id": "bot"}, "channels.matrix.user_id is a full user id"),
        ({"join": "sometimes"}, "channels.matrix.join is one of known, always, never"),
        ({"password": "x"}, "there is no setting channels.matrix.password; the keys here are homeserver, access_token"),
        ({"receipts": "perhaps"}, "receipts"),
    ],
)
def test_settings_that_cannot_work_are_refused_with_a_sentence(values: dict[str, str], sentence: str):
    with pytest.raises(SettingsError) as raised:
        check_settings({**GOOD, **values})
    assert sentence in str(raised.value)
    assert "t" * 20 not in str(raised.value)


def test_what_is_set_is_read():
    chosen = check_settings({**GOOD, "homeserver": "https://x.org/", "receipts": "false", "join": "never"})
    assert (chosen.homeserver, chosen.receipts, chosen.join) == ("https://x.org", False, "never")


def test_a_redaction_names_what_it_takes_back_in_old_rooms_and_new():
    before = RoomEvent("m.room.message", "@a:b", "$1", {"msgtype": "m.text", "body": "x"})
    old = RoomEvent("m.room.redaction", "@mod:b", "$2", redacts="$1")
    new = RoomEvent("m.room.redaction", "@mod:b", "$2", {"redacts": "$1"})
    heard = [Reader("!r", US, {"$1": before}, direct=False).read(event) for event in (old, new)]
    assert heard[0] == heard[1]
    assert heard[0] == Incoming(
        event="$2",
        chat="!r",
        account="@a:b",
        text="",
        direct=False,
        reply_to=heard[0].reply_to,
        replaces="$1",
        withdrawn=True,
    )
    ours = RoomEvent("m.room.message", US.user, "$1", {"msgtype": "m.text", "body": "x"})
    assert Reader("!r", US, {"$1": ours}, direct=False).read(old) is None


def invited_by(user: str) -> tuple[RoomEvent, ...]:
    return (RoomEvent("m.room.member", user, content={"membership": "invite", "is_direct": True}, state_key=US.user),)


def test_whoever_runs_a_server_keeps_no_other_invitation_from_us():
    joining = Joining(None, None, US.user, "known", None)
    flood = {f"!{n}:evil.org": invited_by(f"@u{n}:evil.org") for n in range(MOST_WAITING)}
    joining.take(flood)
    joining.take({"!0:evil.org": invited_by("@other:evil.org"), "!home:x.org": invited_by("@anna:x.org")})
    assert [*joining.waiting] == [*[*flood][:MOST_OF_ONE_SERVER], "!home:x.org"]
    assert joining.waiting["!0:evil.org"].by == "@other:evil.org"  # what is told again is no further one
    joining.take({f"!{n}:s{n}.org": invited_by(f"@u:s{n}.org") for n in range(MOST_WAITING)})
    assert len(joining.waiting) == MOST_WAITING
