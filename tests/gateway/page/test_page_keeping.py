"""Nothing that was written or shown disappears: drafts, files, refused messages, what a break or an Escape finds."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from everloop.app.records import open_records
from everloop.core.log import UserSaid
from tests.gateway.page.walk import Stage, staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

TEXT = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"milk"}
FIELD = ".composer textarea"


@asynccontextmanager
async def held(stage: Stage, pattern: str) -> AsyncIterator[asyncio.Event]:
    """Requests like this wait until the event is set."""
    gate = asyncio.Event()

    async def wait(route: Any) -> None:
        await gate.wait()
        await route.continue_()

    await stage.page.route(pattern, wait)
    try:
        yield gate
    finally:
        gate.set()
        await stage.page.unroute(pattern)


async def said(home: Path) -> list[tuple[str, int]]:
    """What the log has of what was said, and with how many parts."""
    async with open_records(home) as records:
        found = await records.store.conversations("owner")
        entries = [each.entry for one in found for each in await records.store.history(one.id)]
    return [(each.messages[0].text.split("\n")[0], len(each.parts)) for each in entries if isinstance(each, UserSaid)]


async def test_enter_waits_for_files_that_are_on_their_way(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        async with held(stage, "**/api/files?*") as gate:
            await stage.page.set_input_files("input[type=file]", [TEXT])
            await stage.say("what is this")
            await stage.page.wait_for_selector(".attached >> text=is sent when its files are here")
            before = await stage.page.locator(".said").count()
            gate.set()
            await stage.answer("You said: what is this")
        found = await said(tmp_path)
    assert (before, found) == (0, [("what is this", 2)])


async def test_a_message_whose_file_could_not_be_kept_is_not_sent_without_it(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        async with held(stage, "**/api/files?*") as gate:
            song = {"name": "song.mp3", "mimeType": "audio/mpeg", "buffer": b""}
            await stage.page.set_input_files("input[type=file]", [song])
            await stage.say("what is this")
            gate.set()
            await stage.page.wait_for_selector(".toast.bad:has-text('The file is empty')")
        left = await stage.page.input_value(FIELD)
        chips, shown = await stage.page.locator(".attached .chip").count(), await stage.page.locator(".said").count()
    assert (left, chips, shown) == ("what is this", 0, 0)


async def test_drafts_and_their_files_are_there_again(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("You said: hello")
        await page.set_input_files("input[type=file]", [TEXT])
        await page.wait_for_selector(".attached .chip:not(.busy)")
        await page.fill(FIELD, "half a sentence")
        await page.click("text=New conversation")
        await page.wait_for_selector(".starter")
        await page.fill(FIELD, "another one")
        new = await page.locator(".attached .chip").count()
        await page.click(".item")
        await page.wait_for_selector(".attached .chip")
        back = await page.input_value(FIELD)
        await page.reload()
        await page.wait_for_selector(".attached .chip")
        reloaded = await page.input_value(FIELD)
        await page.click("text=New conversation")
        await page.wait_for_selector(".starter")
        other = await page.input_value(FIELD)
        await page.click("[aria-label='Log out']")
        await page.wait_for_selector("#password")
        kept = await page.evaluate("sessionStorage.length")
    assert (new, back, reloaded, other, kept) == (0, "half a sentence", "half a sentence", "another one", 0)


async def test_a_refused_message_is_in_the_field_again_with_the_reason(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await page.set_input_files("input[type=file]", [TEXT])
        await page.wait_for_selector(".attached .chip:not(.busy)")
        for file in (tmp_path / "files").rglob("*"):
            if file.is_file():
                file.unlink()  # it is not there any more when it is sent
        await stage.say("what is this")
        await page.wait_for_selector(".composer .wrong:has-text('there is no file')")
        left, pending = await page.input_value(FIELD), await page.locator(".pending").count()
        await page.reload()
        await page.wait_for_selector(".composer .wrong:has-text('there is no file')")
        reloaded = await page.input_value(FIELD)
        await page.click("[aria-label='Remove notes.txt']")
        await page.keyboard.press("Escape")
        await stage.say("without it, then")
        await stage.answer("You said: without it, then")
    assert (left, pending, reloaded) == ("what is this", 0, "what is this")


async def test_what_is_said_without_a_connection_is_said_once_after_it_also_over_a_reload(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path, 390, 740) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("You said: hello")
        stage.line.cut()
        await page.wait_for_selector(".cut-off:visible >> text=No connection")
        await stage.say("are you there")
        await page.wait_for_selector(".pending:has-text('waits for the connection')")
        stage.line.mend()
        await page.reload()
        await stage.answer("You said: are you there")
        await page.wait_for_selector(".pending", state="detached")
        shown = await stage.texts(".said.user .bubble")
        found = await said(tmp_path)
    assert shown == ["hello", "are you there"]
    assert found == [("hello", 1), ("are you there", 1)]


async def test_escape_in_a_search_or_a_menu_stops_nothing_and_what_was_shown_or_waits_stays(
    browser: Any, tmp_path: Path
):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("tell me a story")
        await page.wait_for_selector(".draft:has-text('Once upon a time')")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("invoice")
        await page.keyboard.press("Escape")
        await page.click(".tools [aria-label=More]")
        await page.keyboard.press("Escape")
        await page.keyboard.press("?")
        await page.wait_for_selector("dialog[open]")
        await page.keyboard.press("Escape")
        await page.fill(FIELD, "/mod")
        await page.wait_for_selector(".completion li")
        await page.keyboard.press("Escape")
        running = await page.locator(".chat.running").count()
        await stage.say("and a dragon")
        await page.wait_for_selector(".pending:has-text('at the next step')")
        await page.reload()
        await page.wait_for_selector(".draft:has-text('Once upon a time')")
        waiting = await stage.texts(".pending .bubble")
        await page.focus(FIELD)
        await page.keyboard.press("Escape")
        await page.wait_for_selector("text=Stopped.")
        waiting += await stage.texts(".pending")
        left = await stage.texts(".said.cut")
        await page.reload()
        await page.wait_for_selector(".said.cut")
        again = await stage.texts(".said.cut")
        await page.click("text=Go on")
        await stage.answer("You said: Go on from where you stopped.")
    assert (running, waiting, left, again) == (1, ["and a dragon"], ["Once upon a time"], ["Once upon a time"])


async def test_a_file_that_is_dropped_anywhere_is_attached(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        drop = """(kind) => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File(['milk'], 'notes.txt', { type: 'text/plain' }));
            const event = new DragEvent(kind, { bubbles: true, cancelable: true, dataTransfer });
            document.querySelector('.sidebar').dispatchEvent(event);
        }"""
        await stage.page.evaluate(drop, "dragenter")
        veiled = await stage.page.locator(".drop").is_visible()
        await stage.page.evaluate(drop, "drop")
        await stage.page.wait_for_selector(".attached .chip:not(.busy):has-text('notes.txt')")
        left = await stage.page.locator(".drop").is_visible()
    assert (veiled, left) == (True, False)


async def test_a_command_in_a_new_conversation_asks_for_nothing_that_is_not_there(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page, missing = stage.page, []
        page.on("response", lambda answer: missing.append(answer.url) if answer.status == 404 else None)
        await stage.log_in()
        await page.fill(FIELD, "/he")
        await page.wait_for_selector(".completion li:has-text('/help')")
        await page.keyboard.press("Enter")
        completed = await page.input_value(FIELD)
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".said.notice:has-text('/model')")
        await page.wait_for_timeout(1000)  # as long as it would ask three times
        asked = len(missing)
        await page.reload()
        await page.wait_for_selector(".starter")
        await stage.say("hello")
        await stage.answer("You said: hello")
    # Once for each of the two events of a command, unless both came at once; never because nothing was there before.
    assert (completed, asked <= 2, missing[asked + 1 :]) == ("/help ", True, [])
