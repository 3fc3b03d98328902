"""What becomes of what a model says is to be remembered: facts, lines, what they replace, and what bounds it."""

from everloop.memory.extraction import SavedFact, SavedMemory
from everloop.memory.learning import FULL, LONG, TITLE, MemoryState, change_for, learned, shorter
from everloop.ports.memory import HISTORY, MEMORY, Fact, FactEnd, FactSource, MemoryDocument

from .makers import answer, excerpt_of, person
from .remembering import NOON

SAID = excerpt_of(person("I move to Oslo on new year's day. I am a pilot."), *answer("Noted."))
ROME = Fact("f1", "Ann lives in Rome", FactSource("x", 1, "ann", 1.0), "Home")


def change(*facts: SavedFact, memory: str = "", known: tuple[Fact, ...] = (ROME,)):
    saved = SavedMemory("x", facts)
    state = MemoryState(MemoryDocument(MEMORY, memory, 3), MemoryDocument(HISTORY), known)
    return change_for(SAID, learned(saved, SAID, known, ()), "x", state, raw=False, redact=str)


def test_what_is_known_is_not_remembered_again():
    twice = change(SavedFact("ann lives in ROME!", 1), SavedFact("Ann flies", 1), SavedFact("ann  flies.", 1))
    assert [each.text for each in twice.facts] == ["Ann flies"]
    assert change(SavedFact("Ann flies", 1), memory="- Ann flies\n").facts == ()


def test_a_fact_takes_the_place_of_another_from_when_it_is_true_and_not_before():
    old = "# Memory\n\n## Home\n\n- Ann lives in Rome\n"
    now = change(SavedFact("Ann lives in Oslo", 1, "Home", since="2026-11-01", replaces=1), memory=old)
    assert [(end.id, end.until < NOON, end.replaced_by) for end in now.ended] == [("f1", True, now.facts[0].id)]
    assert now.documents[0].body == old.replace("Rome", "Oslo")
    later = change(SavedFact("Ann lives in Oslo", 1, "Home", since="2027-01-01", replaces=1), memory=old)
    assert (later.ended, [each.text for each in later.facts]) == ((), ["Ann lives in Oslo"])
    plain = change(SavedFact("Ann lives in Oslo", 1, "Home", replaces=1), memory=old)
    assert plain.ended == (FactEnd("f1", NOON + 1, plain.facts[0].id),)


def test_a_memory_that_is_full_grows_no_further_and_forgets_nothing():
    body = "# Memory\n" + "- x\n" * (FULL // 4)
    full = change(SavedFact("Ann is a pilot", 1, "Work"), memory=body)
    assert [(each.text, each.topic) for each in full.facts] == [("Ann is a pilot", "")]
    assert [each.name for each in full.documents] == [HISTORY]


def test_a_history_that_is_very_long_leaves_its_older_half_to_its_versions():
    line = "[2026-11-16 12:00] They talked. (page:one tttttttt)\n"
    long = TITLE + line * (LONG // len(line) + 1)
    cut = shorter(long)
    assert (cut.startswith(TITLE + line), len(cut) < LONG * 0.6, shorter(cut)) == (True, True, cut)
    assert {*cut.removeprefix(TITLE).splitlines(keepends=True)} == {line}
