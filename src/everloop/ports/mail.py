"""Letters, and what comes of them."""

from collections.abc import Sequence
from typing import Protocol

from ..core.mail import Inbound, Mail
from .conversation import Deed
from .rows import Action, Came, Receipt, RecentLetter, ThreadRow, Whose


class Mailroom(Protocol):
    """Raises StoreError."""

    async def receive(self, inbound: Inbound) -> Receipt:
        """Commit a letter to the inbox of the session's current thread, which is made if there is none; with it, where
        its channel resumes."""

    async def command(self, inbound: Inbound, action: Action | Deed, reply: str, otherwise: str = "") -> Receipt:
        """Commit a command, its effect and its reply in one, once per event.

        `new` moves the session to a new thread; `stop` puts a stop into the inbox, and into those of all that works
        for the thread (COUNT in the reply is how many), or answers `otherwise` when there is nothing to stop; `tell`
        puts the letter itself into the inbox; `none` only replies. A deed is done, or `otherwise` is the reply. A
        branch with a letter has no reply yet: its turn is the answer.
        """

    async def amend(self, inbound: Inbound, event: str) -> Receipt | None:
        """Commit an Amendment of the letter that came with this event, into its thread; the number of that letter is
        filled in. None when it is not the same author's in the same chat, or its turn is over: then nothing is
        committed. What is withdrawn before a turn has taken it leaves no text behind."""

    async def mail(self, thread: str) -> list[Mail]: ...

    async def ended(self, mail: int) -> int:
        """The seq at which the turn that took this letter ended, or 0 while it has not."""

    async def unfinished(self, thread: str) -> list[int]:
        """The letters of people whose turn is not over, in order."""

    async def waiting(self, whose: Whose | None = None) -> list[str]:
        """Threads that have work and no living holder, of everyone or of some."""

    async def stopping(self, threads: Sequence[str]) -> list[str]:
        """Those of the threads in whose inbox a stop lies."""

    async def asking(self, session: str = "") -> list[ThreadRow]:
        """Threads that wait for a person's answer, of one session or of all; the oldest first. Those that work for
        others are among them in any case: where they ask is in their logs."""


class Arrivals(Protocol):
    """What is known of how letters came. Raises StoreError."""

    async def resume(self, channel: str) -> str:
        """Where a channel goes on: what its last letter said; "" if none has."""

    async def keep_resume(self, channel: str, token: str) -> None:
        """Where it goes on from now."""

    async def account_at(self, session: str) -> str:
        """The account that has last spoken there, alone with us; "" where nobody has, or where others read along."""

    async def origins(self, mails: Sequence[int]) -> dict[int, str]:
        """The events that these letters came with."""

    async def came(self, channel: str, event: str) -> bool:
        """Whether a letter of this event has come."""

    async def recent(self, channel: str, most: int) -> list[RecentLetter]:
        """Of the last letters of all channels, at most so many, those of this one; the oldest first."""

    async def newest(self, channel: str, first: str, last: str) -> Came | None:
        """Of the letters of a channel whose events lie between these two and are as long as both are, the one with the
        last."""

    async def arrivals(self, mails: Sequence[int]) -> dict[int, float]:
        """When these letters came in."""
