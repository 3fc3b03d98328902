"""A copy of the whole store, made while it is written to; and what becomes of one that was restored.

A restored store says of itself that it is a copy (`restored`) until somebody adopts it. Until then it re-sends nothing,
and begins nothing that the original may have begun: see docs/why.md.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

BACKUP = "backup"  # the kind of the job that makes one
RESTORED = "restored"  # the job, never due, that says that this is a copy


class Generation(Struct, frozen=True):
    """A store that was restored goes on where the original has gone on, too: its threads and places, of which keys are
    made, mean something else there. So what it sends after the answer `after` has its `salt` in the key."""

    after: int
    salt: str


class RestoredCopy(Struct, frozen=True):
    """Of which backup a store was restored, when that was made, and when it was restored."""

    name: str
    made: float
    at: float
    generations: tuple[Generation, ...] = ()


class HeldBack(Struct, frozen=True):
    """What a restored copy does not do by itself: answers that are not sent, jobs that are not done, logins that are
    not used; and how many turns were cut off."""

    answers: int = 0
    jobs: int = 0
    logins: int = 0
    turns: int = 0


class Adopted(Struct, frozen=True):
    """What goes on when a copy is adopted: jobs, and those of them whose only time has passed, which are not done;
    answers that wait for a word."""

    jobs: int
    missed: int
    answers: int


class BackupShown(Struct, frozen=True):
    """`warnings` are what has to be known of one that was just made."""

    name: str
    made: float
    size: int
    encrypted: bool
    warnings: tuple[str, ...] = ()


class BackupsStanding(Struct, frozen=True):
    """`encrypted`: what is made now is. `copy_of` is the backup that this home was restored from, until it is
    adopted."""

    folder: str
    every: str
    keep: int
    encrypted: bool
    backups: list[BackupShown]
    copy_of: str = ""


class StoreCopies(Protocol):
    """Raises StoreError."""

    async def copy_to(self, path: str) -> None:
        """All that is kept, as it is at one moment, into a new SQLite file of our schema, while others write."""

    async def restored(self) -> RestoredCopy | None:
        """Of what this is a copy that nobody has adopted yet."""

    async def hold_back(self, copy: RestoredCopy, places: Sequence[tuple[str, str]]) -> HeldBack:
        """Make a restored store a copy. `places` are folders, and where they are now."""

    async def hold_answers(self, copy: RestoredCopy) -> int:
        """Send nothing that waits to be sent before somebody says so; how many there are."""

    async def succeed(self, copy: RestoredCopy, places: Sequence[tuple[str, str]]) -> None:
        """Make a restored store go on as after a crash: nobody holds anything, and answers may have been sent."""

    async def adopt(self) -> Adopted | None:
        """Make a copy the one that goes on; None if it is none."""

    async def owners(self) -> list[str]:
        """Everybody who has a conversation, a file or something remembered: people, strangers and groups."""

    async def table_counts(self) -> Mapping[str, int]:
        """How many rows there are, by table."""
