"""react, edit_message, delete_message: what a chat has beside answers, where the conversation's channel has it.

Which message is meant stays the same however often a call is made: a reaction is to the message that is being answered,
and answers are counted back from where the turn began, also those that were deleted. So each is idempotent.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Protocol, runtime_checkable

from msgspec import Meta

from ..core.log import UserSaid
from ..core.mail import Address, Outbound, ReplyTo, reply_key
from ..core.people import Role
from ..core.tool import Circumstances, Effect, Risk
from ..errors import ChannelDown, ToolError, Undeliverable
from ..ports import Channel
from ..ports.channel import Reacts, Rendered, Renders, Replaces
from ..ports.conversation import Written
from ..ports.outbox import SentAnswer
from ..ports.tools import CallContext, Tool
from .decorator import tool

REACT, EDIT, DELETE = "react", "edit_message", "delete_message"
NAMES = (REACT, EDIT, DELETE)
_ALL = frozenset(NAMES)
LOOKED_AT = 400  # entries of a conversation, among which its answers are
LONGEST = 50_000
LONGEST_EMOJI = 64
_SHOWN = 60

Back = Annotated[int, Meta(ge=1, le=50, description="Which of your answers: 1 is the last before this turn")]


class SentMessages(Protocol):
    """The part of the store that knows what was said and sent. Raises StoreError."""

    async def history(self, thread: str, after: int = 0, limit: int = 0) -> list[Written]: ...

    async def reply_to(self, outbound: Outbound) -> ReplyTo: ...

    async def sent_answers(self, keys: Sequence[str]) -> list[SentAnswer]: ...


def lacking_on(channel: Channel) -> frozenset[str]:
    """Which of these tools are of no use on a channel. Where none is open, all are."""
    changes = isinstance(channel, Replaces) and channel.manifest.traits.edits
    return _ALL - {*[REACT] * isinstance(channel, Reacts), *[EDIT, DELETE] * changes}


def sent_message_tools(store: SentMessages, channels: Mapping[str, Channel]) -> list[Tool]:
    """`channels` are those that are open at the moment, by name."""
    acting = _Acting(store, channels)

    def risk_of_change(args: dict[str, object], situation: Circumstances) -> Risk:
        """What it says is seen where its answers are seen, and by nobody else."""
        return Risk(mutates=True)

    @tool(Effect.IDEMPOTENT, name=REACT, permission=Role.GUEST, risk=risk_of_change)
    async def react(emoji: Annotated[str, "One emoji"], context: CallContext) -> str:
        """React with an emoji to the message that you are answering, beside or in place of many words."""
        await acting.react(emoji, context)
        return f"Reacted with {emoji}."

    @tool(Effect.IDEMPOTENT, name=EDIT, permission=Role.USER, risk=risk_of_change)
    async def edit_message(
        text: Annotated[str, "What it is to say in place of what it said"], context: CallContext, back: Back = 1
    ) -> str:
        """Change what one of your earlier answers in this chat says."""
        return f"Changed: {await acting.edit(text, back, context)}"

    @tool(Effect.IDEMPOTENT, name=DELETE, permission=Role.USER, risk=risk_of_change)
    async def delete_message(context: CallContext, back: Back = 1) -> str:
        """Delete one of your earlier answers from this chat."""
        return f"Deleted: {await acting.delete(back, context)}"

    return [react, edit_message, delete_message]


@runtime_checkable
class _Changes(Channel, Replaces, Protocol):
    """A channel on which what was sent can be changed."""


class _Acting:
    def __init__(self, store: SentMessages, channels: Mapping[str, Channel]) -> None:
        self._store = store
        self._channels = channels

    async def react(self, emoji: str, context: CallContext) -> None:
        address = Address.parse(context.session)
        channel = self._channels.get(address.channel)
        if not isinstance(channel, Reacts):
            raise ToolError("nobody can react to messages in this conversation")
        if not emoji.strip() or len(emoji) > LONGEST_EMOJI or not emoji.isprintable():
            raise ToolError("a reaction is one emoji")
        to = await self._store.reply_to(Outbound("", address, "", mails=await self._mails(context)))
        try:
            await channel.react(address, to, emoji.strip())
        except (ChannelDown, Undeliverable) as error:
            raise ToolError(f"it could not be reacted to: {error}") from error

    async def _mails(self, context: CallContext) -> tuple[int, ...]:
        """The letters that had been heard when the call was made: the same ones when it is made again."""
        asked = int(context.key.split(":")[1])
        written = await self._store.history(context.thread, max(0, context.turn - 1), max(1, asked - context.turn))
        return tuple(each.entry.mail for each in written if isinstance(each.entry, UserSaid) and each.entry.mail)

    async def edit(self, text: str, back: int, context: CallContext) -> str:
        """All of it becomes one message: further parts that it had are taken away."""
        if not text.strip() or len(text) > LONGEST:
            raise ToolError(f"a message has some text, at most {LONGEST:,} characters; delete_message deletes one")
        channel, answer = await self._answer(back, context)
        rendered = _rendered(channel, answer, text)
        first, *others = answer.receipts
        try:
            await channel.replace(answer.address, first, rendered)
            for each in reversed(others):
                await channel.withdraw(answer.address, each)
        except (ChannelDown, Undeliverable) as error:
            raise ToolError(f"it could not be changed: {error}") from error
        return _short(answer.text)

    async def delete(self, back: int, context: CallContext) -> str:
        channel, answer = await self._answer(back, context)
        try:
            for each in reversed(answer.receipts):
                await channel.withdraw(answer.address, each)
        except (ChannelDown, Undeliverable) as error:
            raise ToolError(f"it could not be deleted: {error}") from error
        return _short(answer.text)

    async def _answer(self, back: int, context: CallContext) -> tuple[_Changes, SentAnswer]:
        address = Address.parse(context.session)
        channel = self._channels.get(address.channel)
        if not isinstance(channel, _Changes) or not channel.manifest.traits.edits:
            raise ToolError("what was sent in this conversation cannot be changed")
        last = context.turn
        keys = [reply_key(context.thread, seq) for seq in range(last - 1, max(0, last - LOOKED_AT), -1)]
        sent = {each.key: each for each in await self._store.sent_answers(keys) if each.receipts}
        answers = [sent[key] for key in keys if key in sent and sent[key].address.channel == address.channel]
        if len(answers) < back:
            there = f"there are {len(answers)}" if answers else "there is none"
            raise ToolError(f"you have not sent so many answers here lately: {there}")
        return channel, answers[back - 1]


def _rendered(channel: _Changes, answer: SentAnswer, text: str) -> Rendered:
    if not isinstance(channel, Renders):
        return Rendered(text, text)
    made = channel.render(Outbound(answer.key, answer.address, text))
    if len(made) != 1:
        raise ToolError("this is too long for one message: say it shorter, or in a new answer")
    return made[0] if isinstance(made[0], Rendered) else Rendered(made[0], made[0])


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"
