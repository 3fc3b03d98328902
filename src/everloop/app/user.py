"""Who speaks when a program does: the owner in the owner's own sessions, elsewhere whoever is named."""

import functools
import itertools
import os
import secrets
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, Unpack

from msgspec import structs

from ..core.mail import Inbound, Outbound, Said
from ..core.message import said
from ..core.people import OWNER, is_chat
from ..errors import BadSession, MailRefused
from ..ports.channel import traits_of
from ..ports.events import Event
from ..ports.permission import Approval
from ..readings.keys import escaped, exact

if TYPE_CHECKING:
    from .agent import Agent, Answer

LONGEST = 200


class Manner(TypedDict, total=False):
    """How something is said. `attended`: somebody is there who answers what needs permission (else it is not run).
    `commands`: a slash command is carried out (or, if not, text like any other). `preapproved`: what an admin or the
    owner allows ahead for this one message is not asked. `withdraws`: a question that waits in the session is withdrawn
    by it; else the message waits until that is answered."""

    attended: bool  # unless it is said, not
    commands: bool  # unless it is said otherwise
    preapproved: bool  # unless it is said, not
    withdraws: bool  # unless it is said otherwise


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
        **how: Unpack[Manner],
    ) -> "Answer":
        """As `Agent.ask`, as this person."""
        how.setdefault("commands", self._commands)
        return await self._agent.ask(text, self._own(session), files=files, event=event, author=self.name, **how)

    def stream(
        self,
        text: str,
        session: str = "",
        *,
        files: Sequence[str | Path] = (),
        event: str = "",
        **how: Unpack[Manner],
    ) -> AsyncIterator[Event]:
        """As `Agent.stream`, as this person."""
        how.setdefault("commands", self._commands)
        return self._agent.stream(text, self._own(session), files=files, event=event, author=self.name, **how)

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
        return str(exact(session))


def checked(name: str) -> str:
    """A person's name as platform:account. Raises MailRefused for one that could be taken for somebody else's."""
    platform, _, account = name.partition(":")
    if not platform or not account or ":" in account or len(name) > LONGEST or not name.isprintable():
        raise MailRefused(
            f"a user is named platform:account, such as web:anna, without a further colon, and not {name[:LONGEST]!r}"
        )
    if is_chat(name):
        raise MailRefused("chat:…/… is a group, and nobody's name; name users otherwise, such as web:anna")
    if traits_of(platform).private:
        raise MailRefused(f"{platform}:… are the owner's own sessions; name users otherwise, such as web:{account}")
    return name


_events = itertools.count()


@functools.cache
def _beginning(process: int) -> str:
    """Of events that nobody has named: unlike those of any other process, also of one that was forked from this, and in
    order, so that the index of the inbox grows at its end and not all over."""
    return f"{time.time_ns():x}-{secrets.token_hex(8)}"


def inbound_of(
    text: str,
    session: str,
    event: str = "",
    author: str = OWNER,
    attended: bool = True,
    preapproved: bool = False,
    instead: tuple[str, ...] | None = None,
) -> Inbound:
    """A letter to a session of the owner's, as someone's."""
    letter = Said(said(text), author, session, unattended=not attended, preapproved=preapproved, instead=instead)
    return Inbound(exact(session), event or f"{_beginning(os.getpid())}-{next(_events):08x}", letter)


def spoken(text: str, session: str, event: str, author: str, **how: Unpack[Manner]) -> Inbound:
    """What a program says for someone. Raises BadSession, and MailRefused where it does not say for whom."""
    if unknown := how.keys() - Manner.__annotations__.keys():
        raise TypeError(f"nothing is said {', '.join(sorted(unknown))}: there is {', '.join(Manner.__annotations__)}")
    owned = traits_of(exact(session).channel).private  # the owner speaks there, unless somebody is named
    if not author and not owned:
        raise MailRefused(
            f"nobody says who speaks in {session[:200]}: use agent.user({session[:200]!r}), or author=… "
            "(author='owner' if it is you)"
        )
    if event and author not in ("", OWNER):
        event = f"{escaped(author)}/{event}"  # two people may give their messages the same name
    commands = how.get("commands", True)
    inbound = inbound_of(
        text,
        session,
        event,
        author or OWNER,
        attended=how.get("attended", False),
        preapproved=how.get("preapproved", False),
        instead=None if how.get("withdraws", True) else (),
    )
    if commands and (owned or author == OWNER):
        return inbound
    letter = structs.replace(inbound.letter, literal=not commands)
    return structs.replace(inbound, letter=letter, owner=OWNER if owned else author)


def as_before(inbound: Inbound) -> Inbound | None:
    """The letter as it would have been when all sessions of a program belonged to the owner: for one that has been
    going on since then, and is called by its author's name."""
    letter, session = inbound.letter, str(inbound.address)
    if not isinstance(letter, Said) or inbound.owner == OWNER or not f"{session}:".startswith(f"{letter.author}:"):
        return None
    return structs.replace(inbound, owner=OWNER)
