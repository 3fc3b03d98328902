"""What is asked and told about people."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ...ports.directory import Person, StandingCode
from ...readings.visible import UNSEEN
from .shapes import ApiInput

RoleGiven = Literal["guest", "user", "admin"]
_Name = Annotated[str, Meta(min_length=1, max_length=100, pattern=rf"^[^\x00-\x1f{UNSEEN}]*\S[^\x00-\x1f{UNSEEN}]*$")]
_Account = Annotated[
    str, Meta(pattern=rf"^[^\x00-\x20:{UNSEEN}]{{1,100}}:[^\x00-\x1f{UNSEEN}]{{0,200}}[^\x00-\x20{UNSEEN}]$")
]


class OfPerson(ApiInput, frozen=True):
    id: Annotated[str, Meta(min_length=1, max_length=400)]


class Introducing(ApiInput, frozen=True):
    """`account` is where they write from, as telegram:12345."""

    name: _Name
    role: RoleGiven = "user"
    account: _Account | None = None


class Pairing(ApiInput, frozen=True):
    """Without a `name` they are called as their account is."""

    code: Annotated[str, Meta(min_length=4, max_length=20)]
    role: RoleGiven = "user"
    name: _Name | None = None


class ChangingPerson(ApiInput, frozen=True):
    """What is not said stays as it is."""

    name: _Name | None = None
    role: RoleGiven | None = None
    blocked: bool | None = None


class Linking(ApiInput, frozen=True):
    account: _Account


class Inviting(ApiInput, frozen=True):
    """For how long the link holds."""

    days: Annotated[int, Meta(ge=1, le=30)] = 3


class Invitation(Struct, frozen=True):
    """The path of a link that works once; it is told this once."""

    link: str


class PersonShown(Struct, frozen=True):
    id: str
    name: str
    role: Literal["guest", "user", "admin", "owner"]
    at: float
    blocked: bool
    accounts: tuple[str, ...]
    erasing: bool = False


class PersonChanged(Struct, frozen=True):
    person: PersonShown


class PersonList(Struct, frozen=True):
    """`waiting` are strangers who have been told a code."""

    users: list[PersonShown]
    waiting: list[StandingCode]


def shown(person: Person) -> PersonShown:
    role: Literal["guest", "user", "admin", "owner"] = person.role.name.lower()  # type: ignore[assignment]
    return PersonShown(person.id, person.name, role, person.at, person.blocked, person.accounts, person.erasing)
