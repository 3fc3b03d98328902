"""The sections of the system prompt: their order, and how they shrink."""

from hypothesis import given
from hypothesis import strategies as st

from everloop.core.prompt import Section
from everloop.readings.sections import BETWEEN, BOOTSTRAP, ORDER, cut, joined, shrunk
from tests.effort import examples

WHO = Section("identity", "You are it.")
AGENTS = Section("agents.md", "Work well. " * 100, "AGENTS.md")
USER = Section("user.md", "Ann.", "USER.md")


def test_the_sections_stand_in_one_order_whatever_order_they_come_in():
    given_in = [Section(name, name) for name in reversed(ORDER)]
    assert joined(given_in).split(BETWEEN) == [
        *("identity", "persona", "agents.md", "soul.md", "user.md", "tools.md", "identity.md"),
        *("memory", "active_skills", "skills", "client"),
    ]


def test_a_section_that_says_nothing_costs_nothing():
    assert joined([WHO, Section("memory", "")]) == "You are it."


def test_what_is_cut_says_so_and_where_the_rest_is():
    assert cut(AGENTS, 80).text == "Work well. Work well. Work well. Work\n[… cut here; the rest is in AGENTS.md]"
    assert cut(USER, 4) == USER


def test_short_sections_stay_whole_and_long_ones_are_cut_to_the_same_length():
    other = Section("soul.md", "Sing. " * 200, "SOUL.md")
    small = shrunk((AGENTS, other, USER), 600)
    assert [section.name for section in small] == ["agents.md", "soul.md", "user.md"]
    assert small[2] == USER
    assert all("cut here" in section.text and len(section.text) > 200 for section in small[:2])


def test_where_there_is_hardly_any_room_the_longest_go_and_a_short_note_stays():
    assert shrunk((AGENTS, USER), 60) == (USER,)
    assert shrunk((AGENTS, USER), -5) == ()


@examples(100)
@given(
    texts=st.lists(st.text(min_size=1, max_size=400), max_size=len(BOOTSTRAP)),
    room=st.integers(-10, 2000),
)
def test_what_has_shrunk_fits(texts: list[str], room: int):
    sections = tuple(Section(name, text, name.upper()) for name, text in zip(BOOTSTRAP, texts, strict=False))
    small = shrunk(sections, room)
    assert sum(len(section.text) + len(BETWEEN) for section in small) <= max(0, room)
    if sum(len(section.text) + len(BETWEEN) for section in sections) <= room:
        assert small == sections
