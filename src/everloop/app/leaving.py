"""What is a person's, written where somebody wants to have it."""

from pathlib import Path

from ..files.packing import write_folder, write_zip
from ..ports.directory import Person
from .records import Records


async def write_export(records: Records, person: Person, path: Path, now: float) -> None:
    """Into a new zip file, if it is called so, else a new folder. Raises HomeError, StoreError."""
    files = records.export.files(person, now)
    if path.suffix.lower() == ".zip":
        await write_zip(files, path, now)
    else:
        await write_folder(files, path)
