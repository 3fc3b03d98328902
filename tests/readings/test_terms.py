"""The terms by which facts are found: the same for a fact and for what asks for it, however both are written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.readings.words import stem, terms_of


@pytest.mark.parametrize(
    ("fact", "asked"),
    [
        ("Erik moved to Oslo", "When is Erik moving?"),
        ("The parties are planned", "a party plan"),
        ("Call +47 912 34 567", "91234567"),
        ("Her number is 22 38 11 90", "2238-1190?"),
        ("Frame WTU 882 164 K", "wtu882164k"),
        ("The tender OK-2026/0882", "ok20260882"),
        ("Plate EV 48213", "ev48213"),
        ("It is on 13 December", "2026-12-13"),
        ("Due December 13", "the 13th of December"),
        ("Café Größe", "cafe grosse"),
    ],
)
def test_a_fact_shares_a_term_with_what_asks_for_it(fact: str, asked: str):
    rare = set(terms_of(fact)) & set(terms_of(asked)) - {"number", "erik"}
    assert rare


@pytest.mark.parametrize(
    ("word", "left"),
    [
        ("moving", "mov"),
        ("moves", "mov"),
        ("running", "run"),
        ("glasses", "glass"),
        ("glass", "glass"),
        ("bus", "bus"),
        ("spring", "spring"),
        ("2026s", "2026s"),
        ("ünited", "ünited"),
    ],
)
def test_endings_go_where_something_is_left(word: str, left: str):
    assert stem(word) == left


def test_what_only_looks_like_a_date_or_a_code_is_none():
    assert terms_of("12 mayors, marta 5, on 13") == ["12", "mayor", "marta", "5", "13"]
    assert terms_of("2026-13-40")[:3] == ["2026", "13", "40"]


@given(st.text(max_size=300))
def test_any_text_has_terms_and_the_same_each_time(text: str):
    terms = terms_of(text)
    assert terms == terms_of(text)
    assert len(terms) == len(set(terms))
