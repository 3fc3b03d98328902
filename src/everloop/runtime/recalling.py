"""What comes back for what was just said: facts that are remembered, and lines of this conversation that are a summary
now. They share one allowance."""

from collections.abc import Callable, Sequence
from typing import Protocol

from ..core.thread import Thread
from ..ports.conversation import Recalled
from ..ports.memory import FactTeller
from ..readings.recall import ENTRIES, asked_for, room_for, told_again

SHARE = 2  # what facts may fill of the room, where the conversation may need some of it: one part in so many


class Recalling(Protocol):
    async def recall(self, thread: str, words: Sequence[str], until: int, limit: int) -> Recalled: ...


async def recalled_for(
    thread: Thread,
    said: Sequence[str],
    *,
    principal: str,
    shown: Callable[[], str],
    limit: int,
    teller: FactTeller | None,
    store: Recalling,
) -> str:
    """For what people have `said`, beside what is `shown` in any case, in a prompt of at most so many tokens. Raises
    StoreError."""
    room, facts = room_for(limit), ""
    if teller and not thread.is_bare:
        space = room // SHARE if thread.condensed else room
        facts = await teller.told(principal, said, shown, space, strangers=thread.outside)
    if not thread.condensed:
        return facts
    found = await store.recall(thread.id, asked_for(said), thread.covered, ENTRIES)
    lines = told_again(found, shown() if found.entries else "", room - len(facts))
    return "\n".join(filter(None, (facts, lines)))
