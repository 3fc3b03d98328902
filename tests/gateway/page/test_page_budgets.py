"""A walk through budgets in the page, in a real browser: the owner sets one, whose it is sees it."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import PATIENCE, staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
PRICES = {"*": {"input": 0.01, "output": 0.01}}
OUTSIDE = (
    "[...document.querySelectorAll('.people *')].filter((e) => e.getBoundingClientRect().right > innerWidth).length"
)


@walked_at(320, 1440)
async def test_the_owner_sets_what_somebody_may_spend_and_they_see_it(browser: Any, tmp_path: Path, width: int):
    given = {"provider": ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))}
    told_soon = {"budgets": {"warn_at": 0.001}}
    async with staged(browser, tmp_path, width=width, given=given, users=told_soon, prices=PRICES) as stage:
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
        await page.wait_for_selector(".said.failed .row a")
        ways = await stage.texts(".said.failed .row > *")
        await page.goto(f"{stage.url}/#/settings/people")
        await page.locator("article:has-text('Anna')").get_by_role("button", name="Invite Anna to the page").click()
        link = await page.get_by_label("Link", exact=True).input_value()
        hers = await browser.new_context(viewport={"width": width, "height": 800})
        hers.set_default_timeout(PATIENCE)
        visit = await hers.new_page()
        await visit.goto(link)
        refused = list[str]()
        visit.on("response", lambda answer: refused.append(answer.url) if answer.status == 403 else None)
        called = await visit.locator(".account .name").text_content()
        await visit.fill(".composer textarea", "hello")
        await visit.keyboard.press("Enter")
        await visit.click(".said.failed .row a:has-text('What you may spend')")
        await visit.wait_for_selector("section.allotment")
        await page.get_by_role("button", name="Done").click()
        await house.locator("summary").click()
        await house.get_by_label("Budget of Everyone together: tokens").fill("")
        await house.get_by_role("button", name="Set the budget of Everyone together").click()
        await house.get_by_text("no limit", exact=True).wait_for()
        await visit.goto(f"{stage.url}/#/")
        await visit.fill(".composer textarea", "and now?")
        await visit.keyboard.press("Enter")
        await visit.wait_for_selector(".banner:has-text('of 20,000 tokens')")
        if SHOTS:
            await visit.screenshot(path=f"{SHOTS}/warned-{width}.png")
        await visit.click(".banner a")
        await visit.wait_for_url("**/#/settings/access")
        promised = await visit.locator("nav.pages a[href='#/settings/access'] small").text_content()
        own = await visit.locator("section.allotment").inner_text()
        if SHOTS:
            await visit.screenshot(path=f"{SHOTS}/own-budget-{width}.png", full_page=True)
        await hers.close()
        await page.goto(f"{stage.url}/#/settings/usage")
        await page.locator("select.pick").select_option("person")
        await page.get_by_role("button", name="Only Anna").click()
        await page.locator("select.pick").select_option("tool")
        await page.get_by_text("Nothing of this kind").wait_for()
        whose = await stage.texts("b.named")
        await page.get_by_role("button", name="Show everybody again").click()
        await page.wait_for_selector("b.named", state="detached")
    assert outside == 0
    assert (ways, called, whose) == (["Budgets", "Try again"], "Anna", ["Anna"])
    assert (refused, promised) == ([], "Password, what you may spend, what is kept")
    assert "What you may spend" in own
    assert "$2.50" in own
