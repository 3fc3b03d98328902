"""For how long the files of one author may keep a channel waiting, in which others write as well.

Whoever has a server of their own, on a platform of many servers, may let it take a minute for each file, or fail. A
message whose file cannot be had is handed in again, and with it all that came after it. So both are counted, and when
it is too much their further messages are taken without files.
"""

import time
from collections import OrderedDict
from collections.abc import Callable

WINDOW = 600.0  # seconds, in which
MOST = 120.0  # seconds are spent on files of one author
FAILURE = 12.0  # seconds that one which cannot be had costs the others
REMEMBERED = 1000  # authors


class FileAllowance:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.now = clock
        self._spent: OrderedDict[str, tuple[float, float]] = OrderedDict()  # since when, and how much

    def left(self, author: str) -> float:
        """Seconds; 0 when their files are not to be waited for."""
        since, spent = self._spent.get(author, (self.now(), 0.0))
        return max(0.0, MOST - spent) if self.now() - since < WINDOW else MOST

    def spend(self, author: str, seconds: float) -> None:
        since, spent = self._spent.pop(author, (self.now(), 0.0))
        self._spent[author] = (since, spent + seconds) if self.now() - since < WINDOW else (self.now(), seconds)
        while len(self._spent) > REMEMBERED:
            self._spent.popitem(last=False)
