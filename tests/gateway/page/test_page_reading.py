"""What models and tools write can be read on the page as it was meant."""

from pathlib import Path
from typing import Any

import pytest

from everloop.errors import KeyRefused
from everloop.testing import Call, Calls, Fail, Say, ScriptedModel, Shown
from tests.gateway.page.walk import Stage, look, send, staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

RICH = r"""# First

old pond
a frog leaps in
water's sound

| Index | Size | Hash |
|---|---:|---|
| 1 | 214 MB | `a8f5f167f44f4964e6c998dee827110c` |

Energy \(E = mc^2\), H<sub>2</sub>O, x<sup>2</sup>, <kbd>Ctrl</kbd>; it costs $5 and $10.

\[
\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}
\]

Broken: \(\frac{1}{\)

مرحبا بالعالم

- نقطة أولى

<details><summary>More</summary>

*inside*

</details>
"""
BEFORE, AFTER = "def f():\n    return 1\n", "def f():\n    return 2\n"
STEPS = (
    Call("write_file", {"path": "a.py", "content": BEFORE}),
    Call("edit_file", {"path": "a.py", "old_text": BEFORE, "new_text": AFTER}),
    Call("list_dir", {"path": "."}),
    Call("read_file", {"path": "nothing.txt"}),
)


def lines(shown: Shown) -> Any:
    if "rich" in shown.asked:
        return Say(RICH)
    if "steps" in shown.asked and shown.step < len(STEPS):
        return STEPS[shown.step]
    if "long" in shown.asked:
        return Say("```python\n" + "\n".join(f"x = {n}" for n in range(300)) + "\n```")
    if "ask" in shown.asked and shown.step == 0:
        return Calls(Call("send", {"to": "somebody@example.org"}), Call("look", {"path": "x"}))
    if "fail" in shown.asked:
        return Fail(KeyRefused("the key is wrong; set another key"))
    return Say(f"You said: {shown.asked}")


def opened(browser: Any, home: Path, width: int = 1280, **settings: Any) -> Any:
    given = {"provider": ScriptedModel(lines), "tools": (look, send)}
    return staged(browser, home, width, given=given, **settings)


async def test_text_is_drawn_as_it_was_written(browser: Any, tmp_path: Path):
    async with opened(browser, tmp_path) as stage:
        await stage.log_in()
        await stage.say("something rich")
        await stage.answer("water")
        await stage.until("document.querySelector('.prose math') !== null")  # what draws it is loaded by then
        found = await stage.page.evaluate(
            """() => { const all = (tag) => [...document.querySelectorAll(`.prose ${tag}`)]; return {
                breaks: all('p')[0].querySelectorAll('br').length,
                math: all('math').map((each) => [each.getAttribute('display'), each.lastChild.lastChild.textContent]),
                drawn: all(':is(munderover, mfrac)').length,
                words: all(':is(sub, sup, kbd)').map((each) => [each.localName, each.textContent]),
                plain: all('p').map((each) => each.textContent.slice(-20)).filter((text) => /costs|Broken/.test(text)),
                right: ['p', 'ul'].map((tag) => all(tag).filter((each) => each.matches(':dir(rtl)')).length),
                inside: all('details em').length,
            }; }"""
        )
    assert found == {
        "breaks": 2,
        "math": [
            ["inline", "E = mc^2"],
            ["block", r"\sum_{n=1}^{\infty} \frac{1}{n^2} = \frac{\pi^2}{6}"],
        ],
        "drawn": 3,
        "words": [["sub", "2"], ["sup", "2"], ["kbd", "Ctrl"]],
        "plain": ["it costs $5 and $10.", r"Broken: $\frac{1}{$"],
        "right": [1, 1],
        "inside": 1,
    }


@walked_at(390, 1280)
async def test_a_table_never_breaks_a_word_and_scrolls_where_it_is_too_wide(browser: Any, tmp_path: Path, width: int):
    async with opened(browser, tmp_path, width) as stage:
        await stage.log_in()
        await stage.say("something rich")
        await stage.answer("water")
        lines, widest = await stage.page.evaluate(
            """() => [[...document.querySelectorAll('th, td')].map((each) => Math.round(each.clientHeight / 24)),
                      document.scrollingElement.scrollWidth]"""
        )
    assert (max(lines), widest) == (2, width)  # one line and the space around it


async def test_numbers_and_files_below_a_live_answer_are_those_of_its_turn(browser: Any, tmp_path: Path):
    async with opened(browser, tmp_path) as stage:
        await stage.log_in()
        await stage.say("steps, please")
        await stage.answer("You said: steps, please")
        files = await stage.texts(".final.last .files .chip")
        await stage.say("thanks")
        await stage.answer("You said: thanks")
        live, none = await facts(stage), await stage.texts(".final.last .files .chip")
        await stage.page.reload()
        await stage.answer("You said: thanks")
        again = await facts(stage)
    assert (files, none) == (["a.py"], [])
    assert live == again
    assert len(live) == 2


async def facts(stage: Stage) -> list[str]:
    """Without the time that it took, which is the model's and the browser's."""
    return [each.split(" · ")[2] for each in await stage.texts(".final .facts")]


async def test_tool_work_reads_as_texts_and_differences_and_is_folded_when_it_is_done(browser: Any, tmp_path: Path):
    async with opened(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("steps, please")
        await stage.answer("You said: steps, please")
        folded = await stage.texts(".steps > summary")
        shown = await page.locator(".card:visible").count()
        await page.click(".steps > summary")
        for n in (0, 1):
            await page.locator(".card > summary").nth(n).click()
        await page.wait_for_selector(".card .t-added")
        wrote = await page.locator(".card pre code").nth(0).inner_text()
        edited = await page.locator(".card pre code").nth(1).inner_text()
    assert shown == 0
    assert [part for part in folded[0].split(" · ") if not part.endswith("s") or "step" in part] == [
        "4 steps",
        "1 failed",
    ]
    assert (wrote, edited) == (BEFORE, "  def f():\n-     return 1\n+     return 2\n  ")


async def test_what_was_not_run_says_why_in_words(browser: Any, tmp_path: Path):
    async with opened(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("ask me")
        await page.wait_for_selector(".asking:visible")
        waiting = await stage.texts(".call .status")
        await stage.say("never mind")
        await stage.answer("You said: never mind")
        withdrawn = await stage.texts(".call .status")
        await stage.say("ask me")
        await page.click(".asking:visible >> button:has-text('Deny')")
        await stage.answer("You said: ask me")
        denied = await stage.texts(".call .status")
        red = await page.locator(".call.bad").count()
    assert waiting == ["waits for you", "waits for your answer"]
    assert (withdrawn[0], denied[2], red) == ("withdrawn: you went on", "you said no", 0)


async def test_long_code_is_folded_and_unfolded(browser: Any, tmp_path: Path):
    async with opened(browser, tmp_path) as stage:
        await stage.log_in()
        await stage.say("something long")
        await stage.answer("x = 0")
        heights = [await stage.page.evaluate("document.querySelector('figure.code pre').clientHeight")]
        await stage.page.click("text=Show all 300 lines")
        heights.append(await stage.page.evaluate("document.querySelector('figure.code pre').clientHeight"))
    assert heights[0] < 600 < heights[1]


async def test_a_failure_is_one_card_with_ways_out(browser: Any, tmp_path: Path):
    models = {"quick": {"model": "scripted"}, "other": {"model": "scripted"}}
    async with opened(browser, tmp_path, models=models, agents={"defaults": {"model": "quick"}}) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("fail, please")
        await page.wait_for_selector(".said.failed .row a")
        cards = await page.locator(".said.failed, .log > .note").count()
        ways = await stage.texts(".said.failed .row > :is(button, a)")
        await page.click("text=Ask another model")
        await page.wait_for_selector(".model-list")
        others = await stage.texts(".model-list [role=option] b")
        await page.keyboard.press("Escape")
        await page.wait_for_selector(".model-list", state="detached")
        await page.click(".said.failed a")
        await page.wait_for_url("**/#/settings/models")
    assert (cards, ways, others) == (1, ["Try again", "Ask another model …", "Connect a model"], ["quick", "other"])


async def test_a_context_that_is_nearly_full_says_so_and_can_be_compacted(browser: Any, tmp_path: Path):
    full = {"agents": {"defaults": {"context_window": 8000, "max_tokens": 500}}}
    async with opened(browser, tmp_path, **full) as stage:
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("You said: hello")
        little = await stage.page.locator(".meter:visible").count()
        await stage.say("word " * 3400)
        await stage.page.wait_for_selector(".meter:has-text('% full')")
        await stage.page.click(".meter >> text=Compact")
        await stage.page.wait_for_selector(".meter", state="hidden")
        await stage.page.wait_for_selector("text=What was said before became a summary")
    assert little == 0


PIECES = [
    *(r"\frac", "{", "}", "^", "_", r"\sqrt", "[", "]", "x", "12", r"\left", r"\right", "(", ")", "|", "'", "\\"),
    *(r"\begin{matrix}", r"\end{matrix}", "&", r"\\", r"\text{a b}", r"\sum", r"\hat", r"\mathbb", r"\unknown"),
    *(r"\constructor", r"\begin{constructor}", r"\end{constructor}", r"\toString", r"\not", r"\operatorname"),
]
DRAWN = """async ([pieces, many]) => {
    const { href } = document.querySelector("link[href$='/markdown.js']");
    const { formula } = await import(href.replace("markdown", "math"));
    const { markdown } = await import(href);
    const random = (seed) => () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    const next = random(7);
    const told = [];
    for (let n = 0; n < many; n += 1) {
        const text = Array.from({ length: 1 + next() * 25 }, () => pieces[Math.floor(next() * pieces.length)]).join("");
        for (const draw of [formula, markdown]) {
            try {
                if (/function|undefined/.test(draw(text).textContent)) told.push(text);
            } catch (error) { told.push(`${text}: ${error}`); }
        }
    }
    return told;
}"""


async def test_whatever_stands_in_a_formula_is_drawn_or_stays_as_it_is(browser: Any, tmp_path: Path):
    async with opened(browser, tmp_path) as stage:
        await stage.log_in()
        told = await stage.page.evaluate(DRAWN, [PIECES, 3000])
    assert told == []


LATE = """async () => {
    const { href } = document.querySelector("link[href$='/log.js']");
    const { Log } = await import(href);
    const drafts = (called) => {
        const log = new Log({ others: () => null });
        log.add({ seq: 3, kind: 'model_called', at: 1 });
        log.add({ seq: 4, kind: 'model_said', at: 2, text: 'All of it.' });
        log.streamStart(`thread:${called}`);
        log.streamChunk({ msg: `thread:${called}`, n: 1, delta: 'All' });
        return [log.node.querySelectorAll('.draft').length, log.running];
    };
    return [drafts(3), drafts(5)];
}"""


async def test_a_draft_that_comes_later_than_its_answer_is_not_shown(browser: Any, tmp_path: Path):
    async with opened(browser, tmp_path) as stage:
        await stage.log_in()
        late, next_one = await stage.page.evaluate(LATE)
    assert (late, next_one) == ([0, False], [1, True])
