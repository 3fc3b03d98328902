"""How many tokens a message is, before the host has counted them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.core.gauge import IMAGE, Gauge, rough
from everloop.core.log import Compacted, ModelSaid
from everloop.core.message import Media, Message, Text, said
from everloop.core.prompt import Usage
from everloop.core.thread import Thread
from everloop.core.wording import HEAD
from tests.core.makers import CALLED, call, spoke
from tests.effort import examples


def message(tokens: int) -> Message:
    """One whose rough size is this."""
    made = Message("user", said("x" * (3 * (tokens - 5))))
    assert rough(made) == tokens
    return made


class Host:
    """Counts what it is shown, `factor` tokens for each that we estimate, with `system` before all of it."""

    def __init__(self, gauge: Gauge, factor: float, model: str = "m", system: int = 2000) -> None:
        self.gauge = gauge
        self.factor = factor
        self.model = model
        self.read = float(system)

    def hear(self, tokens: int) -> int:
        """What we think that a message of this rough size is."""
        self.read += tokens * self.factor
        return self.gauge.estimate(message(tokens))

    def report(self) -> None:
        self.gauge.correct(self.model, Usage(int(self.read), 10))


def test_an_estimate_is_three_characters_a_token_and_a_little_for_the_frame():
    assert Gauge().estimate(Message("user", said("x" * 300))) == 105
    assert rough(Message("assistant", calls=(call("look", '{"a": 1}'),))) == 5 + 4
    seen = Message("user", (Text("abc"), Media("f", "image/png")))
    assert rough(seen) == len(seen.text) // 3 + 5 + IMAGE


FACTORS = st.floats(0.4, 3.0)
SIZES = st.lists(st.integers(300, 5000), min_size=8, max_size=20)


@examples(100)
@given(factor=FACTORS, sizes=SIZES)
def test_estimates_come_to_be_what_the_host_counts(factor, sizes):
    gauge = Gauge()
    host = Host(gauge, factor)
    for size in sizes:
        host.hear(size)
        host.report()
    assert gauge.estimate(message(3000)) == pytest.approx(3000 * factor, rel=0.01, abs=2)


@examples(100)
@given(first=FACTORS, then=FACTORS, sizes=SIZES)
def test_what_a_conversation_turns_to_is_learned_anew(first, then, sizes):
    """From a program to Chinese, say."""
    gauge = Gauge()
    host = Host(gauge, first)
    for factor in (first, then):
        host.factor = factor
        for size in sizes:
            host.hear(size)
            host.report()
    assert gauge.estimate(message(3000)) == pytest.approx(3000 * then, rel=0.05, abs=2)


@pytest.mark.parametrize(("factor", "believed"), [(0.0, 1.0), (0.01, 0.4), (50.0, 3.0)])
def test_what_cannot_be_is_not_believed(factor, believed):
    """A host may count something of its own, or nothing."""
    gauge = Gauge()
    host = Host(gauge, factor)
    for _ in range(5):
        host.hear(1000)
        host.report()
    assert gauge.estimate(message(1000)) == int(1000 * believed)


def test_the_first_report_teaches_nothing_because_it_counts_what_we_have_not_said():
    gauge = Gauge()
    host = Host(gauge, 2.0)
    host.hear(1000)
    host.report()
    assert host.hear(1000) == 1000
    host.report()
    assert host.hear(1000) == 2000


def test_a_few_words_teach_nothing():
    gauge = Gauge()
    host = Host(gauge, 2.0)
    for _ in range(10):
        host.hear(200)
        host.report()
    assert host.hear(1000) == 1000


def test_each_model_counts_in_its_own_way():
    gauge = Gauge()
    one, other = Host(gauge, 2.0, "one"), Host(gauge, 0.5, "other")
    for host in (one, other):
        for _ in range(3):
            host.hear(1000)
            host.report()
    assert gauge.estimate(message(1000)) == 500
    one.report()
    assert gauge.estimate(message(1000)) == 2000


def test_a_change_of_the_model_teaches_nothing_about_either():
    gauge = Gauge()
    one = Host(gauge, 1.0, "one")
    for _ in range(3):
        one.hear(1000)
        one.report()
    gauge.estimate(message(1000))
    gauge.correct("other", Usage(90_000, 1))
    assert gauge.estimate(message(1000)) == 1000


def test_after_a_compaction_the_counts_begin_again_and_what_was_learned_stays():
    gauge = Gauge()
    host = Host(gauge, 2.0)
    for _ in range(3):
        host.hear(1000)
        host.report()
    gauge.start_again()
    gauge.estimate(message(1000))
    gauge.correct("m", Usage(3000, 1))  # of the summary, with all that stands before it
    assert gauge.estimate(message(1000)) == 2000


def said_by(model: str, read: int, text: str = "ok") -> ModelSaid:
    return ModelSaid(text, usage=Usage(read, 10), model=model)


def test_a_thread_measures_with_it():
    long = "x" * 2985  # 1,000 tokens by our estimate
    thread = Thread.of(spoke(long), CALLED, said_by("m", 3000))
    assert thread.tokens == 3010
    thread.extend([spoke(long, mail=2)])
    assert thread.tokens == 4010
    thread.extend([CALLED, said_by("m", 3000 + 5 + 2000)])
    assert thread.tokens == 5015
    thread.extend([spoke(long, mail=3)])
    assert thread.tokens == pytest.approx(5015 + 2000, rel=0.01)


def test_a_thread_that_was_compacted_is_measured_with_what_was_learned():
    long = "x" * 2985
    entries = [spoke(long), CALLED, said_by("m", 3000), spoke(long, mail=2), CALLED, said_by("m", 5000)]
    thread = Thread.of(*entries, Compacted("s" * 2985))
    assert thread.tokens == pytest.approx(2000 + len(HEAD) // 3 * 2, rel=0.02)
