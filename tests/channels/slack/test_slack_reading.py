"""What Slack's events mean: who says what where, what is changed or taken back, and what is not for us."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.channels.slack.codec import (
    SlackPlace,
    SlackReader,
    SlackSelf,
    chat_of,
    people_in,
    place_of,
    press,
    slash,
)
from everloop.channels.slack.words import commanded, plain, typable, typed
from everloop.ports.channel import Incoming
from everloop.readings.commands import command_in

ME = SlackSelf("U0BOT", "B0BOT", "T1")
READER = SlackReader(ME)


def said(text: str = "hello", payload: Mapping[str, object] = {}, **event: object) -> dict[str, object]:
    message = {"type": "message", "user": "U1", "text": text, "ts": "9.1", "channel": "C1", "channel_type": "channel"}
    return {"type": "event_callback", "team_id": "T1", **payload, "event": {**message, **event}}


def read(payload: dict[str, object]) -> Incoming:
    incoming = READER.event(payload, {"U1": "Anna", "U2": "Ben"})
    assert incoming is not None
    return incoming


def test_a_message_in_a_channel_begins_a_thread():
    incoming = read(said("hello"))
    assert incoming == Incoming(
        event="C1:9.1", chat="C1", account="U1", text="hello", thread="9.1", direct=False, server="T1", name="Anna",
        reply_to=incoming.reply_to,
    )  # fmt: skip
    assert place_of(incoming.reply_to) == SlackPlace("C1", "9.1", "9.1", "U1", "T1")


def test_it_does_not_where_that_is_not_wanted():
    incoming = SlackReader(ME, in_threads=False).event(said("hello"))
    assert incoming is not None
    assert incoming.thread == ""


def test_a_direct_message_is_no_thread_and_one_in_a_thread_stays_there():
    direct = read(said(channel="D1", channel_type="im"))
    threaded = read(said(channel="D1", channel_type="im", thread_ts="3.0"))
    assert [(each.direct, each.thread) for each in (direct, threaded)] == [(True, ""), (True, "3.0")]


def test_a_group_message_is_not_direct():
    assert read(said(channel="G1", channel_type="mpim")).direct is False


def test_a_mention_is_told_once_however_often_it_comes():
    words = "<@U0BOT> hello <@U2>"
    both = [read(said(words)), read(said(words, type="app_mention", channel_type=None))]
    assert [(each.event, each.mentioned, each.text) for each in both] == [("C1:9.1", True, "hello @Ben")] * 2
    assert read(said("hello <@U2>")).mentioned is False


def test_a_reply_to_us_is_one():
    ours, theirs = said(thread_ts="3.0", parent_user_id="U0BOT"), said(thread_ts="3.0", parent_user_id="U2")
    assert [read(each).replies for each in (ours, theirs, said())] == [True, False, False]


@pytest.mark.parametrize(
    "payload",
    [
        said(user="U0BOT"),
        said(bot_id="B0BOT"),
        said(user="U0BOT", bot_id="B0BOT", type="app_mention"),
        said(subtype="channel_join"),
        said(subtype="message_replied"),
        said(subtype="message_changed", message={"ts": "9.1", "user": "U0BOT", "text": "b", "edited": {"ts": "9.2"}},
             previous_message={"ts": "9.1", "user": "U0BOT", "text": "a"}),
        said(subtype="message_changed", message={"ts": "9.1", "user": "U1", "text": "a", "attachments": [{}]},
             previous_message={"ts": "9.1", "user": "U1", "text": "a"}),
        said(subtype="message_deleted", deleted_ts="9.1", previous_message={"user": "U0BOT", "ts": "9.1"}),
        said(ts=None),
        said(channel=7),
        said(user=None),
        {"type": "event_callback", "event": {"type": "assistant_thread_started", "assistant_thread": {}}},
        {"type": "event_callback", "event": {"type": "reaction_added"}},
        {"type": "event_callback", "event": "message"},
        {"type": "event_callback"},
        {},
    ],
)  # fmt: skip
def test_what_is_not_for_us_is_nothing(payload):
    assert READER.event(payload) is None


def test_another_bot_is_one():
    webhook = read(said(user=None, bot_id="B7", subtype="bot_message", text="", attachments=[{"fallback": "alarm"}]))
    assert (webhook.account, webhook.bot, webhook.text) == ("B7", True, "alarm")
    assert (read(said(user="U7", bot_id="B7")).bot, read(said()).bot) == (True, False)


def test_an_edit_names_what_it_replaces():
    before = {"ts": "9.1", "user": "U1", "text": "a"}
    after = {**before, "text": "b", "edited": {"user": "U1", "ts": "9.5"}, "thread_ts": "3.0"}
    edit = read(said(subtype="message_changed", ts="9.5", message=after, previous_message=before))
    assert (edit.event, edit.replaces, edit.text, edit.thread, edit.withdrawn) == (
        "C1:9.1:edited:9.5", "C1:9.1", "b", "3.0", False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "event",
    [
        {"subtype": "message_deleted", "deleted_ts": "9.1", "previous_message": {"user": "U1", "ts": "9.1"}},
        {"subtype": "message_changed", "message": {"subtype": "tombstone", "ts": "9.1"},
         "previous_message": {"user": "U1", "ts": "9.1", "text": "secret"}},
    ],
)  # fmt: skip
def test_what_is_deleted_is_withdrawn_without_its_words(event):
    gone = read(said(ts="9.7", **event))
    assert (gone.event, gone.replaces, gone.withdrawn, gone.text) == ("C1:9.1:deleted", "C1:9.1", True, "")


def test_somebody_of_another_workspace_is_nobody_of_ours_with_the_same_id():
    shared = {"is_ext_shared_channel": True}
    stranger, colleague = said(payload=shared, user_team="T2"), said(payload=shared, user_team="T1")
    grid = said(payload={**shared, "context_enterprise_id": "E1"}, user_team="E1")
    assert [read(each).account for each in (stranger, colleague, grid, said())] == ["U1@T2", "U1", "U1", "U1"]


def test_files_come_along_and_what_is_spoken_is_told():
    kept = {"id": "F1", "name": "a.png", "mimetype": "image/png", "size": 3, "url_private": "https://files.slack.com/a"}
    clip = {"id": "F2", "name": "b.m4a", "subtype": "slack_audio", "url_private": "https://files.slack.com/b"}
    drive = {"id": "F3", "mode": "external", "title": "Plan", "url_private": "https://docs.example/plan"}
    gone = {"id": "F4", "mode": "tombstone"}
    incoming = read(said("look", subtype="file_share", files=[kept, clip, drive, gone, "x"]))
    assert [json.loads(each)["name"] for each in incoming.files] == ["a.png", "b.m4a"]
    assert (incoming.voice, incoming.text) == (incoming.files[1:], "look\nPlan: https://docs.example/plan")


def test_what_somebody_passes_on_is_quoted():
    shared = {"is_share": True, "text": "the server is on fire &amp; smoking"}
    assert read(said("what now?", attachments=[shared, {"text": "unfolded"}])).quoted == (
        "the server is on fire & smoking"
    )


@pytest.mark.parametrize("words", ["/approve kiwi any", "!approve kiwi any", "/link 1234", "<@U0BOT> /new"])
@pytest.mark.parametrize("kind", ["is_share", "is_msg_unfurl", "is_app_unfurl"])
def test_what_somebody_else_has_written_is_no_command_of_whoever_passes_it_on(words, kind):
    passed_on = read(said("", attachments=[{kind: True, "text": words}]))
    titled = read(
        said("", files=[{"id": "F3", "mode": "external", "title": words, "url_private": "https://d.example"}])
    )
    by_bot = read(said("", user="U7", bot_id="B7", attachments=[{"is_share": True, "text": words}]))
    assert [command_in(each.text) for each in (passed_on, titled, by_bot)] == ["", "", ""]
    assert [each.text.partition("\n")[0] for each in (passed_on, titled, by_bot)] == ["[passed on]"] * 3
    assert [each.quoted for each in (passed_on, titled, by_bot)] == ["", "", ""]  # it stands in the text already
    own = read(said(words, attachments=[{kind: True, "text": "look"}]))
    assert command_in(own.text)


def pressed(action: str, value: str = "kiwi", **more: object) -> dict[str, object]:
    return {
        "type": "block_actions",
        "team": {"id": "T1"},
        "user": {"id": "U1", "username": "anna"},
        "channel": {"id": "C1"},
        "container": {"message_ts": "9.3", "thread_ts": "9.1"},
        "message": {"ts": "9.3"},
        "actions": [{"action_id": action, "value": value, "action_ts": "9.4"}],
        **more,
    }


def test_a_button_is_what_one_would_type():
    approve, deny = press(pressed("everloop_approve")), press(pressed("everloop_deny"))
    assert approve is not None
    assert deny is not None
    assert (approve.text, deny.text) == ("/approve kiwi", "/deny kiwi")
    assert (approve.chat, approve.thread, approve.account, approve.direct) == ("C1", "9.1", "U1", False)
    assert (approve.event, approve.mentioned) == ("C1:9.3:press:9.4:U1", True)


def test_a_button_that_a_stranger_has_pressed_is_not_one_of_ours_with_the_same_id():
    stranger = press(pressed("everloop_approve", user={"id": "U1", "team_id": "T2"}))
    assert stranger is not None
    assert stranger.account == "U1@T2"


def test_neither_is_one_who_presses_or_types_in_their_own_workspace_in_a_channel_that_is_shared():
    theirs = {"team": {"id": "T2"}, "user": {"id": "U1", "team_id": "T2"}}
    typed_there = {"text": "new", "channel_id": "C1", "user_id": "U1", "team_id": "T2", "trigger_id": "7"}
    accounts = [(press(pressed("everloop_approve", **theirs), ours), slash(typed_there, ours)) for ours in ("T1", "T2")]
    assert [[each and each.account for each in pair] for pair in accounts] == [["U1@T2", "U1@T2"], ["U1", "U1"]]
    assert slash({**typed_there, "enterprise_id": "E1"}, "T1").account == "U1"


@pytest.mark.parametrize("payload", [pressed("other"), pressed("everloop_approve", type="view_submission"), {}])
def test_any_other_button_is_nothing(payload):
    assert press(payload) is None


def test_a_slash_command_is_one_of_ours_or_something_to_say():
    payload = {"text": "new", "channel_id": "C1", "user_id": "U1", "team_id": "T1", "trigger_id": "7.8.9"}
    incoming = slash(payload)
    assert (incoming.event, incoming.text, incoming.chat, incoming.account, incoming.direct) == (
        "command:7.8.9", "/new", "C1", "U1", False,
    )  # fmt: skip
    assert slash({**payload, "channel_name": "directmessage"}).direct is True
    assert [typed(text) for text in ("new", "/new", "!new", "", "approve kiwi", "what is new?")] == [
        "/new", "/new", "/new", "/help", "/approve kiwi", "what is new?",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text, meant",
    [
        ("!new", "/new"),
        (" !model gpt", "/model gpt"),
        ("!approve kiwi no", "/approve kiwi no"),
        ("!important: read this", "!important: read this"),
        ("!newest", "!newest"),
        ("that is !new", "that is !new"),
        ("!", "!"),
    ],
)
def test_a_command_may_begin_with_an_exclamation_mark(text, meant):
    assert commanded(text) == meant


def test_what_we_say_of_commands_is_what_one_types_there():
    told = "Commands:\n/new — Start anew\n/approve [NAME]\n/etc is a folder, /new too\n/help"
    assert typable(told) == "Commands:\n!new — Start anew\n!approve [NAME]\n/etc is a folder, /new too\n!help"


def test_a_command_may_follow_our_name():
    assert read(said("<@U0BOT|everloop>, !new")).text == "/new"


@pytest.mark.parametrize(
    "text, shown",
    [
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<https://a.example/x>", "https://a.example/x"),
        ("<https://a.example/x|a.example/x>", "https://a.example/x"),
        ("<https://a.example/x|here>", "here (https://a.example/x)"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("<#C2|general> <#C3>", "#general #C3"),
        ("<!here> <!channel|channel> <!subteam^S1|@team> <!subteam^S1>", "@here channel @team @subteam"),
        ("<!date^1^{date}|yesterday>", "yesterday"),
        ("<@U2> <@U3> <@U4|dan>", "@Ben @U3 @dan"),
        ("a < b > c", "a < b > c"),
        ("<>", "<>"),
        ("<b>bold</b>", "<b>bold</b>"),
    ],
)
def test_what_people_write_is_read_as_they_see_it(text, shown):
    assert plain(text, {"U2": "Ben"}) == shown


def test_what_only_names_us_is_not_empty():
    assert read(said("<@U0BOT>")).text == "@U0BOT"


NAMES = [
    "type", "subtype", "event", "message", "previous_message", "user", "bot_id", "text", "ts", "channel", "files", "id",
    "attachments", "edited", "actions", "action_id", "container", "team", "thread_ts", "deleted_ts", "size", "mode",
]  # fmt: skip
WORDS = ["message", "message_changed", "message_deleted", "block_actions", "everloop_approve", "tombstone", "C1", "1.0"]
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=8),
    max_leaves=8,
)


KINDS = st.sampled_from([None, "message_changed", "message_deleted", "file_share", "bot_message"])
ALWAYS = {"type": st.just("message"), "channel": st.just("C1"), "ts": st.just("1.0"), "user": st.just("U1")}
EVENTS = st.fixed_dictionaries(
    {**ALWAYS, "subtype": KINDS},
    optional={name: ANYTHING for name in NAMES if name not in ALWAYS and name != "subtype"},
)
PRESSES = st.fixed_dictionaries(
    {"type": st.just("block_actions"), "actions": st.just([{"action_id": "everloop_approve"}])},
    optional=dict.fromkeys(("message", "container", "user", "team", "channel"), ANYTHING),
)


@given(EVENTS, PRESSES, ANYTHING)
def test_whatever_slack_says_ends_nothing(event, pressing, anything):
    """What raises would end the connection, and come again on the next one."""
    for each in ({"event": event}, {"event": anything}, pressing, anything if isinstance(anything, dict) else {}):
        READER.event(each)
        people_in(each)
        chat_of(each)
        press(each)
        slash(each)
