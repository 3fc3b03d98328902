"""The threads that this process knows and that nobody is driving: the next letter finds them as they were left."""

from collections import OrderedDict

from ..core.thread import Thread

THREADS = 1000
MESSAGES = 10_000  # of all threads together; one that was used least lately is read from the store again


class Resting:
    def __init__(self) -> None:
        self._threads: OrderedDict[str, Thread] = OrderedDict()  # by id, the one used least lately first
        self._sessions: dict[str, str] = {}  # their ids, by session key
        self._messages = 0

    def find(self, session: str) -> str:
        """The id of the thread that rests in this session; empty if none is known."""
        id = self._sessions.get(session, "")
        return id if id in self._threads else ""

    def take(self, id: str) -> Thread:
        """Take a thread out, or begin one that has to be read. While it is driven, it may hold what is not committed,
        so nobody else may have it."""
        thread = self._threads.pop(id, None)
        if thread is None:
            return Thread(id)
        self._messages -= len(thread.transcript.messages)
        return thread

    def keep(self, thread: Thread) -> None:
        if thread.owes_reply or not thread.address:
            return
        if thread.transcript.media:  # images are large, and read again soon enough
            thread.transcript.files.clear()
            thread.transcript.rendered.clear()
        self._threads[thread.id] = thread
        self._sessions[thread.address] = thread.id
        self._messages += len(thread.transcript.messages)
        while len(self._threads) > THREADS or self._messages > MESSAGES:
            oldest = self.take(next(iter(self._threads)))
            if self._sessions.get(oldest.address) == oldest.id:
                del self._sessions[oldest.address]
