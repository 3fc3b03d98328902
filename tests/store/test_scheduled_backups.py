"""The gateway makes backups by itself, on either database, keeps the newest, and tells the owner when it cannot."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tests.store.conftest import Home, PostgresHome, SqliteHome

from everloop.app import backup_making, open_desk
from everloop.app.backups import Backups, backups_in, names_made
from everloop.app.scheduled_backups import ScheduledBackups
from everloop.app.secrets import keep_secret
from everloop.app.verifying import verify
from everloop.backup.listing import made_ones
from everloop.core.log import AgentTold
from everloop.errors import BackupError
from everloop.ports.audit import line_of
from everloop.ports.backup import BACKUP
from everloop.ports.jobs import Job
from everloop.runtime.clock import MACHINE
from everloop.settings import Settings
from everloop.settings.shape import BackupSection, StoreSection
from everloop.store.vault import EncryptedVault, key_of
from everloop.testing import Say, ScriptedModel


def settings_for(home: Home, **backup: Any) -> dict[str, Any]:
    store = {"url": home.url} if isinstance(home, PostgresHome) else {}
    return {"store": store, "backup": backup}


DAY = 86_400
PLANTED = ("everloop-20250101-000000.tar.gz", "everloop-20990101-000000.tar.gz", "everloop-20990102-000000.tar.gz")


async def test_one_is_made_at_once_and_the_oldest_go_but_what_others_have_put_there_counts_for_nothing(
    home: Home, tmp_path: Path
):
    folder = tmp_path / "safe"
    folder.mkdir()
    ours = [f"everloop-2026010{day}-000000.tar.gz" for day in range(1, 4)]
    for name in (*ours, *PLANTED):
        (folder / name).write_bytes(b"old")
    off = settings_for(home)
    async with open_desk(tmp_path / "home", off, provider=ScriptedModel([Say("hello")])) as desk:
        await desk.ask("good morning")
        await keep_secret(desk._opened.vault, "backups", "correct horse")
        for name in ours:
            await desk.store.note(line_of("backup.created", name))
    given = settings_for(home, every="daily", keep=2, folder=str(folder), passphrase="${vault:backups}")
    async with open_desk(tmp_path / "home", given, provider=ScriptedModel([])) as desk:
        while any((folder / name).exists() for name in ours[:2]):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        made = made_ones(folder, await names_made(desk.store))
    assert [each.name for each in made[1:]] == [ours[2]]
    assert {each.name for each in backups_in(folder)} == {made[0].name, ours[2], *PLANTED}
    checked = verify(made[0].path, "correct horse", tmp_path)
    assert checked.about.has_key
    assert checked.summary.rows["users"] == 1


async def test_a_clock_that_was_ahead_puts_none_off_once_it_is_right(home: Home, tmp_path: Path):
    store, now = await home.connect(), time.time() // 1  # jobs are due at whole milliseconds
    settings = Settings(backup=BackupSection(every="daily"))
    backups = Backups(tmp_path, store, lambda: settings, EncryptedVault(store, key_of(tmp_path, {})), MACHINE)
    followed = ScheduledBackups(backups, store, lambda: settings)
    for due, kept in ((now + 365 * DAY, False), (now + 0.9 * DAY, True)):
        await store.drop_job("", BACKUP)
        await store.add_job(Job(BACKUP, BACKUP, due, owner="", schedule=f"every {DAY}"))
        await followed.follow()
        [row] = [row for row in await store.jobs("") if row.job.id == BACKUP]
        assert (row.job.due == due, row.job.due <= now + DAY) == (kept, True)


async def test_a_backup_leaves_the_room_that_a_running_house_needs(home: Home, tmp_path: Path, monkeypatch: Any):
    """On SQLite it is known before anything is copied, on PostgreSQL while it is packed."""
    store, url = await home.connect(), home.url if isinstance(home, PostgresHome) else ""
    folder = home.path if isinstance(home, SqliteHome) else tmp_path
    settings = Settings(store=StoreSection(url=url))
    backups = Backups(folder, store, lambda: settings, EncryptedVault(store, key_of(folder, {})), MACHINE)
    monkeypatch.setattr(backup_making, "SMALL", 0)
    monkeypatch.setattr(backup_making, "SPARE", 10**18)
    with pytest.raises(BackupError, match="too little for what runs meanwhile"):
        await backups.create()
    assert list((folder / "backups").iterdir()) == []
    monkeypatch.setattr(backup_making, "SPARE", 0)
    made = await backups.create()
    assert [each.path for each in backups_in(folder / "backups")] == [made.file.path]


async def test_the_owner_is_told_once_when_none_can_be_made(home: Home, tmp_path: Path):
    (tmp_path / "file").write_text("no folder")
    given = settings_for(home, every="", folder=str(tmp_path / "file" / "below"))
    async with open_desk(tmp_path / "home", given, provider=ScriptedModel([Say("hello")])) as desk:
        await desk.ask("good morning")
    given["backup"]["every"] = "daily"
    async with open_desk(tmp_path / "home", given, provider=ScriptedModel([])) as desk:
        [thread] = await desk.store.named("", 10)
        while not (told := [e for e in await desk.store.read(thread) if isinstance(e, AgentTold)]):  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    assert len(told) == 1
    assert told[0].text.startswith("⚠️ No backup could be made: no backup can be written into")
