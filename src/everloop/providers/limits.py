"""How long and how large an answer may become, and what is said of one that does not end.

Three clocks run: silence, which the connection measures; signs of life without an answer; and the answer as a whole.
"""

from collections.abc import Callable

from ..errors import AnswerOversized, AnswerTimeout, ProviderError

ANSWER_SECONDS = 1800.0
MOST_BYTES = 2**28  # of an answer as a whole; the longest that models give are a tenth of that


class AnswerLimits:
    """Of the answers of one host, `seconds` for each; a third of that for signs of life alone."""

    def __init__(self, host: str, seconds: float, silence: float) -> None:
        self.seconds = seconds
        self.silence = silence  # without a byte
        self.heartbeats = max(silence, seconds / 3)
        self._host = host
        self._setting = f"providers.{host}.answer_seconds = {seconds:g}"

    def explain(self, error: ProviderError) -> None:
        """Who has noticed a limit does not know whose, and people know a setting."""
        if type(error) is AnswerTimeout:
            error.args = (
                f"{self._host} did not come to the end of its answer within {_length(self.seconds)} ({self._setting}) "
                f"and was stopped. It may be paid for, so it is not asked again by itself: ask for less, or raise that "
                f"setting.",
            )
        elif isinstance(error, AnswerOversized):
            error.args = (
                f"{self._host} sent {error}, which is more than is read, and was stopped. Check the host's address, or "
                f"ask it for less.",
            )

    def only_heartbeats(self) -> AnswerTimeout:
        return _OnlyHeartbeats(
            f"{self._host} sent signs of life for {_length(self.heartbeats)} and nothing of an answer, and was stopped "
            f"(the limit is a third of {self._setting}, but at least {_length(self.silence)}). It may be paid for, so "
            f"it is not asked again by itself: ask later, choose another model, or raise that setting."
        )


class _OnlyHeartbeats(AnswerTimeout):
    """Which is explained already."""


class Pulse:
    """Listens to what a host says while there is nothing to show: comments and empty events keep a connection open,
    as those of a host that has us wait in a queue, and are no progress."""

    __slots__ = ("_heard", "_limits", "_now", "_since")

    def __init__(self, limits: AnswerLimits, now: Callable[[], float]) -> None:
        self._limits = limits
        self._now = now
        self._heard = -1
        self._since = 0.0  # when the first sign of life came that said nothing

    def feel(self, heard: int, complete: bool) -> None:
        """`heard` events have said something so far, and the answer is `complete` or not. Raises AnswerTimeout."""
        if heard != self._heard:
            self._heard, self._since = heard, self._now()
        elif self._now() - self._since > (self._limits.silence if complete else self._limits.heartbeats):
            raise self._limits.only_heartbeats()


def _length(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds >= 60 and seconds % 60 == 0 else f"{seconds:g} s"
