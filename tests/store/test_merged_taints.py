"""How many taints become few."""

from hypothesis import given
from hypothesis import strategies as st

from everloop.ports.rows import Taint
from everloop.store.taints import merged

SPANS = st.lists(st.tuples(st.integers(0, 100), st.integers(0, 20)), max_size=30)


@given(SPANS, st.integers(1, 10))
def test_merged_taints_are_few_and_cover_no_moment_less(spans: list[tuple[int, int]], most: int):
    taints = [Taint(str(n), "/w", began, began + length) for n, (began, length) in enumerate(spans)]
    after = merged(taints, most)
    assert len(after) <= most

    def covers(spans: list[Taint], at: int) -> bool:
        return any(span.began <= at <= (span.ended or 0) for span in spans)

    assert all(covers(after, at) for at in range(130) if covers(taints, at))


def test_few_taints_stay_as_they_are():
    taints = [Taint("a", "/w", 1.0, 2.0), Taint("b", "/w", 9.0, 10.0)]
    assert merged(taints, 2) == taints
