"""Pictures of every view, to be looked at: `python -m tests.gateway.page.screenshots FOLDER [VIEW …]`.

Each view of `views.py` at three widths and in both themes, as `FOLDER/VIEW-WIDTH-THEME.png`."""

import argparse
import asyncio
import shutil
import tempfile
from pathlib import Path

from playwright.async_api import async_playwright

from tests.gateway.conftest import FLAGS
from tests.gateway.page.views import View, furnished
from tests.gateway.page.walk import Stage

SIZES = ((390, 844), (820, 1180), (1440, 900))


async def take(folder: Path, wanted: list[str]) -> None:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        with tempfile.TemporaryDirectory() as home:
            async with furnished(browser, Path(home)) as (stage, views):
                for view in views:
                    if not wanted or view.name in wanted:
                        await shoot(stage, view, folder)
        await browser.close()


async def shoot(stage: Stage, view: View, folder: Path) -> None:
    for width, height in SIZES:
        await stage.page.set_viewport_size({"width": width, "height": height})
        await view.open(stage)
        for theme in ("light", "dark"):
            await stage.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            await stage.page.screenshot(path=folder / f"{view.name}-{width}-{theme}.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("views", nargs="*")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(chosen.folder, chosen.views))
