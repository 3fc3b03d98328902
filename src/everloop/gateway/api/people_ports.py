"""What the API needs of those who know people."""

from collections.abc import AsyncGenerator, Sequence
from typing import Any, Protocol

from ...core.overrun import Per
from ...core.people import Role
from ...ports.credential import CredentialRow, KeptCredential
from ...ports.directory import Person, StandingCode


class Members(Protocol):
    """Who is known, and who may change that: `by` is the role of whoever asks. Raises MailRefused, StoreError."""

    async def everybody(self) -> list[Person]: ...

    async def waiting(self) -> list[StandingCode]: ...

    async def find(self, who: str) -> Person: ...

    async def add(self, name: str, role: Role, by: Role, account: str = "") -> Person: ...

    async def pair(self, code: str, role: Role, by: Role, name: str = "") -> Person: ...

    async def change(
        self, who: str, by: Role, *, name: str | None = None, role: Role | None = None, blocked: bool | None = None
    ) -> Person: ...

    async def invitable(self, who: str, by: Role) -> Person: ...

    async def link(self, who: str, account: str, by: Role) -> Person: ...

    async def unlink(self, account: str, by: Role, of: str = "") -> None: ...


class BudgetState(Protocol):
    """A limit in tokens and dollars, what was spent and is held of it, and when that begins anew."""

    @property
    def per(self) -> str: ...


class PeoplesBudgets(Protocol):
    """What people may spend; `by` is the role of whoever asks. Raises MailRefused, StoreError."""

    async def of(self, owner: str, role: Role) -> Sequence[BudgetState]: ...

    async def show(self, who: str) -> tuple[str, Sequence[BudgetState]]: ...

    async def limit(self, who: str, per: Per, by: Role, tokens: int | None, money: float | None) -> str: ...

    async def change(self, who: str, per: Per, by: Role, limit: None) -> str: ...

    async def begin_anew(self, who: str, per: Per, by: Role) -> str: ...

    def notes_on(self, money: float | None) -> list[str]:
        """What whoever limits money has to know."""
        ...


class OwnKeyKeeper(Protocol):
    """Keys of model providers that people have of their own. Raises EverloopError; no key is ever told."""

    async def keys(self, person: str) -> Sequence[Any]:
        """`provider`, `at`, and what the `problem` with it is."""
        ...

    def providers(self) -> list[str]:
        """For whom one may be given."""
        ...

    async def keep(self, person: str, provider: str, key: str) -> list[str]:
        """What is to be known about it."""
        ...

    async def forget(self, person: str, provider: str) -> None: ...


class CredentialKeeper(Protocol):
    """Credentials that people keep for their tools. Raises EverloopError; no value is ever told."""

    async def rows(self, person: str) -> Sequence[CredentialRow]: ...

    async def keep(self, person: str, name: str, kept: KeptCredential) -> CredentialRow: ...

    async def forget(self, person: str, name: str) -> None: ...


class PersonErasures(Protocol):
    """Raises MailRefused, StoreError, HomeError."""

    async def find(self, who: str, by: Role) -> Person:
        """Somebody who may be erased by someone of this role."""
        ...

    async def somebody(self, who: str) -> Person:
        """One who is known, or a stranger of whom something is kept under this id."""
        ...

    async def erase(self, person: Person) -> dict[str, int]:
        """Remove all that is theirs; what that was."""
        ...


class PeopleDesks(Protocol):
    """Who is known, what they may spend, and what is theirs."""

    @property
    def members(self) -> Members: ...

    @property
    def budgets(self) -> PeoplesBudgets: ...

    @property
    def own_keys(self) -> OwnKeyKeeper: ...

    @property
    def credentials(self) -> CredentialKeeper: ...

    @property
    def erasures(self) -> PersonErasures: ...

    def export(self, person: Person) -> AsyncGenerator[bytes]:
        """All that is theirs, as a zip file that is made while it is read."""
        ...
