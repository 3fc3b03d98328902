"""What the page's API needs of the house, and what it knows of whoever asks."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

from ...core.conversation import Branch, Conversation, Deed
from ...core.mail import Inbound
from ...core.people import Role
from ...core.ports import Files, Receipt, Store
from ...core.tool import Risk


class Principal(Protocol):
    """Whoever asks, as the auth middleware has found out."""

    @property
    def user(self) -> str: ...

    @property
    def role(self) -> Role: ...

    @property
    def scopes(self) -> Collection[str]: ...


class Sessions(Protocol):
    """Finding conversations and working out how to go on from them. Raises MailRefused."""

    async def find(self, id: str, owner: str, session: str = "") -> Conversation: ...

    async def go_to(self, conversation: Conversation, session: str, by: str) -> Deed: ...

    async def fork(self, conversation: Conversation, session: str, by: str, at: int | None = None) -> Branch: ...


class Question(Protocol):
    """Something that waits for a person's permission."""

    @property
    def id(self) -> str: ...

    @property
    def session(self) -> str: ...

    @property
    def requester(self) -> str: ...

    @property
    def tool(self) -> str: ...

    @property
    def text(self) -> str: ...

    @property
    def risk(self) -> Risk: ...

    @property
    def until(self) -> float: ...


class Desk(Protocol):
    """The house, as far as the page's API looks into it."""

    @property
    def store(self) -> Store: ...

    @property
    def files(self) -> Files: ...

    @property
    def sessions(self) -> Sessions: ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that is set, with secrets left out."""
        ...

    @property
    def model(self) -> str: ...

    @property
    def notice(self) -> str: ...

    async def tell(self, inbound: Inbound) -> Receipt: ...

    async def approvals(self, session: str = "") -> Sequence[Question]: ...

    async def decide(self, approval: str, allow: bool, by: str = "owner") -> Question: ...
