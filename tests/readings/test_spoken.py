"""Who says what in an entry, for every kind of entry there is."""

from typing import get_args

import apsw
import pytest

from everloop.core.log import (
    AgentTold,
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    CompactionAsked,
    Entry,
    GaveUp,
    ModelCalled,
    ModelChosen,
    ModelFailed,
    ModelSaid,
    Removed,
    Resumed,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
    encode,
)
from everloop.core.message import Media, Text, said
from everloop.core.prompt import Brought
from everloop.core.tool import ToolCall
from everloop.readings.spoken import COUNTED, Utterance, spoken
from everloop.store.conversations import IS_MESSAGE
from everloop.store.words import spoken_in

CALL = ToolCall("1", "look", '{"at":"it"}')
PICTURE = Media("0" * 64, "image/png", "cat.png", "owner")
SAID: list[tuple[Entry, Utterance, bool]] = [  # and whether it counts as a message
    (UserSaid(said("hi"), "ann"), Utterance("user", said("hi"), author="ann"), True),
    (
        UserSaid(said("hi"), "ann", brought=Brought(outside=True)),
        Utterance("user", said("hi"), author="ann", strange=True),
        True,
    ),
    (ModelSaid("yes"), Utterance("assistant", (Text("yes"),)), True),
    (ModelSaid("", (CALL,)), Utterance("assistant", (Text(""),), (CALL,)), False),
    (ModelSaid("I look", (CALL,)), Utterance("assistant", (Text("I look"),), (CALL,)), True),
    (CallReturned(3, 0, "seen"), Utterance("tool", (Text("seen"),)), False),
    (
        CallReturned(3, 0, "seen", origin="a page"),
        Utterance("tool", (Text("seen"),), origin="a page", strange=True),
        False,
    ),
    (GaveUp("broken", "sorry"), Utterance("house", (Text("sorry"),)), True),
    (AgentTold("lunch"), Utterance("assistant", (Text("lunch"),)), True),
    (AgentTold("lunch", outside=True), Utterance("assistant", (Text("lunch"),), strange=True), True),
]
SILENT: list[Entry] = [
    ModelCalled("m"),
    ModelFailed("Timeout", "too slow"),
    CallStarted(3, 0),
    Asked(3, 0),
    Answered(3, 0, "allowed"),
    ModelChosen("m"),
    Stopped("ann"),
    Resumed(),
    Compacted("short"),
    CompactionAsked(),
    Undoing("hi"),
    TakenBack(0),
    Removed(),
]


def kind(entry: Entry) -> str:
    tag = type(entry).__struct_config__.tag
    assert isinstance(tag, str)
    return tag


def test_every_kind_of_entry_is_here_and_those_that_say_something_are_in_the_table():
    assert {type(entry) for entry, _, _ in SAID} | {type(entry) for entry in SILENT} == set(get_args(Entry))
    assert {kind(entry) for entry, _, _ in SAID} == set(COUNTED)


@pytest.mark.parametrize(("entry", "uttered", "counts"), SAID)
def test_what_is_said_is_told_with_who_says_it(entry: Entry, uttered: Utterance, counts: bool):
    assert spoken(entry) == uttered


@pytest.mark.parametrize("entry", SILENT)
def test_of_other_entries_nothing_is_told(entry: Entry):
    assert spoken(entry) is None
    assert spoken_in(encode(entry).decode()) is None


def test_the_database_counts_the_same_messages():
    database = apsw.Connection(":memory:")

    def counted(entry: Entry) -> bool:
        [(found,)] = database.execute(f"SELECT {IS_MESSAGE} FROM (SELECT ? AS body) e", (encode(entry).decode(),))
        return bool(found)

    assert [counted(entry) for entry, _, _ in SAID] == [counts for _, _, counts in SAID]
    assert [counted(entry) for entry in SILENT] == [False] * len(SILENT)


def test_a_file_is_found_by_its_name_and_a_call_by_what_it_was_told():
    with_file = UserSaid((Text("see"), PICTURE), "ann")
    assert spoken_in(encode(with_file).decode()) == ("user", "see\ncat.png")
    assert spoken_in(encode(ModelSaid("", (CALL,))).decode()) == ("assistant", 'look {"at":"it"}')
    assert spoken_in(encode(GaveUp("broken", "sorry")).decode()) == ("assistant", "sorry")


def test_a_line_for_each_call_follows_the_text():
    assert Utterance("assistant", (Text("I look"),), (CALL, CALL)).with_calls("called ") == (
        'I look\ncalled look {"at":"it"}\ncalled look {"at":"it"}'
    )
    assert Utterance("assistant", (Text(""),), (CALL,)).with_calls() == 'look {"at":"it"}'
