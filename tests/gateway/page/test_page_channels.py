"""A walk through the page's Channels, in a real browser, on a phone and on a desk."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everloop.testing import ScriptedModel
from tests.channels.parrot import PASSWORD, TOKEN, Cage, plugged_in
from tests.gateway.page.walk import staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
OUTSIDE = "[...document.querySelectorAll('.tab *')].filter((e) => e.getBoundingClientRect().right > innerWidth).length"


@pytest.fixture(autouse=True)
def package() -> Iterator[None]:
    with plugged_in():
        yield


async def shot(page: Any, name: str) -> None:
    if SHOTS:
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await page.screenshot(path=f"{SHOTS}/{name}-{scheme}.png", full_page=True)
        await page.emulate_media(color_scheme="light")


@walked_at(390, 1440)
async def test_the_owner_sets_up_a_channel_sees_how_it_stands_and_removes_it(browser: Any, tmp_path: Path, width: int):
    (tmp_path / "config.toml").write_text(
        '[channels.webhook]\nurl = "ftp://x"\nsecret = "short"\n[channels.qq]\nx = 1\n'
    )
    given = {"provider": ScriptedModel([])}
    async with Cage().open() as cage, staged(browser, tmp_path, width=width, given=given) as stage:
        page = stage.page
        cage.scopes = ["speak"]
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/channels")
        await page.wait_for_selector("article[data-channel=webhook] .why")
        wrong = [await page.inner_text(f"article[data-channel={name}] .why") for name in ("webhook", "qq")]
        await shot(page, f"channels-wrong-{width}")
        await page.get_by_role("button", name="Set up parrot").click()
        await page.get_by_label("Where the parrot lives").fill(cage.url)
        await page.get_by_label("What the parrot told you").fill("not-the-right-one")
        outside = await page.evaluate(OUTSIDE)
        await page.get_by_role("button", name="Try it and keep it").click()
        await page.wait_for_selector(".wrong:not(:empty)")
        refused = await page.inner_text(".wrong:not(:empty)")
        await shot(page, f"channel-form-{width}")
        await page.get_by_label("What the parrot told you").fill(TOKEN)
        await page.get_by_role("button", name="Try it and keep it").click()
        await page.wait_for_selector("text=open its cage")
        await shot(page, f"channel-missing-{width}")
        await page.get_by_role("button", name="Close").click()
        await page.wait_for_selector("article[data-channel=parrot] .state:has-text('listening')")
        await page.get_by_role("button", name="Try parrot").click()
        await page.wait_for_selector("text=It answers: polly")
        await page.get_by_role("button", name="Close").click()
        await page.get_by_role("button", name="Set up parrot anew").click()
        await page.get_by_role("button", name="Log in instead").click()
        await page.get_by_label("Where the parrot lives").fill(cage.url)
        await page.get_by_label("Its password").fill(PASSWORD)
        cage.scopes.append("fly")
        await page.get_by_role("button", name="Log in", exact=True).click()
        await page.wait_for_selector("article[data-channel=parrot]")
        link = await page.get_by_role("link", name="Open it").get_attribute("href")
        await page.get_by_text("Now write to it there.").wait_for()
        await page.get_by_role("button", name="Close").click()
        await shot(page, f"channels-{width}")
        outside += await page.evaluate(OUTSIDE)
        content = await page.content()
        await page.get_by_role("button", name="Remove parrot").click()
        await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
        await page.wait_for_selector("article[data-channel=parrot] .state:has-text('not set up')")
    assert link == "https://parrot.example/polly"
    assert "channels.webhook.url must begin with https://" in wrong[0]
    assert wrong[1] == "channels.qq is set, but this version has no channel for QQ: nothing listens there."
    assert refused == "The parrot does not know the token …; ask it for another. Nothing was written."
    assert (outside, TOKEN in content, PASSWORD in content) == (0, False, False)
    assert TOKEN not in (tmp_path / "config.toml").read_text()
