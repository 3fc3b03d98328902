"""Skills: which somebody has, where the files of each lie, and what is told of them."""

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from ..core.people import Role

SkillSource = Literal["workspace", "installed", "shared", "built-in"]
SkillState = Literal["available", "missing", "wrong", "held"]


class SkillPlace(Struct, frozen=True):
    """Where the files of a skill lie. One of the workspace (`own`) says in its SKILL.md what a person has accepted of
    it: `text`."""

    name: str
    folder: str
    own: bool = False
    text: bytes = b""


class SkillFolders(Protocol):
    async def places(self, principal: str, role: Role) -> Mapping[str, SkillPlace]:
        """Those that somebody of this role has for this principal, by name. Raises StoreError."""
        ...


class SkillRow(Struct, frozen=True):
    """A skill as people are shown it. `why` says what is missing or wrong, or why it is held back; `hides` where one of
    the same name lies that does not count beside it; `pin` by what an installed one is known."""

    name: str
    description: str
    source: SkillSource
    state: SkillState
    why: str = ""
    always: bool = False
    hides: str = ""
    pin: str = ""
    origin: str = ""  # where it was installed from


class SkillReview(Struct, frozen=True):
    """What a skill asks for, in lines for people; `warnings` first. `changes` are files that differ from what is
    installed, `pin` what it is known by, `files` how many there are."""

    name: str
    description: str
    pin: str
    files: int
    size: int
    asks: Sequence[str]
    warnings: Sequence[str] = ()
    changes: Sequence[str] = ()
    installed: bool = False  # one of this name is


class SkillShown(Struct, frozen=True):
    """A skill with its text, its files and what it asks for; `change` is the difference that is held back, if any,
    known by `held`."""

    row: SkillRow
    text: str
    files: Sequence[str]
    asks: Sequence[str]
    warnings: Sequence[str]
    change: str = ""
    held: str = ""


class SkillBook(Protocol):
    """The skills of somebody, as people see and change them. Raises MailRefused, HomeError, StoreError."""

    async def rows(self, principal: str, role: Role) -> Sequence[SkillRow]: ...

    async def show(self, principal: str, role: Role, name: str) -> SkillShown: ...

    async def accept(self, principal: str, name: str, allow: bool, held: str = "") -> str:
        """Accept a change that is held back, or put back what was accepted; `held` is the change that was shown."""
        ...


class SkillInstaller(SkillBook, Protocol):
    async def review(self, person: str, data: bytes, source: str, path: str = "") -> SkillReview:
        """What is in an archive, and what it asks for."""
        ...

    async def install(
        self, person: str, data: bytes, source: str, path: str = "", *, pin: str, replace: bool = False
    ) -> str:
        """Install what is in an archive that is known by this `pin`."""
        ...

    async def remove(self, person: str, name: str) -> str: ...
