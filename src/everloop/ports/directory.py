"""Who is known to the house, and by which accounts."""

from typing import Literal, Protocol

from msgspec import Struct

from ..core.people import Role

CodeKind = Literal["pair", "link"]


class Person(Struct, frozen=True):
    """Someone whom the owner has introduced. Who was first known by an account has that account's id."""

    id: str
    name: str
    role: Role
    at: float = 0.0
    blocked: bool = False
    accounts: tuple[str, ...] = ()
    erasing: bool = False  # nobody can change anything about them any more

    @property
    def principals(self) -> tuple[str, ...]:
        """All that they are named by in what is kept."""
        return tuple(dict.fromkeys((self.id, *self.accounts)))


class StandingCode(Struct, frozen=True):
    """What someone was told to say, or to have said, elsewhere: to be let in, or to be known as the same person."""

    code: str
    account: str
    session: str
    event: str  # of the message that has asked for it
    at: float
    until: float


class Directory(Protocol):
    """People and their accounts (`<platform>:<account>`). Raises StoreError."""

    async def people(self) -> list[Person]:
        """All of them, the owner first, then by age."""

    async def person(self, id: str) -> Person | None: ...

    async def introduce(self, person: Person) -> bool:
        """Whether this is someone new; their accounts that belong to nobody else become theirs."""

    async def change_person(
        self, id: str, *, name: str | None = None, role: Role | None = None, blocked: bool | None = None
    ) -> bool:
        """What is not said stays as it is. Whether there is such a person."""

    async def known_by(self, account: str) -> Person | None:
        """The person to whom an account belongs; as one who is blocked, if they are named by it and it was taken from
        them."""

    async def link(self, account: str, person: str) -> str:
        """From now on who writes from this account is that person. Returns why not, "" when it is so now."""

    async def unlink(self, account: str) -> bool: ...

    async def ask_code(self, kind: CodeKind, account: str, session: str, event: str, seconds: float) -> StandingCode:
        """The code that an account has asked for: the same one, with the first event, until it is used or lapses."""

    async def codes(self, kind: CodeKind) -> list[StandingCode]:
        """Those that hold, the oldest first."""

    async def use_code(self, kind: CodeKind, code: str) -> StandingCode | None:
        """Each is used once."""
