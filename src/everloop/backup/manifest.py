"""What stands in a backup: `about.json` first, then the database, what lies in the home, and `manifest.jsonl` last, a
line with the hash of each member before it. A file that ends before its manifest is no backup."""

import errno
import os
import posixpath

from msgspec import Struct

ABOUT, DATABASE, MANIFEST = "about.json", "everloop.db", "manifest.jsonl"
FORMAT = 1
TOLD = 1000  # of what was left out, that are named
LATEST = 253_402_300_800  # the year 10000, which no calendar shows
DEEPEST = 100  # folders in each other, of which each is held open
LONGEST_NAME = 255  # bytes that a file system takes


class About(Struct, frozen=True, kw_only=True):
    """`home` and `workspace` are where they lay, `schema` is that of the database."""

    format: int = FORMAT
    everloop: str
    schema: int
    made: float
    store: str  # sqlite, postgres
    home: str
    workspace: str
    has_key: bool  # of the vault


class Member(Struct, frozen=True, omit_defaults=True):
    name: str
    mode: int
    size: int = 0
    sha256: str = ""  # of a file
    link: str = ""  # to what a link points


class PackSummary(Struct, frozen=True, kw_only=True):
    """The last line. `changed` are files that somebody wrote while they were read, `left_out` what is not in it, and
    why."""

    members: int
    bytes: int
    rows: dict[str, int]
    left_out: list[str] = []
    changed: list[str] = []


def is_inside(name: str) -> bool:
    """Whether it leads to a place beneath the folder that it is unpacked in, and nowhere else (path traversal)."""
    parts = name.split("/")
    if "\0" in name or "\\" in parts[0] or len(parts) > DEEPEST + 2:
        return False
    return not any(part in ("", ".", "..") or len(os.fsencode(part)) > LONGEST_NAME for part in parts)


def link_stays(name: str, target: str) -> bool:
    """Whether a link leads to something in the same folder of the home."""
    if not target or target.startswith("/") or "\0" in target or "/" not in name:
        return False
    aim = posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
    return aim.split("/")[0] == name.split("/")[0] and is_inside(aim)


def leads_into(folder: str, path: str) -> bool:
    """Whether what lies at `path` is in that folder, all links followed that lie there now. `folder` is a real path."""
    try:
        aim = os.path.realpath(path, strict=True)
    except (FileNotFoundError, NotADirectoryError):  # what is not there yet may come
        aim = os.path.realpath(path)
    except OSError as error:  # what is too long for us to follow, the system follows step by step
        return error.errno == errno.ELOOP  # which leads nowhere
    return aim == folder or aim.startswith(f"{folder}/")


def is_text(name: str) -> bool:
    """Whether a manifest can hold it: a name on Linux is any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
