"""A walk through the page in a real browser. Without Playwright or Debian's chromium these are skipped by name."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from everloop import tool
from everloop.app import open_records, serve
from everloop.core.errors import KeyRefused
from everloop.core.tool import Effect
from everloop.testing import Call, Calls, Fail, Say, ScriptedModel, Shown, Think, Wait

playwright = pytest.importorskip("playwright.async_api", reason="Playwright is not installed (pip install playwright)")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt-get install chromium)")

NASTY = (
    "<img src=x onerror=\"document.title='hacked'\"> <script>document.title='hacked'</script>\n\n"
    "[click](javascript:document.title='hacked') ![x](https://elsewhere.invalid/track.png)\n\n"
    "**bold** `code` [good](https://example.org/)\n\n```html\n<b>not bold</b>\n```\n"
)

HACK = "<script>document.title = 'hacked'</script>"


@tool(Effect.READ)
async def look(path: str) -> str:
    """Look at something."""
    return f"in {path}: milk <b>and</b> bread"


@tool(Effect.UNSAFE, guarded=True)
async def send(to: str) -> str:
    """Send something."""
    return f"sent to {to}"


class Line:
    """The line between the browser and the gateway, which can be cut: all that goes over it breaks off, and may begin
    again."""

    def __init__(self) -> None:
        self.gateway = 0
        self._writers: set[asyncio.StreamWriter] = set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far, to = await asyncio.open_connection("127.0.0.1", self.gateway)
        self._writers |= {writer, to}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, to))
                group.create_task(_pass_on(far, writer))
        finally:
            self._writers -= {writer, to}

    def cut(self) -> None:
        for writer in [*self._writers]:
            writer.transport.abort()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


class Stage:
    """A browser at the page of a gateway whose model waits at `gate` when it tells a story."""

    def __init__(self, line: Line, page: Any, url: str, link: str, gate: asyncio.Event) -> None:
        self.line = line
        self.page = page
        self.url = url
        self.link = link
        self.gate = gate

    async def log_in(self) -> None:
        """By the link of the first start."""
        await self.page.goto(self.link)
        await self.page.wait_for_selector(".composer textarea")

    async def say(self, text: str) -> None:
        await self.page.fill(".composer textarea", text)
        await self.page.keyboard.press("Enter")

    async def answer(self, text: str) -> None:
        """Wait until the last answer is this, and whole."""
        await self.page.wait_for_selector(f".said.final.last:has-text('{text}')")

    async def texts(self, selector: str) -> list[str]:
        return [each.strip() for each in await self.page.locator(selector).all_inner_texts()]


@asynccontextmanager
async def staged(home: Path, width: int = 1280, height: int = 800) -> AsyncIterator[Stage]:
    gate, errors = asyncio.Event(), []

    def line(shown: Shown) -> Any:
        if "story" in shown.asked:
            return Say(["Once upon", " a time"]), Wait(gate), Say([" there was", " a loop."])
        if "fail" in shown.asked:
            return Fail(KeyRefused("the key is wrong; set another key"))
        if "look" in shown.asked and shown.step == 0:
            return Think("I should look."), Say("I look."), Call("look", {"path": "notes.md"})
        if "write" in shown.asked and shown.step == 0:
            return Calls(*(Call("write_file", {"path": name, "content": HACK}) for name in ("out/a.html", "b.txt")))
        if "tell" in shown.asked and shown.step == 0:
            return Call("message", {"session": shown.asked.split()[-1], "text": "Lunch is at one."})
        if "send" in shown.asked and shown.step == 0:
            return Call("send", {"to": "somebody@example.org"})
        return Say(NASTY if "nasty" in shown.asked else f"You said: {shown.asked}")

    cable = Line()
    between = await asyncio.start_server(cable.carry, "127.0.0.1", 0)
    port = between.sockets[0].getsockname()[1]
    settings = {"gateway": {"port": 0, "allowed_hosts": [f"127.0.0.1:{port}"]}}
    async with (
        between,
        serve(home, settings, provider=ScriptedModel(line), tools=[look, send]) as gateway,
        playwright.async_playwright() as driver,
    ):
        cable.gateway = int(gateway.url.rpartition(":")[2])
        url = f"http://127.0.0.1:{port}"
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        page = await browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(20_000)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda told: errors.append(told.text) if "Security Policy" in told.text else None)
        try:
            yield Stage(cable, page, url, gateway.link.replace(gateway.url, url), gate)
        finally:
            await browser.close()
            cable.cut()
    assert errors == []


async def test_one_comes_by_the_link_sets_a_password_and_comes_back_with_it(tmp_path: Path):
    async with staged(tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        seen = page.url
        await page.click("text=Settings")
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


async def test_one_asks_and_sees_what_was_done(tmp_path: Path):
    async with staged(tmp_path) as stage:
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


async def test_a_file_goes_in_and_comes_out(tmp_path: Path):
    picture = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8cfc0000003010100"
        "18dd8db00000000049454e44ae426082"
    )
    async with staged(tmp_path) as stage:
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
        await page.wait_for_selector(".said.user img.picture")
        shown = await page.evaluate("document.querySelector('img.picture').naturalWidth")
        said = await page.inner_text(".said.user .bubble")
        chips = await stage.texts(".said.user .chip")
    assert (shown, chips) == (1, ["dot.png", "notes.txt"])
    assert "milk" in said


async def test_what_tools_have_made_stands_below_the_answer_to_be_looked_at_and_taken_along(tmp_path: Path):
    async with staged(tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("write it")
        await stage.answer("You said: write it")
        chips = await stage.texts(".final .files .chip")
        await page.click(".final .files >> text=out/a.html")
        await page.wait_for_selector(".final .files pre.result:not([hidden])")
        looked = await stage.texts(".final .files pre.result:not([hidden])")
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


async def test_what_the_agent_tells_from_another_conversation_is_seen_at_once(tmp_path: Path):
    async with staged(tmp_path) as stage:
        await stage.log_in()
        await stage.say("hello")
        await stage.answer("You said: hello")
        async with open_records(tmp_path) as records:
            (found,) = await records.store.conversations("owner")
        here = stage.page.context
        other = await here.browser.new_page(storage_state=await here.storage_state())
        await other.goto(stage.url)
        await other.fill(".composer textarea", f"tell {found.session}")
        await other.keyboard.press("Enter")
        await stage.page.wait_for_selector(".said.model:has-text('Lunch is at one.')")
        told = await stage.texts(".said.model:has-text('Lunch') .note")
    assert len(told) == 1
    assert told[0].startswith("Told from page:")


async def test_a_token_is_made_shown_once_and_revoked(tmp_path: Path):
    async with staged(tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await page.click("text=Settings")
        await page.fill("[aria-label='Name of the token']", "laptop")
        await page.click("text=Make a token")
        token = await page.inner_text("dialog code")
        await page.click("dialog >> text=Done")
        await page.click("[aria-label='Revoke laptop']")
        await page.click("dialog >> text=Revoke >> nth=-1")
        await page.wait_for_selector("[aria-label='Revoke laptop']", state="detached")
    assert token.startswith("ev_")


async def test_what_a_model_writes_is_only_ever_shown(tmp_path: Path):
    async with staged(tmp_path) as stage:
        asked: list[str] = []
        stage.page.on("request", lambda request: asked.append(request.url))
        await stage.log_in()
        await stage.say("something nasty")
        await stage.answer("bold")
        await stage.page.wait_for_function("document.title.includes('nasty')")
        made = await stage.page.evaluate(
            """() => [document.title, document.querySelectorAll('.prose img, .prose script, .prose pre b').length,
                      [...document.querySelectorAll('.prose a')].map((link) => link.href),
                      document.querySelector('.prose strong').textContent,
                      document.querySelector('.prose pre').textContent]"""
        )
    links = ["https://elsewhere.invalid/track.png", "https://example.org/"]
    assert made == ["something nasty · everloop", 0, links, "bold", "<b>not bold</b>"]
    assert [url for url in asked if not url.startswith((stage.url, stage.url.replace("http", "ws")))] == []


async def test_a_question_is_answered_with_one_click(tmp_path: Path):
    async with staged(tmp_path) as stage:
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
        denied = await stage.texts(".call.bad .status")
    assert (statuses, len(denied), denied[0].split(" · ")[0]) == (1, 1, "not run")


async def test_a_break_in_mid_stream_leaves_no_gap(tmp_path: Path):
    async with staged(tmp_path) as stage:
        await stage.log_in()
        await stage.say("tell me a story")
        await stage.page.wait_for_selector(".draft:has-text('Once upon a time')")
        stage.line.cut()
        await stage.page.wait_for_selector(".wire:has-text('reconnecting')")
        await stage.page.wait_for_selector(".wire:empty", state="attached")
        await stage.page.wait_for_selector(".draft:has-text('Once upon a time')")
        drafts = await stage.texts(".draft .prose >> nth=-1")
        stage.gate.set()
        await stage.answer("Once upon a time there was a loop.")
        answers = await stage.texts(".said.model .prose")
        said = await stage.texts(".said.user .bubble")
    assert drafts == ["Once upon a time"]
    assert (answers, said) == (["Once upon a time there was a loop."], ["tell me a story"])


async def test_a_running_turn_is_stopped(tmp_path: Path):
    async with staged(tmp_path) as stage:
        await stage.log_in()
        await stage.say("tell me a story")
        await stage.page.wait_for_selector(".draft:has-text('Once upon')")
        await stage.page.click("button[aria-label=Stop]")
        await stage.page.wait_for_selector("text=Stopped.")
        drafts = await stage.page.locator(".draft").count()
    assert drafts == 0


async def test_conversations_are_found_renamed_edited_and_asked_again(tmp_path: Path):
    async with staged(tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("where is the invoice")
        await stage.answer("You said: where is the invoice")
        await page.click("[aria-label='Edit and ask again']")
        await page.fill("dialog textarea", "where is the receipt")
        await page.click("text=Ask again")
        await stage.answer("You said: where is the receipt")
        before = page.url
        await page.click("[aria-label='Answer again']")
        await page.wait_for_url(lambda url: url != before)
        await stage.answer("You said: where is the receipt")
        await page.click("[aria-label=Rename]")
        await page.fill("dialog input", "papers")
        await page.click("dialog >> text=Rename >> nth=-1")
        await page.wait_for_selector(".item .name:has-text('papers')")
        await page.click("text=New conversation")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("receipt")
        await page.click(".hit:has-text('papers')")
        await page.wait_for_selector(".said.found")
        title = await page.inner_text(".title")
    assert title == "papers"


async def test_the_trace_the_usage_and_the_settings_are_shown(tmp_path: Path):
    async with staged(tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await stage.say("look around")
        await stage.answer("You said: look around")
        await page.click("[aria-label='Show how the time was spent']")
        await page.wait_for_selector(".turn")
        steps = [each.split("\n")[0] for each in await stage.texts(".waterfall .what")]
        await page.click("text=Usage")
        await page.wait_for_selector(".chart rect.m-0")
        await page.click("text=Settings")
        await page.fill("[aria-label='Filter settings']", "steering")
        rows = await stage.texts(".group dl > div")
    assert steps == ["waited", "scripted", "look", "scripted"]
    assert [each.split() for each in rows] == [["agents.defaults.steering", "steer"]]


async def test_what_went_wrong_is_said_once_with_what_to_do(tmp_path: Path):
    async with staged(tmp_path) as stage:
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


async def test_on_a_phone_nothing_is_wider_than_the_screen_and_the_menu_is_a_drawer(tmp_path: Path):
    async with staged(tmp_path, 360, 740) as stage:
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


async def test_it_can_be_used_without_a_mouse(tmp_path: Path):
    async with staged(tmp_path) as stage:
        page = stage.page
        await stage.log_in()
        await page.keyboard.type("hello")
        await page.keyboard.press("Shift+Enter")
        await page.keyboard.type("there")
        await page.keyboard.press("Enter")
        await stage.answer("You said: hello")
        await page.keyboard.press("ArrowUp")
        offered = await page.input_value("dialog textarea")
        await page.keyboard.press("Escape")
        await page.keyboard.press("Alt+n")
        await page.wait_for_selector(".starter")
        unnamed = await page.evaluate(
            """() => [...document.querySelectorAll('button, a, input, textarea')].filter((each) => !each.hidden
                && !each.textContent.trim() && !each.getAttribute('aria-label') && !each.labels?.length).length"""
        )
    assert (offered, unnamed) == ("hello\nthere", 0)
