"""The gateway makes backups by itself, on either database, keeps the newest, and tells the owner when it cannot."""

import asyncio
from pathlib import Path
from typing import Any

from tests.store.conftest import Home, PostgresHome

from everloop.app import open_desk
from everloop.app.backups import backups_in, last_backup
from everloop.app.restoring import verify
from everloop.app.secrets import keep_secret
from everloop.core.log import AgentTold
from everloop.testing import Say, ScriptedModel


def settings_for(home: Home, **backup: Any) -> dict[str, Any]:
    store = {"url": home.url} if isinstance(home, PostgresHome) else {}
    return {"store": store, "backup": backup}


async def test_one_is_made_at_once_and_the_oldest_go(home: Home, tmp_path: Path):
    folder = tmp_path / "safe"
    folder.mkdir()
    for day in range(1, 4):
        (folder / f"everloop-2026010{day}-000000.tar.gz").write_bytes(b"old")
    off = settings_for(home)
    async with open_desk(tmp_path / "home", off, provider=ScriptedModel([Say("hello")])) as desk:
        await desk.ask("good morning")
        await keep_secret(desk._opened.vault, "backups", "correct horse")
    given = settings_for(home, every="daily", keep=2, folder=str(folder), passphrase="${vault:backups}")
    async with open_desk(tmp_path / "home", given, provider=ScriptedModel([])):
        while len(found := backups_in(folder)) != 2:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    last = found[0]
    assert last == last_backup(folder)
    assert [each.name for each in backups_in(folder)] == [last.name, "everloop-20260103-000000.tar.gz"]
    checked = verify(last.path, "correct horse", tmp_path)
    assert checked.about.has_key
    assert checked.summary.rows["users"] == 1


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
