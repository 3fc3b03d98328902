"""The first five minutes in a real browser: who answers, its download, and connecting a better one."""

from pathlib import Path
from typing import Any

import pytest

from everloop.testing import Say
from everloop.testing.model_server import ModelServer
from tests.gateway.page.test_page_setup import LOCAL, NOBODY
from tests.gateway.page.test_page_words import strange
from tests.gateway.page.walk import Stage, staged, walked_at
from tests.providers.downloads import GatedHub, tiny

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

KEY = "sk-canary-0123456789"


class Actions:
    """What a person does, one after the other: each click is one, and each field that is filled, with its Enter."""

    def __init__(self, stage: Stage) -> None:
        self.page = stage.page
        self.done: list[str] = []

    async def click(self, text: str) -> None:
        self.done.append(f"press {text!r}")
        await self.page.click(f"button:has-text({text!r})")

    async def fill(self, label: str, text: str, enter: bool = False) -> None:
        self.done.append(f"fill in {label!r}")
        await self.page.fill(f"[aria-label={label!r}]", text)
        if enter:
            await self.page.keyboard.press("Enter")


def empty_home(home: Path, hub: GatedHub | None = None) -> dict[str, Any]:
    return {"in_process": {"": tiny(home / "models", hub or GatedHub())}}


async def test_from_an_empty_home_to_an_answer_by_a_connected_model_are_four_actions(browser: Any, tmp_path: Path):
    """An address of one's own that wants a key: the longest way. The words that are met are all shown here."""
    hub = GatedHub()
    async with (
        ModelServer([Say("here I am")], models=("nova-large", "text-embedding-x")) as server,
        staged(browser, tmp_path, given=empty_home(tmp_path, hub), providers=LOCAL) as stage,
    ):
        await stage.log_in()
        await stage.page.wait_for_selector(".first .offered")
        greeted = (await stage.texts(".first .about"))[0].splitlines()
        person = Actions(stage)
        await person.fill("Provider or address", server.url)
        await person.fill("Key", KEY, enter=True)
        await person.click("Use nova-large")
        await stage.page.wait_for_selector(".connect .good")
        said = await stage.texts(".connect .good")
        await person.fill("Message", "hello", enter=True)
        await stage.answer("here I am")
        shown = await stage.page.content()
    assert person.done == [
        "fill in 'Provider or address'", "fill in 'Key'", "press 'Use nova-large'", "fill in 'Message'",
    ]  # fmt: skip
    assert [line for line in greeted if line] == [
        "Answers come from a small model on this machine (1 MB, fetched once).", "Fetch it", "Connect a better one",
    ]  # fmt: skip
    assert said == ["custom/nova-large answers from now on."]
    assert [each.headers["Authorization"] for each in server.requests] == [f"Bearer {KEY}"]
    assert (hub.asked, KEY in shown + (tmp_path / "config.toml").read_text()) == ([], False)  # nothing was fetched


async def test_a_known_provider_is_found_by_search_and_what_goes_wrong_has_a_way_out(browser: Any, tmp_path: Path):
    providers = {**LOCAL, "mistral": {"api_base": NOBODY}}
    (tmp_path / "config.toml").write_text('[agents.defaults]\nmodel = "embedded"\n')
    async with staged(browser, tmp_path, given=empty_home(tmp_path), providers=providers) as stage:
        page = stage.page
        await stage.log_in()
        await page.wait_for_selector(".first .offered")
        groups = await stage.texts(".offers .over")
        first = (await stage.texts(".offered button"))[:3]
        await page.fill("[aria-label='Provider or address']", "grok")
        found = await stage.texts(".offered button")
        await page.fill("[aria-label='Provider or address']", "mistr")
        await page.keyboard.press("Enter")
        await page.fill("[aria-label=Key]", KEY)
        await page.keyboard.press("Enter")
        nobody = await page.inner_text(".connect .wrong:not(:empty)")
        await page.click("text=Change")
        await page.fill("[aria-label='Provider or address']", "http://127.0.0.1:9@evil")
        await page.click("text=Look for models")
        odd = await page.inner_text(".connect .wrong:not(:empty)")
        focused = await page.evaluate("document.activeElement.tagName")
    assert (groups, first) == (
        ["Providers", "On this machine", "Your own"],
        ["OpenAI (GPT)", "Anthropic (Claude)", "Google (Gemini)"],
    )
    assert found == ["xAI (Grok)"]
    assert nobody.endswith("Is the server running, and the address right?")
    assert odd.startswith("'http://127.0.0.1:9@evil' is no address")
    assert focused != "BODY"


async def test_a_server_that_lists_nothing_is_told_the_name(browser: Any, tmp_path: Path):
    async with (
        ModelServer([Say("here I am")], models=()) as server,
        staged(browser, tmp_path, given=empty_home(tmp_path), providers=LOCAL) as stage,
    ):
        await stage.log_in()
        await stage.page.wait_for_selector(".first .offered")
        await stage.page.fill("[aria-label='Provider or address']", server.url)
        await stage.page.keyboard.press("Enter")
        await stage.page.fill("[aria-label='Name of the model']", "secret-one")
        await stage.page.keyboard.press("Enter")
        await stage.page.wait_for_selector(".connect .good:has-text('custom/secret-one')")
        await stage.say("hello")
        await stage.answer("here I am")


async def test_the_model_of_this_machine_is_fetched_with_a_bar_in_every_tab_and_can_be_left(
    browser: Any, tmp_path: Path
):
    hub = GatedHub()
    hub.down = True
    async with staged(browser, tmp_path, given=empty_home(tmp_path, hub), providers=LOCAL) as stage:
        page = stage.page
        await stage.log_in()
        await page.click("text=Fetch it")
        failed = await page.inner_text(".first .about .wrong")
        why = await page.inner_text(".first .about .hint")
        hub.down = False
        await page.click("text=Fetch it")
        await page.wait_for_selector(".first progress")
        other = await page.context.new_page()
        await other.goto(f"{stage.url}/#/")
        await other.wait_for_selector(".first progress")
        told = [await each.inner_text(".first .facts:has-text('50%')") for each in (page, other)]
        await other.click("text=Leave it for later")
        await page.wait_for_selector("text=Go on fetching (1 MB are here)")
        await page.click("text=Go on fetching")
        await page.wait_for_selector(".first progress")
        hub.gate.set()
        await page.wait_for_selector(".first .about:has-text('The model is here.')")
        await stage.say("hello")
        await stage.answer("You said: hello")
    assert (failed, told) == ("It could not be fetched.", ["1 MB of 1 MB · 50%"] * 2)
    assert "huggingface.co cannot be found" in why
    assert hub.asked == [0, 512_000]


async def test_who_writes_before_it_is_here_sees_the_same_bar(browser: Any, tmp_path: Path):
    hub = GatedHub()
    async with staged(browser, tmp_path, given=empty_home(tmp_path, hub), providers=LOCAL) as stage:
        await stage.log_in()
        await stage.say("hello")
        await stage.page.wait_for_selector(".draft .going progress")
        going = await stage.page.inner_text(".draft .going .facts")
        value = await stage.page.evaluate("document.querySelector('.draft .going progress').value")
        await stage.page.reload()
        await stage.page.wait_for_selector(".draft .going progress")
        begun = len(hub.asked)
        hub.gate.set()
        await stage.answer("You said: hello")
        left = await stage.page.locator(".going").count()
    assert (going, value, begun, left) == ("Tiny: fetching from Hugging Face 50 % of 1 MB", 50, 1, 0)


@walked_at(320, 1280)
async def test_the_card_fits_and_every_control_has_a_name(browser: Any, tmp_path: Path, width: int):
    async with staged(browser, tmp_path, width, 700, given=empty_home(tmp_path), providers=LOCAL) as stage:
        page = stage.page
        await stage.log_in()
        await page.click(".offered >> text=Anthropic")
        await page.wait_for_selector("[aria-label=Key]")
        widest = await page.evaluate("Math.max(...[...document.querySelectorAll('main *')].map((e) => e.scrollWidth))")
        nameless = await page.evaluate(
            "[...document.querySelectorAll('.first button, .first input')].filter((e) => "
            "!(e.getAttribute('aria-label') || e.innerText.trim())).length"
        )
        focused = await page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert (widest <= width, nameless, focused) == (True, 0, "Key")


async def test_no_word_of_the_card_stands_outside_its_tables(browser: Any, tmp_path: Path):
    hub = GatedHub()
    async with (
        ModelServer([], models=("one", "two")) as server,
        staged(browser, tmp_path, given=empty_home(tmp_path, hub), providers=LOCAL) as stage,
    ):
        page = stage.page
        await page.add_init_script("localStorage.setItem('language', 'pseudo')")
        await stage.log_in()
        await page.wait_for_selector(".first .offered")
        found = await strange(stage)
        await page.fill("[aria-label='⟦Provider or address⟧']", server.url)
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".offered-model")
        await page.click(".first .about .primary")
        await page.wait_for_selector(".first progress")
        found += await strange(stage)
        await page.click(".connect .primary")
        await page.wait_for_selector(".connect .good")
        found += await strange(stage)
        await page.evaluate("document.body.append('A word that nobody gathered')")
    assert found == []
