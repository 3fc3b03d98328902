"""What the page's API needs of the house beside what every door of the gateway needs."""

from collections.abc import Mapping
from typing import Any, Protocol

from ...core.conversation import Branch, Conversation, Deed
from ..house import House


class Sessions(Protocol):
    """Finding conversations and working out how to go on from them. Raises MailRefused."""

    async def find(self, id: str, owner: str, session: str = "") -> Conversation: ...

    async def go_to(self, conversation: Conversation, session: str, by: str) -> Deed: ...

    async def fork(self, conversation: Conversation, session: str, by: str, at: int | None = None) -> Branch: ...


class Desk(House, Protocol):
    notice: str  # what a person should know about the model

    @property
    def sessions(self) -> Sessions: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that is set, with secrets left out."""
        ...
