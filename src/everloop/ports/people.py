"""Who someone is, and what a model is told when they ask."""

from typing import Protocol

from ..core.briefing import Briefing, Situation
from ..core.people import Role


class People(Protocol):
    """Who someone is to the agent, now: one truth for the gateway, tools, commands and approvals."""

    async def role(self, person: str) -> Role:
        """Whom nobody has introduced is a guest; who is blocked is less. Raises StoreError."""


class Briefer(Protocol):
    """Makes what a model is told in a turn."""

    async def brief(self, situation: Situation) -> Briefing:
        """The same value as long as it says the same. Raises StoreError."""
