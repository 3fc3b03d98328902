"""A person changes MEMORY.md: facts follow its lines."""

from itertools import count

from everloop.memory.editing import Followed, followed
from everloop.ports.memory import Fact, FactEnd, FactSource

OLD = "# Memory\n\n## Ann\n\n- lives in Rome\n- likes tea\n"
ROME = Fact("f1", "lives in Rome", FactSource("t", 3, "ann", 1.0), "Ann", 5)
TEA = Fact("f2", "likes tea", topic="Ann")


def follow(before: str, after: str, *known: Fact) -> Followed:
    numbers = count(1)
    return followed(before, after, known, person="ann", now=9.0, new_id=lambda: f"n{next(numbers)}")


def by_hand(id: str, text: str, topic: str) -> Fact:
    return Fact(id, text, FactSource(person="ann", at=9.0), topic)


def test_a_line_that_is_gone_ends_its_fact_and_a_new_one_is_a_fact():
    after = OLD.replace("- likes tea\n", "") + "\n## Work\n\n- ships on Fridays\n"
    assert follow(OLD, after, ROME, TEA) == Followed(
        (by_hand("n1", "ships on Fridays", "Work"),), (FactEnd("f2", 9.0),)
    )


def test_a_line_that_says_it_in_other_words_replaces_the_fact():
    told = follow(OLD, OLD.replace("Rome", "Oslo"), ROME, TEA)
    assert told == Followed((by_hand("n1", "lives in Oslo", "Ann"),), (FactEnd("f1", 9.0, "n1"),))


def test_a_line_that_comes_back_is_the_fact_that_it_was():
    ended = Fact("f2", "likes tea", topic="Ann", until=5.0)
    assert follow(OLD.replace("- likes tea\n", ""), OLD, ROME, ended) == Followed((), (FactEnd("f2", 0.0),))


def test_what_only_stands_elsewhere_stays_the_same_fact_under_another_heading():
    after = "# Memory\n\n## Ann\n\n- likes tea\n\n## Places\n\n- lives in Rome\n"
    moved = Fact("f1", "lives in Rome", ROME.source, "Places", 5)
    assert follow(OLD, after, ROME, TEA) == Followed((moved,))


def test_prose_and_headings_are_no_facts_and_a_bullet_without_a_heading_has_one():
    assert follow("", "# Notes\n\nWe are four.\n") == Followed()
    assert follow("", "- likes tea\n") == Followed((by_hand("n1", "likes tea", "Memory"),))


def test_what_strangers_said_becomes_the_persons_own_when_they_write_it():
    strangers = Fact("f3", "likes tea", marked=True)
    assert follow("", "## Ann\n- likes tea\n", strangers) == Followed((by_hand("n1", "likes tea", "Ann"),))


def test_a_fact_that_did_not_stand_there_does_now():
    found = Fact("f3", "likes tea", ROME.source)
    stands = Fact("f3", "likes tea", ROME.source, "Ann")
    assert follow("", "## Ann\n- likes tea\n", found) == Followed((stands,))


def test_a_line_that_stands_twice_is_one_fact_until_both_are_gone():
    twice = OLD + "- likes tea\n"
    assert follow(OLD, twice, ROME, TEA) == Followed()
    assert follow(twice, OLD, ROME, TEA) == Followed()
    assert follow(twice, OLD.replace("- likes tea\n", ""), ROME, TEA) == Followed((), (FactEnd("f2", 9.0),))


def test_a_document_that_is_written_anew_is_followed_line_by_line():
    old = "## All\n" + "".join(f"- old {number}\n" for number in range(5000))
    new = "## All\n" + "".join(f"- new {number}\n" for number in range(5000))
    known = [Fact(f"o{number}", f"old {number}", topic="All") for number in range(5000)]
    told = follow(old, new, *known)
    assert (len(told.facts), len(told.ended), {end.replaced_by for end in told.ended}) == (5000, 5000, {""})
