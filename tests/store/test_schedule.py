"""When a cron expression is due, beside a slow oracle that looks at every minute there is."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

from everloop.errors import BadSchedule
from everloop.store.schedule import check_rule, next_due, next_ones

# Zones with what their clocks do: an hour, half an hour (Lord Howe), at midnight (Beirut, Santiago), never, two hours
# (Troll), and a whole day that was left out (Apia, December 2011); with a day near which that happens.
CHANGES = [
    ("Europe/Berlin", datetime(2026, 3, 28)),
    ("Europe/Berlin", datetime(2026, 10, 24)),
    ("America/New_York", datetime(2026, 3, 7)),
    ("America/New_York", datetime(2026, 10, 31)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3)),
    ("Asia/Beirut", datetime(2026, 3, 28)),
    ("Asia/Beirut", datetime(2026, 10, 24)),
    ("America/Santiago", datetime(2026, 9, 5)),
    ("America/Santiago", datetime(2026, 4, 4)),
    ("Antarctica/Troll", datetime(2026, 3, 28)),
    ("Antarctica/Troll", datetime(2026, 10, 24)),
    ("Pacific/Apia", datetime(2011, 12, 29)),
    ("Asia/Kolkata", datetime(2026, 3, 28)),
    ("UTC", datetime(2026, 3, 28)),
]
MINUTE = timedelta(minutes=1)
DAYS = 3

Field = tuple[str, frozenset[int]]


def fields(all_of_them: range) -> st.SearchStrategy[Field]:
    """As it is written, and what it means."""
    some = st.frozensets(st.sampled_from(all_of_them), min_size=1, max_size=4)
    listed = some.map(lambda values: (",".join(map(str, sorted(values))), values))
    steps = st.integers(2, 40).map(lambda n: (f"*/{n}", frozenset(all_of_them[::n])))
    return st.one_of(listed, steps, st.just(("*", frozenset(all_of_them))))


class Expression:
    """A cron expression of which the oracle knows the meaning, without reading it."""

    def __init__(self, minute: Field, hour: Field, weekday: Field) -> None:
        self.text = f"{minute[0]} {hour[0]} * * {weekday[0]}"
        self._minutes, self._hours, self._weekdays = minute[1], hour[1], weekday[1]
        self.at_times_of_day = not minute[0].startswith("*") and not hour[0].startswith("*")

    def __repr__(self) -> str:
        return self.text

    def holds(self, wall: datetime) -> bool:
        return wall.minute in self._minutes and wall.hour in self._hours and wall.isoweekday() % 7 in self._weekdays


EXPRESSIONS = st.builds(Expression, fields(range(60)), fields(range(24)), fields(range(7)))


def oracle(expression: Expression, zone: ZoneInfo, first: int, last: int) -> Iterator[float]:
    """Each minute after the first, up to the last, at which it is due."""
    seen: set[datetime] = set()
    minutes = range(first - 86400, last + 1, 60)  # what comes twice may have come before
    walls = [datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0) for at in minutes]
    for at, (before, wall) in zip(minutes[1:], pairwise(walls), strict=True):
        left_out = []
        while (before := before + MINUTE) < wall:
            left_out.append(before)
        again = wall in seen
        seen.add(wall)
        if expression.at_times_of_day:
            due = (not again and expression.holds(wall)) or any(map(expression.holds, left_out))
        else:
            due = expression.holds(wall)
        if due and at > first:
            yield float(at)


@examples(400)
@given(st.sampled_from(CHANGES), EXPRESSIONS, st.integers(0, 86400))
def test_every_time_is_the_oracles_also_when_clocks_change(
    change: tuple[str, datetime], expression: Expression, start: int
):
    name, day = change
    zone = ZoneInfo(name)
    first = int(day.replace(tzinfo=zone).timestamp()) // 60 * 60 + start // 60 * 60
    last = first + DAYS * 86400
    expected = list(oracle(expression, zone, first, last))
    found, at = [], float(first)
    while (at := next_due(f"cron {name} {expression.text}", at, at) or 0.0) <= last:
        found.append(at)
    assert found == expected


@examples(100)
@given(st.sampled_from(CHANGES), EXPRESSIONS, st.floats(0, DAYS * 86400), st.floats(0, 86400 * 400))
def test_after_a_pause_the_next_time_is_the_first_after_now(
    change: tuple[str, datetime], expression: Expression, start: float, pause: float
):
    rule, due = f"cron {change[0]} {expression.text}", change[1].timestamp() + start
    then = next_due(rule, due, due + pause)
    assert then is not None
    assert then > due + pause
    assert then == next_due(rule, due + pause, due + pause) == next_due(rule, then - 0.001, then - 0.001)


def at(zone: str, *when: int) -> float:
    return datetime(*when, tzinfo=ZoneInfo(zone)).timestamp()  # type: ignore[misc, arg-type]


@pytest.mark.parametrize(
    ("rule", "after", "then"),
    [
        ("cron Europe/Berlin 0 8 * * 1-5", (2026, 11, 13, 8), (2026, 11, 16, 8)),
        ("cron Europe/Berlin 30 2 * * *", (2026, 3, 28, 12), (2026, 3, 29, 3, 0)),
        ("cron Europe/Berlin @daily", (2026, 11, 13, 8), (2026, 11, 14)),
        ("cron Europe/Berlin 0 12 L * *", (2026, 2, 13, 8), (2026, 2, 28, 12)),
        ("cron Europe/Berlin 0 9 * * MON#1", (2026, 11, 13, 8), (2026, 12, 7, 9)),
    ],
)
def test_a_cron_expression_is_due_by_the_clock_of_its_zone(rule: str, after: tuple[int, ...], then: tuple[int, ...]):
    began = at("Europe/Berlin", *after)
    assert next_due(rule, began, began) == at("Europe/Berlin", *then)


def test_a_time_that_comes_twice_counts_once_and_a_missed_one_is_not_made_up_for_twice():
    rule = "cron Europe/Berlin 30 2 * * *"
    first = at("Europe/Berlin", 2026, 10, 25, 2, 30)
    assert next_ones(rule, first, 3) == [
        first,
        at("Europe/Berlin", 2026, 10, 26, 2, 30),
        at("Europe/Berlin", 2026, 10, 27, 2, 30),
    ]
    assert next_due(rule, first, first + 45 * 60) == at("Europe/Berlin", 2026, 10, 26, 2, 30)
    assert next_due(rule, first, first + 10 * 86400) == at("Europe/Berlin", 2026, 11, 4, 2, 30)


def test_the_next_times_of_a_beat_and_of_what_is_due_once():
    assert next_ones("every 60", 100.0, 3) == [100.0, 160.0, 220.0]
    assert next_ones("", 100.0, 3) == [100.0]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("cron", "a schedule is empty"),
        ("cron UTC", "has five fields"),
        ("cron UTC 0 8 * *", "has five fields"),
        ("cron UTC 0 0 8 * * *", "has five fields"),
        ("cron UTC 99 8 * * *", "Bad minute"),
        ("cron UTC 0 0 30 2 *", "Bad day-of-month"),
        ("cron UTC a b c d e", "is none"),
        ("cron Nowhere/Land 0 8 * * *", "there is no time zone 'Nowhere/Land'"),
        ("cron Europe 0 8 * * *", "there is no time zone 'Europe'"),
        ("cron ../../etc/passwd 0 8 * * *", "there is no time zone"),
        ("cron /etc/localtime 0 8 * * *", "there is no time zone"),
        (f"cron UTC {','.join(['1'] * 500)} 8 * * *", "has five fields"),
        ("whenever", "a schedule is empty"),
    ],
)
def test_what_is_no_schedule_is_told_with_what_one_is(rule: str, why: str):
    with pytest.raises(BadSchedule, match=why):
        check_rule(rule)
