"""The model that is asked what is to be remembered."""

from typing import Protocol

from msgspec import Struct

from ..core.prompt import Prompt
from ..ports.provider import Reply
from .rows import Spent


class MemoryAnswer(Struct, frozen=True):
    reply: Reply
    spent: Spent


class MemoryModel(Protocol):
    """It is asked at somebody's expense."""

    async def room(self) -> int:
        """Characters that it can be shown. Raises ModelMissing."""
        ...

    async def ask(self, principal: str, owner: str, thread: str, key: str, prompt: Prompt) -> MemoryAnswer | None:
        """For the memory of a principal, of a conversation of `owner`'s. None: no bound that holds for it will ever
        have room. Raises Postponed where none has now, ProviderError, TimeoutError, StoreError. What was lost under
        this key before is charged as it was reserved."""
        ...
