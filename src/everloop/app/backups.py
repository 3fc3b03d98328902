"""The backups of a home: where they lie, what they are encrypted with, and that one is made."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from ..backup.listing import FOLDER, BackupFile, MadeBackup, Tell, backups_in, forget_oldest, last_backup
from ..errors import SettingsError
from ..ports import Clock, Store, Vault
from ..ports.audit import Audit, line_of
from ..settings import Settings, path_in
from .secrets import VAULT, take_out

__all__ = ["BackupFile", "Backups", "MadeBackup", "backups_in", "folder_of", "last_backup"]

CREATED = "backup.created"
REMEMBERED = 10_000  # backups: one a day for 27 years
PASSPHRASE = "EVERLOOP_BACKUP_PASSPHRASE"


class Backups:
    """Of one home. `tell` is called from another thread."""

    def __init__(self, home: Path, store: Store, settings: Callable[[], Settings], vault: Vault, clock: Clock) -> None:
        self._home = home
        self._store = store
        self._settings = settings
        self._vault = vault
        self._clock = clock

    @property
    def folder(self) -> Path:
        """Where they go."""
        return folder_of(self._settings(), self._home)

    async def passphrase(self) -> str:
        """That of the environment, or the one that the settings refer to; "": there is none. Raises SettingsError,
        VaultLocked."""
        return await passphrase_of(self._settings(), self._vault)

    async def create(self, folder: Path | None = None, passphrase: str = "", tell: Tell | None = None) -> MadeBackup:
        """Raises BackupError, StoreError, HomeError."""
        from .backup_making import HomePacker  # archives take their time to load, and few processes make one

        made = await HomePacker(self._home, self.folder, self._settings(), self._clock).make(
            self._store, folder or self.folder, passphrase, tell
        )
        detail = {"members": made.summary.members, "encrypted": bool(passphrase)}
        await self._store.note(line_of(CREATED, made.file.name, detail))
        return made

    async def create_and_forget(self) -> MadeBackup:
        """As the settings have it, and the oldest go of those that this home has made."""
        made = await self.create(passphrase=await self.passphrase())
        names = await names_made(self._store)
        await asyncio.to_thread(forget_oldest, self.folder, self._settings().backup.keep, names)
        return made


async def names_made(store: Audit) -> list[str]:
    """What the backups are called that this home has made, the latest first, as its audit has it."""
    return [row.subject for row in await store.audit(what=CREATED, limit=REMEMBERED)]


def folder_of(settings: Settings, home: Path) -> Path:
    """Where backups of a home go."""
    return path_in(home, settings.backup.folder or FOLDER)


async def passphrase_of(settings: Settings, vault: Vault) -> str:
    if text := os.environ.get(PASSPHRASE):
        return text
    said = settings.backup.passphrase
    if not (said.startswith("${") and said.endswith("}")):
        return said
    name = said[2:-1]
    found = {**os.environ, **await take_out(vault, [name.removeprefix(VAULT)] if name.startswith(VAULT) else [])}
    if name not in found:
        raise SettingsError(
            f"backup.passphrase refers to {name}, which is not there; keep it with: everloop secrets set "
            f"{name.removeprefix(VAULT)}"
        )
    return found[name]
