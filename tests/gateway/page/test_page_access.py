"""The page can be used by everyone: axe-core finds nothing in any view, and none is wider than its window, in both
themes, on a phone and on a desk."""

from pathlib import Path
from typing import Any

import pytest

from tests.effort import in_full
from tests.gateway.page.views import furnished
from tests.gateway.page.walk import Stage, staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

AXE = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ['violations'], elementRef: false });
    return violations.flatMap(({ id, nodes }) => nodes.map(({ html, any, all, none }) =>
        `${id}: ${html.slice(0, 160)} (${[...any, ...all, ...none].map(({ message }) => message).join('; ')})`));
}"""
TOO_WIDE = """[...document.querySelectorAll('main .scroller')].filter((e) => e.scrollWidth > e.clientWidth)
    .map((e) => `too wide: ${e.scrollWidth} in ${e.clientWidth}`)"""
LIGHTS = ((390, "light"), (1440, "dark"), (390, "dark"), (1440, "light"))


async def findings(stage: Stage) -> list[str]:
    """What axe says about what is to be seen."""
    if not await stage.page.evaluate("'axe' in window"):
        base = pytest.importorskip("axe_playwright_python.base", reason="axe-core is not installed (extra `walk`)")
        await stage.page.evaluate(base.AXE_SCRIPT)
    found: list[str] = await stage.page.evaluate(AXE)
    return found


def lights_of(nth: int) -> tuple[tuple[int, str], ...]:
    """Of the nth view. Colours go by the theme and places by the width, and views share most of their parts: in the
    short form one is seen on a phone by day, the next at a desk by night."""
    return in_full(LIGHTS, LIGHTS[nth % 2 : nth % 2 + 1])


async def in_its_lights(stage: Stage, nth: int) -> dict[str, list[str]]:
    """In each width and theme in which the nth view is looked at."""
    found: dict[str, list[str]] = {}
    for width, theme in lights_of(nth):
        await stage.page.set_viewport_size({"width": width, "height": 800})
        await stage.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        found[f"{width} {theme}"] = await findings(stage) + await stage.page.evaluate(TOO_WIDE)
    return {light: told for light, told in found.items() if told}


@pytest.mark.shortened
@pytest.mark.timeout(600)  # it looks two hundred times in full, which takes minutes
async def test_axe_finds_nothing_in_any_view(browser: Any, tmp_path: Path):
    found: dict[str, dict[str, list[str]]] = {}
    async with furnished(browser, tmp_path) as (stage, views):
        bare = [view for view in views if view.act is None]
        opened = [view for view in views if view.act]  # each is the page anew, and that takes longest
        bare, opened = in_full((bare, opened), (bare[::2], opened[::3]))
        for view in bare:
            await (view.open_from(stage) if found else view.open(stage))
            found[view.name] = await in_its_lights(stage, len(found))
        for view in opened:
            await view.open(stage)
            found[view.name] = await in_its_lights(stage, len(found))
        assert len(found) == len(bare) + len(opened)
        await stage.page.set_viewport_size({"width": 1300, "height": 800})  # where it stands beside the rest
        await stage.page.click("[aria-label='Log out']")
        await stage.page.wait_for_selector("#password")
        found["log in"] = await in_its_lights(stage, len(found))
    assert {name: told for name, told in found.items() if told} == {}


async def test_axe_finds_what_is_wrong(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.page.goto(stage.url)
        await stage.page.wait_for_selector("#password")
        await stage.page.evaluate("() => { document.querySelector('main').append(document.createElement('button')); }")
        told = await findings(stage)
    assert [each.split(":")[0] for each in told] == ["button-name"]
