"""Who waits for which letter's turn to end. Each who waits has a future of their own, so that one who gives up takes
nobody along."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence

from ..core.turn import Finished
from ..errors import EverloopError, TurnFailed

Answering = asyncio.Future[Finished]

RECENT = 256  # turns that ended a moment ago, for whoever comes to wait for one that was quicker


class Waiters:
    def __init__(self) -> None:
        self._waiting: dict[int, tuple[str, list[Answering]]] = {}  # by letter, with its thread
        self._recent: OrderedDict[int, Finished] = OrderedDict()
        self._closed = False

    def add(self, thread: str, mail: int, future: Answering | None = None) -> Answering:
        future = future or asyncio.get_running_loop().create_future()
        if mail in self._recent:
            future.set_result(self._recent[mail])
        elif self._closed:
            _disappoint(future, _closing())
        else:
            self._waiting.setdefault(mail, (thread, []))[1].append(future)
        return future

    def tell(self, finished: Finished) -> None:
        for mail in finished.mails:
            self._recent[mail] = finished
            if len(self._recent) > RECENT:
                self._recent.popitem(last=False)
            for future in self._waiting.pop(mail, ("", []))[1]:
                if not future.done():  # whoever waited may have given up
                    future.set_result(finished)

    def let_go(self, mails: Sequence[int], text: str) -> None:
        """Who waits for these is told this instead: what comes of them is told elsewhere."""
        for mail in mails:
            for future in self._waiting.pop(mail, ("", []))[1]:
                if not future.done():
                    future.set_result(Finished(0, 0, text, "", (mail,)))

    def disappoint(self, thread: str, error: EverloopError) -> None:
        """Tell all who wait for this thread that nothing will come."""
        for mail in [mail for mail, (owner, _) in self._waiting.items() if owner == thread]:
            for future in self._waiting.pop(mail)[1]:
                _disappoint(future, error)

    def close(self) -> None:
        self._closed = True
        for thread in {thread for thread, _ in self._waiting.values()}:
            self.disappoint(thread, _closing())

    def open(self) -> list[tuple[int, str]]:
        """The letters that someone still waits for, and their threads."""
        for mail, (_, futures) in list(self._waiting.items()):
            if all(future.done() for future in futures):
                del self._waiting[mail]
        return [(mail, thread) for mail, (thread, _) in self._waiting.items()]


def _disappoint(future: Answering, error: EverloopError) -> None:
    if not future.done():
        future.set_exception(error)
        future.exception()  # whoever told a letter and did not wait need not hear of it


def _closing() -> TurnFailed:
    return TurnFailed("everloop was closed; the turn goes on at the next start", "closed", "")
