"""Who claims something knows their claim again, unless they were told what came of it."""

import asyncio

import pytest

from everloop.errors import StoreUnreachable
from everloop.store.claims import Claims


def lose(claims: Claims, what: str, error: BaseException) -> list[str]:
    with pytest.raises(type(error)), claims.keys(what) as keys:
        raise error
    return keys


@pytest.mark.parametrize("error", [StoreUnreachable("away"), asyncio.CancelledError()])
def test_what_was_not_heard_is_asked_for_by_the_same_key(error: BaseException):
    claims = Claims()
    lost = lose(claims, "mail", error)
    with claims.keys("mail") as keys:
        assert keys == lost


def test_what_was_heard_is_claimed_by_a_new_key_the_next_time():
    claims = Claims()
    lost = lose(claims, "mail", StoreUnreachable("away"))
    with claims.keys("mail") as heard:
        pass
    with claims.keys("mail") as keys:
        assert heard == lost
        assert set(keys).isdisjoint(lost)


def test_a_long_outage_makes_no_more_keys():
    claims = Claims()
    assert len({key for _ in range(1000) for key in lose(claims, "mail", StoreUnreachable("away"))}) == 1


def test_two_that_claim_at_once_do_not_take_each_other_s():
    claims = Claims()
    with claims.keys("mail") as first, claims.keys("mail") as second, claims.keys("chat") as other:
        assert len({*first, *second, *other}) == 3


def test_of_two_that_were_not_heard_both_are_asked_for():
    claims, lost = Claims(), list[str]()

    def lose_two() -> None:
        with claims.keys("mail") as first:
            lost.extend([*first, *lose(claims, "mail", StoreUnreachable("away"))])
            raise StoreUnreachable("away")

    with pytest.raises(StoreUnreachable):
        lose_two()
    with claims.keys("mail") as keys:
        assert (len(keys), sorted(keys)) == (2, sorted(lost))
