"""Who someone is, and what a model is told when they ask."""

from typing import Protocol

from ..core.briefing import Briefing, Situation
from ..core.people import Role
from ..core.prompt import Section


class People(Protocol):
    """Who someone is to the agent, now: one truth for the gateway, tools, commands and approvals."""

    async def role(self, person: str) -> Role:
        """Whom nobody has introduced is a guest; who is blocked is less. Raises StoreError."""


class Briefer(Protocol):
    """Makes what a model is told in a turn."""

    async def brief(self, situation: Situation) -> Briefing:
        """The same value as long as it says the same. Raises StoreError."""


class SectionSource(Protocol):
    """Sections of a prompt that change seldom, such as memory and skills. They are asked for when a conversation begins
    and after each of its compactions, and stay as they are in between: what stands before a conversation is then the
    same to the byte, and hosts read it from their cache."""

    async def sections(self, situation: Situation) -> tuple[Section, ...]:
        """The same tuple as long as they say the same. Raises StoreError."""
        ...


class RevocableSource(SectionSource, Protocol):
    """One of which something may have to be told no longer before a compaction."""

    async def revocation(self, situation: Situation) -> int:
        """Another number when something must not be told any longer that was told before, also in a conversation that
        goes on. Asked in each turn. Raises StoreError."""
        ...
