"""A walk through the page's Tasks, in a real browser: a turn goes to the background, is looked at there, ended and
taken back, and what came of it is told in its chat."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Call, Say, ScriptedModel, Shown, Wait
from tests.gateway.page.walk import staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
OUTSIDE = "[...document.querySelectorAll('.tab *')].filter((e) => e.getBoundingClientRect().right > innerWidth).length"


class Digging:
    """A model that digs until it is let go on, and answers anything else at once."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()

    def __call__(self, shown: Shown) -> Any:
        if "dig" not in shown.asked:
            return Say(f"re {shown.asked}")
        return Call("list_dir") if shown.step == 0 else (Say("I dig"), Wait(self.gate), Say(" and find gold"))


async def shoot(page: Any, name: str, width: int) -> None:
    if SHOTS:
        await page.screenshot(path=f"{SHOTS}/{name}-{width}.png")
        await page.emulate_media(color_scheme="dark")
        await page.screenshot(path=f"{SHOTS}/{name}-dark-{width}.png")
        await page.emulate_media(color_scheme="light")


@walked_at(390, 1440)
async def test_what_runs_goes_on_in_the_background_and_is_told_in_its_chat(browser: Any, tmp_path: Path, width: int):
    digging = Digging()
    async with staged(browser, tmp_path, width=width, given={"provider": ScriptedModel(digging)}) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("re hello")
        await stage.say("dig deep")
        await page.wait_for_selector("text=I dig")
        await shoot(page, "tasks-button", width)
        await page.get_by_role("button", name="Let it go on in the background").click()
        await page.wait_for_selector(".toast:has-text('as task 1')")
        await page.wait_for_selector("text=dig deep", state="detached")  # which may be told before the chat is left
        await stage.answer("re hello")
        await stage.say("hey")
        await stage.answer("re hey")
        await page.goto(f"{stage.url}/#/settings/tasks")
        await page.wait_for_selector("article.task.running:has-text('Task 1')")
        await page.get_by_text("What was said and done").click()
        await page.wait_for_selector(".lines li:has-text('→ list_dir')")
        outside = await page.evaluate(OUTSIDE)
        await shoot(page, "tasks", width)
        await page.get_by_role("link", name="The chat of: dig deep").click()
        await stage.answer("re hey")
        digging.gate.set()
        await page.wait_for_selector(".said:has-text('Task 1 is done')")
        assert await page.locator(".said:has-text('Task 1 is done')").count() == 1
        await shoot(page, "tasks-told", width)
        await page.goto(f"{stage.url}/#/settings/tasks")
        await page.wait_for_selector("article.task.done")
        await page.get_by_role("button", name="Take back: dig deep").click()
        await stage.answer("I dig and find gold")
        await stage.say("more")
        await stage.answer("re more")
    assert outside == 0


async def test_the_first_thing_that_is_said_can_go_there_and_come_back_while_it_runs(browser: Any, tmp_path: Path):
    digging = Digging()
    async with staged(browser, tmp_path, given={"provider": ScriptedModel(digging)}) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("dig deep")
        await page.wait_for_selector("text=I dig")
        await stage.say("/bg")
        await page.wait_for_selector(".toast:has-text('as task 1')")
        await stage.until("!document.body.textContent.includes('dig deep')")
        await page.goto(f"{stage.url}/#/settings/tasks")
        await page.get_by_role("button", name="Take back: dig deep").click()
        await page.wait_for_selector("text=I dig")
        digging.gate.set()
        await stage.answer("I dig and find gold")


async def test_one_is_stopped_from_there(browser: Any, tmp_path: Path):
    digging = Digging()
    async with staged(browser, tmp_path, given={"provider": ScriptedModel(digging)}) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/tasks")
        await page.wait_for_selector("text=Nothing is in the background")
        await page.goto(f"{stage.url}/#/")
        await stage.say("/bg dig deep")
        await page.wait_for_selector("text=Task 1 has begun in the background")
        await page.goto(f"{stage.url}/#/settings/tasks")
        await page.get_by_role("button", name="Stop: dig deep").click()
        await page.get_by_role("dialog").get_by_role("button", name="Stop").click()
        await page.wait_for_selector("article.task.stopped")
        digging.gate.set()
