"""Putting the agent's questions to whoever sits at the terminal."""

import asyncio
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from ..agent import Agent
from ..core.errors import MailRefused
from ..core.people import OWNER
from ..user import inbound_of
from .lines import Lines
from .terminal import Terminal

YES, NO = ("y", "yes"), ("", "n", "no")


class Questions:
    """`async with` one for each turn: what is left open when the turn ends is not asked any more."""

    def __init__(self, agent: Agent, session: str, lines: Lines, terminal: Terminal) -> None:
        self._agent = agent
        self._session = session
        self._lines = lines
        self._terminal = terminal
        self._asking: asyncio.Task[None] | None = None

    def ask(self, approvals: Sequence[Any]) -> None:
        """Begin to ask, beside whatever else happens: the turn may be stopped meanwhile."""
        self._asking = asyncio.ensure_future(self._ask(approvals))

    async def __aenter__(self) -> "Questions":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._asking is not None:
            self._asking.cancel()
            await asyncio.gather(self._asking, return_exceptions=True)

    async def _ask(self, approvals: Sequence[Any]) -> None:
        for approval in approvals:
            self._terminal.ask(f"May I run {approval.summary}")
            try:
                answer = await self._lines.read("Allow it? [y/N] ")
                word = (answer or "").strip().lower()
                if word in YES + NO:
                    await self._agent.decide(approval.id, word in YES)
                else:  # whoever says something else goes on without it
                    await self._agent.tell(inbound_of((answer or "").strip(), self._session, author=OWNER))
                    return
            except MailRefused as error:
                self._terminal.note(f"everloop: {error}")
