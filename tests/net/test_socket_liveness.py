"""When a host at the other end of a WebSocket is asked for a sign of life, and when it is found dead, by a clock that
is set by hand."""

from collections.abc import Callable

import pytest

from everloop.net.socket_liveness import Liveness
from everloop.ports import SocketTerms

SILENCE = 40.0
SLOWEST = 10.0  # seconds that a message of the most bytes may take


class Bell:
    def __init__(self, due: float, ring: Callable[[], None]) -> None:
        self.due, self.ring, self.is_on = due, ring, True

    def cancel(self) -> None:
        self.is_on = False


class Watch:
    """The loop's clock, and the transport, as far as they matter here. Notes what happens, and when."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.unsent = 0
        self.told: list[tuple[float, str]] = []
        self._bells: list[Bell] = []
        terms = SocketTerms(silence=SILENCE, max_bytes=int(SLOWEST * 2**16))
        self.liveness = Liveness(self, terms, lambda: self._note("ping"), self._die)  # type: ignore[arg-type]
        self.liveness.start(self)  # type: ignore[arg-type]

    def time(self) -> float:
        return self.now

    def call_at(self, due: float, ring: Callable[[], None]) -> Bell:
        assert due > self.now, "it would ring for ever"
        self._bells.append(Bell(due, ring))
        return self._bells[-1]

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def until(self, after: float) -> None:
        """Let the time pass, up to so many seconds after the beginning."""
        while bells := [each for each in self._bells if each.is_on and each.due <= 1000 + after]:
            bell = min(bells, key=lambda each: each.due)
            self._bells.remove(bell)
            self.now = bell.due
            bell.ring()
        self.now = 1000 + after

    def hear(self, whole: bool = True) -> None:
        self.liveness.hear()
        if whole:
            self.liveness.meet()

    def _note(self, what: str) -> None:
        self.told.append((self.now - 1000, what))

    def _die(self, how: str) -> None:
        self._note(how.split(":")[0])
        self.liveness.stop()


def test_silence_is_asked_about_halfway_and_ends_in_time():
    watch = Watch()
    watch.until(500)
    assert watch.told == [(20, "ping"), (40, "has fallen silent")]


def test_who_answers_lives_and_is_asked_again():
    watch = Watch()
    for second in range(21, 200, 21):
        watch.until(second)
        watch.hear()
    assert [what for _, what in watch.told] == ["ping"] * 9


def test_who_speaks_is_not_asked():
    watch = Watch()
    for second in range(10, 200, 10):
        watch.until(second)
        watch.hear()
    assert watch.told == []


@pytest.mark.parametrize("every, dead", [(5, 50), (19, 50), (21, 40)])
def test_bytes_are_a_sign_of_life_as_long_as_they_may_be_a_large_message(every: int, dead: int):
    watch = Watch()
    for second in range(every, 200, every):
        watch.until(second)
        watch.hear(whole=False)
    assert watch.told == [(20, "ping"), (dead + (1 if every == 21 else 0), "has fallen silent")]


def test_a_large_message_that_comes_to_its_end_is_one():
    watch = Watch()
    for second in range(5, 46, 5):
        watch.until(second)
        watch.hear(whole=second == 45)
    watch.until(64)
    assert watch.told == [(20, "ping")]


def test_nobody_is_silent_while_we_do_not_listen():
    watch = Watch()
    watch.liveness.hold(True)
    watch.until(500)
    assert watch.told == []
    watch.liveness.hold(False)
    watch.until(1000)
    assert [what for _, what in watch.told] == ["ping", "has fallen silent"]
    assert watch.told[1][0] - 500 <= 2 * SILENCE


def test_who_does_not_read_is_dead_and_who_reads_slowly_is_not():
    for is_read in (False, True):
        watch = Watch()
        watch.unsent = 1_000_000
        watch.liveness.block()
        for second in range(1, 100):
            watch.until(second)
            watch.hear()
            watch.unsent -= is_read * 1000
        assert watch.told == ([] if is_read else [(40, "has read nothing from its WebSocket for 40 s.")])


def test_who_reads_again_is_not():
    watch = Watch()
    watch.unsent = 1_000_000
    watch.liveness.block()
    watch.until(39)
    watch.hear()
    watch.liveness.unblock()
    watch.until(58)
    assert watch.told == []


def test_after_the_end_nothing_is_due():
    watch = Watch()
    watch.liveness.stop()
    watch.liveness.block()
    watch.until(1000)
    assert watch.told == []
