"""Speaking to the page and having it read aloud, in a browser whose microphone hears a file and whose voice is written
down."""

import math
import shutil
import struct
import wave
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from everloop.testing import Say
from everloop.testing.model_server import ModelServer
from tests.gateway.conftest import FLAGS
from tests.gateway.page.walk import Stage, staged
from tests.providers.speech_server import SpeechServer

pytestmark = pytest.mark.asyncio(loop_scope="session")  # the browser's

HEARD = {"text": "Buy milk", "usage": {"type": "duration", "seconds": 2}}
ANSWER = """# Milk

It costs **two** euros; see [the shop](https://example.org/milk) or https://example.org/all.

- whole
- `skimmed`

```python
print("milk")
print("more")
```
"""
# A browser without a screen has no voices; what it would say is written down, and ends when a test says so.
VOICE = """
window.said = []; window.ends = [];
speechSynthesis.speak = (utterance) => { window.said.push(utterance.text); window.ends.push(utterance); };
speechSynthesis.cancel = () => { window.said.push('-'); };
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def talking(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    """A browser with a microphone that hears a tone, and whoever asks for it gets it."""
    playwright = pytest.importorskip("playwright.async_api", reason="Playwright is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("chromium is not installed (apt-get install chromium)")
    sound = tmp_path_factory.mktemp("sound") / "tone.wav"
    write_tone(sound)
    heard = ["--use-fake-device-for-media-stream", f"--use-file-for-fake-audio-capture={sound}"]
    async with playwright.async_playwright() as driver:
        opened = await driver.chromium.launch(executable_path=chromium, args=[*FLAGS, *heard], timeout=100_000)
        yield opened
        await opened.close()


def write_tone(path: Path, seconds: float = 2.0) -> None:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16_000, 0, "NONE", ""))
        tone = (int(20_000 * math.sin(step * 2 * math.pi * 440 / 16_000)) for step in range(int(16_000 * seconds)))
        file.writeframes(b"".join(struct.pack("<h", each) for each in tone))


@asynccontextmanager
async def at_page(
    browser: Any, folder: Path, server: SpeechServer | None, *, microphone: bool = True, **chosen: Any
) -> AsyncIterator[tuple[Stage, ModelServer]]:
    """Somebody who has logged in, with what they have chosen."""
    async with ModelServer(lambda shown: Say(ANSWER)) as model:
        settings = {
            "agents": {"defaults": {"model": "custom/scripted"}},
            "providers": {"custom": {"api_base": model.url, "api_key": "any"}},
            "voice": {"model": "whisper", "api_base": server.url} if server else {},
            "speech": {"model": "tts", "api_base": server.url, "format": "wav"} if server else {},
        }
        async with staged(browser, folder, given={}, **settings) as stage:
            await stage.page.add_init_script(VOICE)
            if microphone:
                await stage.page.context.grant_permissions(["microphone"])
            await stage.log_in()
            if chosen:
                await stage.page.evaluate(
                    "async (chosen) => { localStorage.setItem('speech', JSON.stringify(chosen)); "
                    "document.dispatchEvent(new Event('speech')); await import('/page/speech.js'); }",
                    chosen,
                )
            yield stage, model


async def loaded(stage: Stage) -> list[str]:
    """The modules of speech that the page has fetched."""
    names = await stage.page.evaluate("performance.getEntriesByType('resource').map((each) => each.name)")
    return [name for name in names if any(word in name for word in ("speech", "recording", "speakable", "aloud"))]


TALK = "button.talk"
# On a busy machine a click may take as long as if the button were held.
TAP = """() => {
    const button = document.querySelector('button.talk');
    for (const kind of ['pointerdown', 'pointerup']) button.dispatchEvent(new PointerEvent(kind, { bubbles: true }));
}"""
A_SECOND = ".recording .time:text-matches('0:0[1-9]')"  # has been recorded, or more where the browser is slow
# A short sound may be over before anybody looks, so the page notes when it is read and when no longer.
NOTE_READING = """() => {
    const button = document.querySelector('.said.final .aloud');
    window.read = [];
    const note = () => window.read.push(button.ariaPressed);
    new MutationObserver(note).observe(button, { attributeFilter: ['aria-pressed'] });
}"""


class TestSpeaking:
    async def test_nothing_of_it_is_there_before_it_is_chosen(self, talking: Any, tmp_path: Path):
        async with SpeechServer(HEARD).open() as server, at_page(talking, tmp_path, server) as (stage, _):
            assert await stage.page.locator(TALK).count() == 0
            assert await loaded(stage) == []
            await stage.page.click("[aria-label=Speech]")
            await stage.page.check("text=Push to talk")
            await stage.page.click("dialog.speech button.primary")
            await stage.page.wait_for_selector(TALK)
            assert await stage.page.evaluate("JSON.parse(localStorage.speech).talk") == "provider"

    async def test_what_is_spoken_stands_in_the_field_to_be_looked_at(self, talking: Any, tmp_path: Path):
        async with (
            SpeechServer(HEARD).open() as server,
            at_page(talking, tmp_path, server, talk="provider") as (stage, model),
        ):
            page = stage.page
            await page.fill(".composer textarea", "Please:")
            await page.focus(TALK)
            await page.keyboard.press("Enter")
            await page.wait_for_selector(f"{TALK}[aria-pressed=true]")
            await stage.until("Number(document.querySelector('.level').style.getPropertyValue('--level')) > 0.3")
            await page.wait_for_selector(A_SECOND)
            await page.keyboard.press("Enter")
            await stage.until("document.querySelector('.composer textarea').value === 'Please: Buy milk'")
            assert await page.locator(".recording").is_hidden()
        name, data = server.asked[0]["file"]
        assert (name, len(data) > 1000, model.calls) == ("voice.webm", True, 0)

    async def test_who_holds_the_button_is_done_when_they_let_go_and_it_may_be_sent_at_once(
        self, talking: Any, tmp_path: Path
    ):
        chosen = {"talk": "provider", "atOnce": True}
        async with SpeechServer(HEARD).open() as server, at_page(talking, tmp_path, server, **chosen) as (stage, model):
            await stage.page.hover(TALK)
            await stage.page.mouse.down()
            await stage.page.wait_for_selector(A_SECOND)
            await stage.page.mouse.up()
            await stage.answer("two euros")
            assert "Buy milk" in model.prompts[0].asked

    async def test_escape_throws_it_away_and_gives_the_microphone_back(self, talking: Any, tmp_path: Path):
        async with (
            SpeechServer(HEARD).open() as server,
            at_page(talking, tmp_path, server, talk="provider") as (stage, _),
        ):
            page = stage.page
            await page.evaluate(
                "() => { const get = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices); "
                "navigator.mediaDevices.getUserMedia = async (wanted) => (window.stream = await get(wanted)); }"
            )
            await page.evaluate(TAP)
            await page.wait_for_selector(f"{TALK}[aria-pressed=true]")
            await page.keyboard.press("Escape")
            await page.wait_for_selector(f"{TALK}[aria-pressed=false]")
            await page.evaluate(TAP)
            await page.click("[aria-label='Throw it away']")  # a phone has no Escape
            await page.wait_for_selector(f"{TALK}[aria-pressed=false]")
            assert await page.evaluate("window.stream.getTracks().map((track) => track.readyState)") == ["ended"]
            assert (await page.input_value(".composer textarea"), server.asked) == ("", [])

    async def test_a_microphone_that_is_not_allowed_and_a_host_that_fails_are_told(self, talking: Any, tmp_path: Path):
        async with (
            SpeechServer(401).open() as server,
            at_page(talking, tmp_path, server, microphone=False, talk="provider") as (stage, _),
        ):
            page = stage.page
            await page.evaluate(TAP)
            await page.wait_for_selector(".toast.bad:has-text('does not allow the microphone')")
            await page.context.grant_permissions(["microphone"])
            await page.evaluate(TAP)
            await page.wait_for_selector(A_SECOND)
            await page.evaluate(TAP)
            await page.wait_for_selector(".toast.bad:has-text('could not be transcribed')")

    async def test_the_browser_hears_nothing_unless_that_is_chosen_and_its_maker_is_named(
        self, talking: Any, tmp_path: Path
    ):
        async with at_page(talking, tmp_path, None) as (stage, _):
            page = stage.page
            await page.click("[aria-label=Speech]")
            await page.wait_for_selector("dialog.speech")
            hints = " ".join(await stage.texts("dialog.speech .hint"))
            await page.check("text=Push to talk")
            await page.click("dialog.speech button.primary")
            open_still = await page.locator("dialog.speech").count()
            await page.check("dialog.speech fieldset label:has-text('The browser') input")
            await page.click("dialog.speech button.primary")
            await page.wait_for_selector(TALK)
            assert await page.evaluate("JSON.parse(localStorage.speech).talk") == "browser"
        assert ("Nobody is set to transcribe" in hints, "maker of the browser may then hear" in hints) == (True, True)
        assert open_still == 1


class TestReadingAloud:
    async def test_an_answer_is_read_as_words_and_code_is_announced(self, talking: Any, tmp_path: Path):
        async with at_page(talking, tmp_path, None, aloud=True) as (stage, _):
            await stage.say("milk?")
            await stage.answer("two euros")
            assert await stage.page.evaluate("window.said") == []
            await stage.page.click(".said.final .aloud")
            said = await stage.page.evaluate("window.said")
            await stage.page.keyboard.press("Escape")
            await stage.page.wait_for_selector(".aloud[aria-pressed=false]")
            stopped = await stage.page.evaluate("window.said.at(-1)")
        assert said == [
            "Milk.",
            "It costs two euros; see the shop or a link to example.org.",
            "whole.",
            "skimmed.",
            "A block of python code, 2 lines.",
        ]
        assert stopped == "-"

    async def test_new_answers_are_read_by_themselves_and_old_ones_are_not(self, talking: Any, tmp_path: Path):
        async with at_page(talking, tmp_path, None, aloud=True, always=True) as (stage, _):
            await stage.say("milk?")
            await stage.page.wait_for_selector(".aloud[aria-pressed=true]")
            await stage.page.evaluate("window.ends.at(-1).onend()")
            await stage.page.wait_for_selector(".aloud[aria-pressed=false]")
            await stage.page.reload()
            await stage.page.wait_for_selector(".said.final .aloud")
            assert await stage.page.evaluate("window.said") == []

    async def test_a_model_reads_where_it_is_chosen_and_is_asked_for_nothing_before_a_button_is_pressed(
        self, talking: Any, tmp_path: Path
    ):
        write_tone(tmp_path / "tone.wav", 0.3)
        async with (
            SpeechServer((tmp_path / "tone.wav").read_bytes()).open() as server,
            at_page(talking, tmp_path, server) as (stage, _),
        ):
            page = stage.page
            await page.click("[aria-label=Speech]")
            await page.check("text=A button on each answer")
            by_default = await page.is_checked("text=The browser, with a voice of this machine")
            await page.check("text=The model that is set for it (speech.model)")
            await page.click("dialog.speech button.primary")
            await stage.say("milk?")
            await stage.answer("two euros")
            await page.wait_for_selector(".said.final .aloud")
            before = len(server.asked)
            await page.evaluate(NOTE_READING)
            for times in (1, 2):
                await page.click(".said.final .aloud")
                await stage.until(f"window.read.length === {2 * times}")  # the tone is over
            noted = await page.evaluate("window.read")
            spoken, toasts = await page.evaluate("window.said"), await stage.texts(".toast.bad")
        assert (by_default, before, len(server.asked), spoken, toasts) == (True, 0, 1, [], [])
        assert noted == ["true", "false"] * 2
        assert server.asked[0]["input"].startswith("Milk.\nIt costs two euros; see the shop")

    async def test_a_model_that_fails_and_a_sound_that_the_browser_cannot_play_are_told(
        self, talking: Any, tmp_path: Path
    ):
        async with (
            SpeechServer(401, b"no sound").open() as server,
            at_page(talking, tmp_path, server, aloud=True, by="provider") as (stage, _),
        ):
            await stage.say("milk?")
            await stage.answer("two euros")
            await stage.page.click(".said.final .aloud")
            await stage.page.wait_for_selector(".toast.bad:has-text('could not be read aloud')")
            await stage.page.wait_for_selector(".aloud[aria-pressed=false]")
            await stage.page.click(".said.final .aloud")
            await stage.page.wait_for_selector(".toast.bad:has-text('another speech.format may do')")
            await stage.page.wait_for_selector(".aloud[aria-pressed=false]")

    async def test_a_long_paragraph_is_read_in_pieces(self, talking: Any, tmp_path: Path):
        async with at_page(talking, tmp_path, None) as (stage, _):
            found = await stage.page.evaluate(
                "async () => { const { pieces } = await import('/page/speakable.js'); "
                "const node = document.createElement('p'); node.textContent = 'One sentence of words. '.repeat(40); "
                "return pieces(node); }"
            )
        assert " ".join(found) == ("One sentence of words. " * 40).strip()
        assert (max(map(len, found)) <= 220, {each[-1] for each in found}) == (True, {"."})
