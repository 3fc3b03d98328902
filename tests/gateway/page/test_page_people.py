"""A walk through the page's People, in a real browser, on a phone and on a desk."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from everloop.ports import Deliver
from everloop.ports.channel import Incoming
from everloop.testing import RecordingChannel, Say, ScriptedModel
from tests.gateway.page.walk import PATIENCE, staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes


class Chat(RecordingChannel):
    def __init__(self) -> None:
        super().__init__("fake")
        self.listens: asyncio.Queue[Deliver] = asyncio.Queue()

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.put_nowait(deliver)


@walked_at(390, 1440)
async def test_the_owner_lets_a_stranger_in_and_says_what_they_may(browser: Any, tmp_path: Path, width: int):
    channel = Chat()
    given = {"provider": ScriptedModel(lambda shown: Say(f"you said {shown.asked}")), "channels": (channel,)}
    async with staged(browser, tmp_path, width=width, given=given, users={"strangers": "pair"}) as stage:
        page = stage.page
        deliver = await channel.listens.get()
        await deliver(Incoming(event="e1", chat="7", account="7", text="hello?"))
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/people")
        await page.get_by_label("What to call fake:7").fill("Anna")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/people-waiting-{width}.png")
        await page.get_by_role("button", name="Let in fake:7").click()
        await page.wait_for_selector("article[data-person='fake:7']")
        assert await page.locator("form[data-code]").count() == 0
        assert await page.get_by_label("Role of Anna").input_value() == "user"
        await deliver(Incoming(event="e2", chat="7", account="7", text="hello!"))
        await channel.sent(2)
        await page.get_by_role("button", name="Invite Anna to the page").click()
        link = await page.get_by_label("Link", exact=True).input_value()
        await page.get_by_role("button", name="Done").click()
        hers = await browser.new_context()
        hers.set_default_timeout(PATIENCE)
        visit = await hers.new_page()
        await visit.goto(link)
        await visit.fill(".composer textarea", "it is me")
        await visit.keyboard.press("Enter")
        await visit.wait_for_selector(".said.final.last:has-text('you said it is me')")
        await visit.goto(f"{stage.url}/#/settings")
        await visit.wait_for_selector("nav.pages a")
        places = [text.splitlines()[0] for text in await visit.locator("nav.pages a").all_inner_texts()]
        await visit.wait_for_selector(".list .item >> nth=1", state="attached")
        listed = await visit.locator(".list .item").count()
        await hers.close()
        await page.get_by_label("Role of Anna").select_option("admin")
        await page.wait_for_selector("text=Anna is changed.")
        await page.get_by_role("button", name="Block Anna", exact=True).click()
        await page.get_by_role("dialog").get_by_role("button", name="Block").click()
        await page.wait_for_selector("text=blocked")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/people-{width}.png")
        await page.get_by_label("Name", exact=True).fill("Ben")
        await page.get_by_role("button", name="Add person").click()
        await page.wait_for_selector("text=Ben is added.")
        emptied = await page.get_by_label("Role", exact=True).input_value()
        await page.get_by_role("button", name="Rename Anna").click()
        await page.go_back()  # leaves the question that is open, too
        await page.wait_for_selector("dialog", state="detached")
        await page.go_forward()
        await page.wait_for_selector("article[data-person='fake:7']")
        refused = await deliver(Incoming(event="e3", chat="7", account="7", text="still there?"))
        outside = await page.evaluate(
            "[...document.querySelectorAll('.people *')].filter(OUTSIDE).length".replace(
                "OUTSIDE", "(each) => each.getBoundingClientRect().right > innerWidth"
            )
        )
    assert (places, listed) == (
        ["Skills", "Memory", "Schedules", "Tasks", "Access", "Attachments", "Usage"],
        2,
    )  # her chat on the channel, and the one in the page
    assert [sent.text for sent in channel.sends][1] == "you said hello!"
    assert emptied == "user"  # who is added next is no guest unless one says so
    assert (refused.refused, outside) == ("this account is blocked", 0)
