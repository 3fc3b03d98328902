"""What an MCP server asks a person in the middle of a call (elicitation): it is put to whoever has asked for that call.

It is said in their chat as the server's words, and answered by them and nobody else, in whichever process they are:
the question is a row in the store (ports/mcp_questions.py), which ends with its call. Where nobody is there, nobody is
asked.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from secrets import token_hex
from typing import Any

from ..core.mail import Address, Inbound, Said
from ..core.message import said
from ..errors import StoreError
from ..ports import Bus
from ..ports.events import ToolOutput
from ..ports.mcp_questions import McpFilledIn, McpOpenQuestions, McpQuestion
from ..ports.tools import CallContext
from ..readings.forms import asked_text

LOOK = 0.25  # seconds
KEEP_AFTER = 40  # looks: well before others take us for gone

Tell = Callable[[Inbound, str], Awaitable[object]]


class Elicitations:
    """`tell` says something in a chat on a channel, without a turn; `is_served` says whether somebody sends there."""

    def __init__(
        self, questions: McpOpenQuestions, bus: Bus, tell: Tell, is_served: Callable[[str], Awaitable[bool]]
    ) -> None:
        self._questions = questions
        self._bus = bus
        self._tell = tell
        self._is_served = is_served

    async def ask_person(
        self, context: CallContext, server: str, message: str, schema: dict[str, Any]
    ) -> dict[str, Any] | None:
        """What they fill in; None if they decline, or nobody is there."""
        asked = McpQuestion(
            id=token_hex(3), person=context.user, session=context.session, server=server, message=message, form=schema
        )
        if not context.attended or not await self._questions.ask(asked):
            return None
        try:
            await self._put(asked, context)
            return (await self._answered(asked.id)).content
        finally:
            await self._questions.end(asked.id)

    async def _put(self, asked: McpQuestion, context: CallContext) -> None:
        """On a channel as a message, at the terminal and in the page beside its call; and it is among what waits."""
        text = asked_text(asked)
        self._bus.publish(ToolOutput(context.thread, 0, context.key, f"{text}\n", asks=True))
        if await self._is_served(context.channel):
            await self._tell(_inbound(asked, context), text)

    async def _answered(self, id: str) -> McpFilledIn:
        while True:
            with suppress(StoreError):  # which comes back, or the call ends
                for _ in range(KEEP_AFTER):
                    if answer := await self._questions.answer_to(id):
                        return answer
                    await asyncio.sleep(LOOK)
                if not await self._questions.keep_asking(id):
                    return McpFilledIn()  # nobody can answer it any more
                continue
            await asyncio.sleep(LOOK)


def _inbound(asked: McpQuestion, context: CallContext) -> Inbound:
    """It comes once, from nobody: what is said with it is all there is."""
    nobody = Said(said(""), context.user, context.session)
    return Inbound(Address.parse(context.session), f"elicitation:{context.key}:{asked.id}", nobody, context.owner)
