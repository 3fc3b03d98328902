"""Ends what a restored copy finds in the middle: the original has gone on with it, so nobody does so here by himself.

Each open turn, and each message that nobody had begun with, enters the log and ends with a sentence. No model is asked,
and no tool is run. What was acknowledged is there, to be asked again by whoever still wants it.
"""

from ..core.log import CallReturned, Entry, GaveUp
from ..core.thread import Thread
from ..core.turn import Finished
from ..ports import People
from .book import Book, ThreadStore

WAITED = "This waited for permission when the backup was made, and was not run. Call again to have it asked."
RAN = "This was running when the backup was made: it is not known what came of it. Inspect before you repeat it."
UNRUN = "This had not been run when the backup was made."
TOLD = (
    "⚠️ This was cut off: it is restored from a backup that was made in the middle of it, and may have been done and "
    "answered elsewhere since. Say it again if it is still wanted."
)
ROUNDS = 100  # of turns that lead to turns, as those of sub-agents do


async def cut_off(store: ThreadStore, people: People) -> int:
    """How many turns were ended. Nobody else may drive threads meanwhile. Raises StoreError."""
    count, left = 0, set[str]()
    for _ in range(ROUNDS):
        open_now = {*await store.waiting(), *(row.id for row in await store.asking())} - left
        if not open_now:
            break
        for thread in sorted(open_now):
            ended, is_undoing = await _end(store, people, thread)
            count += ended
            if is_undoing or not ended:
                left.add(thread)
    return count


async def _end(store: ThreadStore, people: People, id: str) -> tuple[int, bool]:
    """How many turns, and whether files are being put back, which is done all or not at all, and here alone."""
    book, count = await Book.open(store, Thread(id), _Nobody()), 0
    while True:
        await book.absorb("queue", people)
        while book.thread.owes_reply and not book.thread.undoing:
            book.keep(*_closing(book.thread))
            count += 1
            await book.absorb("queue", people)
        if await book.rest():
            return count, bool(book.thread.undoing)
        book.expect_mail()


def _closing(thread: Thread) -> list[Entry]:
    found: list[Entry] = []
    for place in tuple(thread.open_calls):
        ran = place in thread.started
        text = WAITED if place in thread.pending else RAN if ran else UNRUN
        found.append(CallReturned(thread.answer, place, text, "unknown" if ran else "cancelled"))
    return [*found, GaveUp("restored", TOLD, cut=thread.turn.cut.cut if thread.turn.cut else "")]


class _Nobody:
    """Waits for what comes of it."""

    def take(self, mail: int, head: int) -> None: ...

    def finish(self, turn: Finished) -> None: ...

    def is_waited_for(self) -> bool:
        return False

    def wake(self, thread: str) -> None: ...
