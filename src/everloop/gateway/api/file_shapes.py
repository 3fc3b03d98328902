"""What the routes of one's own files take and answer."""

from typing import Annotated

from msgspec import Meta, Struct

from .shapes import ApiInput


class WhoseFile(ApiInput, frozen=True):
    """`of` is somebody else, whose files the owner sees to."""

    of: Annotated[str, Meta(max_length=200)] = ""


class OwnFilesQuery(WhoseFile, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=500)] = 100
    skip: Annotated[int, Meta(ge=0, le=1_000_000_000)] = 0


class WholeRef(ApiInput, frozen=True):
    ref: Annotated[str, Meta(pattern="^file:[0-9a-f]{64}$")]


class OwnFile(Struct, frozen=True):
    """`url` opens it; signed, so that it does without a login, until `files.link_seconds` have passed."""

    file: str
    name: str
    mime: str
    bytes: int
    at: float
    url: str


class OwnFiles(Struct, frozen=True):
    """`used` counts all that is kept for you, results of tools as well; `quota` is null where there is no limit."""

    files: list[OwnFile]
    more: bool
    used: int
    quota: int | None
    largest: int


class FileGone(Struct, frozen=True):
    removed: str
