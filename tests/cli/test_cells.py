"""How many cells a text takes, beside what others count."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyte import Screen, Stream
from tests.effort import examples
from wcwidth import wcswidth, wcwidth

from everloop.cli.cells import beginning, cells, fit_end, fitting, parts, width
from everloop.readings.visible import visible

FAMILY, HEART, FLAG, WAVE = "👩‍👩‍👧", "❤️", "🇫🇷", "👋🏽"
LETTERS = st.sampled_from(
    [*"ab 日本é한", "e\u0301", FAMILY, HEART, FLAG, WAVE, "ש", "ن", "नि", "\u200d", "ﬁ", "…", "│"]
)
TEXTS = st.lists(LETTERS, max_size=30).map("".join)


@pytest.mark.parametrize(
    "text, expected",
    [("abc", 3), ("日本", 4), ("e\u0301", 1), ("한글", 4), ("שלום", 4), (HEART, 2), (FLAG, 4), (WAVE, 4), (FAMILY, 6),
     ("１", 2), ("…│•☐", 4), ("1️⃣", 2), ("", 0)],
)  # fmt: skip
def test_cells_of_a_text(text: str, expected: int):
    assert cells(text) == expected


def test_each_letter_takes_what_wcwidth_says():
    """But for what this Python does not know, what only joins, and two letters without a sign."""
    known = [
        letter
        for letter in map(chr, range(0x20, 0x30000))
        if unicodedata.category(letter) not in ("Cn", "Co", "Cs", "Cc", "Mc", "Cf") and visible(letter) == letter
    ]
    assert len(known) > 100_000
    assert [letter for letter in known if width(letter) != wcwidth(letter)] == ["\u3164", "\uffa0"]


@given(TEXTS)
@examples(200)
def test_no_text_takes_more_than_is_counted(text: str):
    assert cells(text) >= wcswidth(text)
    screen = Screen(200, 2)
    Stream(screen).feed(text)
    assert cells(text) >= screen.cursor.x


@given(TEXTS, st.integers(2, 12), st.integers(0, 12))
@examples(200)
def test_parts_are_all_of_a_text_and_fit(text: str, room: int, first: int):
    whole = list(parts(text, room, min(first, room)))
    assert "".join(whole) == text
    longest = max(map(cells, [FAMILY, FLAG, WAVE]))
    assert all(cells(part) <= max(room, longest) for part in whole)
    assert cells(text[: fit_end(text, room)]) <= room
    assert cells(beginning(text, room)) <= room or room < 1
    assert cells(fitting(text, room)) <= room + text.count("\ufe0f")


def test_nothing_that_people_see_as_one_is_cut():
    assert list(parts(f"a{FAMILY}b{FLAG}c", 6)) == ["a", FAMILY, f"b{FLAG}c"]
    assert list(parts("ee\u0301e\u0301", 2)) == ["ee\u0301", "e\u0301"]
