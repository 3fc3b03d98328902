"""A walk through the backups in the page, in a real browser: one is made, taken along and had made daily."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.app.backups import last_backup
from everloop.app.records import open_records
from everloop.ports.backup import RestoredCopy
from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes


async def test_the_owner_makes_one_takes_it_along_and_adopts_a_copy(browser: Any, tmp_path: Path):
    given = {"provider": ScriptedModel(lambda shown: Say("ok"))}
    async with staged(browser, tmp_path, given=given) as stage:
        page = stage.page
        async with open_records(tmp_path) as records:
            await records.store.hold_back(RestoredCopy("everloop-20260101-000000.tar.gz", 1e9, 1e9), [])
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/backup")
        await page.click("text=This is the one that goes on")
        await page.wait_for_selector("text=This home goes on.")
        await page.click("text=Create one now")
        await page.wait_for_selector("li[data-backup]")
        made = last_backup(tmp_path / "backups")
        assert made is not None
        async with page.expect_download() as download:
            await page.click("li[data-backup] button")
        taken = await (await download.value).path()
        assert os.stat(taken).st_size == made.size
        await page.select_option("form.tile select", "daily")
        await page.click("form.tile button")
        await page.wait_for_selector("text=Saved.")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/backup.png")
    assert 'every = "daily"' in (tmp_path / "config.toml").read_text()
    async with open_records(tmp_path) as records:
        assert await records.store.restored() is None
        deeds = {line.deed for line in await records.store.audit()}
    assert {"backup.adopted", "backup.created", "backup.downloaded", "settings.changed"} <= deeds
