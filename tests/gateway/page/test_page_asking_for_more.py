"""A walk in a real browser: a turn beyond a budget is asked about where it waits and under Waiting, of who may."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import PATIENCE, staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
ASKED = ".held-back .asking"


async def shoot(page: Any, name: str) -> None:
    for scheme in ("light", "dark") if SHOTS else ():
        await page.emulate_media(color_scheme=scheme)
        await page.screenshot(path=f"{SHOTS}/{name}-{scheme}.png")


async def test_a_turn_beyond_a_budget_goes_on_when_who_may_says_yes_and_a_budget_begins_anew(
    browser: Any, tmp_path: Path
):
    given = {"provider": ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))}
    async with staged(browser, tmp_path, width=1440, given=given, users={"budgets": {"ask": "admins"}}) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/people")
        await page.get_by_label("Name", exact=True).fill("Anna")
        await page.get_by_role("button", name="Add person").click()
        tile = page.locator("article:has-text('Anna')")
        await tile.locator("summary", has_text="Budget").click()
        await tile.get_by_label("Budget of Anna: tokens").fill("1")
        await tile.get_by_role("button", name="Set the budget of Anna", exact=True).click()
        await tile.get_by_text("0 of 1 tokens").wait_for()
        await tile.get_by_role("button", name="Invite Anna to the page").click()
        link = await page.get_by_label("Link", exact=True).input_value()
        await page.get_by_role("button", name="Done").click()
        hers = await browser.new_context(viewport={"width": 390, "height": 800})
        hers.set_default_timeout(PATIENCE)
        visit = await hers.new_page()
        await visit.goto(link)
        await visit.fill(".composer textarea", "hello")
        await visit.keyboard.press("Enter")
        asked = await visit.locator(ASKED).inner_text()
        buttons = await visit.locator(f"{ASKED} button").count()
        wide = await visit.evaluate("document.documentElement.scrollWidth")
        await shoot(visit, "beyond-hers-390")
        await page.goto(f"{stage.url}/#/waiting")
        await page.get_by_text("Go beyond the budget?").wait_for()
        await shoot(page, "beyond-waiting-1440")
        await page.get_by_role("button", name="Go on").click()
        await visit.get_by_text("you said hello").wait_for()
        await visit.wait_for_selector(ASKED, state="detached")
        await page.goto(f"{stage.url}/#/settings/people")
        await tile.locator("summary", has_text="Budget").click()
        spent = await tile.locator("[data-per=month] span").text_content()
        await shoot(page, "anew-1440")
        await tile.get_by_role("button", name="Let the budget of Anna begin anew").click()
        await tile.get_by_text("0 of 1 tokens", exact=True).wait_for()
        await hers.close()
        errors = stage.errors
    assert asked.startswith("Go beyond the budget?")
    assert asked.endswith("stop it if you don't want to wait.")
    assert (buttons, wide, errors) == (0, 390, [])
    assert spent
    assert not spent.startswith("0 of")
