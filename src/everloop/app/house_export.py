"""Everything that is kept, as files that people can read: of each person what they would be given themselves, then what
is the house's. No secret is among it."""

import asyncio
import csv
import io
from collections.abc import AsyncIterator, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from ..core.log import MANY
from ..core.people import Role
from ..files.packing import write_folder, write_zip
from ..ports import HomeFile
from ..ports.audit import line_of
from ..ports.directory import Person
from ..readings.filenames import safe_name
from ..runtime.allotments import TOGETHER
from ..runtime.person_export import cell
from ..settings import without_secrets
from .home_folders import walked
from .leaving import check_apart
from .records import Records

PAGE = 1000
README = """# What this everloop keeps

Made {when} by everloop {version}. It is to be read and taken elsewhere; to bring everything back, use
`everloop backup create` and `everloop backup restore`.

- `people/`: a folder for everybody, groups and strangers among them; its README.md says what is in it: conversations
  (`.md`, and `.jsonl`, which `everloop sessions import` reads), memory and facts, files, workspace, skills, and tables
  (schedules, jobs, accounts, grants, what was spent)
- `users.csv`: who is known, as what
- `usage.csv`: every model call: who, when, which model, how many tokens, what it cost
- `budgets.csv`: what everyone, and all guests, may spend together, where somebody has set it
- `settings.json`: the settings; of a secret only whether it is set
- `personas/`: who the agent is told to be
- `audit.jsonl`: who has done what, line by line, as `everloop audit` shows it

Not in it: secrets and keys, logs, what belongs to this machine, and what was installed for MCP servers (`mcp/` of the
home).

{people}
"""


async def write_house(records: Records, path: Path, now: float, version: str) -> int:
    """Into a new zip file, if it is called so, else a new folder; for how many. Raises HomeError, StoreError."""
    await asyncio.to_thread(check_apart, records, path)
    everybody = await _everybody(records)
    files = _files(records, everybody, now, version)
    if path.suffix.lower() == ".zip":
        await write_zip(files, path, now)
    else:
        await write_folder(files, path)
    return len(everybody)


async def _everybody(records: Records) -> list[Person]:
    known = await records.members.everybody()
    named = {principal for person in known for principal in person.principals}
    others = [owner for owner in await records.store.owners() if owner not in named]
    return [*known, *(Person(owner, owner, Role.GUEST) for owner in others)]


async def _files(records: Records, everybody: list[Person], now: float, version: str) -> AsyncIterator[HomeFile]:
    await records.store.note(line_of("house.exported", ""))
    for person in everybody:
        folder = f"people/{safe_name(person.id)}"
        async for file in records.export.files(person, now):
            yield HomeFile(f"{folder}/{file.path}", file.pieces, file.left_out)
    async for file in walked(records.home / "personas", records.home):
        yield HomeFile(f"personas/{'/'.join(map(safe_name, file.path.split('/')))}", file.pieces, file.left_out)
    settings = msgspec.json.format(msgspec.json.encode(without_secrets(records.settings)), indent=2)
    yield HomeFile("settings.json", _once(settings))
    people = [(each.id, each.name, each.role.name.lower(), " ".join(each.accounts)) for each in everybody]
    yield HomeFile("users.csv", _once(_csv([("id", "name", "role", "accounts"), *people])))
    yield HomeFile("usage.csv", _usage(records, everybody))
    yield HomeFile("budgets.csv", _once(_csv(await _budgets(records))))
    yield HomeFile("audit.jsonl", _audit(records))
    when = datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%d %H:%M UTC")
    listed = "\n".join(f"- `people/{safe_name(each.id)}`: {each.name}" for each in everybody)
    yield HomeFile("README.md", _once(README.format(when=when, version=version, people=listed).encode()))


async def _usage(records: Records, everybody: list[Person]) -> AsyncIterator[bytes]:
    """Each call once: what somebody has asked in a group is also told with the group, and is theirs here."""
    columns, after = records.store.exported()["usage"], 0
    known = {principal: person.id for person in everybody for principal in person.principals}
    yield _csv([("who", *columns)])
    while rows := await records.store.calls_made(after, PAGE):
        yield _csv([(known.get(who, who), *map(cell, columns, row)) for _, who, *row in rows])
        after = rows[-1][0]


async def _budgets(records: Records) -> list[tuple[Any, ...]]:
    """Those that belong to nobody alone: the others stand with whose they are."""
    columns = records.store.exported()["limits"]
    found: list[tuple[Any, ...]] = [("who", *columns)]
    for who, owner in TOGETHER.items():
        rows = await records.store.rows_of("limits", [owner], 0, PAGE)
        found += [(who, *map(cell, columns, row)) for row in rows]
    return found


async def _audit(records: Records) -> AsyncIterator[bytes]:
    """The last first; each line has its number."""
    before = MANY
    while rows := await records.store.audit(before=before, limit=PAGE):
        yield b"".join(msgspec.json.encode(row) + b"\n" for row in rows)
        before = rows[-1].id


def _csv(rows: Iterable[Iterable[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows([[cell("", value) for value in row] for row in rows])
    return text.getvalue().encode(errors="replace")


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data
