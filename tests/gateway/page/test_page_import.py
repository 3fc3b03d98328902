"""A walk through Import in the page, in a real browser: an export is sent, looked at and taken over."""

from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import staged
from tests.moving.foreign_homes import chatgpt_export

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's


async def test_the_owner_sends_an_export_looks_at_it_and_takes_it_over(browser: Any, tmp_path: Path):
    export, home = chatgpt_export(tmp_path / "export.zip"), tmp_path / "home"
    async with staged(browser, home, given={"provider": ScriptedModel(lambda shown: Say("ok"))}) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/import")
        await page.click("text=Look what would come")
        await page.wait_for_selector("[role=alert] >> text=Name a path")
        await page.set_input_files("#import-file", str(export))
        await page.click("text=Look what would come")
        await page.wait_for_selector(
            "[data-import=foretold] >> text=2 conversations with 12 messages would come from ChatGPT"
        )
        assert await page.is_visible("text=Not taken over, and what to do: 2")
        await page.click("text=Take it over")
        await page.wait_for_selector("[data-import=done] >> text=2 conversations with 12 messages came from ChatGPT")
        await page.reload()
        await page.wait_for_selector("[data-import=done]")
        await page.wait_for_selector("nav >> text=Garden 2")
