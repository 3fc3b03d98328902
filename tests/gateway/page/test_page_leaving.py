"""A walk through taking along what is a person's and erasing somebody, in a real browser, on a phone and on a desk."""

import os
import zipfile
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.core.people import Role
from everloop.ports.directory import Person
from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
WORD = "canaryword"


def is_in(home: Path) -> bool:
    return any(WORD.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


@walked_at(390, 1440)
async def test_the_owner_exports_and_erases_somebody_and_takes_along_their_own(
    browser: Any, tmp_path: Path, width: int
):
    given = {"provider": ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))}
    async with everloop.open(tmp_path, **given) as agent:
        await agent.store.introduce(Person("web:anna", "Anna", Role.USER, accounts=("web:anna",)))
        await agent.store.introduce(Person("web:ben", "Ben", Role.USER))
        await agent.store.change_person("owner", name="Maria")
        await agent.user("web:anna").ask(f"hello {WORD}")
    async with staged(browser, tmp_path, width=width, given=given) as stage:
        page = stage.page
        assert is_in(tmp_path)
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/people")
        async with page.expect_download() as coming:
            await page.get_by_role("button", name="Export all that is Anna's").click()
        download = await coming.value
        with zipfile.ZipFile(await download.path()) as pack:
            told = [pack.read(name).decode() for name in pack.namelist() if name.endswith(".md")]
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/leaving-people-{width}.png")
        await page.get_by_role("button", name="Erase Anna").click()
        await page.get_by_label("Their name").fill("Ann")
        await page.get_by_role("button", name="Erase for good").click()
        await page.wait_for_selector("text=That is not their name")
        stays = is_in(tmp_path)
        await page.get_by_role("button", name="Erase Anna").click()
        await page.get_by_label("Their name").fill("Anna")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/leaving-asked-{width}.png")
        await page.get_by_role("button", name="Erase for good").click()
        await page.wait_for_selector("dialog:has-text('Anna is erased')")
        listed = await page.locator("dialog li").all_inner_texts()
        complaints = await page.locator(".toast.bad").count()
        for theme in ("light", "dark") if SHOTS else ():
            await page.emulate_media(color_scheme=theme)
            await page.screenshot(path=f"{SHOTS}/leaving-erased-{width}-{theme}.png")
        await page.get_by_role("button", name="Done").click()
        await page.wait_for_selector("article[data-person='web:anna']", state="detached")
        people = await page.locator("article[data-person]").count()
        await page.goto(f"{stage.url}/#/settings/access")
        async with page.expect_download() as coming:
            await page.get_by_role("button", name="Download everything of mine").click()
        mine = (await coming.value).suggested_filename
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/leaving-mine-{width}.png", full_page=True)
        gone = not is_in(tmp_path)
    assert sum(WORD in each for each in told) == 1
    assert (stays, gone, people, mine, complaints) == (True, True, 2, "everloop Maria.zip", 0)
    assert listed[:2] == ["Person: 1", "Accounts: 1"]
    assert "Conversations: 1" in listed
