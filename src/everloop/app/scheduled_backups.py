"""Backups that are made by themselves, as the settings have it: a job of the clock; the owner is told if it fails."""

import asyncio
import logging
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from ..core.mail import Address, Inbound, Telling
from ..core.people import OWNER
from ..errors import EverloopError
from ..ports import Clock, Store
from ..ports.backup import BACKUP
from ..ports.jobs import Job, JobRow
from ..runtime.clock import MACHINE
from ..settings import Settings
from ..settings.edit import SettingChange
from ..settings.editor import SettingsEditor
from .backups import Backups
from .settings_writing import write_noted

_log = logging.getLogger("everloop.backup")

SECONDS = {"daily": 86_400, "weekly": 604_800}
FAILED = "⚠️ No backup could be made: {why}. It is tried again within the hour, until it succeeds."


class ScheduledBackups:
    def __init__(
        self, backups: Backups, store: Store, settings: Callable[[], Settings], clock: Clock = MACHINE
    ) -> None:
        """`settings` are those of now."""
        self._backups = backups
        self._store = store
        self._settings = settings
        self._clock = clock

    async def follow(self) -> None:
        """Let there be a job as often as the settings say. Raises StoreError, SettingsError."""
        every = self._settings().backup.every
        wanted = f"every {SECONDS[every]}" if every else ""
        now = next((row for row in await self._store.jobs("") if row.job.id == BACKUP), None)
        if now and now.job.schedule == wanted and not self._is_put_off(now.job.due, every):
            return
        if now:
            await self._store.drop_job("", BACKUP)
        if wanted:
            await self._store.add_job(Job(BACKUP, BACKUP, self._clock.now(), owner="", schedule=wanted))

    def _is_put_off(self, due: float, every: str) -> bool:
        """By a clock that was ahead when the last one was made, and was set back since."""
        return due > self._clock.now() + SECONDS[every]

    async def work(self, row: JobRow) -> str:
        """As the scheduler has it done."""
        if not self._settings().backup.every:
            return "no longer wanted"
        try:
            made = await self._backups.create_and_forget()
        except EverloopError as error:
            await self._tell_owner(str(error))
            raise
        for warning in made.warnings:
            _log.warning("%s: %s", made.file.name, warning)
        return made.file.name

    async def _tell_owner(self, why: str) -> None:
        """Once a day, where they have spoken last."""
        row = await self._store.latest(OWNER)
        if row is None:
            return
        day = datetime.fromtimestamp(self._clock.now(), UTC).strftime("%Y%m%d")
        word = Telling(FAILED.format(why=why.rstrip(".")), (), row.session, "the backup", OWNER)
        await self._store.receive(Inbound(Address.parse(row.session), f"backup-failed:{day}", word, row.owner))


async def change_schedule(store: Store, home: Path, changes: dict[str, object]) -> Settings:
    """Write what `backup` says in the settings file; the settings that come of it. Raises SettingsError, HomeError."""
    book = SettingsEditor(home, os.environ)
    wanted = [SettingChange(("backup", key), value) for key, value in changes.items()]
    draft = await asyncio.to_thread(book.draft_changes, wanted)
    await write_noted(book, draft, store)
    return draft.edition.settings
