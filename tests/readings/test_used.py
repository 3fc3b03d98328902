"""What was used, added up and drawn in letters."""

from everloop.core.prompt import Usage
from everloop.ports.rows import UsedRow
from everloop.readings.used import bars, by_name


def row(day: int, name: str, cost: float) -> UsedRow:
    return UsedRow(day, name, 1, Usage(input=10), cost, 0)


def test_days_are_in_order_and_all_else_is_told_the_dearest_first():
    rows = [row(1, "a", 1.0), row(1, "b", 5.0), row(2, "a", 1.0)]
    assert [(each.name, each.cost, each.calls) for each in by_name(rows, "person")] == [("b", 5.0, 1), ("a", 2.0, 2)]
    assert [(each.day, each.cost) for each in by_name(rows, "day")] == [(1, 6.0), (2, 1.0)]


def test_a_bar_is_as_long_as_its_share_and_the_least_is_seen():
    assert bars([8.0, 4.0, 0.0, 0.001], width=4) == ["████", "██", "", "▏"]
    assert bars([0.0, 0.0]) == ["", ""]
    assert bars([]) == []
