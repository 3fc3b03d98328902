"""The owner makes a token for a bot in the page, which then speaks for the platforms that it names; what waits for the
bot stands in the outbox. In a real browser."""

import os
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from everloop.app.records import open_records
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import Text
from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
PLACE = Address("platform", "discord//@8")
FIELD = "input[aria-label='Platforms that a bot with this token speaks for']"


async def said(url: str, token: str, platform: str) -> int:
    message = {"platform": platform, "platform_user_id": "7", "content": "hi"}
    async with (
        aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {token}"}) as client,
        client.post("/message", json=message, timeout=aiohttp.ClientTimeout(30)) as answer,
    ):
        return answer.status


async def test_a_token_of_the_page_names_platforms_and_what_waits_for_its_bot_is_listed(browser: Any, tmp_path: Path):
    given = {"provider": ScriptedModel(lambda shown: Say("hello"))}
    async with staged(browser, tmp_path, width=390, given=given) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/access")
        await page.fill("input[aria-label='Name of the token']", "bot")
        await page.fill(FIELD, "discord, my team")
        await page.click("button:text-is('Create token')")
        token = await page.inner_text("dialog pre code")
        await page.click("dialog button:text-is('Done')")
        row = page.locator("form.tile span", has_text="bot: chat, read; speaks for discord, my team")
        await row.wait_for()
        fits = await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for width, theme in ((390, "light"), (1440, "dark")) if SHOTS else ():
            await page.set_viewport_size({"width": width, "height": 900})
            await page.emulate_media(color_scheme=theme)
            await page.screenshot(path=f"{SHOTS}/platform-token-{width}.png", full_page=True)
        statuses = [await said(stage.url, token, each) for each in ("discord", "my team", "telegram")]
        async with open_records(tmp_path) as records:
            letter = Said((Text("hi"),), "discord:8", str(PLACE))
            await records.store.command(Inbound(PLACE, "e1", letter), "none", "An answer that no bot has fetched yet.")
        await page.goto(f"{stage.url}/#/outbox")
        await page.wait_for_selector("section[aria-label='For bots to fetch'] .letter")
        # That the bot has the others' answers is noted a moment after it has them.
        await stage.until("document.querySelectorAll('.letter').length === 1")
        for width, theme in ((390, "dark"), (1440, "light")) if SHOTS else ():
            await page.set_viewport_size({"width": width, "height": 900})
            await page.emulate_media(color_scheme=theme)
            await page.screenshot(path=f"{SHOTS}/platform-outbox-{width}.png")
        listed = [await stage.texts(f".letter {part}") for part in ("b", ".text", "small:nth-of-type(1)")]
        await page.click(".letter button:text-is('Drop')")
        await page.click("dialog button:text-is('Drop')")
        await page.wait_for_selector(".empty h2")
    assert (statuses, fits) == ([200, 200, 403], True)
    told = ["An answer that no bot has fetched yet."]
    assert listed == [["platform:discord//@8"], told, ["no bot has confirmed it yet"]]
