"""Which files are named anywhere in the store: everything else in the folder of files was left behind."""

import re
from collections.abc import AsyncIterator

from msgspec import Struct

from .database import Ask

BATCH = 1000  # rows that are read at once: nothing else waits for long
_FILE = re.compile("file(?::|%3[Aa])([0-9a-f]{12})")  # also as a link has it


class _Naming(Struct, frozen=True):
    """A table in which files are named: the columns by which it is read on, and from where."""

    table: str
    key: tuple[str, ...]
    first: tuple[object, ...]
    text: str = "body"


_TABLES = (
    _Naming("entries", ("thread", "seq"), ("", 0)),
    _Naming("inbox", ("id",), (0,), "body || coalesce(reply, '')"),
    _Naming("outbox", ("id",), (0,)),
    _Naming("jobs", ("id",), ("",)),
)


async def files_named(ask: Ask) -> set[str]:
    return {digits for each in _TABLES async for text in _texts(ask, each) for digits in digits_in(text)}


def digits_in(text: str) -> list[str]:
    """Of the files that a text names."""
    return _FILE.findall(text)


async def _texts(ask: Ask, naming: _Naming) -> AsyncIterator[str]:
    columns, after = ", ".join(naming.key), naming.first
    places = ", ".join(f"${n}" for n in range(1, len(after) + 1))
    statement = (
        f"SELECT {columns}, CASE WHEN {naming.text} LIKE '%file%' THEN {naming.text} ELSE '' END "
        f"FROM {naming.table} WHERE ({columns}) > ({places}) ORDER BY {columns} LIMIT {BATCH}"
    )
    while rows := [tuple(row) for row in await ask(statement, *after)]:
        for row in rows:
            yield row[-1]
        after = rows[-1][:-1]
