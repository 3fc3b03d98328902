"""The world outside: a JSONL file that remembers what reached it, whatever happens to the process that wrote.

Each record is one `write` to a file opened with O_APPEND, so writers in several processes need no lock, and a
SIGKILL right after the write loses nothing. A kill inside it may leave half a line: that record did not arrive.
"""

import os
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


def append(path: Path, record: Any) -> None:
    line = msgspec.json.encode(record) + b"\n"
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.write(descriptor, b"\n" + line if _ends_torn(descriptor) else line)
    finally:
        os.close(descriptor)


def records_in(path: Path) -> list[dict[str, Any]]:
    """Every record that arrived whole, in order; none if there is no file."""
    if not path.exists():
        return []
    return [record for line in path.read_bytes().splitlines() if (record := _decode(line)) is not None]


def told_apart(records: Sequence[T], known_by: Callable[[T], Hashable]) -> tuple[list[T], list[T]]:
    """The records that took effect, and the repeats. A record known by None is never a repeat."""
    known: set[Hashable] = set()
    first: list[T] = []
    again: list[T] = []
    for record in records:
        key = known_by(record)
        (again if key is not None and key in known else first).append(record)
        known.add(key)
    return first, again


def _ends_torn(descriptor: int) -> bool:
    size = os.fstat(descriptor).st_size
    return size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"


def _decode(line: bytes) -> dict[str, Any] | None:
    try:
        return msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.DecodeError:
        return None
