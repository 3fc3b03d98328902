"""A walk through the page's view of what could not be delivered, in a real browser."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import BrokenChannel, Stage, staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes


def long(shown: Any) -> Any:
    return Say("An answer that nobody has had. " * 12)


async def open_outbox(stage: Stage) -> None:
    await stage.log_in()
    await stage.page.goto(f"{stage.url}/#/outbox")  # as links of before have it


@walked_at(1440, 390)
async def test_the_owner_sees_what_did_not_arrive_and_sends_it_again_or_drops_it(
    browser: Any, tmp_path: Path, width: int
):
    channel = BrokenChannel()
    given = {"provider": ScriptedModel(long), "channels": (channel,)}
    async with staged(browser, tmp_path, width=width, given=given) as stage:
        page = stage.page
        await open_outbox(stage)
        empty = await page.inner_text("section[aria-label=Outbox] .empty h2")
        await channel.hear("gone", "away")
        if width == 1440:
            await page.reload()  # elsewhere it comes by itself, which takes ten seconds
        await page.wait_for_selector("section[aria-label='Given up'] .letter")
        # One that is just being sent has no reason yet.
        await page.wait_for_selector("section[aria-label='Tried again'] .why:text-is('the platform is away')")
        chats = await stage.texts(".letter b")
        why = await stage.texts(".letter .why")
        fits = await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/outbox-{width}.png")
        await page.click(".letter button:text-is('Drop')")
        await page.click("dialog button:text-is('Drop')")
        await page.wait_for_selector("section[aria-label='Given up']", state="detached")
        channel.is_mended = True
        await page.click(".letter button:text-is('Send again')")
        await page.wait_for_selector(".empty h2")
        await channel.sent(1)
        await page.click("text=What runs here: all is well")
        await page.wait_for_selector(".running tbody th")
        tasks = await stage.texts(".running tbody th")
    assert (empty, chats, fits) == ("Everything has arrived", ["fake:gone", "fake:away"], True)
    assert why == ["there is no such chat <b>any more</b>", "the platform is away"]
    assert {"hub", "sockets", "outbox fake", "scheduler"} <= {*tasks}
    assert [sent.chat for sent in channel.sends] == ["fake:away"]
