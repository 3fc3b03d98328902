"""All that is a person's in the store, to be handed over or removed."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct

from ..core.log import Entry
from .directory import Person
from .rows import ThreadRow


class Belongings(Protocol):
    """What is kept of people, by all that they are named by (`Person.principals`). Raises StoreError."""

    async def belongings(self, people: Sequence[str]) -> dict[str, int]:
        """How much of each kind is theirs, but for what is nothing."""

    def exported(self) -> Mapping[str, tuple[str, ...]]:
        """The tables of which a person is given their rows, with the columns."""

    async def rows_of(self, table: str, people: Sequence[str], skip: int, limit: int) -> Sequence[Sequence[Any]]:
        """Their rows of such a table."""

    async def calls_made(self, after: int, limit: int) -> Sequence[Sequence[Any]]:
        """Every model call after this number: its own, who it was made for, and what a person is given of it."""

    async def facts_said(self, people: Sequence[str]) -> list[tuple[str, str]]:
        """Of what is remembered for others, such as a group, what they have said: whose it is, and the fact's id."""

    async def threads_of(self, people: Sequence[str]) -> list[ThreadRow]:
        """Every thread that is theirs, also those in which nothing was said."""

    async def threads_naming(self, people: Sequence[str]) -> list[ThreadRow]:
        """The threads of others, such as a group's, in which one of them is named."""


class Erasing(Belongings, Protocol):
    """Raises StoreError."""

    async def begin_erasing(self, person: Person, payload: str) -> str:
        """From this commit on they are nobody: they cannot come in, and nobody can change that. Returns the id of the
        job that is to remove what is theirs, which is the same while it is not done."""

    async def hand_over(self, row: ThreadRow, person: str) -> None:
        """From now on this conversation is theirs, with all that is kept beside it."""

    async def stop_thread(self, row: ThreadRow, event: str, by: str) -> None:
        """Have whoever drives this thread end its turn."""

    async def rewrite(
        self, row: ThreadRow, changed: Mapping[int, Entry], closing: Sequence[Entry], mails: Sequence[int]
    ) -> bool:
        """Put other entries into these places of a thread, and append. Nothing that was made of the old ones stays: the
        index of its words, its title, what is in the outbox for those places or `mails`. False while somebody is at
        work in it, or when it has grown: then nothing was changed."""

    async def erase_rows(self, people: Sequence[str], places: Sequence[str], job: str, payload: str) -> bool:
        """Remove, in one transaction, what the tables hold of them and of these folders, and let the job go on with
        another payload. False when there are conversations of theirs (again): then nothing was changed."""


class HomeFile(Struct, frozen=True):
    """A file on its way out, piece by piece. `left_out` says why there is nothing of it."""

    path: str
    pieces: AsyncIterator[bytes] | None = None
    left_out: str = ""


class HomeFolders(Protocol):
    """What lies in the folders of a home beside the store."""

    async def count(self, people: Sequence[str]) -> dict[str, int]:
        """How much of each kind is theirs, but for what is nothing."""

    def places(self, people: Sequence[str]) -> list[str]:
        """What their workspaces are called in the store."""

    def workspace(self, person: str) -> AsyncIterator[HomeFile]:
        """All that lies in one's workspace. No link is followed, so that nothing else is among it."""

    def skills(self, person: str) -> AsyncIterator[HomeFile]:
        """All that lies in the folder of skills that one has installed, as `workspace`."""

    def kept(self, person: str) -> AsyncIterator[HomeFile]:
        """All files that are kept for one, each by its reference."""

    async def remove(self, people: Sequence[str], words: Collection[str]) -> None:
        """Remove their folders, and lines of the logs that hold one of these words."""

    async def forget_copies(self) -> int:
        """Remove the copies that were made of the store before a migration: they hold what everybody had then."""
