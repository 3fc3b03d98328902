"""A walk through the workspace in a real browser: every kind of file, uploads, a phone; and a page that wants to get at
what the page around it has, tried in a frame where it could, too."""

import asyncio
import json
import os
import struct
import zlib
from pathlib import Path
from typing import Any

import pytest

from everloop.gateway.page import CSP
from tests.gateway.page.walk import HACK, Stage, staged, walked_at

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

SHOTS = os.environ.get("EVERLOOP_SHOTS", "")  # a folder: to look at it with one's own eyes

PDF = b"""%PDF-1.4
1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>endobj
4 0 obj<</Length 44>>stream
BT /F1 24 Tf 40 100 Td (Hello from PDF) Tj ET
endstream endobj
5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj
trailer<</Root 1 0 R>>
"""
# It tries whatever could tell somebody something, and says what it got.
PROBE = """<!doctype html><head><link rel=preconnect href=http://127.0.0.1:{ear}>
<meta http-equiv=refresh content="0;url=http://127.0.0.1:{ear}/refreshed">
<style>h1 {{ color: rgb(1, 2, 3); }}</style></head>
<h1>A report</h1><img src="data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw==" id=dot>
<img src="http://127.0.0.1:{ear}/img"><iframe src="http://127.0.0.1:{ear}/frame"></iframe>
<link rel=dns-prefetch href=http://127.0.0.1:{ear}><link rel=stylesheet href=http://127.0.0.1:{ear}/css>
<style>@import url(http://127.0.0.1:{ear}/imported); b {{ background: url(http://127.0.0.1:{ear}/ground); }}
@font-face {{ font-family: f; src: url(http://127.0.0.1:{ear}/font); }} b {{ font-family: f; }}</style><b>bold</b>
<video src="http://127.0.0.1:{ear}/video" poster="http://127.0.0.1:{ear}/poster" autoplay muted></video>
<object data="http://127.0.0.1:{ear}/object"></object><embed src="http://127.0.0.1:{ear}/embed">
<svg><image href="http://127.0.0.1:{ear}/svg"/><use href="http://127.0.0.1:{ear}/use#a"/></svg>
<input type=image src="http://127.0.0.1:{ear}/input"><table background="http://127.0.0.1:{ear}/table"></table>
<iframe srcdoc="<img src=http://127.0.0.1:{ear}/inner><script>top.document.title = 'hacked'</script>"></iframe>
<a id=out href="http://127.0.0.1:{ear}/clicked">out</a> <a id=api href="/api/me">in</a>
<a id=top href="/x" target=_top>top</a>
<form action="/auth/logout" method=post><button id=form>log out</button></form>
<script>
  const got = {{}};
  const tried = (name, what) => {{ try {{ got[name] = what(); }} catch {{ got[name] = "refused"; }} }};
  tried("cookie", () => {{ document.cookie = "probe=1"; return "readable"; }});
  tried("storage", () => {{ localStorage.setItem("probe", "1"); return "readable"; }});
  tried("parent", () => parent.document.title && "readable");
  document.body.dataset.got = JSON.stringify(got);
</script>"""
TOLD_WHERE_IT_MAY = {
    *("/img", "/css", "/imported", "/ground", "/font"),
    *("/poster", "/object", "/svg", "/input", "/inner"),
}


def png(width: int = 60, height: int = 40) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"".join(bytes((x * 4, y * 6, 120)) for x in range(width)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def fill(root: Path) -> None:
    (root / "notes").mkdir()
    (root / "notes" / "plan.md").write_text(f"# The plan\n\n- **first** this\n\n{HACK}\n")
    (root / "picture.png").write_bytes(png())
    (root / "paper.pdf").write_bytes(PDF)
    (root / "table.csv").write_text('name,amount\n"Miller, Ann",12\nBob,"say ""hi"""\n')
    (root / "change.diff").write_text("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\n")
    (root / "code.py").write_text("def answer():\n    return 42  # of course\n")
    (root / "plain.txt").write_text("just words\n")
    (root / "empty.txt").write_text("")
    (root / "long.log").write_text("one of many lines\n" * 50_000)
    (root / "data.bin").write_bytes(bytes(range(256)))
    (root / "page.html").write_text("<h1>Hi</h1><script>document.title='hacked'</script>")
    (root / ".secret").write_text("a dot")
    (root / "two\nlines").touch()
    os.symlink("/etc/passwd", root / "outside")


def read(path: str) -> bytes:
    return Path(path).read_bytes()


async def come_in(stage: Stage, home: Path) -> None:
    fill(home / "workspace")
    await stage.log_in()
    if await stage.page.is_visible(".menu"):
        await stage.page.click(".menu")
    await stage.page.click(".navlink >> text=Files")
    await stage.page.wait_for_selector(".entry")


async def opened(stage: Stage, name: str, shows: str) -> None:
    await stage.page.click(f"a.entry:has-text('{name}')")
    await stage.page.wait_for_selector(f".pane h2:text-is('{name}')")
    await stage.page.wait_for_selector(f".pane .body {shows}")


KINDS = {
    "picture.png": "img.picture",
    "table.csv": "td:text-is('Miller, Ann')",
    "change.diff": ".t-added:text-is('+new')",
    "code.py": ".t-comment:text-is('# of course')",
    "plain.txt": "pre:has-text('just words')",
    "empty.txt": ".hint:has-text('empty')",
    "long.log": ".hint:text-is('The first 200 kB of 900 kB are shown.')",
    "data.bin": ".hint:has-text('Download it')",
    "page.html": "pre:has-text('<h1>Hi</h1>')",
    "paper.pdf": "iframe",
}


@walked_at(390, 1440)
async def test_every_kind_of_file_can_be_looked_at(browser: Any, tmp_path: Path, width: int):
    async with staged(browser, tmp_path, width=width) as stage:
        page = stage.page
        await come_in(stage, tmp_path)
        listed = await stage.texts(".entry .name")
        dead = await stage.texts(".entry.dead .name")
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/files-{width}.png")
        for name, shows in KINDS.items():
            await opened(stage, name, shows)
            assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), name
            if SHOTS:
                await page.wait_for_timeout(1500 if name == "paper.pdf" else 150)
                await page.screenshot(path=f"{SHOTS}/files-{width}-{name.partition('.')[0]}.png")
            if width < 800:
                assert not await page.is_visible(".entries")
                await page.click("[aria-label='Back to the folder']")
                await page.wait_for_selector(".entries", state="visible")
        await page.click("a.entry:has-text('notes')")
        await opened(stage, "plan.md", ".prose strong:text-is('first')")
        if SHOTS:
            await page.emulate_media(color_scheme="dark")
            await page.screenshot(path=f"{SHOTS}/files-{width}-dark.png")
        await page.reload()
        await page.wait_for_selector(".pane .prose strong")
        where = await stage.texts(".crumbs a")
        title = await page.title()
        await page.go_back()
    assert listed[0] == "notes"
    assert {*KINDS, "outside", "two\\u{a}lines", "AGENTS.md"} <= {*listed}
    assert ".secret" not in listed
    assert dead == ["outside", "two\\u{a}lines"]
    assert "hacked" not in title
    if width > 800:
        assert where == ["Workspace", "notes"]


DROPPED = """() => {
    const dataTransfer = new DataTransfer();
    dataTransfer.items.add(new File(['dropped words'], 'dropped.txt'));
    document.querySelector('.workspace').dispatchEvent(new DragEvent('drop', { dataTransfer, cancelable: true }));
}"""


async def test_files_are_uploaded_replaced_put_back_downloaded_and_deleted(browser: Any, tmp_path: Path):
    root = tmp_path / "workspace"
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await come_in(stage, tmp_path)
        given = [{"name": name, "mimeType": "text/plain", "buffer": b"new"} for name in ("up.txt", "plain.txt")]
        await page.set_input_files("input[type=file]", given)
        await page.wait_for_selector("dialog:has-text('Replace plain.txt?')")
        before = (root / "plain.txt").read_bytes()
        await page.click("dialog button:text-is('Replace')")
        await page.click(".toast button:text-is('Put back')")
        await page.wait_for_selector(".toast:has-text('It is back')")
        back = (root / "plain.txt").read_bytes()
        await opened(stage, "up.txt", "pre:has-text('new')")
        async with page.expect_download() as download:
            await page.click(".pane [aria-label=Download]")
        taken = read(await (await download.value).path())
        await page.click(".pane [aria-label=Delete]")
        await page.click("dialog button:text-is('Delete')")
        await page.wait_for_selector("a.entry:has-text('up.txt')", state="detached")
        gone = not (root / "up.txt").exists()
        await page.click(".toast:has-text('up.txt is deleted') button")
        await page.wait_for_selector("a.entry:has-text('up.txt')")
        restored = (root / "up.txt").read_bytes()
        await page.click("button:text-is('Show 1 hidden')")
        await page.wait_for_selector("a.entry:has-text('.secret')")
        await page.evaluate(DROPPED)
        await page.wait_for_selector("a.entry:has-text('dropped.txt')")
        await page.focus("a.entry >> nth=0")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.wait_for_selector(".pane .prose, .pane pre, .pane .hint")
    assert (before, back, taken, gone, restored) == (b"just words\n", b"just words\n", b"new", True, b"new")
    assert (root / "dropped.txt").read_bytes() == b"dropped words"


NOWHERE = {
    "none": "There is no 'none'.",
    "%E0%A4%A": "There is no '%E0%A4%A'.",
    "..%2F..": "a path cannot hold '..'",
    "/none.txt": "There is no 'none.txt'.",
}


async def test_a_chip_below_an_answer_leads_to_the_file(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("write it")
        await stage.answer("write it")
        await page.click("[aria-label='Show out/a.html in the workspace']")
        await page.wait_for_selector(".pane h2:text-is('a.html')")
        await page.wait_for_selector(".pane pre:has-text('script')")
        where = await stage.texts(".crumbs a")
        title = await page.title()
        await page.set_viewport_size({"width": 820, "height": 900})  # beside the sidebar there is room for one
        await page.wait_for_selector(".workspace .side", state="hidden")
        pane = await page.evaluate("document.querySelector('.pane').offsetWidth")
        for place, said in NOWHERE.items():
            await page.goto(f"{stage.url}/#/files/{place}")
            await page.wait_for_selector(f'.hint:has-text("{said}")')
    assert (where, title) == (["Workspace", "out"], "a.html · everloop")
    assert pane >= 500


async def test_a_page_gets_at_nothing_and_is_shown_on_demand_alone(browser: Any, tmp_path: Path):
    heard: list[bytes] = []
    came = asyncio.Event()

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(200))
        came.set()
        writer.close()

    def paths() -> set[str]:
        return {each.split(b" ")[1].decode() for each in heard if each}

    ear = await asyncio.start_server(hear, "127.0.0.1", 0)
    probe = PROBE.format(ear=ear.sockets[0].getsockname()[1])
    async with ear, staged(browser, tmp_path) as stage:
        page = stage.page
        await come_in(stage, tmp_path)
        (tmp_path / "workspace" / "probe.html").write_text(probe)
        await page.reload()
        await opened(stage, "probe.html", "pre:has-text('A report')")
        unasked = await page.locator("iframe").count()
        await page.click("button:text-is('Show as a page')")
        frame = page.frame_locator("iframe.shown")
        await frame.locator("h1").wait_for()
        colour = await frame.locator("h1").evaluate("node => getComputedStyle(node).color")
        dot = await frame.locator("#dot").evaluate("node => node.naturalWidth")
        ran = await frame.locator("body").get_attribute("data-got")
        await frame.locator("#form").click()
        await frame.locator("#top").click()
        await page.wait_for_timeout(500)
        still, unled = await frame.locator("h1").inner_text(), [*heard]
        logged_in, at = await page.is_visible(".workspace"), page.url
        if SHOTS:
            await page.screenshot(path=f"{SHOTS}/files-as-page.png")
        for link in ("#api", "#out"):
            await frame.locator(link).click()
            await page.wait_for_timeout(300)
            await page.click("button:text-is('Show as text')")
            await page.click("button:text-is('Show as a page')")
            await frame.locator("h1").wait_for()
        told, noted = [each for each in heard if each], " ".join(stage.errors)
        stage.errors.clear()
        got = await page.evaluate(SAME_ORIGIN)
        free = await page.context.new_page()
        await free.set_content(probe.replace("http-equiv=refresh", ""))  # else it is elsewhere already
        could_run = await free.locator("body").get_attribute("data-got")
        await free.wait_for_load_state("networkidle")
        async with asyncio.timeout(60):  # a slow browser is idle for a moment in the middle of it
            while not paths() >= TOLD_WHERE_IT_MAY:
                came.clear()
                await came.wait()
        stage.errors.clear()  # what was forbidden may be told late
    assert (unasked, colour, dot, ran, still, unled) == (0, "rgb(1, 2, 3)", 1, None, "A report", [])
    assert (logged_in, at.endswith("probe.html")) == (True, True)
    assert told == []  # a click may open a connection ahead, over which nothing is said
    assert "frame-src 'self'" in noted
    # The controls: a frame of this origin reads all of it, and where nobody forbids it the page runs and tells.
    assert got == {"cookie": "readable", "storage": "readable", "parent": "readable"}
    assert could_run is not None


SAME_ORIGIN = """async () => {
    const frame = document.createElement('iframe');
    document.body.append(frame);
    const inside = frame.contentWindow;
    const got = {};
    const tried = (name, what) => { try { got[name] = what(); } catch { got[name] = 'refused'; } };
    tried('cookie', () => { inside.document.cookie = 'probe=1'; return 'readable'; });
    tried('storage', () => { inside.localStorage.setItem('probe', '1'); return 'readable'; });
    tried('parent', () => inside.parent.document.title && 'readable');
    return got;
}"""


async def test_the_frame_is_answered_to_nobody_but_the_page(browser: Any, tmp_path: Path):
    async with staged(browser, tmp_path) as stage:
        fill(tmp_path / "workspace")
        await stage.log_in()
        statuses = await stage.page.evaluate(
            """async () => {
                const path = '/api/workspace/frame?path=page.html';
                const posted = await fetch(path, { method: 'POST' });  // with the cookie, and an Origin
                const got = await fetch(path);
                const file = await fetch('/api/workspace/file?path=page.html');
                return [posted.status, got.status, file.status, posted.headers.get('content-security-policy')];
            }"""
        )
        forged = await stage.page.context.request.post(
            f"{stage.url}/api/workspace/frame?path=page.html", headers={"Origin": "http://elsewhere.invalid"}
        )
    assert statuses[:3] == [200, 401, 401]
    assert json.dumps(statuses[3]).startswith('"sandbox; default-src')
    assert (forged.status, "frame-src 'self'" in CSP) == (403, True)
