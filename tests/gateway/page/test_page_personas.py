"""A walk through the page's Personas, in a real browser, on a phone and on a desk."""

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
async def test_the_owner_makes_a_persona_has_it_answer_here_and_removes_it(browser: Any, tmp_path: Path, width: int):
    model = ScriptedModel(lambda shown: Say(f"tools: {', '.join(shown.tools)}"))
    async with staged(browser, tmp_path, width=width, given={"provider": model}) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/personas")
        await page.wait_for_selector("text=There are none")
        await page.get_by_label("Name", exact=True).fill("Sup port")
        await page.get_by_label("Words (prompt) of the new persona").fill("You answer customers.")
        await page.get_by_label("Tools of the new persona").select_option("some")
        await page.get_by_label("Only these of the new persona").fill("list_dir, fly")
        await page.get_by_label("Places of the new persona").fill("channel:page\nserver:platform/T1")
        await page.get_by_role("button", name="Add persona").click()
        wrong = [await page.inner_text(".wrong:not(:empty)")]
        await page.get_by_label("Name", exact=True).fill("support")
        await page.get_by_role("button", name="Add persona").click()
        await page.wait_for_selector(".wrong:has-text('fly')")
        wrong.append(await page.inner_text(".wrong:not(:empty)"))
        await page.get_by_label("Only these of the new persona").fill("list_dir")
        await page.get_by_role("button", name="Add persona").click()
        await page.wait_for_selector("article[data-persona=support]")
        told = await page.locator("article[data-persona=support] li").all_inner_texts()
        emptied = await page.get_by_label("Name", exact=True).input_value()
        await page.get_by_role("button", name="Edit support").click()
        await page.get_by_text("Files of its own").first.click()
        await page.get_by_label("SOUL.md of support").fill("Calm.")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/persona-{width}.png", full_page=True)
        outside = await page.evaluate(OUTSIDE)
        await page.get_by_role("button", name="Save").click()
        await page.wait_for_selector("text=Files: SOUL.md")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/personas-{width}.png")
            await page.emulate_media(color_scheme="dark")
            await page.screenshot(path=f"{SHOTS}/personas-dark-{width}.png")
        await page.goto(f"{stage.url}/#/")
        await stage.say("hi")
        await stage.page.wait_for_selector(".said.final.last:has-text('tools: list_dir')")
        thread = page.url.rpartition("/")[2]
        await page.goto(f"{stage.url}/#/t/{thread}")
        here = await page.inner_text(".column > p.hint")
        await page.goto(f"{stage.url}/#/settings/personas")
        await page.get_by_role("button", name="Remove support").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await page.wait_for_selector("text=There are none")
        outside += await page.evaluate(OUTSIDE)
    assert wrong[0] == "A persona's name has up to 40 small letters, digits, - and _, and is neither default nor none."
    assert wrong[1].startswith("There is no tool 'fly'; there is read_file")
    assert told == [
        "Tools: list_dir",
        "Chosen by: administrators and the owner",
        "channel:page",
        "server:platform/T1",
    ]
    assert (emptied, here, outside) == ("", "Persona: support (channel:page)", 0)
    assert "Calm." in model.prompts[0].system
