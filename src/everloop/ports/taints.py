"""When strangers had a say in a folder, and the files of it that stand in prompts."""

from collections.abc import Sequence
from typing import Protocol

from ..core.mail import Outbound
from .permission import Held, PromptFile
from .rows import Taint


class Taints(Protocol):
    """Raises StoreError."""

    async def taints(self, place: str, at: float | None = None, slack: float = 0.02) -> list[Taint]:
        """Those that go on; or those of strangers in which the moment `at` lies, such as the ctime of a file, give or
        take `slack` seconds: the clock of a file system is a coarse one. One that goes on with a command in the
        background may be over by now, as the sandbox knows."""

    async def begin_taint(self, owner: str, taint: Taint) -> None:
        """That of a command which no conversation has led to. One of its key goes on, and stays a stranger's."""

    async def end_taint(self, key: str, at: float) -> None:
        """That of a command in the background, which is over."""

    async def merge_taints(self, place: str, most: int) -> None:
        """Keep at most so many that are over; those that are close become one."""

    async def watched(self, place: str) -> list[PromptFile]:
        """The files of a folder that stand in prompts."""

    async def held_back(self) -> list[PromptFile]:
        """Everybody's of which a change is held."""

    async def keep_watched(
        self,
        place: str,
        rows: Sequence[PromptFile],
        *,
        free: bool = False,
        question: Outbound | None = None,
    ) -> bool:
        """Keep what has become of such files, each in place of the version before, and send a question about the first.
        False if somebody was quicker with one of them, or, with `free`, while a taint lasts there."""


class PromptFiles(Protocol):
    """The files that stand in prompts, with what is accepted and what is held. What is asked and decided here is about
    those of the owner's workspace: nobody is shown another's. Raises StoreError."""

    @property
    def unasked(self) -> bool:
        """Whether something is held that nobody was told of."""
        ...

    def expect_more(self, place: str) -> None:
        """A command goes on that may write them: the next look asks whether it is over."""

    async def look(self, place: str, *, closely: bool = False) -> None:
        """Judge what has changed in a workspace. `closely`: also where times and sizes say that nothing has."""

    async def merge(self, place: str) -> None:
        """Keep the taints of a workspace from growing without end."""

    async def held(self) -> list[Held]: ...

    async def due(self, thread: str) -> list[Held]:
        """What somebody is to be told of, now that this thread rests."""

    async def tell(self, held: Held, question: Outbound | None) -> bool:
        """Keep it as asked, with the question to be sent, if there is anywhere to send it to.

        False if somebody was quicker, or it is held no more."""

    async def decide(self, held: Held, allow: bool) -> str:
        """Accept it, or put back what was accepted; says what was done. Raises MailRefused when it is not any more
        what was shown."""
