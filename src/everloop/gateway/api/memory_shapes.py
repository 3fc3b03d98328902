"""What is asked and told about what is remembered."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ...ports.memory import MemoryVersion
from ...ports.remembering import SaidIn
from .shapes import ApiInput, Limit

DocumentName = Literal["MEMORY.md", "HISTORY.md"]
Version = Annotated[int, Meta(ge=0, le=2**53)]
FactId = Annotated[str, Meta(pattern="^[0-9A-Za-z_-]{1,64}$")]


class MemoryShown(Struct, frozen=True):
    """`facts` are true, `ended` no longer; `marked` come from strangers' words. `left_out` lines of MEMORY.md do not
    fit into prompts. `problems` say why a file is not read or written. `recall` says how facts are found."""

    version: int
    facts: int
    ended: int
    marked: int
    left_out: int
    problems: tuple[str, ...]
    recall: str
    changed: MemoryVersion | None


class FactQuery(ApiInput, frozen=True):
    """With `search` the likeliest first, of those that are true; else the newest first, with `ended` also others."""

    search: Annotated[str, Meta(max_length=1000)] = ""
    ended: bool = False
    limit: Limit = 100
    skip: Version = 0


class FactShown(Struct, frozen=True):
    """`thread`, `session` and `seq` are where it was said; all empty where it was written by hand, or `deleted`: the
    conversation is. `at` is when it was said. `until` is 0 while it is true."""

    id: str
    text: str
    topic: str
    importance: int
    thread: str
    session: str
    seq: int
    person: str
    at: float
    since: float
    until: float
    replaced_by: str
    marked: bool
    deleted: bool


class FactList(Struct, frozen=True):
    facts: list[FactShown]


class VersionsQuery(ApiInput, frozen=True):
    """`before` a version, where it is not 0."""

    before: Version = 0
    limit: Limit = 50


class MemoryVersions(Struct, frozen=True):
    versions: list[MemoryVersion]


class DocumentQuery(ApiInput, frozen=True):
    """`version` 0 is now."""

    document: DocumentName = "MEMORY.md"
    version: Version = 0


class DocumentShown(Struct, frozen=True):
    document: str
    text: str


class DifferenceQuery(ApiInput, frozen=True):
    """From the version `old` to `new`, which is 0 for now; with `old` 0, what the last change of it did."""

    document: DocumentName = "MEMORY.md"
    old: Version = 0
    new: Version = 0


class DifferenceShown(Struct, frozen=True):
    """As `diff -u` tells it; empty where nothing differs."""

    text: str


class DocumentEdited(ApiInput, frozen=True):
    """`base` is the text that was shown, from which `text` was made."""

    document: DocumentName
    text: Annotated[str, Meta(max_length=1_000_000)]
    base: Annotated[str, Meta(max_length=1_000_000)]


class Restoring(ApiInput, frozen=True):
    version: Annotated[int, Meta(ge=1, le=2**53)]
    document: DocumentName = "MEMORY.md"


class MemoryChanged(Struct, frozen=True):
    """The version that it is now; 0: it was so already."""

    version: int


class Forgetting(ApiInput, frozen=True):
    ids: Annotated[list[FactId], Meta(min_length=1, max_length=500)]


class ForgottenShown(Struct, frozen=True):
    """How many facts, what a person is to know, and the conversations that still hold what was said."""

    facts: int
    told: str
    said_in: tuple[SaidIn, ...]
