"""The words of `everloop files` that are about one file, or those of one person."""

import argparse
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from ..app.records import Records
from ..errors import MailRefused
from ..ports import FileRecord
from .table import sized, table, to_json
from .times import clock

HEADS = ("FILE", " SIZE", "SENT", "KIND", "NAME")
_PIECE = 1 << 20
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


async def list_of(records: Records, arguments: argparse.Namespace) -> str:
    found = await records.store.recorded_files(arguments.of, limit=arguments.limit)
    used, quota = await records.kept.used(arguments.of), await records.quota_of(arguments.of)
    if arguments.json:
        return to_json({"files": [_told(each) for each in found], "used": used, "quota": quota or None})
    rows = [(each.ref[:17], sized(each.size), clock(each.at), each.mime, each.name) for each in found]
    total = f"{arguments.of} has {sized(used)} of files in all{f', of {sized(quota)}' if quota else ''}."
    return "\n".join((*([table(HEADS, rows)] if rows else []), total))


async def _show(records: Records, arguments: argparse.Namespace) -> str:
    record = await _found(records, arguments)
    told_in = await records.store.threads_of_file(record.owner, record.ref)
    if arguments.json:
        return to_json({**_told(record), "conversations": told_in})
    what = f"{record.name}: {record.mime}, {record.size:,} bytes\n{record.ref}\nof {record.owner}, {clock(record.at)}"
    return "\n".join((what, *(f"told of in {thread}" for thread in told_in)))


async def _get(records: Records, arguments: argparse.Namespace) -> str:
    record = await _found(records, arguments)
    try:
        fd = os.open(arguments.path, _NEW, 0o600)
    except OSError as error:
        raise MailRefused(f"{arguments.path} cannot be written ({error.strerror})") from error
    with open(fd, "wb") as file:  # noqa: ASYNC230  # nobody waits beside it
        await _copy(records, record, file.write)
    return f"{record.name} is in {arguments.path} ({record.size:,} bytes)."


async def write_out(records: Records, arguments: argparse.Namespace) -> None:
    if sys.stdout.isatty():  # it may hold what steers a terminal
        raise MailRefused("a file is not shown at a terminal as it is; name a path for it, or pipe it to a program")
    await _copy(records, await _found(records, arguments), sys.stdout.buffer.write)
    sys.stdout.buffer.flush()


async def _remove(records: Records, arguments: argparse.Namespace) -> str:
    record = await _found(records, arguments)
    await records.files.remove_own(record.owner, record.ref)
    return f"{record.name} ({record.ref[:17]}) of {record.owner} is removed."


async def _copy(records: Records, record: FileRecord, write: Callable[[bytes], object]) -> None:
    async with records.kept.open(record.owner, record.ref) as file:
        at = 0
        while at < file.size and (piece := await file.read(at, _PIECE)):
            write(piece)
            at += len(piece)


async def _found(records: Records, arguments: argparse.Namespace) -> FileRecord:
    """What is known of it; of a tool's result no name is. Raises MailRefused."""
    try:
        async with records.kept.open(arguments.of, arguments.file) as file:
            ref, size, changed = f"file:{file.tag}", file.size, file.changed
    except FileNotFoundError as error:
        raise MailRefused(f"{arguments.of} has no file {arguments.file}; see everloop files list") from error
    except ValueError as error:
        raise MailRefused(f"{arguments.file}: {error}") from error
    known = await records.store.recorded_file(arguments.of, ref)
    return known or FileRecord(arguments.of, ref, "file", "application/octet-stream", size, changed)


def _told(record: FileRecord) -> dict[str, Any]:
    told = {"file": record.ref, "name": record.name, "mime": record.mime, "bytes": record.size}
    return {**told, "at": record.at, "owner": record.owner}


WORDS: dict[str, Callable[[Records, argparse.Namespace], Awaitable[str]]] = {
    "show": _show,
    "get": _get,
    "remove": _remove,
}
