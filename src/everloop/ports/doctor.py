"""What a look at the house finds, and what can be mended without asking anybody."""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import Struct

Verdict = Literal["ok", "advice", "broken", "skipped"]


class SetMode(Struct, frozen=True, tag="mode"):
    """Who may read and write a file or a folder."""

    path: str
    mode: int


class RemoveStale(Struct, frozen=True, tag="remove"):
    """A file of a process that is gone: in `run/`, or half-made."""

    path: str


class MakeFolder(Struct, frozen=True, tag="make"):
    path: str


Mend = SetMode | RemoveStale | MakeFolder


class Diagnosis(Struct, frozen=True):
    """How it stands with one thing: `what` says it in a sentence, `todo` what to do about it. With `mends` it can be
    mended safely."""

    verdict: Verdict
    what: str
    todo: str = ""
    mends: tuple[Mend, ...] = ()
    check: str = ""  # which has found it
    group: str = ""  # of that


class CheckRow(Struct, frozen=True):
    """A check as people are shown it."""

    name: str
    group: str
    about: str


class Mended(Struct, frozen=True):
    """What was done about a finding; `failed` says why not."""

    check: str
    what: str
    failed: str = ""


class Doctor(Protocol):
    """Looks at the whole house, and changes nothing but by `mend`."""

    def checks(self) -> Sequence[CheckRow]: ...

    async def examine(self) -> Sequence[Diagnosis]:
        """In the order of the checks; it ends within a bounded time."""
        ...

    async def mend(self) -> Sequence[Mended]:
        """Look again, and do what is safe."""
        ...
