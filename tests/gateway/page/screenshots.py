"""Pictures of every view, to be looked at: `python -m tests.gateway.page.screenshots FOLDER [VIEW …]`.

Each view of `views.py` at three widths and in both themes, as `FOLDER/VIEW-WIDTH-THEME.png`. With `--docs` those of the
documentation, in few colours: `python -m tests.gateway.page.screenshots docs --docs`."""

import argparse
import asyncio
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from playwright.async_api import async_playwright

from tests.gateway.conftest import FLAGS
from tests.gateway.page.views import View, furnished
from tests.gateway.page.walk import Stage

SIZES = ((390, 844), (820, 1180), (1440, 900))
DOCS = {"answer": "chat", "question": "approval", "models": "models", "settings": "settings", "trace": "trace"}


async def take(folder: Path, wanted: list[str], for_docs: bool) -> None:
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        with tempfile.TemporaryDirectory() as home:
            async with furnished(browser, Path(home)) as (stage, views):
                for view in views:
                    if for_docs and view.name in DOCS:
                        await shoot_for_docs(stage, view, folder / f"page-{DOCS[view.name]}.png")
                    elif not for_docs and (not wanted or view.name in wanted):
                        await shoot(stage, view, folder)
        await browser.close()


async def shoot(stage: Stage, view: View, folder: Path) -> None:
    for width, height in SIZES:
        await stage.page.set_viewport_size({"width": width, "height": height})
        await view.open(stage)
        for theme in ("light", "dark"):
            await stage.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            await stage.page.screenshot(path=folder / f"{view.name}-{width}-{theme}.png")


async def shoot_for_docs(stage: Stage, view: View, path: Path) -> None:
    await stage.page.set_viewport_size({"width": 1180, "height": 760})
    await view.open(stage)
    picture = Image.open(io.BytesIO(await stage.page.screenshot()))
    picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("views", nargs="*")
    parser.add_argument("--docs", action="store_true")
    chosen = parser.parse_args()
    chosen.folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(take(chosen.folder, chosen.views, chosen.docs))
