"""What the routes of one's own files take and answer."""

from typing import Annotated

from msgspec import Meta, Struct

from .shapes import ApiInput


class OwnFilesQuery(ApiInput, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    skip: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0


class WholeRef(ApiInput, frozen=True):
    ref: Annotated[str, Meta(pattern="^file:[0-9a-f]{64}$")]


class OwnFile(Struct, frozen=True):
    file: str
    name: str
    mime: str
    bytes: int
    at: float


class OwnFiles(Struct, frozen=True):
    """`used` counts all that is kept for you, results of tools as well; `quota` is null where there is no limit."""

    files: list[OwnFile]
    more: bool
    used: int
    quota: int | None
    largest: int


class FileGone(Struct, frozen=True):
    removed: str
