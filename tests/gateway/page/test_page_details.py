"""Small things that a demanding user has met: each row of the list of defects that no other walk covers.

Which walk covers which row (H: high, M: medium, L: low):

    H  D1   test_page_keeping  enter_waits_for_files…, a_message_whose_file_could_not_be_kept…
    H  D2   test_page          a_running_turn_is_stopped…, what_was_said_of_an_answer_that_broke_off_stays
    H  D3   test_page_keeping  escape_in_a_search_or_a_menu_stops_nothing…
    H  D4   test_page_reading  numbers_and_files_below_a_live_answer…; test_page  how_long_an_answer_took…
    H  D5   test_page_first
    H  D6   test_page_keeping  what_is_said_without_a_connection… (at 390 px)
    H  D7   test_page_reading  a_table_never_breaks_a_word…
    H  D8   test_page_lists    a_question_is_seen_and_answered_in_another_browser, the_browser_tells…
    M  D9   test_page_reading  text_is_drawn_as_it_was_written
    M  D10  test_page_keeping  a_file_that_is_dropped_anywhere_is_attached
    M  D11  test_page_keeping  a_message_whose_file_could_not_be_kept…, a_refused_message_is_in_the_field_again…
    M  D12  test_page_keeping  drafts_and_their_files_are_there_again
    M  D13  test_page_lists    all_conversations_are_listed_as_one_scrolls
    M  D14  test_page_lists    what_is_archived_is_found_and_comes_back
    M  D15  test_page_first
    M  D16  test_page_picker
    M  D17  test_page_reading  text_is_drawn_as_it_was_written
    M  D18  test_page_keeping  a_command_in_a_new_conversation…; here  a_misspelt_command…
    M  D19  test_page_reading  text_is_drawn_as_it_was_written, whatever_stands_in_a_formula…
    M  D20  test_page_lists    what_was_edited_or_answered_again_has_versions, a_conversation_is_taken_along_copied…
    M  D21  test_page_reading  a_failure_is_one_card_with_ways_out
    M  D22  test_page          a_link_that_was_used_leads_to_the_page…
    M  D23  test_page_reading  tool_work_reads_as_texts_and_differences…, what_was_not_run_says_why…
    M  D24  test_page_lists    earlier_messages_come_by_themselves…
    L  D26  test_page_lists    a_conversation_is_taken_along_copied_and_printed_whole
    L  D28  test_page_lists    what_was_edited_or_answered_again_has_versions
    L  D29  test_page_access   axe_finds_nothing_in_any_view
    L  D32  test_page_reading  long_code_is_folded_and_unfolded
    L  D25, D27, D30, D31, D33 to D39 here
"""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from everloop.app.records import open_records
from everloop.gateway import page as page_files
from everloop.testing import Call, Say, ScriptedModel, Shown, Think, Wait
from tests.gateway.page.views import THREAD, kept_here, png
from tests.gateway.page.walk import staged

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

OLD_WORDS = ("Its session has gone on", "Keep the key", "Take the last turn back", "Nobody has said")
READ_ANEW = """() => {
    for (const each of document.querySelectorAll('.hit')) each.dataset.before = '';
    document.dispatchEvent(new Event('visibilitychange'));
}"""
TOP = "Math.round(document.querySelector('.said.model :is(h1, h2, h3, h4)').getBoundingClientRect().top)"


def opened(browser: Any, home: Path, gate: asyncio.Event, **more: Any) -> Any:
    def line(shown: Shown) -> Any:
        if "think" in shown.asked:
            return Think("I think\nabout it."), Say("# First\n\nold pond"), Wait(gate), Say("\n\na frog leaps in")
        if "write" in shown.asked and shown.step == 0:
            return Call("write_file", {"path": "notes.md", "content": "# Notes\n\n- milk\n"})
        return Say(f"You said: {shown.asked}")

    return staged(browser, home, given={"provider": ScriptedModel(line)}, **more)


async def test_what_one_reads_of_a_running_answer_stays_where_it_is_and_open(browser: Any, tmp_path: Path):
    """D25, D37: neither does the heading jump nor the reasoning close when the answer ends."""
    gate = asyncio.Event()
    async with opened(browser, tmp_path, gate) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("think of it")
        await page.click(".draft .reasoning summary")
        await page.wait_for_selector(".draft .prose:has-text('old pond')")
        before = await page.evaluate(TOP)
        gate.set()
        await stage.answer("a frog leaps in")
        after, open_still = await page.evaluate(TOP), await page.evaluate("document.querySelector('.reasoning').open")
    assert (after, open_still) == (before, True)


async def test_without_scripts_one_reads_what_to_do(browser: Any, tmp_path: Path):
    """D27"""
    async with opened(browser, tmp_path, asyncio.Event()) as stage:
        bare = await browser.new_context(java_script_enabled=False, viewport={"width": 390, "height": 740})
        page = await bare.new_page()
        await page.goto(stage.url)
        told, box = await page.inner_text("noscript"), await page.locator("noscript p").bounding_box()
        await bare.close()
    assert told == "This page needs JavaScript. The terminal does not: run everloop."
    assert (box["x"], box["y"]) == (0, 0)


async def test_a_search_is_walked_through_with_the_arrow_keys(browser: Any, tmp_path: Path):
    """D30, D31: what was found is marked, the opened hit is marked, no search reads the whole list again, and news
    leave one where one is."""
    asked: list[str] = []
    async with opened(browser, tmp_path, asyncio.Event()) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("where is the invoice")
        await stage.answer("You said: where is the invoice")
        await stage.choose("Rename")
        await page.fill("dialog input", "papers")
        await page.click("dialog >> text=Rename >> nth=-1")
        await stage.until("document.title.startsWith('papers')")
        await page.wait_for_selector(".item .name:has-text('papers')")
        await page.click("text=New conversation")
        await page.wait_for_selector(".starter")
        await page.keyboard.press("Control+k")
        await page.keyboard.insert_text("invoice")  # at once: a part of it would be looked for, too
        page.on("request", lambda request: asked.append(request.url))
        await page.wait_for_selector(".hit >> nth=1")
        marks = await stage.texts(".hit mark")
        lists = [url for url in asked if "/api/sessions?" in url]
        for key in ("ArrowDown", "ArrowDown"):
            await page.keyboard.press(key)
        await page.evaluate(READ_ANEW)
        await page.wait_for_selector("[data-before]", state="detached")
        for key in ("ArrowUp", "Enter"):
            await page.keyboard.press(key)
        await page.wait_for_selector(".said.found")
        current = await page.locator(".hit").evaluate_all("(all) => all.map((each) => each.ariaCurrent)")
    assert (marks, lists, current) == (["invoice", "invoice"], [], ["page", None])


async def test_what_is_drawn_says_when_it_was_and_what_became_of_a_restart(browser: Any, tmp_path: Path):
    """D33, D35: times can be read without a mouse and on paper."""
    async with opened(browser, tmp_path, asyncio.Event()) as stage:
        async with open_records(tmp_path) as records:
            assert await records.store.perform("owner", "page:every", kept_here(time.time()))
        await stage.log_in()
        await stage.page.goto(f"{stage.url}/#/c/{THREAD}")
        await stage.answer("The baker")
        notes = await stage.texts(".log > .note")
        await stage.page.emulate_media(media="print", reduced_motion="reduce")
        times = await stage.page.locator(".said.user time").evaluate_all(
            "(all) => all.map((each) => [each.textContent.includes(':'), getComputedStyle(each.parentNode).opacity])"
        )
    assert "everloop was restarted, and began this answer again." in notes
    assert times == [[True, "1"]] * 5


async def test_pictures_are_small_before_they_are_sent_and_large_when_one_wants_it(browser: Any, tmp_path: Path):
    """D34: and a Markdown file is drawn as one."""
    picture: Any = [{"name": "slope.png", "mimeType": "image/png", "buffer": png(900, 500)}]
    async with opened(browser, tmp_path, asyncio.Event()) as stage:
        page = stage.page
        await stage.log_in()
        await page.set_input_files("input[type=file]", picture)
        await stage.until("document.querySelector('.attached img')?.naturalWidth === 900")
        await stage.say("write it")
        await stage.answer("You said: write it")
        await stage.until("document.querySelector('.said.user .picture')?.naturalWidth === 900")
        small = await page.locator(".said.user .picture").bounding_box()
        await page.click(".said.user .enlarge")
        large = await page.locator("dialog.large img").bounding_box()
        await page.keyboard.press("Escape")
        await page.wait_for_selector("dialog", state="detached")
        await page.click(".final .files >> text=notes.md")
        await page.wait_for_selector(".preview li")
        drawn = await stage.texts(".preview .prose :is(h1, h2, h3, li)")
    assert (small["width"] <= 352, large["width"] >= 800) == (True, True)
    assert drawn == ["Notes", "milk"]


async def test_the_theme_returns_to_that_of_the_system(browser: Any, tmp_path: Path):
    """D36: and a Mac is told the keys that it has."""
    async with opened(browser, tmp_path, asyncio.Event()) as stage:
        page, themes = stage.page, []
        await page.add_init_script("Object.defineProperty(navigator, 'platform', { get: () => 'MacIntel' })")
        await stage.log_in()
        for _ in range(3):
            await page.click("[aria-label*=heme]")
            themes.append(await page.evaluate("document.documentElement.dataset.theme"))
        keys = await page.text_content(".search kbd")
    assert (themes, keys) == (["light", "dark", ""], "⌘ K")


async def test_an_undone_first_turn_leaves_nothing_in_the_list(browser: Any, tmp_path: Path):
    """D38, D39: and what undoes it is called so."""
    async with opened(browser, tmp_path, asyncio.Event()) as stage:
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("You said: hello")
        await stage.page.wait_for_selector(".item")
        await stage.choose("Undo")
        await stage.page.click("dialog >> text=Undo >> nth=-1")
        await stage.page.wait_for_selector(".list .hint")
        listed = await stage.texts(".item .name")
    assert listed == []


async def test_no_button_uses_words_that_a_newcomer_stumbles_over():
    """D39"""
    words = "".join((page_files.FOLDER / name).read_text() for name in ("say.js", "say-manage.js"))
    assert [each for each in OLD_WORDS if each in words] == []
    assert all(each in words for each in ('"Undo"', '"Save key"', '"Fallback models"'))


async def test_a_misspelt_command_is_told_and_costs_nothing(browser: Any, tmp_path: Path):
    """D18"""
    async with opened(browser, tmp_path, asyncio.Event()) as stage:
        await stage.log_in()
        await stage.say("/nonsense")
        await stage.page.wait_for_selector(".said.notice, .said.final")
        told = await stage.texts(".said.notice")
    assert told, "it went to the model"
    assert "/help" in told[0]
