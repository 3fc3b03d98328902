"""Where a replay stands in its record: what comes next, what was found different."""

import asyncio
from collections.abc import Mapping
from typing import Never

from ...core.log import Asked, CallReturned, Entry
from ...core.thread import Thread
from ...core.tool import ToolCall, ToolSpec
from ...core.turn import Finished
from ...runtime.interrupt import Interrupt
from ...testing.entry_difference import EntryDifference, plain
from ...testing.record import Record

ROUNDS = 1000  # of the event loop, in which a step that can be broken off is


class Differs(Exception):
    def __init__(self, difference: EntryDifference) -> None:
        super().__init__(str(difference))
        self.difference = difference


class Over(Exception):
    """All that was recorded of an unfinished turn has happened again."""


class Tape:
    """Where the replay stands in the record. It is the listener of the book."""

    def __init__(self, record: Record, specs: Mapping[str, ToolSpec]) -> None:
        self.record = record
        self.known = {name: spec for name, spec in specs.items() if name in record.tools}
        self.tools = {name: self.known.get(name) or stub.spec(name) for name, stub in record.tools.items()}
        self.seq = record.start - 1  # of the last entry that was written
        self.calls: dict[int, ToolCall] = {}  # the open ones
        self.shown = iter(record.shown)
        self.believed = 0
        self.broken = ""  # what was being done when a step was broken off
        self.different: EntryDifference | None = None  # found where it could not be raised
        self.put_down = self.delivered = -1  # the places where this was last done
        self.interrupt = Interrupt()

    @property
    def coming(self) -> Entry | None:
        """What was written next."""
        return self.record.entry(self.seq + 1)

    def differs(self, now: Entry | str) -> EntryDifference:
        return EntryDifference(self.seq + 1, self.coming, now)

    def compare(self, seq: int, entry: Entry, thread: Thread) -> None:
        self.seq, self.calls = seq - 1, thread.open_calls
        recorded = self.coming
        if recorded is None and self.record.unfinished:
            raise Over
        if recorded is None or not self._same(recorded, entry, thread.open_calls):
            raise Differs(self.differs(entry))
        self.seq = seq

    def compare_all(self, entries: list[Entry]) -> EntryDifference | None:
        """As they lie in the store now. There is one more way to be different: not to be there."""
        for seq, recorded in enumerate(self.record.turn, self.record.start):
            if seq - self.record.start >= len(entries):
                return EntryDifference(seq, recorded, "nothing")
            now = entries[seq - self.record.start]
            if plain(recorded, "risk") != plain(now, "risk"):
                return EntryDifference(seq, recorded, now)
        return None

    def _same(self, recorded: Entry, now: Entry, calls: Mapping[int, ToolCall]) -> bool:
        passing = (
            ("risk",) if isinstance(now, Asked) and not now.overrun and calls[now.place].name not in self.known else ()
        )
        return plain(recorded, *passing) == plain(now, *passing)

    async def break_off(self, doing: str) -> Never:
        """Nothing came of this step then: end it as it ended, which the book sees to at its next look."""
        self.broken = doing
        self.interrupt.fire()
        for _ in range(ROUNDS):
            await asyncio.sleep(0)
        raise Differs(self.differs(doing))  # where a stop would not be heard, either

    def result(self, answer: int, place: int) -> CallReturned | None:
        """The recorded result of a call that runs now."""
        seq = self.seq + 1
        while isinstance(entry := self.record.entry(seq), CallReturned):
            if (entry.answer, entry.place) == (answer, place):
                if entry.outcome in ("denied", "repeated"):
                    self.different = EntryDifference(seq, entry, "the call is run")
                return entry if entry.outcome in ("done", "failed") else None
            seq += 1
        return None

    def take(self, mail: int, head: int) -> None:
        pass

    def finish(self, turn: Finished) -> None:
        pass

    def is_waited_for(self) -> bool:
        return False

    def wake(self, thread: str) -> None:
        pass
