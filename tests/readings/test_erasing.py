"""Of what an erased person said nothing is left in the log of others, whatever kind of entry it stands in; the places
and where the conversation stands are as they were."""

from typing import Any, get_args

import msgspec
from msgspec import inspect

from everloop.core import log
from everloop.core.log import (
    AgentTold,
    Answered,
    Asked,
    CallReturned,
    CallStarted,
    Compacted,
    Entry,
    GaveUp,
    ModelCalled,
    ModelChosen,
    ModelSaid,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
)
from everloop.core.message import Media, Text, said
from everloop.core.people import ERASED
from everloop.core.thread import Thread
from everloop.core.tool import FileChange, ToolCall
from everloop.ports.conversation import Written
from everloop.readings.erasing import NOT_RUN, blanked_log, names, unnamed
from everloop.readings.spoken import BLANK, blanked

CANARY = "canary"
ANNA, BEN = "fake:anna", "fake:ben"


def filled(kind: Any) -> Any:
    """A value of this type, as JSON has it, with the canary in every text."""
    match kind:
        case inspect.StrType() | inspect.RawType():
            return CANARY
        case inspect.IntType():
            return 1
        case inspect.FloatType():
            return 1.0
        case inspect.BoolType():
            return True
        case inspect.LiteralType(values=values):
            return values[-1]
        case inspect.UnionType(types=types):
            return filled(next(each for each in types if not isinstance(each, inspect.NoneType)))
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            return [filled(item)]
        case inspect.TupleType(item_types=items):
            return [filled(each) for each in items]
        case inspect.DictType(value_type=value):
            return {CANARY: filled(value)}
        case inspect.StructType(fields=fields, tag_field=tag_field, tag=tag):
            told = {each.encode_name: filled(each.type) for each in fields}
            return {tag_field: tag, **told} if tag_field else told
        case _:
            return {}


def places_of(value: Any, above: str = "") -> set[str]:
    """Where the canary stands."""
    match value:
        case str():
            return {above} if CANARY in value else set()
        case list():
            return {place for each in value for place in places_of(each, above)}
        case dict():
            return {
                place
                for key, each in value.items()
                for place in places_of(each, f"{above}.{key}" if above else key) | places_of(key, above)
            }
        case _:
            return set()


# What may stay: who has asked (which `unnamed` takes out), where, which model and tool; never what was said. A field
# that is added to an entry and holds what somebody said has to be blanked in readings/spoken.py, or this fails.
STAYS = {
    "user_said": {
        *("author", "address", "payer", "principal", "source", "terms", "server"),
        *("before.answers", "before.calls.id", "before.calls.name"),  # of what a client brings, into its own place
    },
    "model_called": {"model", "prefix"},
    "model_said": {"calls.id", "calls.name", "model"},
    "model_failed": {"error"},
    "call_returned": {"background"},
    "asked": {"definition"},
    "answered": {"by"},
    "model_chosen": {"model", "by"},
    "persona_chosen": {"persona", "by"},
    "stopped": {"by"},
    "resumed": {"after"},
    "gave_up": {"reason", "error"},
    "compaction_asked": {"by", "payer"},
    "undoing": {"whose", "by", "address", "terms"},
    "agent_told": {"address", "by"},
}


def test_every_kind_of_entry_keeps_its_place_and_nothing_that_was_said():
    stays, before = {}, {}
    for kind in get_args(Entry):
        entry = msgspec.json.decode(msgspec.json.encode(filled(inspect.type_info(kind))), type=kind)
        name = str(kind.__struct_config__.tag)
        before[name] = places_of(plain(entry))
        if name == "compacted":
            continue  # with a log around it: see below
        after = plain(blanked(entry))
        assert after["kind"] == name
        if found := {"terms" if place.startswith("terms") else place for place in places_of(after)}:
            stays[name] = found
    assert stays == STAYS
    assert before["user_said"] > {"parts.text", "before.parts.text", "brought.instructions", "author"}


def plain(entry: Entry) -> Any:
    return msgspec.json.decode(log.encode(entry))


def written(*entries: Entry) -> list[Written]:
    return [Written(seq, float(seq), entry) for seq, entry in enumerate(entries, 1)]


def kept_of(*entries: Entry) -> tuple[list[Entry], Any]:
    changed, blanking = blanked_log(written(*entries), {ANNA})
    return [changed.get(seq, entry) for seq, entry in enumerate(entries, 1)], blanking


def test_who_is_named_as_a_whole_value_is_named_no_more_and_a_sentence_stays():
    entry = UserSaid((Text(f'ask "{ANNA}" or {ANNA}2'), Media("file:1", "a/b", "x", ANNA)), BEN, principal=ANNA)
    body = log.encode(entry).decode()
    assert (names(body, [ANNA]), names(body, [BEN]), names(body, ["fake:ann"])) == (True, True, False)
    expected = UserSaid((entry.parts[0], Media("file:1", "a/b", "x", ERASED)), BEN, principal=ERASED)
    assert unnamed(entry, {ANNA}) == expected
    assert not names(log.encode(expected).decode(), [ANNA])


def test_what_others_said_and_did_stays_word_for_word():
    others = [
        UserSaid(said("hello"), BEN, "fake:room"),
        ModelCalled("m", tail="who"),
        ModelSaid("", (ToolCall("1", "exec", '{"a": 1}'),)),
        Asked(3, 0, "digest"),
        Answered(3, 0, "allowed", ANNA),
        CallStarted(3, 0),
        CallReturned(3, 0, "result", file="file:2"),
        ModelCalled("m"),
        ModelSaid("done"),
    ]
    kept, blanking = kept_of(*others)
    assert kept == [*others[:4], Answered(3, 0, "allowed", ERASED), *others[5:]]
    assert (blanking.touched, blanking.is_theirs) == (set(), False)


def test_an_open_turn_of_theirs_ends_and_one_of_others_goes_on():
    asks = [
        ModelCalled("m"),
        ModelSaid("wait", (ToolCall("1", "exec", "{}"), ToolCall("2", "exec", "{}"))),
        Asked(3, 0),
    ]
    kept, blanking = kept_of(UserSaid(said("canary"), ANNA, "fake:room"), *asks)
    assert blanking.is_theirs
    *ends, last = blanking.closing()
    assert ends == [
        CallReturned(3, 0, NOT_RUN, "cancelled"),
        CallReturned(3, 1, NOT_RUN, "cancelled"),
        Stopped(ERASED),
    ]
    assert isinstance(last, Compacted)
    thread = Thread.of(*kept, *ends, last)
    assert (thread.rests, CANARY in str(thread.transcript.messages)) == (True, False)
    _, blanking = kept_of(
        UserSaid(said("canary"), ANNA, "fake:room"),
        *(ModelCalled("m"), ModelSaid("canary")),
        *(UserSaid(said("hello"), BEN, "fake:room"), ModelCalled("m"), ModelSaid("", (ToolCall("1", "exec", "{}"),))),
        Asked(6, 0),
    )
    assert (blanking.is_theirs, blanking.closing()) == (False, [])  # it waits for an answer, and nobody remembers it


def test_what_they_had_told_elsewhere_and_taken_back_is_blank():
    change = FileChange("canary.txt", "file:1", "gone")
    kept, _ = kept_of(
        AgentTold("canary", (Media("file:1", "a/b", "canary"),), "page:one", "fake:anna", ANNA),
        Undoing("canary", (change,), ("canary",), "", ANNA, "page:one"),
        TakenBack(0, "canary"),
        GaveUp("empty", "canary"),
        ModelChosen("m", ANNA),
    )
    assert CANARY not in str(kept)
    assert ANNA not in str(kept)
    assert kept[0] == AgentTold(BLANK, (), "page:one", ERASED, ERASED)
    assert kept[-1] == ModelChosen("m", ERASED)
