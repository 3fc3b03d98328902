"""Who may come in through the gateway. It is given hashes only, and never a secret."""

from collections.abc import Sequence
from typing import Literal, Protocol

from ..core.people import Role
from .rows import Known, TokenRow


class Users(Protocol):
    """Those whom somebody has introduced. Raises StoreError."""

    async def role(self, person: str) -> Role:
        """Of one of the users, now: who is blocked is `BLOCKED`, and whoever is none of them a guest."""


class Tokens(Protocol):
    """Raises StoreError."""

    async def keep_token(
        self,
        owner: str,
        name: str,
        hash: str,
        scopes: Sequence[str],
        seconds: float = 0,
        platforms: Sequence[str] = (),
    ) -> str:
        """Returns its id, or "" when the owner has another one of this name. Without `seconds` it holds for ever.
        `platforms` are those for whose people it speaks, by name."""

    async def tokens(self, owner: str) -> list[TokenRow]:
        """Those that hold, the oldest first."""

    async def forget_token(self, owner: str, name: str) -> bool:
        """By its name or id; whether there was one to forget."""

    async def known_token(self, hash: str) -> Known | None: ...


class Logins(Protocol):
    """Passwords, one-time links, and browsers that have logged in. Raises StoreError."""

    async def keep_login(self, owner: str, kind: Literal["password", "link"], hash: str, seconds: float = 0) -> None:
        """In place of the one that was there."""

    async def login(self, owner: str, kind: Literal["password", "link"]) -> str | None:
        """The hash that is kept, while it holds."""

    async def forget_login(self, owner: str, kind: Literal["password", "link"]) -> bool:
        """Whether there was one to forget."""

    async def link_owner(self, hash: str) -> str:
        """Whose one-time link it is, "" if there is none; it is not used up."""

    async def use_link(self, hash: str) -> str:
        """Use up a one-time link; returns whose it was, "" if there is none."""

    async def keep_visit(self, owner: str, hash: str, page: str, seconds: float) -> str:
        """A login of a browser: the hash of its cookie, and of what its page is given. Returns its id."""

    async def known_visit(self, hash: str, *, page: bool = False) -> Known | None: ...

    async def end_visits(self, owner: str, id: str = "", *, but: str = "") -> None:
        """End one login of a browser, or all of the owner's `but` one."""


class Credentials(Users, Tokens, Logins, Protocol):
    """Who may come in through the gateway."""
