"""Slows down whoever guesses passwords (brute force), wherever they sit: also on this machine, where any page a
browser shows may knock."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable

from ..http.errors import Refused

TRIES = 5
SECONDS = 60.0
TRIES_OF_ALL = 100  # by all addresses together, so that changing them does not help much
ADDRESSES = 1000


class Throttle:
    """A try is counted before it is looked at, so that a hundred at once are not a hundred; success takes it back, and
    no other: whoever has a password of their own would guess another's between two of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._tries: OrderedDict[str, deque[float]] = OrderedDict()
        self._all: deque[float] = deque()

    def begin(self, address: str) -> None:
        """Raises Refused (429) when there were too many tries."""
        now = self._clock()
        tries = self._tries.setdefault(address, deque())
        self._tries.move_to_end(address)
        if len(self._tries) > ADDRESSES:
            self._tries.popitem(last=False)
        for kept, most in ((tries, TRIES), (self._all, TRIES_OF_ALL)):
            while kept and kept[0] <= now - SECONDS:
                kept.popleft()
            if len(kept) >= most:
                seconds = int(kept[0] + SECONDS - now) + 1
                raise Refused(429, "throttled", f"too many tries; wait {seconds} seconds", seconds)
        tries.append(now)
        self._all.append(now)

    def succeed(self, address: str) -> None:
        for kept in (self._tries.get(address), self._all):
            if kept:
                kept.pop()
