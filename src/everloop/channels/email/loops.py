"""Two machines that answer one another are stopped (mail loops): so many mails come in so many seconds, and no more.

A machine need not say that it is one, and need not stay in its thread: a ticket system begins a new one with each mail.
So it is counted by conversation and by sender, and by day for those that are slow.
"""

from collections import OrderedDict, deque
from collections.abc import Callable

LOOP_MAILS = 20  # in one conversation, within
LOOP_SECONDS = 600.0
SENDER_MAILS = 40  # of one sender, within as many seconds
DAILY_MAILS = 200  # of one sender
DAY = 86_400.0
REMEMBERED = 10_000  # conversations and senders: those that were heard of last


class LoopGuard:
    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._came: OrderedDict[tuple[str, ...], deque[float]] = OrderedDict()

    def stops(self, chat: str, thread: str) -> bool:
        """Whether a mail is one too many. Each is counted, also those that are not answered."""
        over = [
            self._is_over(("conversation", chat, thread), LOOP_MAILS, LOOP_SECONDS),
            self._is_over(("sender", chat), SENDER_MAILS, LOOP_SECONDS),
            self._is_over(("daily", chat), DAILY_MAILS, DAY),
        ]
        return any(over)

    def _is_over(self, what: tuple[str, ...], most: int, seconds: float) -> bool:
        now = self._clock()
        came = self._came.setdefault(what, deque(maxlen=most + 1))
        self._came.move_to_end(what)
        came.append(now)
        while len(self._came) > REMEMBERED:
            self._came.popitem(last=False)
        return len(came) > most and came[0] > now - seconds
