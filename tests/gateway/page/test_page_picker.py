"""Who answers, and what it costs, is seen before the first message and chosen from one list, at every width."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from everloop.testing import Say
from everloop.testing.model_server import ModelServer
from tests.gateway.page.walk import Stage, staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

NOBODY = {name: {"api_base": "http://127.0.0.1:9/v1"} for name in ("ollama", "lmstudio", "llamacpp", "vllm")}


@asynccontextmanager
async def silent() -> AsyncIterator[str]:
    """The address of a host that never says what it has."""
    gate = asyncio.Event()

    async def wait(request: web.BaseRequest) -> web.Response:
        await gate.wait()
        return web.Response(status=500)

    runner = web.ServerRunner(web.Server(wait), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    finally:
        gate.set()
        await runner.cleanup()


@asynccontextmanager
async def connected(browser: Any, home: Path, width: int = 1280) -> AsyncIterator[tuple[Stage, ModelServer]]:
    """A page of a house with a host of three models, one that is silent, and a preset."""
    models = ("good", "better", "best")
    async with (
        silent() as nowhere,
        ModelServer(lambda shown: Say(f"Hello from {shown.asked}"), models=models) as server,
    ):
        settings = {
            "agents": {"defaults": {"model": "custom/good"}},
            "providers": {**NOBODY, "custom": {"api_base": server.url}, "quiet": {"api_base": nowhere, "model": "x"}},
            "models": {"quick": {"model": "custom/better"}},
            "prices": {"custom/good": {"input": 3.0, "output": 15.0}, "custom/best": {"input": 0.0, "output": 0.0}},
        }
        async with staged(browser, home, width, given={}, **settings) as stage:
            await stage.log_in()
            await stage.page.wait_for_selector(".cost:visible")
            yield stage, server


async def open_list(stage: Stage, button: str = "button.models") -> None:
    await stage.page.click(button)
    await stage.page.wait_for_selector("[role=option]:has-text('custom/best')")


async def facts(stage: Stage) -> list[str]:
    return [" | ".join(each.split("\n")) for each in await stage.texts(".model-list [role=option]")]


async def test_who_answers_is_chosen_before_anything_is_said_and_goes_with_the_first_message(
    browser: Any, tmp_path: Path
):
    async with connected(browser, tmp_path) as (stage, server):
        page = stage.page
        before = [await page.inner_text(".cost"), await page.inner_text("button.models")]
        await open_list(stage)
        listed, waits = await facts(stage), await stage.texts(".model-list .of:has-text('quiet') .state")
        await page.keyboard.type("BEST cust")
        found = await stage.texts("[role=option] b")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("button.models:has-text('custom/best')")
        chosen = await page.inner_text(".cost")
        begun = await stage.texts(".list .item")
        await page.reload()
        await page.wait_for_selector("button.models:has-text('custom/best')")  # as a draft is
        await stage.say("one")
        await stage.answer("Hello from one")
        await page.wait_for_selector(".list .item:has-text('one')")
        items, notes = await stage.texts(".list .item .name"), await page.locator(".log .note").count()
        hidden = await page.is_hidden(".cost")
    assert before == ["custom/good · $3 in / $15 out per million tokens", "custom/good"]
    assert listed == [
        "custom/good | answers now | reads 128k · $3 in / $15 out per million",
        "quick | custom/better | reads 128k",
        "custom/best | reads 128k · free",
        "custom/better | reads 128k",
        "custom/good | answers now | reads 128k · $3 in / $15 out per million",
    ]
    assert (waits, found[0], begun) == (["asking …"], "custom/best", [])
    assert chosen == "custom/best · $0 in / $0 out per million tokens"
    assert (len(items), notes, hidden) == (1, 0, True)  # no "Untitled", and nothing is said twice
    assert [asked.body["model"] for asked in server.requests] == ["best"]


async def test_the_list_is_used_by_keyboard_alone_and_left_as_it_was(browser: Any, tmp_path: Path):
    active = (
        "document.querySelector('#' + document.activeElement.getAttribute('aria-activedescendant') + ' b').textContent"
    )
    async with connected(browser, tmp_path) as (stage, server):
        page = stage.page
        await page.focus("button.models")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("[role=option]:has-text('custom/best')")
        walked = []
        for key in ("ArrowDown", "ArrowDown", "ArrowUp", "End", "Home", "ArrowUp"):
            await page.keyboard.press(key)
            walked.append(await page.evaluate(active))
        await page.keyboard.press("Escape")
        await page.wait_for_selector(".model-list", state="detached")
        back = await page.evaluate("document.activeElement.className")
        name = await page.inner_text("button.models")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".model-list")
        await page.keyboard.type("nosuch/thing")
        await page.wait_for_selector("[role=option]:has-text('Use nosuch/thing')")
        await page.keyboard.press("Enter")
        await stage.say("one")
        await page.wait_for_selector(".composer:has-text('nosuch')")  # it is refused, and is a draft again
        draft = await page.input_value(".composer textarea")
    assert walked == ["quick", "custom/best", "quick", "custom/good", "custom/good", "custom/good"]
    assert (back, name, draft, server.calls) == ("models", "custom/good", "one", 0)


async def test_the_same_list_answers_again_with_another_and_remembers_it(browser: Any, tmp_path: Path):
    async with connected(browser, tmp_path, 360) as (stage, server):
        page = stage.page
        await stage.say("one")
        await stage.answer("Hello from one")
        await open_list(stage, "[aria-label='Answer again with …']")
        widest = await page.evaluate("document.documentElement.scrollWidth")
        await page.click("[role=option]:has-text('custom/best')")
        await page.wait_for_selector(".acts .facts:has-text('custom/best')")
        await page.wait_for_selector("button.models:has-text('custom/best')")
        await open_list(stage)
        used = await stage.texts(".model-list .of:has-text('Last used') b")
        await page.click("[role=option]:has-text('quick')")
        await page.wait_for_selector(".note:has-text('Answered by quick from here on.')")
        notes = await stage.texts(".log .note")
    assert [asked.body["model"] for asked in server.requests] == ["good", "best"]
    assert (widest, used) == (360, ["custom/best"])
    assert notes == ["Answered by quick from here on."]  # what stands first is told by the header
