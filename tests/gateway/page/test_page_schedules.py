"""A walk through the page's Schedules, in a real browser, on a phone and on a desk."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
OUTSIDE = "[...document.querySelectorAll('.tab *')].filter((e) => e.getBoundingClientRect().right > innerWidth).length"


@walked_at(390, 1440)
async def test_a_schedule_is_made_run_stopped_and_removed(browser: Any, tmp_path: Path, width: int):
    async with staged(browser, tmp_path, width=width, given={"provider": ScriptedModel([Say("hello")] * 9)}) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/schedules")
        await page.wait_for_selector("text=begin one first")
        await page.goto(f"{stage.url}/#/")
        await stage.say("hi")
        await stage.answer("hello")
        await page.goto(f"{stage.url}/#/settings/schedules")
        await page.wait_for_selector("text=Nothing is scheduled")
        await page.get_by_label("When", exact=True).fill("whenever")
        await page.get_by_label("Text", exact=True).fill("drink a glass of water")
        await page.get_by_role("button", name="Make it").click()
        await page.wait_for_selector(".wrong:has-text('is no time')")
        await page.get_by_label("When", exact=True).fill("every 2h")
        await page.get_by_role("button", name="Make it").click()
        await page.wait_for_selector("article.schedule")
        await page.get_by_role("button", name="Run drink a glass of water now").click()
        await page.get_by_text("Last runs").click()
        await page.wait_for_selector("article.schedule li:has-text('done')")
        outside = await page.evaluate(OUTSIDE)
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/schedules-{width}.png", full_page=True)
            await page.emulate_media(color_scheme="dark")
            await page.screenshot(path=f"{SHOTS}/schedules-dark-{width}.png", full_page=True)
        await page.get_by_role("button", name="Stop drink").click()
        await page.wait_for_selector("article.schedule:has-text('stopped')")
        await page.get_by_role("button", name="Let drink").click()
        await page.wait_for_selector("article.schedule:has-text('next ')")
        await page.get_by_role("button", name="Remove drink").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await page.wait_for_selector("text=Nothing is scheduled")
    assert outside == 0
