"""What the tools remember and forget work with, made when one of them is first used."""

from collections.abc import Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING

from ..ports import Clock
from ..ports.tools import CallContext

if TYPE_CHECKING:
    from ..memory.forgetting import ForgettingStore
    from ..memory.remembering import Remembering

MemoryChanged = Callable[[str], Awaitable[None]]  # by its principal


class LaterMemory:
    """The KeepsMemory of tools."""

    def __init__(self, store: "ForgettingStore", clock: Clock, changed: MemoryChanged | None = None) -> None:
        self._store = store
        self._clock = clock
        self._changed = changed

    @cached_property
    def _memory(self) -> "Remembering":
        from ..memory.learning import tell_nobody
        from ..memory.remembering import Remembering
        from .redaction import redacted

        return Remembering(self._store, self._clock, redacted, self._changed or tell_nobody)

    async def remember(self, text: str, topic: str, importance: int, replaces: str, context: CallContext) -> str:
        return await self._memory.remember(text, topic, importance, replaces, context)

    async def forget(self, query: str, context: CallContext) -> str:
        return await self._memory.forget(query, context)
