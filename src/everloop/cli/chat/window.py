"""The area at the bottom of the terminal, and the text above it.

What is finished is written once into the terminal's own scrollback, so that its scrolling, searching and copying work
as ever. Below it stands what still changes: the end of the answer that grows, what runs, what is being typed, and a
line on how things are. It is drawn by prompt_toolkit, at most some times a second while an answer comes.

The terminal is not asked where its cursor is (CPR): an answer to that may come when a shell is reading again.
"""

import asyncio
import errno
import os
import re
import select
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, TextIO

from msgspec import Struct
from prompt_toolkit.application import Application, in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition, has_completions
from prompt_toolkit.formatted_text import ANSI, AnyFormattedText
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    ScrollbarMargin,
    ScrollOffsets,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenuControl
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from .key_input import KeyInput
from .reflow import ReflowRenderer, counts_cleared, reflows

FRAME = 1 / 12  # seconds between two drawings, while something comes
KEY_SECONDS = 0.05  # after which an escape is the key of that name, and not the beginning of a code
ALT_SECONDS = 0.25  # and not the beginning of Alt and another key
MOST_TYPED = 10  # rows of what is being typed
MENU = 7  # rows of what a word may become
SYNC, SYNCED = "\x1b[?2026h", "\x1b[?2026l"  # a terminal that knows this shows what is between them at once
LOOKS = {
    "": "",
    "prompt": "bold",
    "completion-menu": "noinherit",
    "completion-menu.completion": "noinherit",
    "completion-menu.completion.current": "noinherit reverse",
    "completion-menu.meta.completion": "noinherit dim",
    "completion-menu.meta.completion.current": "noinherit reverse",
    "scrollbar.background": "noinherit",
    "scrollbar.button": "noinherit reverse",
    "status": "dim",
}
_CODES = re.compile(r"\x1b\[[0-9;]*m")


class Scene(Struct, frozen=True):
    """What is drawn: each is asked anew for every drawing. Texts may hold codes for colours (SGR) and no others."""

    prompt: Callable[[], str]
    live: Callable[[int], str]  # what grows or runs, in so many rows
    status: Callable[[int], str]  # in a line of so many cells
    drain: Callable[[], None]  # called before a drawing that was asked for by `touch`
    moves: Callable[[], bool]  # whether to draw again and again, as long as this holds


class ChatOutput(Vt100_Output):
    def erase_down(self) -> None:
        """tmux takes ED at the upper left corner for a clearing of the screen, and keeps what stood there in its
        scrollback: so what is erased begins one cell to the right, in a line that is empty already. It is cleared as a
        whole (EL 2), else tmux would go on counting what it held (`reflow.counts_cleared`)."""
        self.write_raw("\x1b[2K\x1b[C\x1b[J\x1b[D")

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            # The terminal is gone, of which whoever reads from it learns: nothing is shown any more.
            with open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), self.stdout.fileno())


class ChatWindow:
    def __init__(self, stdin: TextIO, stdout: TextIO, buffer: Buffer, keys: KeyBindings, scene: Scene) -> None:
        self._stdout = stdout
        self._scene = scene
        self._above: list[str] = []
        self._due: asyncio.TimerHandle | None = None
        self.is_early = False  # keys come that were pressed before this was there: their Enter is a newline
        self._is_outside = False  # something else has the terminal
        self._live = self._status = ""  # as they are drawn
        search = SearchToolbar()
        self._output = ChatOutput(stdout, self._size, default_color_depth=ColorDepth.DEPTH_8_BIT, enable_cpr=False)
        self._input = KeyInput(stdin)
        typed = Window(
            BufferControl(buffer, search_buffer_control=search.control, preview_search=True),
            height=lambda: Dimension(min=1, max=min(MOST_TYPED, max(1, self.rows // 2))),
            dont_extend_height=True,
            wrap_lines=True,
            get_line_prefix=self._prefix,
        )
        live = Window(FormattedTextControl(lambda: ANSI(self._live)), dont_extend_height=True)
        status = Window(FormattedTextControl(lambda: ANSI(self._status)), height=1, style="class:status")
        menu = Window(  # as prompt_toolkit's CompletionsMenu, but no higher than what it offers
            CompletionsMenuControl(),
            height=Dimension(min=1, max=MENU),
            scroll_offsets=ScrollOffsets(top=1, bottom=1),
            right_margins=[ScrollbarMargin()],
            dont_extend_width=True,
            dont_extend_height=True,
            style="class:completion-menu",
        )
        self._typed = typed
        body = HSplit(
            [
                ConditionalContainer(live, Condition(lambda: bool(self._live))),
                typed,
                ConditionalContainer(menu, has_completions),
                search,
                ConditionalContainer(status, Condition(lambda: self.rows > MOST_TYPED // 2)),
            ]
        )
        self.app: Application[None] = Application(
            layout=Layout(body, focused_element=typed),
            key_bindings=keys,
            style=Style.from_dict(LOOKS),
            include_default_pygments_style=False,
            input=self._input,
            output=self._output,
            erase_when_done=True,
            before_render=lambda _: self._compose(),
            enable_page_navigation_bindings=False,
        )
        if reflows(os.environ):
            self.app.renderer = ReflowRenderer(
                self.app.renderer.style, self._output, counts_cleared=counts_cleared(os.environ)
            )
        self.app.ttimeoutlen, self.app.timeoutlen = KEY_SECONDS, ALT_SECONDS

    @property
    def rows(self) -> int:
        return self._size().rows

    @property
    def columns(self) -> int:
        return self._size().columns

    @asynccontextmanager
    async def open(self) -> AsyncIterator["asyncio.Future[None]"]:
        """For as long as the block lasts; what is given is done before only when the terminal is gone, or something in
        here has failed. However it ends, the terminal is as it was."""
        loop = asyncio.get_running_loop()
        self.is_early = self._is_pending()
        before = loop.get_exception_handler()
        loop.set_exception_handler(self._fail)
        # It is cancelled only from within: what it has changed at the terminal has to be changed back.
        running = asyncio.ensure_future(self.app.run_async(handle_sigint=False, set_exception_handler=False))
        try:
            yield running
        finally:
            loop.set_exception_handler(before)
            if self._due:
                self._due.cancel()
            self._flush()
            if not running.done():
                with suppress(Exception):  # it has been told to end already
                    self.app.exit()
            try:
                with suppress(EOFError):
                    await running
            finally:
                self._block()

    def _fail(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """What fails where nobody waits for it ends the chat, with the terminal as it was."""
        error = context.get("exception")
        if isinstance(error, Exception) and self.app.future and not self.app.future.done():
            self.app.exit(exception=error)
        else:
            loop.default_exception_handler(context)

    def _is_pending(self) -> bool:
        """Whether a line was typed already, which the terminal itself has ended."""
        return bool(select.select([self._input.fileno()], [], [], 0)[0])

    def read_early(self) -> None:
        """What comes with the next keys was pressed now."""
        if self.is_early:
            asyncio.get_running_loop().call_soon(self._end_early)

    def _end_early(self) -> None:
        self.is_early = False

    def print(self, text: str) -> None:
        """Write finished lines above, for good; they may hold codes for colours. They are there with the next
        drawing."""
        if text:
            self._above.append(text if text.endswith("\n") else f"{text}\n")
            self.touch()

    def steer(self, code: str) -> None:
        """Send the terminal a code of our own that moves nothing."""
        self._output.write_raw(code)
        self._output.flush()

    def touch(self) -> None:
        """Draw soon, with all that has come until then."""
        if self._due is None:
            self._due = asyncio.get_running_loop().call_later(FRAME, self._draw)

    def redraw(self) -> None:
        """Draw at once, as for a key that was pressed."""
        self.app.invalidate()

    @asynccontextmanager
    async def outside(self) -> AsyncIterator[None]:
        """Something else has the terminal meanwhile, as it was; what would be shown waits."""
        self._flush()
        async with in_terminal():
            self._is_outside = True
            self._block()
            try:
                yield
            finally:
                self._is_outside = False
                self._output.write_raw("".join(self._taken()))
                self._output.flush()
        self.redraw()

    def _draw(self) -> None:
        self._due = None
        self._scene.drain()
        if self._above:
            self._flush()
        else:
            self.redraw()
        if self._scene.moves():
            self.touch()

    def _flush(self) -> None:
        if not self._above or self._is_outside or not self.app.is_running:
            return
        self._output.write_raw(SYNC)
        self.app.renderer.erase(leave_alternate_screen=False)
        self._output.write_raw("".join(self._taken()))
        self.app._redraw()  # at once: `invalidate` would leave the area empty until the loop comes round
        self._output.write_raw(SYNCED)
        self._output.flush()

    def _taken(self) -> list[str]:
        taken, self._above = self._above, []
        return [text.replace("\n", "\r\n") for text in taken]

    def _compose(self) -> None:
        """Once for each drawing, however often its parts are asked how large they are."""
        self._block()
        drawn = self._typed.render_info
        room = self.rows - 2 - (drawn.window_height if drawn else 1)
        self._live = self._scene.live(room) if room > 0 else ""
        self._status = self._scene.status(self.columns - 1)

    def _block(self) -> None:
        """uvloop lets nobody wait for a terminal that it reads from, also not the shell or an editor that has the same
        one next, nor whoever writes to it."""
        with suppress(OSError):  # it is gone
            os.set_blocking(self._input.fileno(), True)

    def _prefix(self, line: int, wrapped: int) -> AnyFormattedText:
        prompt = self._scene.prompt()
        last = prompt.rpartition("\n")[2]
        if line == 0 and wrapped == 0:
            return ANSI(last)
        return " " * min(len(_CODES.sub("", last)), self.columns // 2)

    def _size(self) -> Size:
        try:
            size = os.get_terminal_size(self._stdout.fileno())
        except OSError:
            return Size(24, 80)
        return Size(size.lines or 24, size.columns or 80)
