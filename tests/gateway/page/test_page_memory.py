"""A walk through what is remembered, in a real browser: read, edited, searched, taken back, forgotten."""

import time
from pathlib import Path
from typing import Any

import pytest

from everloop.app.records import open_records
from everloop.ports.memory import MEMORY
from everloop.testing import Say, ScriptedModel
from tests.gateway.page.views import remember
from tests.gateway.page.walk import staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's


async def test_one_reads_edits_searches_goes_back_and_forgets(browser: Any, tmp_path: Path):
    given = {"provider": ScriptedModel(lambda shown: Say("ok"))}
    file = tmp_path / "workspace" / "memory" / MEMORY
    async with staged(browser, tmp_path, width=390, given=given) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/memory")
        assert await page.input_value(".memory .document") == ""
        async with open_records(tmp_path) as records:
            await remember(records.store, time.time())
            await page.reload()
            await page.wait_for_selector(".memory .document")
            await page.fill(".memory .document", "# Memory\n\n## Work\n\n- ships on Sundays\n")
            await page.click(".memory button:text-is('Save')")
            await page.wait_for_selector(".toast:has-text('Saved as a new version.')")
            assert file.read_text() == "# Memory\n\n## Work\n\n- ships on Sundays\n"
            await page.click(".memory button:text-is('Facts')")
            await page.wait_for_selector(".facts li")
            told = await stage.texts(".facts li > span")
            assert told[0] == "ships on Sundays"
            assert "ships on Thursdays" not in told
            await page.fill(".memory input[type=search]", "baker")
            await page.press(".memory input[type=search]", "Enter")
            await stage.until("document.querySelectorAll('.facts li').length === 1")
            assert "strangers' words" in await page.inner_text(".facts li")
            await page.click(".facts button:text-is('Forget')")
            await page.click("dialog button:text-is('Forget')")
            await page.wait_for_selector(".empty h2:text-is('Nothing like that is remembered')")
            assert "f2" not in {fact.id for fact in await records.store.facts("owner", ended=True)}
            await page.click(".memory button:text-is('Versions')")
            await page.click("[aria-label='Restore version 1']")
            await page.click("dialog button:text-is('Restore')")
            await page.wait_for_selector("[data-version='5']")
            assert file.read_text() == "# Memory\n\n## Work\n\n- ships on Fridays\n"
            assert {fact.id for fact in await records.store.facts("owner")} == {"f1", "f3"}
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
