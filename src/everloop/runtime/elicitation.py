"""What an MCP server asks a person in the middle of a call (elicitation): it is put to whoever has asked for that call.

It is said in their chat as the server's words, and answered with `/mcp answer`, by them and nobody else. The call waits
for it in this process, so a question ends with its call; and where nobody is there, nobody is asked.
"""

import asyncio
from collections.abc import Awaitable, Callable
from secrets import token_hex
from typing import Any

from msgspec import Struct

from ..core.mail import Address, Inbound, Said
from ..core.message import said
from ..ports import Bus
from ..ports.events import ToolOutput
from ..ports.tools import CallContext
from ..readings.forms import fields_shown, filled_in, how_to_answer, quoted

MOST_OPEN = 20  # questions of one person
DECLINE = "decline"
NOTHING_ASKED = "No MCP server asks you anything here."
NOT_OPEN = "No MCP server waits for an answer to {!r} here (any more); /mcp answer shows what is asked."

Tell = Callable[[Inbound, str], Awaitable[object]]


class _OpenForm(Struct, frozen=True, eq=False):
    id: str
    context: CallContext
    server: str
    message: str
    form: dict[str, Any]
    answer: "asyncio.Future[dict[str, Any] | None]"

    @property
    def text(self) -> str:
        lines = [f"The MCP server {self.server} asks you, in its own words:", quoted(self.message)]
        lines += ["It wants:", *fields] if (fields := fields_shown(self.form)) else []
        way = f"/mcp answer {self.id}"
        return "\n".join(
            [*lines, f"What you answer goes to that server: `{way} {how_to_answer(self.form)}`, or `{way} {DECLINE}`."]
        )


class Elicitations:
    """`tell` says something in a chat on a channel, without a turn; `is_open` says whether a channel is."""

    def __init__(self, bus: Bus, tell: Tell, is_open: Callable[[str], bool]) -> None:
        self._bus = bus
        self._tell = tell
        self._is_open = is_open
        self._open: dict[str, _OpenForm] = {}

    async def ask_person(
        self, context: CallContext, server: str, message: str, schema: dict[str, Any]
    ) -> dict[str, Any] | None:
        """What they fill in; None if they decline, or nobody is there."""
        if not context.attended or len(self._of(context.user)) >= MOST_OPEN:
            return None
        asked = _OpenForm(token_hex(2), context, server, message, schema, asyncio.get_running_loop().create_future())
        self._open[asked.id] = asked
        try:
            return await asked.answer if await self._put(asked) else None
        finally:
            self._open.pop(asked.id, None)

    async def _put(self, asked: _OpenForm) -> bool:
        """Whether somebody sees it: on a channel as a message, at the terminal and in the page beside its call."""
        context = asked.context
        seen = self._bus.hears(context.thread)
        if seen:
            self._bus.publish(ToolOutput(context.thread, 0, context.key, f"{asked.text}\n", asks=True))
        if self._is_open(context.channel):
            await self._tell(_inbound(asked), asked.text)
            seen = True
        return seen

    def listed(self, person: str, session: str) -> str:
        """What is asked of somebody in a chat."""
        return "\n\n".join(each.text for each in self._of(person) if each.context.session == session) or NOTHING_ASKED

    def answer(self, id: str, line: str, person: str) -> str:
        """Take somebody's answer, and say what came of it."""
        asked = self._open.get(id.lower())
        if asked is None or asked.context.user != person or asked.answer.done():
            return NOT_OPEN.format(id[:20])
        if line.strip().lower() == DECLINE:
            asked.answer.set_result(None)
            return f"{asked.server} is told that you do not answer."
        try:
            asked.answer.set_result(filled_in(asked.form, line))
        except ValueError as error:
            return f"That is no answer to it: {error}."
        return f"{asked.server} is told."

    def _of(self, person: str) -> list[_OpenForm]:
        return [each for each in self._open.values() if each.context.user == person]


def _inbound(asked: _OpenForm) -> Inbound:
    """It comes once, from nobody: what is said with it is all there is."""
    context = asked.context
    nobody = Said(said(""), context.user, context.session)
    return Inbound(Address.parse(context.session), f"elicitation:{context.key}:{asked.id}", nobody, context.owner)
