"""Backups as the page and the API show and make them: the owner's."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

from ..errors import MailRefused
from ..ports.audit import line_of
from ..ports.backup import BackupShown, BackupsStanding
from .backups import BackupFile, backups_in, folder_of
from .house import House
from .scheduled_backups import ScheduledBackups, change_schedule

PIECE = 262_144
NO_SUCH = "There is no backup of this name."


class BackupDesk:
    def __init__(self, house: House) -> None:
        self._house = house

    async def standing(self) -> BackupsStanding:
        settings = self._house.opened.settings_now()
        folder = folder_of(settings, self._house.opened.home)
        found = await asyncio.to_thread(backups_in, folder)
        copy = await self._house.store.restored()
        return BackupsStanding(
            folder=str(folder),
            every=settings.backup.every,
            keep=settings.backup.keep,
            encrypted=bool(await self._house.backups.passphrase()),
            backups=[_shown(each) for each in found],
            copy_of=copy.name if copy else "",
        )

    async def create(self) -> BackupShown:
        made = await self._house.backups.create(passphrase=await self._house.backups.passphrase())
        return _shown(made.file, made.warnings)

    async def schedule(self, every: str, keep: int) -> None:
        house = self._house
        await change_schedule(house.store, house.opened.home, {"every": every, "keep": keep})
        await ScheduledBackups(house.backups, house.store, house.opened.settings_now, house.clock).follow()

    async def adopt(self) -> None:
        await self._house.store.adopt()

    async def download(self, name: str) -> tuple[int, AsyncIterator[bytes]]:
        folder = folder_of(self._house.opened.settings_now(), self._house.opened.home)
        found = next((each for each in await asyncio.to_thread(backups_in, folder) if each.name == name), None)
        if found is None:
            raise MailRefused(NO_SUCH)
        await self._house.store.note(line_of("backup.downloaded", name))
        return found.size, _pieces(found.path)


def _shown(each: BackupFile, warnings: tuple[str, ...] = ()) -> BackupShown:
    return BackupShown(each.name, each.made, each.size, each.sealed, warnings)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    file = await asyncio.to_thread(open, path, "rb")
    try:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
    finally:
        file.close()
