"""Removing what was kept, for good."""

from collections.abc import Sequence
from typing import Protocol

from .conversation import Deletion


class Removal(Protocol):
    """Raises StoreError."""

    async def delete(self, owner: str, threads: Sequence[str]) -> Deletion | None:
        """Delete the owner's conversations for good, all of them or none; None while a process is at work in one of
        them. What is not there, or is another's, is passed over. No query finds them afterwards; a job of the kind
        DELETE, written with it, is to remove what lies outside of the tables."""

    async def scrub(self) -> None:
        """See to it that the database's own files hold nothing of what was deleted, as far as it can be seen to."""

    async def is_anyone_at_work(self) -> bool:
        """Whether a turn runs anywhere, which may have kept a file that it has not named yet."""

    async def files_named(self) -> set[str]:
        """Every file that is named anywhere: in entries of all threads, in letters, answers and jobs. Each by the
        first twelve digits of its hash, which is the least by which it can be asked for."""
