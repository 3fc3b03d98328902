"""Conversations in order: what runs and waits is seen everywhere, all can be reached, and each has its versions."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from everloop.app.records import open_records
from everloop.core.log import ModelSaid, UserSaid
from everloop.core.message import said
from everloop.ports.conversation import Branch
from tests.gateway.page.walk import PATIENCE, Stage, staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's


async def keep(home: Path, name: str, turns: int = 1) -> str:
    """A conversation of the owner's, with so many turns."""
    async with open_records(home) as records:
        entries = [
            each
            for n in range(turns)
            for each in (
                UserSaid(said(f"{name} asks {n}"), "owner"),
                ModelSaid(f"{name} is told {n}", model="scripted"),
            )
        ]
        thread = name.encode().hex().rjust(16, "0")[-16:]
        assert await records.store.perform("owner", f"page:{name}", Branch(thread, entries))
    return thread


async def second(stage: Stage) -> Any:
    """Another browser of the same person."""
    here = stage.page.context
    page = await here.browser.new_page(storage_state=await here.storage_state())
    page.set_default_timeout(PATIENCE)
    await page.goto(stage.url)
    await page.wait_for_selector(".composer textarea")
    return page


async def test_a_question_is_seen_and_answered_in_another_browser(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        other = await second(stage)
        await stage.say("send it")
        await stage.page.wait_for_selector(".asking:visible")
        await other.wait_for_selector(".waiting:has-text('1 question waits for you')")
        await other.wait_for_selector(".item .sign.waiting")
        title = await other.title()
        await other.click(".waiting")
        await other.wait_for_selector(".asking .ahead")
        await other.click("text=Allow the like too")
        await other.select_option("[aria-label='For how long']", label="for 8 hours")
        await other.select_option("[aria-label='How often']", label="5 times")
        await other.click("text=Allow, and the like")
        await other.wait_for_selector("text=Nothing waits for you")
        await stage.answer("You said: send it")
        await other.wait_for_selector(".item .sign.unread")
        async with open_records(tmp_path) as records:
            (grant,) = await records.store.grants()
        await other.close()
    assert title.startswith("(1) ")
    assert (grant.runs, grant.tool) == (5, "send")


async def test_the_browser_tells_of_a_question_only_who_wants_it_and_looks_elsewhere(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await page.context.grant_permissions(["notifications"], origin=stage.url)
        await page.add_init_script(
            """window.told = []; window.Notification = class extends Notification {
                constructor(title, about) { super(title, about); window.told.push([title, about.body]); } };
            Object.defineProperty(document, 'hidden', { get: () => window.away === true });"""
        )
        await stage.log_in()
        other = await second(stage)
        for away, on, text in ((False, False, "send it"), (False, True, "send more"), (True, True, "send all")):
            if on and not away:
                await page.click("[aria-label=Notifications]")
                await page.wait_for_selector(".toast:has-text('The browser tells you')")
            await page.evaluate(f"window.away = {str(away).lower()}")
            await other.fill(".composer textarea", text)
            await other.keyboard.press("Enter")
            await page.wait_for_selector(".waiting:visible")
            if away:
                await stage.until("window.told.length")
            await other.click(".asking:visible >> button:has-text('Deny')")
            await page.wait_for_selector(".waiting", state="hidden")
        told = await page.evaluate("window.told")
        await other.close()
    assert told == [["May I run send?", 'send\n  to: "somebody@example.org"']]


async def test_a_running_turn_has_its_sign_until_it_is_over(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        other = await second(stage)
        await stage.say("tell me a story")
        await other.wait_for_selector(".item .sign.running")
        stage.gate.set()
        await other.wait_for_selector(".item .sign.unread")
        await other.click(".item")
        await other.wait_for_selector(".said.final")
        await other.wait_for_selector(".item .sign", state="detached")
        await other.close()


async def test_all_conversations_are_listed_as_one_scrolls(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        for n in range(130):
            await keep(tmp_path, f"talk{n:03}")
        await stage.log_in()
        await stage.page.wait_for_selector(".item:has-text('talk')")
        first = await stage.page.locator(".item").count()
        await stage.until(
            """(() => { const list = document.querySelector('.list'); list.scrollTop = list.scrollHeight;
                return list.querySelectorAll('.item').length === 130; })()"""
        )
        ids = await stage.page.evaluate("[...document.querySelectorAll('.item')].map((each) => each.dataset.id)")
    assert (first, len(set(ids))) == (100, 130)


async def test_earlier_messages_come_by_themselves_and_the_rest_stays_as_it_was(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        thread = await keep(tmp_path, "long", 500)
        await stage.log_in()
        await stage.page.goto(f"{stage.url}/#/c/{thread}")
        await stage.answer("long is told 499")
        before = await stage.page.locator(".said").count()
        await stage.page.evaluate("window.last = document.querySelector('.said.final.last')")
        await stage.page.evaluate(
            """() => { document.querySelector('.scroller').scrollTop = 300;
                window.read = document.querySelector('.said');
                window.place = window.read.getBoundingClientRect().top; }"""
        )
        await stage.until(f"document.querySelectorAll('.said').length > {before}")
        moved = await stage.page.evaluate("Math.abs(window.read.getBoundingClientRect().top - window.place) > 2")
        await stage.until(
            """(() => { document.querySelector('.scroller').scrollTop = 0;
                return document.querySelectorAll('.said').length === 1000; })()"""
        )
        same = await stage.page.evaluate("window.last === document.querySelector('.said.final.last')")
        asked = await stage.page.locator(".said.user .bubble").all_text_contents()
    assert (before < 300, moved, same) == (True, False, True)
    assert asked == [f"long asks {n}" for n in range(500)]


async def test_what_was_edited_or_answered_again_has_versions(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        for text in ("first", "second"):
            await stage.say(text)
            await stage.answer(f"You said: {text}")
        await page.hover(".said.user >> nth=0")
        await page.click(".said.user >> nth=0 >> [aria-label='Edit and ask again']")
        await page.fill(".edit textarea", "first, but better")
        await page.keyboard.press("Enter")
        await stage.answer("You said: first, but better")
        edited = await stage.texts(".said.user .bubble")
        await page.reload()
        await page.wait_for_selector(".versions:has-text('2/2')")
        await page.click("[aria-label='Version before']")
        await stage.answer("You said: second")
        await page.wait_for_selector(".versions:has-text('1/2')")
        old = await stage.texts(".said.user .bubble")
        await page.click("text=Continue from here")
        await stage.until("!document.querySelector('.composer textarea').disabled")
        await stage.answer("You said: second")
        before = page.url
        await page.click(".last [aria-label='Answer again']")
        await page.wait_for_url(lambda url: url != before)
        await stage.answer("You said: second")
        await page.reload()
        await page.wait_for_selector(".versions:has-text('2/2')")
    assert (edited, old) == (["first, but better"], ["first", "second"])


async def test_what_is_pinned_stands_first(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        for text in ("one", "two"):
            await page.click("text=New conversation")
            await page.wait_for_selector(".starter")
            await stage.say(text)
            await stage.answer(f"You said: {text}")
        await page.click(".item:has-text('one')")
        await stage.answer("You said: one")
        await stage.choose("Pin")
        await page.wait_for_selector(".list h2:has-text('Pinned')")
        first = await stage.texts(".item .name")
        await stage.choose("Unpin")
        await page.wait_for_selector(".list h2:has-text('Pinned')", state="detached")
    assert first == ["one", "two"]


async def test_what_is_archived_is_found_and_comes_back(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("You said: hello")
        await stage.choose("Archive")
        await page.wait_for_selector(".list .hint")
        await page.click(".toast >> text=Undo")
        await page.wait_for_selector(".item:has-text('hello')")
        await stage.choose("Archive")
        await page.wait_for_selector(".list .hint")
        await page.click("text=Archived conversations")
        await page.click(".item:has-text('hello')")
        await stage.answer("You said: hello")
        await stage.choose("Take out of the archive")
        await page.click("text=Back to all conversations")
        await page.wait_for_selector(".item:has-text('hello')")


async def test_a_conversation_is_taken_along_copied_and_printed_whole(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("You said: hello")
        taken = []
        for kind in ("Markdown", "JSON"):
            async with page.expect_download() as coming:
                await stage.choose(f"Export as {kind}")
            path = await (await coming.value).path()
            taken.append(await asyncio.to_thread(Path(path).read_text))
        await page.emulate_media(media="print")
        printed = [await page.locator(each).is_visible() for each in (".said.final", ".sidebar", ".composer")]
        await page.emulate_media(media="screen")
        await page.click("[aria-label='Continue from here in a copy']")
        await page.wait_for_selector(".title:has-text('hello (copy)')")
        await page.wait_for_selector(".item:has-text('hello (copy)')")
        titles = await stage.texts(".item .name")
    assert taken[0].endswith("## You\n\nhello\n\n## scripted\n\nYou said: hello\n")
    assert [each["kind"] for each in json.loads(taken[1])["entries"]][-1] == "model_said"
    assert printed == [True, False, False]
    assert sorted(titles) == ["hello", "hello (copy)"]


async def test_a_conversation_is_deleted_after_two_questions_and_every_window_is_told(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("You said: hello")
        address = page.url
        other = await second(stage)
        await other.goto(address)
        await other.wait_for_selector(".said:has-text('You said: hello')")
        for presses in (["Cancel"], ["Delete …", "Cancel"]):
            await stage.choose("Delete …")
            for name in presses:
                await page.click(f"dialog button:text-is('{name}')")
        assert await page.locator(".item:has-text('hello')").count() == 1
        await page.fill(".composer textarea", "a draft of it")
        await stage.choose("Delete …")
        await page.click("dialog button:text-is('Delete …')")
        assert await page.evaluate("document.activeElement.textContent") == "Cancel"  # a stray Enter deletes nothing
        told = [  # for four seconds, in both at once
            asyncio.ensure_future(each.wait_for_selector(".toast:has-text('The conversation is deleted.')"))
            for each in (page, other)
        ]
        await page.click("dialog button:text-is('Delete for good')")
        await asyncio.gather(*told)
        for each in (page, other):
            await each.wait_for_selector(".item:has-text('hello')", state="detached")
            await each.wait_for_url("**/#/")
        assert "a draft of it" not in await page.evaluate("JSON.stringify({...sessionStorage})")
        await page.goto(address)
        await page.wait_for_selector("text=This conversation is not here")
        await other.close()
