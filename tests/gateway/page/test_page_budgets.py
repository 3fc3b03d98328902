"""A walk through budgets in the page, in a real browser: the owner sets one, whose it is sees it."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
OUTSIDE = (
    "[...document.querySelectorAll('.people *')].filter((e) => e.getBoundingClientRect().right > innerWidth).length"
)


@pytest.mark.parametrize("width", [320, 1440])
async def test_the_owner_sets_what_somebody_may_spend_and_they_see_it(browser: Any, tmp_path: Path, width: int):
    given = {"provider": ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))}
    async with staged(browser, tmp_path, width=width, given=given) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/people")
        await page.get_by_label("Name", exact=True).fill("Anna")
        await page.get_by_role("button", name="Add person").click()
        tile = page.locator("article:has-text('Anna')")
        await tile.locator("summary", has_text="Budget").click()
        await tile.get_by_text("No limit is set.").wait_for()
        await tile.get_by_label("Budget of Anna: tokens").fill("20000")
        await tile.get_by_label("Budget of Anna: US dollars").fill("2.5")
        await tile.get_by_role("button", name="Set the budget of Anna").click()
        await tile.get_by_text("0 of 20,000 tokens").or_(tile.get_by_text("0 of 20k tokens")).wait_for()
        house = page.locator("article[data-budget='house']")
        await house.locator("summary").click()
        await house.get_by_label("Budget of Everyone together: tokens").fill("1")
        await house.get_by_role("button", name="Set the budget of Everyone together").click()
        await house.locator("[data-per=month] progress").wait_for()
        outside = await page.evaluate(OUTSIDE)
        if SHOTS:
            await tile.screenshot(path=f"{SHOTS}/budgets-{width}.png")
            await page.emulate_media(color_scheme="dark")
            await tile.screenshot(path=f"{SHOTS}/budgets-dark-{width}.png")
        await page.goto(f"{stage.url}/#/")
        await page.fill(".composer textarea", "hello")
        await page.keyboard.press("Enter")
        await page.get_by_text("Everyone together has spent 0 of 1 tokens this month").first.wait_for()
        await page.goto(f"{stage.url}/#/settings/people")
        await page.locator("article:has-text('Anna')").get_by_role("button", name="Invite Anna to the page").click()
        link = await page.get_by_label("Link", exact=True).input_value()
        hers = await browser.new_context(viewport={"width": width, "height": 800})
        visit = await hers.new_page()
        await visit.goto(link)
        await visit.wait_for_selector(".composer textarea")
        await visit.goto(f"{stage.url}/#/settings/access")
        own = await visit.locator("section.allotment").inner_text()
        if SHOTS:
            await visit.screenshot(path=f"{SHOTS}/own-budget-{width}.png", full_page=True)
        await hers.close()
    assert outside == 0
    assert "What you may spend" in own
    assert "$2.50" in own
