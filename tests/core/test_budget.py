"""What a call may use of what is left, as plain arithmetic."""

from hypothesis import given
from hypothesis import strategies as st

from everloop.core.overrun import Account
from everloop.ports.budgets import (
    BOUNDLESS,
    DAY,
    DOLLAR,
    MONTH,
    Bound,
    Cost,
    Limit,
    Spending,
    first_full,
    in_new_period,
    is_priced,
    money_of,
    room_for_answer,
)

ANNA = Account("anna", "month")
amounts = st.integers(0, 10_000)
limits = st.builds(Limit, st.none() | amounts, st.none() | amounts)
spendings = st.builds(Spending, st.just(ANNA), amounts, amounts, amounts, amounts)
bounds = st.lists(st.builds(Bound, st.just(ANNA), limits, spendings), max_size=3)


@given(bounds, st.integers(0, 3000), st.integers(1, 3000), st.integers(0, 5))
def test_an_answer_that_is_cut_to_the_room_there_is_fits_and_one_token_more_does_not(
    among: list[Bound], input: int, output: int, rate: int
):
    def cost(answer: int) -> Cost:
        return Cost(input, answer, rate * answer)

    room = room_for_answer(cost(output), among, float(rate))
    if room >= 0:
        assert first_full(cost(room), among) is None
    if 0 <= room < output:
        assert first_full(cost(room + 1), among) is not None
    if room < 0:
        assert first_full(cost(0), among) is not None or any(b.left_money < 0 or b.left_tokens < 0 for b in among)


def test_where_nothing_is_limited_there_is_room_for_everything():
    bound = Bound(ANNA, Limit(), Spending(ANNA, 5, 5, 5, 5))
    assert (bound.left_tokens, bound.left_money, bound.share, bool(bound.limit)) == (BOUNDLESS, BOUNDLESS, 0.0, False)
    assert Bound(ANNA, Limit(0), Spending(ANNA)).share == 1.0


def test_without_a_price_money_cannot_be_limited():
    tokens, money = Bound(ANNA, Limit(5), Spending(ANNA)), Bound(ANNA, Limit(None, 5), Spending(ANNA))
    assert is_priced(Cost(1, 1, None), [tokens])
    assert not is_priced(Cost(1, 1, None), [tokens, money])
    assert is_priced(Cost(1, 1, 0), [tokens, money])


def test_dollars_are_counted_in_billionths_and_never_rounded_down():
    assert [money_of(amount) for amount in (0.1, 2.5, 0.0, 1e-10, None)] == [DOLLAR // 10, 2_500_000_000, 0, 1, None]


def test_a_month_begins_with_its_first_call_a_day_at_midnight_and_what_is_held_stays_held():
    now = 10 * DAY + 5
    month = in_new_period(Spending(ANNA, 7, 8, 3, 4, resets=now, warned=True), now)
    day = in_new_period(Spending(Account("anna", "day"), 7, 8, resets=now - 1), now)
    running = Spending(ANNA, 7, 8, resets=now + 1)
    assert month == Spending(ANNA, 0, 0, 3, 4, resets=now + MONTH)
    assert day == Spending(Account("anna", "day"), resets=11 * DAY)
    assert in_new_period(running, now) == running
    assert in_new_period(Spending(ANNA, 7, 8), now) == Spending(ANNA, 7, 8)
