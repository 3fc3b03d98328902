"""Recall by words and by meaning together is better than each alone, and than rank fusion, on questions that it was not
tuned on (bench/recall.py prints all of it)."""

import asyncio

import pytest
from bench.recall import Evaluation, evaluation

from everloop.memory.built_in import MISSING, is_installed
from everloop.memory.ranking import TOLD
from tests.memory.evaluation import NEGATIVE, facts, questions
from tests.store.conftest import cannot

HELD_OUT = [question for question in questions() if question.held_out]


@pytest.fixture(scope="module")
def made() -> Evaluation:
    if not is_installed():
        cannot(MISSING)
    return asyncio.run(evaluation(HELD_OUT))


def test_every_question_is_answered_by_facts_that_are_true_and_half_of_them_are_held_out():
    known = {fact.id for fact in facts() if not fact.until}
    asked = [question for question in questions() if question.kind != NEGATIVE]
    assert all(question.right and question.right <= known for question in asked)
    assert len(asked) >= 150
    assert len(known) >= 300
    assert sum(question.held_out for question in asked) * 2 == len(asked)


def test_both_together_are_better_than_each_alone_and_than_rank_fusion(made: Evaluation):
    words, vectors = made.score(made.words, HELD_OUT), made.score(made.vectors, HELD_OUT)
    fused, both = made.score(made.fused, HELD_OUT), made.score(made.both, HELD_OUT)
    for other in (words, vectors, fused):
        assert both.first > other.first
        assert both.five > other.five
    assert (both.first >= 0.7, both.five >= 0.85) == (True, True)


def test_what_nobody_has_looked_for_is_told_seldom_where_nothing_is_meant(made: Evaluation):
    told, untold = made.score(made.both, HELD_OUT, TOLD), made.score(made.both, HELD_OUT)
    assert (told.false <= 0.35, untold.false) == (True, 1.0)
    assert told.five >= 0.75
