"""A browser at the page of a gateway, for those who walk through it. All walks of a process share one browser, each
with a context of its own, so that no two have a cookie in common."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from everloop import tool
from everloop.app import serve
from everloop.core.tool import Effect
from everloop.errors import ChannelDown, KeyRefused, Undeliverable
from everloop.ports import Deliver
from everloop.ports.channel import Incoming, OutgoingPart
from everloop.testing import Call, Calls, Fail, RecordingChannel, Say, ScriptedModel, Shown, Think, Wait
from tests.effort import in_full

Walk = TypeVar("Walk", bound=Callable[..., object])

PATIENCE = 60_000  # milliseconds: a busy machine is no bug


def walked_at(*widths: int) -> Callable[[Walk], Walk]:
    """The same walk at each of them; in `make test` at the first, on which least fits."""

    def mark(walk: Walk) -> Walk:
        return pytest.mark.shortened(pytest.mark.parametrize("width", in_full(widths, widths[:1]))(walk))

    return mark


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


class BrokenChannel(RecordingChannel):
    """A platform that refuses one chat for ever and another for now, until it is mended."""

    def __init__(self) -> None:
        super().__init__("fake")
        self.is_mended = False
        self.listens = asyncio.Event()

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.set()

    async def send(self, part: OutgoingPart) -> str:
        if self.is_mended:
            return await super().send(part)
        if part.address.chat == "gone":
            raise Undeliverable("there is no such chat <b>any more</b>")
        raise ChannelDown("the platform is away", 3600.0)

    async def hear(self, *chats: str) -> None:
        await self.listens.wait()
        assert self.deliver
        for chat in chats:
            await self.deliver(Incoming(event=chat, chat=chat, account="ann", text="hi"))


class Line:
    """The line between the browser and the gateway, which can be cut: all that goes over it breaks off, and may begin
    again."""

    def __init__(self) -> None:
        self.gateway = 0
        self.down = False
        self._writers: set[asyncio.StreamWriter] = set()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.down:
            writer.close()
            return
        far, to = await asyncio.open_connection("127.0.0.1", self.gateway)
        self._writers |= {writer, to}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, to))
                group.create_task(_pass_on(far, writer))
        finally:
            self._writers -= {writer, to}

    def cut(self) -> None:
        """Until it is mended nothing goes over it."""
        self.down = True
        for writer in [*self._writers]:
            writer.transport.abort()

    def mend(self) -> None:
        self.down = False


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

    def __init__(self, line: Line, page: Any, url: str, link: str, gate: asyncio.Event, errors: list[str]) -> None:
        self.line = line
        self.page = page
        self.url = url
        self.link = link
        self.gate = gate
        self.errors = errors  # what went wrong in the page, or was refused to it; there should be none in the end

    async def log_in(self) -> None:
        """By the link of the first start."""
        await self.page.goto(self.link)
        await self.page.wait_for_selector(".composer textarea")

    async def say(self, text: str) -> None:
        await self.page.fill(".composer textarea", text)
        await self.page.keyboard.press("Enter")

    async def choose(self, label: str) -> None:
        """In the menu of the conversation."""
        await self.page.click(".tools [aria-label=More]")
        await self.page.click(f".tools [role=menuitem]:has-text('{label}')")

    async def answer(self, text: str) -> None:
        """Wait until the last answer is this, and whole."""
        await self.page.wait_for_selector(f".said.final.last:has-text('{text}')")

    async def until(self, expression: str) -> None:
        """Wait until it is true in the page. Playwright's own way is stopped by the page's rules for scripts."""
        async with asyncio.timeout(60):
            while not await self.page.evaluate(expression):
                await self.page.wait_for_timeout(20)

    async def texts(self, selector: str) -> list[str]:
        return [each.strip() for each in await self.page.locator(selector).all_inner_texts()]


def tell(shown: Shown, gate: asyncio.Event) -> Any:
    """What the model of these walks does when it is asked."""
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


@asynccontextmanager
async def staged(
    browser: Any,
    home: Path,
    width: int = 1280,
    height: int = 800,
    given: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Stage]:
    """A gateway and a page of its own in the browser. `given` is what `serve` takes, in place of a scripted model."""
    gate, errors = asyncio.Event(), list[str]()

    cable = Line()
    between = await asyncio.start_server(cable.carry, "127.0.0.1", 0)
    port = between.sockets[0].getsockname()[1]
    place = {"gateway": {"port": 0, "allowed_hosts": [f"127.0.0.1:{port}"]}}
    made = (
        {"provider": ScriptedModel(lambda shown: tell(shown, gate)), "tools": (look, send)} if given is None else given
    )
    async with between, serve(home, {**place, **settings}, **made) as gateway:
        cable.gateway = int(gateway.url.rpartition(":")[2])
        url = f"http://127.0.0.1:{port}"
        visit = await browser.new_context(viewport={"width": width, "height": height})
        page = await visit.new_page()
        page.set_default_timeout(PATIENCE)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda told: errors.append(told.text) if "Security Policy" in told.text else None)
        try:
            yield Stage(cable, page, url, gateway.link.replace(gateway.url, url), gate, errors)
        finally:
            await visit.close()
            cable.cut()
    assert errors == []
