"""What is a person's, written where somebody wants to have it."""

import asyncio
from pathlib import Path

from ..errors import HomeError
from ..files.packing import write_folder, write_zip
from ..ports.directory import Person
from ..settings import workspace_of
from .records import Records

_READ = ("people", "chats", "files", "skills", "personas")  # of the home


async def write_export(records: Records, person: Person, path: Path, now: float) -> None:
    """Into a new zip file, if it is called so, else a new folder. Raises HomeError, StoreError."""
    await asyncio.to_thread(check_apart, records, path)
    files = records.export.files(person, now)
    if path.suffix.lower() == ".zip":
        await write_zip(files, path, now)
    else:
        await write_folder(files, path)


def check_apart(records: Records, path: Path) -> None:
    """An export in a folder that it reads would be read again while it is written, until the disk is full. Raises
    HomeError."""
    target = path.resolve()
    for folder in (workspace_of(records.settings, records.home), *map(records.home.__truediv__, _READ)):
        if target.is_relative_to(folder.resolve()):
            raise HomeError(f"{path} would lie in {folder}, which is exported itself: name a place elsewhere")
