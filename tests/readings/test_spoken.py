"""Who says what in an entry, for every kind of entry there is."""

from pathlib import Path
from typing import get_args

import apsw
import pytest
from bench.house import House

import everloop
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
    PersonaChosen,
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
from everloop.readings.spoken import COUNTED, KINDS, Utterance, spoken
from everloop.store.conversations import IS_MESSAGE
from everloop.store.words import spoken_in

CALL = ToolCall("1", "look", '{"at":"it"}')
PICTURE = Media("0" * 64, "image/png", "cat.png", "owner")
MADE = Media("1" * 64, "text/csv", "a.csv", "owner")
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
    (
        CallReturned(3, 0, "seen", file="ff", media=(PICTURE,), made=(MADE,)),
        Utterance("tool", (Text("seen"),), beside=(MADE, PICTURE, Media("ff", "text/plain", "result.txt"))),
        False,
    ),
    (GaveUp("broken", "sorry"), Utterance("house", (Text("sorry"),)), True),
    (GaveUp("broken", "sorry", cut="hal"), Utterance("house", (Text("hal\n\n[sorry]"),)), True),
    (Stopped("ann", "hal"), Utterance("assistant", (Text("hal"),)), False),
    (AgentTold("lunch"), Utterance("assistant", (Text("lunch"),)), True),
    (AgentTold("lunch", (PICTURE,)), Utterance("assistant", (Text("lunch"),), beside=(PICTURE,)), True),
    (AgentTold("lunch", outside=True), Utterance("assistant", (Text("lunch"),), strange=True), True),
]
SILENT: list[Entry] = [
    ModelCalled("m"),
    ModelFailed("Timeout", "too slow"),
    CallStarted(3, 0),
    Asked(3, 0),
    Answered(3, 0, "allowed"),
    ModelChosen("m"),
    PersonaChosen("p"),
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
    assert set(KINDS) == set(get_args(Entry))


def test_what_is_said_to_be_at_a_new_address_has_an_address_and_a_letter():
    readdressed = [each for each, traits in KINDS.items() if traits.branched == "readdressed"]
    assert [{"mail", "address"} <= set(each.__struct_fields__) for each in readdressed] == [True, True]


def test_nobody_tells_the_kinds_apart_but_the_fold_and_this_table_and_they_know_all():
    """Who cares for a few kinds asks with isinstance, or a reading: a new kind is nothing to them. So the checker names
    all that a new kind concerns (docs/log.md, "Adding an entry"). tests/test_walks.py shows that an open match is seen.
    """
    house = House(Path(everloop.__file__).parents[2])
    assert house.matches == {"core/thread.py": [True], "readings/spoken.py": [True, True]}


def test_files_are_those_that_came_with_it_and_those_that_it_tells_of():
    with_text = UserSaid((Text("see"), PICTURE, Text("[a.txt, kept as file:0123456789ab]\nhi", "a file")), "ann")
    said = spoken(with_text)
    assert said
    assert said.files == (PICTURE, Media("file:0123456789ab", "", "a.txt", "ann"))
    in_a_group = spoken(UserSaid(with_text.parts, "ann", principal="chat:x/y"))
    assert in_a_group
    assert in_a_group.files == (PICTURE, Media("file:0123456789ab", "", "a.txt", "chat:x/y"))
    told = spoken(CallReturned(3, 0, "[a.txt, kept as file:0123456789ab]", made=(MADE,)))
    assert told
    assert told.files == (MADE,)  # a result that looks like a file is none


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
