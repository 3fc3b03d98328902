"""The page can be used by everyone: what axe-core's commonest rules look for, in every view."""

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.page.walk import staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

AUDIT = """() => {
    const seen = (each) => each.checkVisibility?.() ?? true;
    const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
    const named = (each) => each.ariaLabel || each.textContent.trim() || each.title || each.labels?.length;
    const NAMED = 'a, button, input, textarea, select, [role=menu], [role=listbox], [role=img], dialog';
    const told = (rule, nodes) => nodes.map((each) => `${rule}: ${each.outerHTML.slice(0, 120)}`);
    const ids = all('[id]').map((each) => each.id);
    const levels = all('main :is(h1, h2, h3, h4, h5, h6)');
    const focusable = (each) => each.matches('a, button, input, textarea, select, summary, [tabindex]');
    const reached = (each) => focusable(each) || [...each.querySelectorAll('*')].some(focusable);
    const scrolls = (each) => /auto|scroll/.test(getComputedStyle(each).overflowY + getComputedStyle(each).overflowX)
        && (each.scrollHeight > each.clientHeight + 1 || each.scrollWidth > each.clientWidth + 1);
    return [
        ...told('no name', all(NAMED).filter((each) => !named(each))),
        ...told('no alt', all('img:not([alt])')),
        ...told('same id', all('[id]').filter((each) => ids.filter((id) => id === each.id).length > 1)),
        ...told('heading skipped', levels.filter((each, i) => i && each.localName[1] - levels[i - 1].localName[1] > 1)),
        ...told('control in a control', all(':is(a, button, summary) :is(a, button, input, select, textarea)')),
        ...told('not scrolled by keys', all('main *').filter((each) => scrolls(each) && !reached(each))),
        ...told('list without items', all('ul > :not(li), ol > :not(li)')),
        ...told('not one main', all('main').slice(1)),
        ...(document.documentElement.lang ? [] : ['no language']),
    ];
}"""


@pytest.mark.parametrize("width", [390, 1440])
async def test_every_view_has_names_headings_in_order_and_no_part_out_of_reach(
    browser: Any, tmp_path: Path, width: int
):
    found: dict[str, list[str]] = {}
    async with staged(browser, tmp_path, width) as stage:
        page = stage.page
        await page.goto(stage.url)
        await page.wait_for_selector("#password")
        found["log in"] = await page.evaluate(AUDIT)
        await stage.log_in()
        found["new"] = await page.evaluate(AUDIT)
        for text in ("look around", "write it", "something nasty"):
            await stage.say(text)
            await stage.answer("bold" if "nasty" in text else text)
        await stage.say("fail, please")
        await page.wait_for_selector(".said.failed")
        await stage.say("send it")
        await page.wait_for_selector(".asking:visible .ahead")
        for each in await page.locator("main summary:visible").all():
            await each.click()
        await page.click(".tools [aria-label=More]")
        found["conversation"] = await page.evaluate(AUDIT)
        await page.keyboard.press("Escape")
        await page.locator(".composer textarea").press_sequentially("/mo")
        await page.wait_for_selector(".completion li")
        found["completion"] = await page.evaluate(AUDIT)
        thread = page.url.rpartition("/")[2]
        pages = ("models", "behaviour", "tools", "outbox", "access", "usage", "health", "server", "all")
        places = ("waiting", "usage", "files", "files//b.txt", "settings", *(f"settings/{name}" for name in pages))
        for place in (*places, f"t/{thread}"):
            await page.goto(f"{stage.url}/#/{place}")
            ready = {"waiting": ".asking", "files": ".entry", "files//b.txt": ".pane pre"}
            await page.wait_for_selector(ready.get(place, "main :is(.sheet, .turn, .tile, .empty, table, .to):visible"))
            found[place] = await page.evaluate(AUDIT)
        await page.evaluate("() => { document.querySelector('main').append(document.createElement('button')); }")
        control = await page.evaluate(AUDIT)
    assert {place: told for place, told in found.items() if told} == {}
    assert control == ["no name: <button></button>"]
