"""`everloop users export` and `everloop users erase`: all that is a person's, to take along, and gone."""

import asyncio
import sys
from datetime import UTC, datetime
from pathlib import Path

from ..app.backups import backups_in
from ..app.leaving import write_export
from ..app.records import Records
from ..core.people import Role
from ..ports.directory import Person
from ..readings.filenames import safe_name
from ..readings.visible import in_one_line
from .table import table
from .terminal import Terminal, WrongUse, show_prompt

WHAT_GOES = (
    "All of this goes for good, with their words in conversations of groups and the answers to them; what others said "
    "there stays. What was spent stays as numbers that name nobody."
)
NOBODY_ASKED = "erasing somebody is for good, and asked at a terminal; in a script say --yes"


async def export(records: Records, terminal: Terminal, who: str, target: str) -> None:
    """Raises MailRefused, HomeError."""
    person, now = await records.erasures.somebody(who), datetime.now(UTC)
    path = Path(target or f"everloop {safe_name(person.name)} {now:%Y-%m-%d}.zip")
    await write_export(records, person, path, now.timestamp())
    terminal.answer(f"{path} has all that is {in_one_line(person.name)}'s. Begin with README.md.")


async def erase(records: Records, terminal: Terminal, who: str, yes: bool) -> int:
    """Raises MailRefused, and WrongUse where nobody can be asked."""
    person = await records.erasures.find(who, Role.OWNER)
    if not yes and not await _is_sure(records, terminal, person):
        terminal.answer("Nobody was erased.")
        return 1
    gone = await records.erasures.erase(person)
    terminal.answer(f"{in_one_line(person.name)} is erased. What was removed:\n{_listed(gone)}")
    if left := await asyncio.to_thread(backups_in, records.backups.folder):
        terminal.tell(f"They are still in {len(left)} backups in {records.backups.folder}, until you remove these.")
    return 0


async def _is_sure(records: Records, terminal: Terminal, person: Person) -> bool:
    if not sys.stdin.isatty():
        raise WrongUse(NOBODY_ASKED)
    name = in_one_line(person.name)
    terminal.note(f"{name} ({in_one_line(person.id)}) has:\n{_listed(await records.erasures.belongings(person))}")
    terminal.note(WHAT_GOES)
    show_prompt(f"There is no way back. Type {name} to erase them: ")
    return sys.stdin.readline().strip() == name.strip()


def _listed(counts: dict[str, int]) -> str:
    return table(("WHAT", " HOW MANY"), [(what, f"{count:,}") for what, count in counts.items()])
