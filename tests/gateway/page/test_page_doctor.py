"""A walk through the doctor's page in a real browser: what is wrong, what is mended, and the log as it is written."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.api.test_doctor import write
from tests.gateway.page.walk import staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's


@walked_at(390, 1440)
async def test_the_owner_sees_what_is_wrong_mends_it_and_watches_the_log(browser: Any, tmp_path: Path, width: int):
    os.chmod(tmp_path, 0o755)
    write(tmp_path, "an old line")
    async with staged(browser, tmp_path, width=width) as stage:
        page = stage.page
        await stage.log_in()
        await page.goto(f"{stage.url}/#/settings/doctor")
        await page.wait_for_selector(".finding[data-check=file-modes]")
        told = await page.inner_text(".finding[data-check=file-modes] .todo")
        fits = await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await page.click("button:text-is('Mend what is safe')")
        await page.wait_for_selector(".finding[data-check=file-modes]", state="detached")
        await page.wait_for_selector(".findings [data-verdict]")
        await page.wait_for_selector(".loglines li:has-text('an old line')")
        write(tmp_path, "<b>a line</b> that comes")
        await page.wait_for_selector(".loglines li:has-text('<b>a line</b> that comes')")
        await page.fill(".live-log input", "OLD LINE")
        only = await stage.texts(".loglines li .text")
        await page.select_option(".live-log select", "error")
        none = await page.inner_text(".loglines .none")
    assert (fits, only, none) == (True, ["x: an old line"], "Nothing in the log fits.")
    assert "chmod 700" in told
    assert os.stat(tmp_path).st_mode & 0o777 == 0o700
    assert stage.errors == []
