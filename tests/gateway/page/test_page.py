"""A walk through the page in a real browser. Without Playwright or Debian's chromium these are skipped by name."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everloop.app.records import open_records
from everloop.errors import StreamCut
from everloop.testing import Fail, Say, ScriptedModel
from tests.gateway.page.walk import HACK, PATIENCE, staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's


async def test_one_comes_by_the_link_sets_a_password_and_comes_back_with_it(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        seen = page.url
        await page.click(".navlink >> text=Manage")
        await page.click("nav.pages >> text=Access")
        await page.fill("[aria-label='New password']", "correct horse")
        await page.click("text=Set password")
        await page.wait_for_selector(".toast:has-text('password')")
        await page.click("[aria-label='Log out']")
        await page.fill("#password", "wrong horse")
        await page.click("text=Log in")
        await page.wait_for_selector(".wrong:not(:empty)")
        await page.fill("#password", "correct horse")
        await page.click("text=Log in")
        await page.wait_for_selector(".sidebar")
        await page.reload()
        await page.wait_for_selector(".sidebar")
    assert seen in (f"{stage.url}/", f"{stage.url}/#/")


async def test_a_link_that_was_used_leads_to_the_page_which_says_so(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        await stage.page.context.clear_cookies()
        await stage.page.goto(stage.link)
        await stage.page.wait_for_selector("#password")
        told = await stage.page.inner_text(".wrong")
    assert told.startswith("That link was used already")


async def test_one_asks_and_sees_what_was_done(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        await stage.say("look around")
        await stage.answer("You said: look around")
        await stage.page.click(".card summary")
        opened = await stage.texts(".card .result")
        await stage.page.click(".reasoning summary")
        thought = await stage.texts(".reasoning .prose")
        await stage.page.wait_for_selector(".item")
        listed = await stage.texts(".item .name")
    assert (opened, thought, listed) == (["in notes.md: milk <b>and</b> bread"], ["I should look."], ["look around"])


async def test_a_second_click_means_the_first(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        await stage.say("look around")
        await stage.answer("You said: look around")
        before = stage.page.url
        again = "document.querySelector(\"[aria-label='Answer again']\").click()"
        await stage.page.evaluate(f"() => {{ {again}; {again}; }}")
        await stage.until(f"location.href !== {before!r}")
        await stage.answer("You said: look around")
        async with open_records(tmp_path) as records:
            made = await records.store.conversations("owner", archived=True)
        toasts = await stage.texts(".toast")
    assert (len(made), toasts) == (2, [])


async def test_a_file_goes_in_and_comes_out(browser: Any, tmp_path: Path):
    picture = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc0000003010100"
        "18dd8db00000000049454e44ae426082"
    )
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await page.set_input_files(
            "input[type=file]",
            [
                {"name": "dot.png", "mimeType": "image/png", "buffer": picture},
                {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"milk"},
            ],
        )
        await page.wait_for_selector(".attached .chip:not(.busy):has-text('notes.txt')")
        await stage.say("what is this")
        await stage.answer("You said: what is this")
        await stage.until("document.querySelector('.said.user img.picture')?.naturalWidth")  # it has come
        shown = await page.evaluate("document.querySelector('img.picture').naturalWidth")
        said = await page.inner_text(".said.user .bubble")
        chips = await stage.texts(".said.user .chip")
    assert (shown, chips) == (1, ["dot.png", "notes.txt"])
    assert "milk" in said


async def test_what_tools_have_made_stands_below_the_answer_to_be_looked_at_and_taken_along(
    browser: Any, tmp_path: Path
):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("write it")
        await stage.answer("You said: write it")
        chips = await stage.texts(".final .files .chip")
        await page.click(".final .files >> text=out/a.html")
        await page.wait_for_selector(".final .files .preview:not([hidden])")
        looked = await stage.texts(".final .files .preview:not([hidden])")
        async with page.expect_download() as coming:
            await page.click("[aria-label='Download out/a.html']")
        taken = await coming.value
        content, title = await asyncio.to_thread(Path(await taken.path()).read_text), await page.title()
        await page.reload()
        await stage.answer("You said: write it")
        again = await stage.texts(".final .files .chip")
    assert chips == again == ["out/a.html", "b.txt"]
    assert (looked, content, taken.suggested_filename) == ([HACK], HACK, "a.html")
    assert "hacked" not in title


async def test_what_the_agent_tells_from_another_conversation_is_seen_at_once(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("You said: hello")
        async with open_records(tmp_path) as records:
            (found,) = await records.store.conversations("owner")
        here = stage.page.context
        other = await here.browser.new_page(storage_state=await here.storage_state())
        other.set_default_timeout(PATIENCE)
        await other.goto(stage.url)
        await other.fill(".composer textarea", f"tell {found.session}")
        await other.keyboard.press("Enter")
        await stage.page.wait_for_selector(".said.model:has-text('Lunch is at one.')")
        told = await stage.texts(".said.model:has-text('Lunch') .note")
        await other.close()
    assert len(told) == 1
    assert told[0].startswith("Told from page:")


async def test_a_token_is_made_shown_once_and_revoked(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await page.click(".navlink >> text=Manage")
        await page.click("nav.pages >> text=Access")
        await page.fill("[aria-label='Name of the token']", "laptop")
        await page.click("text=Create token")
        token = await page.inner_text("dialog code")
        await page.click("dialog >> text=Done")
        await page.click("[aria-label='Revoke laptop']")
        await page.click("dialog >> text=Revoke >> nth=-1")
        await page.wait_for_selector("[aria-label='Revoke laptop']", state="detached")
    assert token.startswith("ev_")


async def test_what_a_model_writes_is_only_ever_shown(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        asked: list[str] = []
        stage.page.on("request", lambda request: asked.append(request.url))
        await stage.log_in()
        await stage.say("something nasty")
        await stage.answer("bold")
        await stage.until("document.title.includes('nasty')")
        made = await stage.page.evaluate(
            """() => [document.title, document.querySelectorAll('.prose img, .prose script, .prose pre b').length,
                      [...document.querySelectorAll('.prose a')].map((link) => link.href),
                      document.querySelector('.prose strong').textContent,
                      document.querySelector('.prose pre').textContent]"""
        )
    links = ["https://elsewhere.invalid/track.png", "https://example.org/"]
    assert made == ["something nasty · everloop", 0, links, "bold", "<b>not bold</b>"]
    assert [url for url in asked if not url.startswith((stage.url, stage.url.replace("http", "ws")))] == []


async def test_a_question_is_answered_with_one_click(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        await stage.say("send it")
        await stage.page.wait_for_selector(".asking:visible >> text=somebody@example.org")
        await stage.page.wait_for_selector(".waiting:has-text('1 question waits for you')")
        await stage.page.click("button:has-text('Allow')")
        await stage.answer("You said: send it")
        await stage.page.wait_for_selector(".waiting", state="hidden")
        statuses = await stage.page.locator(".call .status").count()
        await stage.say("send it again")
        await stage.page.click(".asking:visible >> button:has-text('Deny')")
        await stage.answer("You said: send it again")
        denied = await stage.texts(".call .status")
    assert (statuses, denied[1:]) == (1, ["you said no"])


async def test_the_like_is_allowed_ahead_and_taken_back(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("send it")
        await page.click(".asking:visible >> text=Allow the like too")
        offered = await page.locator(".ahead select >> nth=0").locator("option").all_inner_texts()
        await page.check(".ahead input[type=checkbox]")
        await page.click("text=Allow, and the like")
        await stage.answer("You said: send it")
        await stage.say("send it again")
        await stage.answer("You said: send it again")
        asked = await page.locator(".asking:visible").count()
        await page.click(".navlink >> text=Manage")
        await page.click("nav.pages >> text=Access")
        listed = await page.inner_text(".grant summary")
        await page.click(".grant button")
        await page.click("dialog button:text-is('Revoke')")
        await page.wait_for_selector(".grant", state="detached")
    assert (offered, asked) == (["the same call again", "anything of send"], 0)
    assert listed.startswith("send: the same call, only in conversation ")


async def test_a_break_in_mid_stream_leaves_no_gap(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        await stage.log_in()
        await stage.say("tell me a story")
        await stage.page.wait_for_selector(".draft:has-text('Once upon a time')")
        stage.line.cut()
        await stage.page.wait_for_selector(".cut-off:visible >> text=No connection")
        stage.line.mend()
        await stage.page.wait_for_selector(".cut-off", state="hidden")
        await stage.page.wait_for_selector(".draft:has-text('Once upon a time')")
        drafts = await stage.texts(".draft .prose >> nth=-1")
        stage.gate.set()
        await stage.answer("Once upon a time there was a loop.")
        answers = await stage.texts(".said.model .prose")
        said = await stage.texts(".said.user .bubble")
    assert drafts == ["Once upon a time"]
    assert (answers, said) == (["Once upon a time there was a loop."], ["tell me a story"])


async def test_a_running_turn_is_stopped_and_what_was_said_of_it_stays(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page, kept = stage.page, []
        await stage.log_in()
        await stage.say("tell me a story")
        await page.wait_for_selector(".draft:has-text('Once upon a time')")
        await page.click("button[aria-label=Stop]")
        for _ in range(2):
            await page.wait_for_selector("text=Stopped.")
            kept.append((await stage.texts(".said.cut"), await page.locator(".draft").count()))
            await page.reload()
    assert kept == [(["Once upon a time"], 0)] * 2


async def test_what_was_said_of_an_answer_that_broke_off_stays(browser: Any, tmp_path: Path):
    model = ScriptedModel(lambda shown: (Say("Once upon a time"), Fail(StreamCut("the line went dead"))))
    async with staged(browser, tmp_path, given={"provider": model}) as stage:
        page, kept = stage.page, []
        await stage.log_in()
        await stage.say("tell me a story")
        for _ in range(2):
            await page.wait_for_selector(".said.failed")
            kept.append((await stage.texts(".said.cut"), await stage.texts(".said.failed strong")))
            await page.reload()
    assert kept == [(["Once upon a time"], ["No answer this time"])] * 2


async def test_how_long_an_answer_took_is_the_same_while_one_looks_and_later(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        facts = []
        await stage.log_in()
        for text in ("one", "two"):
            await stage.say(text)
            await stage.answer(f"You said: {text}")
        for _ in range(2):
            facts.append(await stage.texts(".said.final .facts"))
            await stage.page.reload()
            await stage.answer("You said: two")
    assert facts[0] == facts[1]
    assert [len(each.split(" · ")) for each in facts[0]] == [4, 4]  # the clock, the model, how long, the tokens


@walked_at(360, 900, 1280)
async def test_what_stands_below_the_conversations_does_not_stick_out(browser: Any, tmp_path: Path, width: int):
    async with staged(browser, tmp_path, width) as stage:
        await stage.log_in()
        sticks_out = await stage.page.evaluate(
            "(() => { const edge = document.querySelector('.sidebar').getBoundingClientRect().right;"
            "return [...document.querySelectorAll('.under *')].filter((each) => "
            "each.getBoundingClientRect().right > edge).length; })()"
        )
    assert sticks_out == 0


async def test_conversations_are_found_renamed_edited_and_asked_again(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("where is the invoice")
        await stage.answer("You said: where is the invoice")
        await page.click("[aria-label='Edit and ask again']")
        await page.fill(".edit textarea", "where is the receipt")
        await page.click("text=Ask again")
        await stage.answer("You said: where is the receipt")
        before = page.url
        await page.click("[aria-label='Answer again']")
        await page.wait_for_url(lambda url: url != before)
        await stage.answer("You said: where is the receipt")
        await stage.choose("Rename")
        await page.fill("dialog input", "papers")
        await page.click("dialog >> text=Rename >> nth=-1")
        await page.wait_for_selector(".item .name:has-text('papers')")
        await page.click("text=New conversation")
        await page.wait_for_selector(".starter")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("receipt")
        await page.click(".hit:has-text('papers')")
        await page.wait_for_selector(".said.found")
        title = await page.inner_text(".title")
    assert title == "papers"


async def test_the_trace_and_the_usage_are_shown(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("look around")
        await stage.answer("You said: look around")
        await page.click("[aria-label='Show how the time was spent']")
        await page.wait_for_selector(".turn")
        steps = [each.split("\n")[0] for each in await stage.texts(".waterfall .what")]
        await page.click(".navlink >> text=Manage")
        await page.click("nav.pages >> text=Usage")
        await page.wait_for_selector(".chart rect.m-0")
    assert steps == ["waited", "scripted", "look", "scripted", "page"]


async def test_what_went_wrong_is_said_once_with_what_to_do(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/c/abcdef")
        await page.wait_for_selector("text=This conversation is not here")
        writable = await page.locator(".composer").is_visible()
        await page.click(".empty >> text=New conversation")
        await stage.say("fail, please")
        told = await page.inner_text(".said.failed p")
        failed = await page.locator("text=set another key").count()
        await page.wait_for_selector(".said.failed >> text=Try again")
    assert (writable, told.split(" (error")[0], failed) == (False, "the key is wrong; set another key", 1)


async def test_on_a_phone_nothing_is_wider_than_the_screen_and_the_menu_is_a_drawer(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path, 360, 740) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("something nasty")
        await stage.answer("bold")
        widest = await page.evaluate("document.scrollingElement.scrollWidth")
        hidden = await page.locator(".sidebar").is_visible()
        await page.click("[aria-label='Open the menu']")
        await page.wait_for_selector(".item:visible")
        await page.keyboard.press("Escape")
        await page.wait_for_selector(".item", state="hidden")
    assert (widest, hidden) == (360, False)


async def test_it_can_be_used_without_a_mouse(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.until("document.activeElement.matches('.composer textarea')")
        await page.keyboard.type("hello")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("there")
        await page.keyboard.press("Enter")
        await stage.answer("You said: hello")
        await page.keyboard.press("ArrowUp")
        offered = await page.input_value(".composer textarea")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Alt+n")
        await page.wait_for_selector(".starter")
        unnamed = await page.evaluate(
            """() => [...document.querySelectorAll('button, a, input, textarea')].filter((each) => !each.hidden
                && !each.textContent.trim() && !each.getAttribute('aria-label') && !each.labels?.length).length"""
        )
    assert (offered, unnamed) == ("hello\nthere", 0)
