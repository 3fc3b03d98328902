"""The values that every reader makes of what it finds."""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

SET_ASIDE = "imported/{kind}/skills"  # in a workspace: skills that nobody has looked at yet


class Remark(Struct, frozen=True):
    """What is not taken over, and what to do about it, in a sentence. What is of `all` is told before what is of one
    thing: of these there may be more than anybody is shown."""

    text: str
    all: bool = False


class ForeignFile(Struct, frozen=True):
    """A file that belongs to a message: `place` is known to the reader that found it."""

    name: str
    place: str


class ForeignConversation(Struct, frozen=True):
    """`messages` are such as `everloop sessions export` writes. `session` is where it goes on; "" is in the page.
    `files` are those of a message, by its place among them."""

    id: str
    title: str
    created: float
    messages: list[dict[str, Any]]
    session: str = ""
    files: Mapping[int, tuple[ForeignFile, ...]] = {}
    remarks: tuple[str, ...] = ()


class ForeignJob(Struct, frozen=True):
    """Work that is done at times; `when` as `everloop cron add` takes it."""

    id: str
    name: str
    when: str
    text: str
    zone: str = ""
    session: str = ""
    enabled: bool = True


class ForeignSkill(Struct, frozen=True):
    name: str
    folder: Path


class ForeignText(Struct, frozen=True):
    """A file of the workspace: its path there, and where its content is found."""

    name: str
    place: Path | None = None
    text: str = ""

    def read(self) -> bytes:
        """Raises OSError."""
        return self.place.read_bytes() if self.place else self.text.encode("utf-8", "replace")


class ForeignSource(Protocol):
    """A home or an export of somewhere else. What it holds is read anew each time it is asked for."""

    @property
    def kind(self) -> str: ...

    def conversations(self) -> Iterator[ForeignConversation | Remark]: ...

    def file(self, found: ForeignFile, most: int) -> bytes | None:
        """What it holds; None when it is not there or has more than `most` bytes."""
        ...

    def memory(self) -> str:
        """The lines that are to be remembered."""
        ...

    def history(self) -> str: ...

    def skills(self) -> Iterator[ForeignSkill]: ...

    def jobs(self) -> Iterator[ForeignJob | Remark]: ...

    def texts(self) -> Iterator[ForeignText | Remark]: ...

    def settings(self) -> Mapping[str, Any]:
        """Its own settings file, as it is. Raises EverloopError."""
        ...

    def close(self) -> None: ...


def as_text(name: str) -> str:
    """A name as it can be told and kept: what is half of a pair, as where that of a file is not UTF-8, is a question
    mark."""
    return name.replace("\0", "").encode("utf-8", "replace").decode()


def digest(*parts: str) -> str:
    """A name that is the same for the same thing, whenever it is read."""
    return sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
