"""All words of the page stand in its tables: in the pseudo-language each is in brackets, and no other is to be seen."""

from pathlib import Path
from typing import Any

import pytest

from tests.gateway.page.walk import Stage, staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

# What people, models, tools and settings say, names, and times, which the browser writes in its own language.
DATA = (
    ".prose, .plain, .bubble, .name, .text, .title, .place, .lead, .said .facts, time, code, pre, kbd, option, .chip, "
    ".gist, .card b, .status, .given, .code figcaption span, .turn h2, .what, .took, .named, .detail, .legend span, "
    ".numbers td, "
    ".numbers th[scope=row], .chart text, .chart title, .group h2, .what-for, .origin, .callout, .banner span, "
    ".held b, .trial li, .check, .asked-in a, .completion b, .completion span, .versions .facts, .people b"
)
STRANGE = f"""() => {{
    const found = [];
    const strange = (text) => /\\p{{L}}{{2}}/u.test(text) && !text.includes('⟦');
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node; (node = walk.nextNode());) {{
        if (strange(node.data) && !node.parentElement.closest({DATA!r} + ', noscript')) found.push(node.data);
    }}
    for (const each of document.querySelectorAll('body *')) {{
        if (each.closest('.item, .setting, .models, noscript, .chart, .track, math')) continue;
        for (const name of ['aria-label', 'title', 'placeholder']) {{
            const text = each.getAttribute(name) ?? '';
            if (strange(text) && !each.matches('.bubble, .facts, a')) found.push(`${{name}}: ${{text}}`);
        }}
    }}
    return [...new Set(found)];
}}"""


async def strange(stage: Stage) -> list[str]:
    found: list[str] = await stage.page.evaluate(STRANGE)
    return found


async def test_no_word_of_the_page_stands_outside_its_tables(browser: Any, tmp_path: Path):
    found: dict[str, list[str]] = {}
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await page.add_init_script("localStorage.setItem('language', 'pseudo')")
        await page.goto(stage.url)
        await page.wait_for_selector("#password")
        found["log in"] = await strange(stage)
        await stage.log_in()
        await page.wait_for_selector(".list .hint")
        found["empty"] = await strange(stage)
        for text in ("look around", "write it", "something nasty"):
            await stage.say(text)
            await page.wait_for_selector(f".said.final.last:has-text('{'bold' if 'nasty' in text else text}')")
        await stage.say("fail, please")
        await page.wait_for_selector(".said.failed .row a")
        for card in await page.locator(".card > summary").all():
            await card.click()
        await stage.say("send it")
        await page.wait_for_selector(".asking:visible .ahead")
        await page.click(".ahead summary")
        await page.click("[aria-label='⟦More⟧']")
        await page.keyboard.press("Escape")
        await page.click("button.models")
        await page.locator(".model-list input").press_sequentially("x")
        await page.wait_for_selector(".model-list [role=option]")
        found["models"] = await strange(stage)
        await page.keyboard.press("Escape")
        await page.locator(".composer textarea").press_sequentially("/mo")
        await page.wait_for_selector(".completion li")
        found["conversation"] = await strange(stage)
        await page.evaluate("document.querySelector(\"[aria-label='⟦Keyboard⟧']\").click()")
        found["keyboard"] = await strange(stage)
        await page.keyboard.press("Escape")
        thread = page.url.rpartition("/")[2]
        for place in (
            "waiting",
            "usage",
            "outbox",
            "files",
            "files//b.txt",
            "files/out/a.html",
            "settings",
            "settings/models",
            "settings/behaviour",
            "settings/tools",
            "settings/health",
            "settings/server",
            "settings/all",
            "settings/access",
            "settings/people",
            "settings/audit",
            "settings/doctor",
            "settings/personas",
            "settings/schedules",
            f"t/{thread}",
            "c/abcdef",
        ):
            await page.goto(f"{stage.url}/#/{place}")
            await page.wait_for_selector(
                {
                    "waiting": ".asking",
                    "outbox": ".empty h2",
                    "c/abcdef": ".empty h2",
                    "files": ".entry",
                    "settings/doctor": ".findings details",
                }.get(place, ".tab, .turn, .tile, .pane .body pre")
            )
            await page.wait_for_timeout(300)
            found[place.split("/" + thread)[0]] = await strange(stage)
        await page.evaluate("document.body.append('A word that nobody gathered')")
        control = await strange(stage)
    assert {place: words for place, words in found.items() if words} == {}
    assert control == ["A word that nobody gathered"]
