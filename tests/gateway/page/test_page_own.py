"""A walk through what people keep for themselves, in a real browser: keys and credentials go in, and never come out."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Say
from everloop.testing.model_server import ModelServer
from tests.gateway.page.walk import PATIENCE, staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
KEY, VALUE = "sk-canary-pasted", "sk-canary-credential"
OUTSIDE = "[...document.querySelectorAll('.tile *')].filter((e) => e.getBoundingClientRect().right > innerWidth).length"


@pytest.mark.parametrize("width", [320, *([1440] if SHOTS else [])])
async def test_a_person_keeps_a_key_of_their_own_and_is_answered_with_it(browser: Any, tmp_path: Path, width: int):
    async with ModelServer(lambda shown: Say("hello"), models=("m",)) as server:
        settings = {
            "agents": {"defaults": {"model": "custom/m"}},
            "providers": {"custom": {"api_base": server.url, "api_key": "sk-canary-house"}},
        }
        async with staged(browser, tmp_path, width=width, given={}, **settings) as stage:
            page = stage.page
            await stage.log_in()
            await page.goto(f"{stage.url}/#/settings/people")
            await page.get_by_label("Name", exact=True).fill("Anna")
            await page.get_by_role("button", name="Add person").click()
            await page.locator("article:has-text('Anna')").get_by_role("button", name="Invite Anna to the page").click()
            link = await page.get_by_label("Link", exact=True).input_value()
            context = await browser.new_context(viewport={"width": width, "height": 1100})
            context.set_default_timeout(PATIENCE)
            hers = await context.new_page()
            await hers.goto(link)
            await hers.wait_for_selector(".composer")
            await hers.goto(f"{stage.url}/#/settings/access")
            keys, credentials = hers.locator("[data-own=keys]"), hers.locator("[data-own=credentials]")
            await keys.get_by_label("Provider").select_option("custom")
            await keys.get_by_label("Your key").fill("two words")
            await keys.get_by_role("button", name="Keep key").click()
            await keys.get_by_text("that is no key").or_(keys.get_by_text("That is no key")).wait_for()
            await keys.get_by_label("Your key").fill(KEY)
            await keys.get_by_role("button", name="Keep key").click()
            await keys.get_by_text("custom: kept").wait_for()
            await credentials.get_by_label("Name", exact=True).fill("github")
            await credentials.get_by_label("Credential", exact=True).fill(VALUE)
            await credentials.get_by_label("Hosts that it may be sent to").fill("api.github.com, uploads.github.com")
            await credentials.get_by_role("button", name="Keep credential").click()
            await credentials.get_by_text("github: sent to https://api.github.com").wait_for()
            shown, outside = await hers.content(), await hers.evaluate(OUTSIDE)
            for theme in ("light", "dark") if SHOTS else ():
                await hers.emulate_media(color_scheme=theme)
                await hers.screenshot(path=f"{SHOTS}/own-{theme}-{width}.png", full_page=True)
                await credentials.scroll_into_view_if_needed()
                await hers.screenshot(path=f"{SHOTS}/own-more-{theme}-{width}.png")
            await hers.goto(f"{stage.url}/#/")
            await hers.fill(".composer textarea", "hello")
            await hers.keyboard.press("Enter")
            await hers.wait_for_selector(".said.final")
            await hers.goto(f"{stage.url}/#/settings/access")
            await keys.get_by_role("button", name="Forget your key of custom").click()
            await hers.get_by_role("button", name="Forget", exact=True).click()
            await keys.get_by_text("custom: kept").wait_for(state="detached")
            await context.close()
    used = {each.headers.get("Authorization") for each in server.requests}
    assert (KEY in shown, VALUE in shown, outside, used) == (False, False, 0, {f"Bearer {KEY}"})
