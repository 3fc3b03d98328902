"""Conversations, as people find them."""

from collections.abc import Sequence
from typing import Protocol

from ..core.log import MANY
from ..core.people import OWNER
from .conversation import Conversation, Deed, Recalled, SearchHit, Snapshot
from .rows import ThreadRow


class Archive(Protocol):
    """Raises StoreError."""

    async def session(self, key: str) -> ThreadRow | None: ...

    async def latest(self, owner: str) -> ThreadRow | None:
        """The owner's most recently active session."""

    async def named(self, beginning: str, limit: int = 2) -> list[str]:
        """The ids of threads that begin so."""

    async def session_of(self, thread: str, owner: str = OWNER) -> str:
        """The session of one of the owner's threads; "" for anybody else's."""

    async def perform(self, owner: str, session: str, deed: Deed) -> bool:
        """Do something with the owner's conversations; all of it or nothing. Says whether it could be done.

        A branch needs its parent, and the thread that the session leaves, to be at rest: neither running nor waiting
        for anyone, without mail. A session goes back only to threads of its own. The letter of a branch is not posted.
        """

    async def conversations(
        self, owner: str, *, session: str = "", id: str = "", archived: bool = False, limit: int = MANY
    ) -> list[Conversation]:
        """The owner's conversations in which something happened, the latest first.

        Of one session or all, those whose id begins with `id`, with the archived ones or without.
        """

    async def search(
        self, owner: str, words: str, *, thread: str = "", session: str = "", limit: int = 20
    ) -> list[SearchHit]:
        """Where these words stand in the owner's conversations, or in one thread and what it branched from.

        Best first: all the words, else words that begin so, else any of them, the rarest first; in one thread these
        follow in any case, for there a whole question is a query. Any text is. What a branch shares with its parent is
        told once: of that thread when one is named, else of the one that is gone on with.
        """

    async def recall(self, thread: str, words: Sequence[str], until: int, limit: int) -> Recalled:
        """What a thread and those it branched from hold of these words, in so many entries up to one. Quick, for it is
        asked in the middle of a turn: of entries that were never searched some may not be looked at yet."""

    async def snapshots(self, owner: str) -> list[Snapshot]:
        """The latest first."""
