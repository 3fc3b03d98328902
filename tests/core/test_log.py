import msgspec
import pytest

from everloop.core import log
from everloop.core.message import Media, Message, Opaque, said
from everloop.core.prompt import Usage
from everloop.core.tool import FileChange
from everloop.errors import StoreNewer
from tests.core.makers import call, spoke

EVERY_KIND = [
    spoke(),
    log.ModelCalled("m", "tail", True, "model:1 system:2 tools:3"),
    log.ModelSaid("hi", (call("look"),), Usage(1, 2, 3, 4, 5), "calls", "m", "hm", (), 0.5),
    log.ModelFailed("key", "refused"),
    log.CallStarted(3, 0),
    log.CallReturned(3, 0, "text", "unknown", "file:abc"),
    log.Asked(3, 0),
    log.CompactionAsked("ann"),
    log.Answered(3, 0, "allowed", "ann"),
    log.ModelChosen("anthropic/claude-x", "ann"),
    log.PersonaChosen("support", "ann"),
    log.Stopped("ann"),
    log.Resumed("1-2-3"),
    log.GaveUp("key", "sorry", "e1"),
    log.Compacted(
        *("so far", (Message("user", said("hi")),)),
        log.Standing(1, True, "ann", "cli:direct", 2, (1,), "fast", "model:1 system:2 tools:3"),
    ),
    log.Undoing("hi", (FileChange("a.md", "new", "0123"),), ("exec {}",), "ann", "ann", "cli:direct", 4),
    log.TakenBack(0, "somebody has changed it since"),
    log.AgentTold("lunch", (Media("file:ab", "text/plain", "a.md", "ann"),), "cli:direct", "api:work", "ann", True, 4),
    log.Removed(),
]


def test_the_examples_hold_every_kind_of_entry():
    assert {type(entry) for entry in EVERY_KIND} == set(log.Entry.__args__)


@pytest.mark.parametrize("entry", EVERY_KIND, ids=lambda entry: type(entry).__name__)
def test_an_entry_comes_back_as_it_was_stored(entry):
    assert log.decode(log.encode(entry)) == entry


def test_the_stored_form_is_json_that_a_person_can_read():
    assert log.encode(spoke("grüß dich")).decode() == (
        '{"kind":"user_said","parts":[{"type":"text","text":"grüß dich"}],'
        '"author":"ann","address":"cli:direct","mail":1}'
    )


def test_an_opaque_block_is_kept_to_the_byte():
    block = b'{"b":1,  "a":[1.0, 2e3]}'
    entry = log.ModelSaid("x", opaque=(Opaque("anthropic", msgspec.Raw(block)),))
    back = log.decode(log.encode(entry))
    assert bytes(back.opaque[0].block) == block


def test_an_entry_of_a_newer_everloop_is_refused():
    with pytest.raises(StoreNewer, match="newer everloop"):
        log.decode(b'{"kind":"stopped","by":"ann","v":2}')


def test_an_older_entry_is_brought_up_to_date():
    upcasts = {0: lambda plain: {**plain, "by": plain.pop("who")}}
    log.UPCASTS.update(upcasts)
    try:
        assert log.decode(b'{"kind":"stopped","who":"ann","v":0}') == log.Stopped("ann")
    finally:
        log.UPCASTS.clear()
