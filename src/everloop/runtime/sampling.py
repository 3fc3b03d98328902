"""What an MCP server has a model asked in the middle of a call (sampling), at the expense of whoever has called it.

The server says what is asked, and gets what is answered: the model sees nothing of the conversation and has no tools.
So a server learns nothing by it; it can only spend, within the budgets of its caller and a limit for each question.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal, Protocol
from uuid import uuid4

from ..core.message import Message, said
from ..core.people import OWNER, Role, is_chat
from ..core.prompt import Prompt, Transcript, Usage
from ..errors import ModelMissing, ProviderError
from ..ports import People
from ..ports.provider import Delta, Reply
from ..ports.rows import Spent
from ..ports.tools import CallContext
from .budgets import AllowedCall, BudgetControl, Denied, Payer, charge_for, charge_for_failure
from .models import Model
from .own_keys import NO_OWN_KEYS, OwnKeys

_log = logging.getLogger("everloop.mcp")

PURPOSE = "mcp"
SECONDS = 120.0
MOST_TOKENS = 2000  # of an answer
LONGEST = 40_000  # characters of what is asked
_TOKEN = 3  # characters
_SYSTEM = (
    "A program asks you something. Answer it with text alone; you have no tools, and know nothing of whom it serves."
)
_STOPS: dict[str, str] = {"stop": "endTurn", "length": "maxTokens"}


class SamplingStore(Protocol):
    """Raises StoreError."""

    async def add_spent(self, owner: str, thread: str, spent: Spent, purpose: str) -> None: ...


class SampledAnswers:
    """Answers `sampling/createMessage`. `model` finds who is asked (raises ModelMissing)."""

    def __init__(
        self,
        model: Callable[[], Awaitable[Model]],
        budgets: BudgetControl,
        store: SamplingStore,
        people: People,
        own_keys: OwnKeys = NO_OWN_KEYS,
    ) -> None:
        self._model = model
        self._budgets = budgets
        self._store = store
        self._people = people
        self._own_keys = own_keys

    async def ask_model(self, context: CallContext, server: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer as the protocol has it; None where none is given: no text is asked, or there is no room for it."""
        messages = _messages(request)
        if not messages:
            return None
        try:
            async with asyncio.timeout(SECONDS):
                reply = await self._paid(context, _system(request), messages, _tokens(request))
        except (ModelMissing, ProviderError, TimeoutError) as error:
            _log.info("what %s has asked was not answered: %s", server, error)
            return None
        return _answer(reply) if reply else None

    async def _paid(self, context: CallContext, system: str, messages: tuple[Message, ...], most: int) -> Reply | None:
        model, payer = await self._model(), await self._payer(context)
        asked = await self._own_keys.asked(payer.id, model.key, model.provider)
        cost = Usage(sum(len(each.text) for each in messages) // _TOKEN + len(system) // _TOKEN + 20, most)
        key, bounds = f"{PURPOSE}:{context.key}:{uuid4().hex}", () if asked.own else None
        allowed = await self._budgets.reserve(payer, key, model.name, model.price, cost, bounds)
        if isinstance(allowed, Denied):
            _log.info("what a server has asked was not answered: %s", allowed.text)
            return None
        prompt = Prompt(model.model, system, Transcript(messages), max_tokens=most)
        reply = await self._asked(asked.provider.reply(prompt, _ignore), model, allowed)
        spent = Spent(0, reply.model or model.name, reply.usage, reply.cost, requester=payer.id, own=asked.own)
        await self._store.add_spent(payer.id, context.thread, spent, PURPOSE)
        return reply

    async def _asked(self, answer: Awaitable[Reply], model: Model, allowed: AllowedCall | None) -> Reply:
        try:
            reply = await answer
        except (ProviderError, asyncio.CancelledError) as error:
            if allowed:
                kind = error.kind if isinstance(error, ProviderError) else "timeout"
                await self._budgets.charge(charge_for_failure(allowed, model.price, kind, ""))
            raise
        if allowed:
            await self._budgets.charge(charge_for(allowed, model.price, reply.usage, reply.cost, reply.text))
        return reply

    async def _payer(self, context: CallContext) -> Payer:
        """Whose conversation it is, as of everything that is said in it."""
        payer = context.owner or context.user
        if is_chat(payer):
            return Payer(payer, Role.USER, context.thread)  # nobody's, but of those who are no guests
        role = Role.OWNER if payer == OWNER else await self._people.role(payer)
        return Payer(payer, role, context.thread)


def _messages(request: Mapping[str, Any]) -> tuple[Message, ...]:
    """The text that is asked; () where there is none, or more than is asked."""
    found = [_message(each) for each in request.get("messages", ())]
    messages = tuple(each for each in found if each.text)
    return messages if sum(len(each.text) for each in messages) <= LONGEST else ()


def _message(raw: Mapping[str, Any]) -> Message:
    content = raw.get("content") or ()
    blocks = content if isinstance(content, list) else [content]
    text = "\n".join(str(block["text"]) for block in blocks if isinstance(block, dict) and block.get("type") == "text")
    role: Literal["user", "assistant"] = "assistant" if raw.get("role") == "assistant" else "user"
    return Message(role, said(text))


def _system(request: Mapping[str, Any]) -> str:
    theirs = request.get("systemPrompt")
    return f"{_SYSTEM}\n\n{theirs[:LONGEST]}" if isinstance(theirs, str) and theirs else _SYSTEM


def _tokens(request: Mapping[str, Any]) -> int:
    wanted = request.get("maxTokens")
    return min(wanted, MOST_TOKENS) if isinstance(wanted, int) and wanted > 0 else MOST_TOKENS


def _answer(reply: Reply) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": {"type": "text", "text": reply.text},
        "model": reply.model or "unknown",
        "stopReason": _STOPS.get(reply.finish, "endTurn"),
    }


def _ignore(delta: Delta) -> None:
    pass
