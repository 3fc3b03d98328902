"""A walk through one's own files in the page, in a real browser."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from everloop.app.records import open_records
from everloop.core.people import Role
from everloop.files.folder import Folder
from everloop.ports import FileRecord
from everloop.ports.directory import Person
from everloop.testing import Say, ScriptedModel
from tests.gateway.page.walk import staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes
NOTES: Any = [{"name": "notes of a rather long name <b>.txt", "mimeType": "text/plain", "buffer": b"milk and eggs"}]


@walked_at(390, 1440)
async def test_one_sees_ones_files_takes_them_finds_where_they_were_told_and_removes_them(
    browser: Any, tmp_path: Path, width: int
):
    given = {"provider": ScriptedModel(lambda shown: Say("ok"))}
    async with staged(browser, tmp_path, width=width, given=given, files={"quota": 1_000_000}) as stage:
        page = stage.page
        async with open_records(tmp_path) as records:
            await records.store.introduce(Person("web:anna", "Anna", Role.USER))
            ref = await Folder(tmp_path / "files").put("web:anna", b"hers", "hers.txt")
            await records.store.note_file(FileRecord("web:anna", ref, "hers.txt", "text/plain", 4))
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/files")
        empty = await page.inner_text("section[aria-label=Attachments] .empty h2")
        await page.goto(f"{stage.url}/#/")
        await page.set_input_files("input[type=file]", NOTES)
        await page.wait_for_selector(".attached .chip:not(.busy)")
        await stage.say("keep it")
        await page.wait_for_selector(".said.final.last")
        talk = page.url
        await page.goto(f"{stage.url}/#/settings/files")
        await page.wait_for_selector(".own-files li")
        names, room = await stage.texts(".own-files li b"), await page.inner_text(".room span")
        fits = await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/own-files-{width}.png")
            await page.emulate_media(color_scheme="dark")
            await page.screenshot(path=f"{SHOTS}/own-files-dark-{width}.png")
        async with page.expect_download() as coming:
            await page.click(".own-files a:text-is('Download')")
        saved = await asyncio.to_thread((await (await coming.value).path()).read_bytes)
        await page.click(".own-files button:text-is('Conversation')")
        await page.wait_for_selector(".said.final.last")
        told_in = page.url
        await page.goto(f"{stage.url}/#/settings/files")
        await page.click(".own-files button:text-is('Remove')")
        await page.click("dialog button:text-is('Remove')")
        await page.wait_for_selector(".empty h2")
        whose = await stage.texts("select.pick option")
        await page.select_option("select.pick", label="Anna")
        await page.wait_for_selector(".own-files li:has-text('hers.txt')")
        errors = stage.errors
    assert (empty, names, room) == (
        "There are no files",
        ["notes of a rather long name <b>.txt"],
        "4.1 kB of 1.0 MB are used",
    )
    assert (saved, told_in, fits) == (b"milk and eggs", talk, True)
    assert (whose, errors) == (["Your own", "Anna"], [])
