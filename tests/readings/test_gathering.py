"""Which letters wait for more of the same."""

from everloop.core.mail import Choose, Mail, Said, Stop
from everloop.core.message import said
from everloop.readings.gathering import LONGEST, NOTHING, SKEW, Gathering, gather


def letter(id: int, due: float, author: str = "anna", address: str = "fake:room") -> Mail:
    return Mail(id, Said(said("hi"), author, address, due=due))


def test_a_burst_waits_for_the_last_of_it():
    burst = [letter(1, 10.0), letter(2, 10.6)]
    assert gather(burst, 9.0) == gather(burst, 10.5) == Gathering(frozenset({1, 2}), 10.6)
    assert gather(burst, 10.6) == NOTHING


def test_a_stream_without_an_end_is_not_waited_for():
    stream = [letter(n, 10.0 + n) for n in range(20)]
    assert gather(stream, 10.0).ripe == 10.0 + LONGEST
    assert gather(stream, 10.0 + LONGEST) == NOTHING


def test_each_person_and_each_place_has_a_burst_of_its_own():
    mail = [letter(1, 10.0), letter(2, 12.0, "bob"), letter(3, 13.0, address="fake:room:7")]
    assert gather(mail, 9.0) == Gathering(frozenset({1, 2, 3}), 10.0)
    assert gather(mail, 10.0) == Gathering(frozenset({2, 3}), 12.0)


def test_after_a_stop_nothing_waits():
    assert gather([letter(1, 10.0), Mail(2, Stop("anna"))], 9.0) == NOTHING
    assert gather([letter(1, 10.0), Mail(2, Choose("m"))], 9.0) != NOTHING


def test_what_does_not_say_so_never_waits():
    assert gather([letter(1, 0.0), Mail(2, Choose("m"))], 9.0) == NOTHING


def test_a_clock_that_is_far_ahead_delays_nobody():
    assert gather([letter(1, 9.0 + SKEW)], 9.0) == NOTHING
