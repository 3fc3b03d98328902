"""One of the people whom a program speaks for: what is asked through it is asked by them, and by nobody else."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from .core.errors import BadSession, MailRefused
from .core.mail import Address, Outbound
from .core.people import OWNERS_CHANNELS
from .core.ports import Event
from .runtime.approvals import Approval

if TYPE_CHECKING:
    from .agent import Agent, Answer

LONGEST = 200


class User:
    """`agent.user("web:anna")`. Her conversations are hers: nobody else's words get into them, and she sees no others.

    Without a `session` it is the one that has her name; others of hers begin with that: `web:anna:trip`. What she may
    do is what `everloop.open(roles=…)` says; whom nobody has introduced is a guest.
    """

    def __init__(self, agent: "Agent", name: str, commands: bool = True) -> None:
        """Raises MailRefused for a name that cannot be one's own."""
        self._agent = agent
        self.name = checked(name)
        self._commands = commands

    async def ask(
        self,
        text: str,
        session: str = "",
        *,
        files: Sequence[str | Path] = (),
        event: str = "",
        attended: bool = False,
    ) -> "Answer":
        """As `Agent.ask`, as this person."""
        return await self._agent.ask(
            text,
            self._own(session),
            files=files,
            event=event,
            author=self.name,
            attended=attended,
            commands=self._commands,
        )

    def stream(
        self,
        text: str,
        session: str = "",
        *,
        files: Sequence[str | Path] = (),
        event: str = "",
        attended: bool = False,
    ) -> AsyncIterator[Event]:
        """As `Agent.stream`, as this person."""
        return self._agent.stream(
            text,
            self._own(session),
            files=files,
            event=event,
            author=self.name,
            attended=attended,
            commands=self._commands,
        )

    async def approvals(self, session: str = "") -> list[Approval]:
        """What this person has asked for and waits for someone's permission, in one session or in all."""
        return [each for each in await self._agent.approvals(session) if each.requester == self.name]

    async def decide(self, approval: str, allow: bool) -> Approval:
        """Allow or deny a call, if that is this person's to decide. Raises MailRefused."""
        return await self._agent.decide(approval, allow, by=self.name)

    async def finish(self, session: str = "") -> bool:
        """As `Agent.finish`."""
        return await self._agent.finish(self._own(session))

    async def unshown(self, session: str = "") -> list[Outbound]:
        """As `Agent.unshown`."""
        return await self._agent.unshown(self._own(session))

    def _own(self, session: str) -> str:
        session = session or self.name
        if session != self.name and not session.startswith(f"{self.name}:"):
            raise BadSession(
                f"{session[:LONGEST]!r} is no session of {self.name}; say {self.name}, or {self.name}:ANYTHING"
            )
        return str(Address.parse(session))


def checked(name: str) -> str:
    """A person's name as platform:account. Raises MailRefused for one that could be taken for somebody else's."""
    platform, _, account = name.partition(":")
    if not platform or not account or ":" in account or len(name) > LONGEST or not name.isprintable():
        raise MailRefused(
            f"a user is named platform:account, such as web:anna, without a further colon, and not {name[:LONGEST]!r}"
        )
    if platform in OWNERS_CHANNELS:
        raise MailRefused(f"{platform}:… are the owner's own sessions; name users otherwise, such as web:{account}")
    return name
