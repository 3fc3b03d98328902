"""A walk through what the page shows of the heartbeat, in a real browser: how it stands, and what it has told."""

from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Say, ScriptedModel, Shown
from tests.gateway.page.walk import staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's


def answer(shown: Shown) -> Say:
    if "This is your heartbeat" not in shown.asked:
        return Say("hello")
    return Say("The report is new." if "new: 'report.txt'" in shown.asked else "HEARTBEAT_OK")


@pytest.mark.parametrize("width", [390])
async def test_a_look_that_told_nothing_is_not_seen_in_the_chat_and_one_that_did_is(
    browser: Any, tmp_path: Path, width: int
):
    async with staged(browser, tmp_path, width=width, given={"provider": ScriptedModel(answer)}) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/schedules")
        await page.wait_for_selector("text=There is no HEARTBEAT.md in your workspace")
        await page.goto(f"{stage.url}/#/")
        await stage.say("hi")
        await stage.answer("hello")
        chat = page.url
        workspace = tmp_path / "workspace"
        (workspace / "HEARTBEAT.md").write_text("watch: *.txt\n- [ ] reports\n")
        await page.goto(f"{stage.url}/#/settings/schedules")
        await page.get_by_role("button", name="Look now").click()
        await page.wait_for_selector("text=nothing to tell")
        await page.goto(chat)
        await stage.answer("hello")
        quiet = await page.inner_text(".log")
        (workspace / "report.txt").write_text("1")
        await page.goto(f"{stage.url}/#/settings/schedules")
        await page.get_by_role("button", name="Look now").click()
        await page.wait_for_selector("text=told: “The report is new.”")
        await page.goto(chat)
        await page.wait_for_selector(".log >> text=The report is new.")
        told = await page.inner_text(".log")
    assert ("HEARTBEAT_OK" in quiet, "Heartbeat" in quiet) == (False, False)
    assert ("HEARTBEAT_OK" in told, "Heartbeat" in told, "This is your heartbeat" in told) == (False, True, False)
