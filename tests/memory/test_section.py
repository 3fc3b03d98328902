"""MEMORY.md in prompts: all of it where there is room, else what matters."""

from everloop.core.prompt import Section
from everloop.memory.section import ALLOWANCE, memory_section
from everloop.ports.memory import Fact
from everloop.readings.sections import cut, left_out_of, shrunk

BODY = "# Memory\n\nWe are four.\n\n## Ann\n\n- lives in Rome\n- likes tea\n\n## Work\n\n- ships on Fridays\n"
LONG = "ships on Fridays" + " and on Mondays" * 10
FACTS = [
    Fact("f1", "lives in Rome", topic="Ann", importance=5, at=1.0),
    Fact("f2", "likes tea", topic="Ann", importance=2, at=2.0),
    Fact("f3", "ships on Fridays", topic="Work", importance=2, at=1.0),
]


def told(body: str, facts: list[Fact], allowance: int = ALLOWANCE) -> Section:
    section = memory_section(body, facts, allowance)
    assert section
    return section


def test_a_short_memory_is_told_as_it_is_written():
    section = told(BODY, FACTS)
    assert section.text.endswith(BODY.removeprefix("# Memory\n").strip())
    assert (section.name, left_out_of(section)) == ("memory", 0)
    assert "What people say now wins." in section.text.split("\n\n")[1]


def test_where_it_is_too_long_what_matters_least_goes_first_then_the_oldest():
    body = BODY.replace("ships on Fridays", LONG)
    facts = [*FACTS[:2], Fact("f3", LONG, topic="Work", importance=2, at=1.0)]
    shorter = told(body, facts, len(told(body, facts).text) - 1)
    assert LONG not in shorter.text
    assert "## Work" not in shorter.text  # which has nothing under it
    assert "likes tea" in shorter.text
    assert left_out_of(shorter) == 1
    least = cut(shorter, len(shorter.text) - 1)
    assert ("lives in Rome" in least.text, "likes tea" in least.text, left_out_of(least)) == (True, False, 2)
    assert least.text.count("left out here") == 1


def test_a_small_model_is_told_a_few_lines_of_it():
    body = "# Memory\n\n## All\n\n" + "".join(f"- fact number {number}\n" for number in range(200))
    facts = [Fact(f"f{n}", f"fact number {n}", topic="All", importance=5 if n == 7 else 3, at=n) for n in range(200)]
    section = told(body, facts)
    assert len(section.text) <= ALLOWANCE
    [small] = shrunk([section], 600)
    assert len(small.text) <= 600
    assert "- fact number 7\n" in small.text
    assert "- fact number 199\n" in small.text  # the newest
    assert "- fact number 0\n" not in small.text


def test_the_embedded_model_is_told_only_what_matters_most():
    [small] = shrunk([told(BODY, FACTS)], 150)
    assert small.text == "We are four.\n- lives in Rome\n- likes tea\n- ships on Fridays"
    assert cut(told(BODY, FACTS), 20).text == "- lives in Rome"


def test_nothing_is_told_of_an_empty_memory():
    assert memory_section("", []) is None
    assert memory_section("# Memory\n\n", []) is None


def test_a_line_that_no_fact_stands_for_is_as_usual_and_prose_stays_longer():
    body = f"# Memory\n\nPlain words.\n\n- of nobody {LONG}\n- matters\n"
    facts = [Fact("f", "matters", topic="Memory", importance=5)]
    assert "of nobody" not in told(body, facts, len(told(body, facts).text) - 1).text
    assert "Plain words." in told(body, facts, len(told(body, facts).text) - 1).text
