"""A person at a terminal that can be drawn on: what its screen shows, by a real emulator, and what has left it."""

import asyncio
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Callable, Sequence
from contextlib import suppress

import pyte
from pyte.screens import Char, StaticDefaultDict
from tests.cli.at_terminal import PATIENCE, AtTerminal
from tests.cli.person import Person

ALTERNATE = b"\x1b[?1049h"


class TmuxScreen(pyte.HistoryScreen):
    """As tmux, for which cells at the end of a row that were cleared are still some of it, until all of it is
    cleared."""

    def erase_in_line(self, how: int = 0, private: bool = False) -> None:
        row = self.buffer[self.cursor.y]
        if how == 2:
            row.clear()
        else:
            assert how == 0
            for column in [each for each in row if each >= self.cursor.x]:
                row[column] = self.cursor.attrs

    def erase_in_display(self, how: int = 0, *more: object, **most: object) -> None:
        assert how == 0
        self.erase_in_line()
        for row in range(self.cursor.y + 1, self.lines):
            self.buffer[row].clear()


class RichTerminal(AtTerminal):
    def __init__(self, person: Person, *arguments: str, columns: int = 80, rows: int = 24, **more: object) -> None:
        super().__init__(person, *arguments, term="xterm-256color", **more)  # type: ignore[arg-type]
        kind = TmuxScreen if "TMUX" in person.environment else pyte.HistoryScreen
        self._screen = kind(columns, rows, history=100_000, ratio=0.5)
        self._stream = pyte.ByteStream(self._screen)
        self._fed = 0
        self._resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        """The emulator takes its time over what a terminal does at once: meanwhile nothing is drawn."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)
        self._read()
        if columns < self._screen.columns:
            self._wrap_anew(columns)
        if (less := self._screen.lines - rows) > 0:  # which this emulator would throw away
            self._screen.history.top.extend(self._screen.buffer[row] for row in range(less))
        self._screen.resize(rows, columns)
        self._screen.cursor.y = min(rows - 1, max(0, self._screen.cursor.y - max(0, less)))
        self._resize(columns, rows)
        self.process.send_signal(signal.SIGWINCH)  # the terminal is not the one that controls this process
        self.process.send_signal(signal.SIGCONT)

    def _wrap_anew(self, columns: int) -> None:
        """As terminals do that become narrower, and this emulator does not: each row becomes as many as it needs."""
        screen, cursor = self._screen, self._screen.cursor
        rows: list[dict[int, Char]] = []
        x, y = cursor.x, cursor.y
        for at in range(screen.lines):
            counted = isinstance(screen, TmuxScreen)
            row = {column: cell for column, cell in screen.buffer[at].items() if counted or cell.data.strip()}
            many = 1 + max(row, default=0) // columns
            if at == y:
                cursor.x, cursor.y = x % columns, len(rows) + min(x // columns, many - 1)
            rows += [{column % columns: row[column] for column in row if column // columns == n} for n in range(many)]
        while len(rows) > screen.lines and not rows[-1] and len(rows) > cursor.y + 1:
            rows.pop()  # below all that stands there
        gone, kept = rows[: -screen.lines], rows[-screen.lines :]
        for line in map(self._line, gone):
            screen.history.top.append(line)
        for at, row in enumerate(map(self._line, kept)):
            screen.buffer[at] = row
        cursor.y = max(0, cursor.y - len(gone))

    def _line(self, cells: dict[int, Char]) -> StaticDefaultDict[int, Char]:
        line: StaticDefaultDict[int, Char] = StaticDefaultDict(self._screen.default_char)
        line.update(cells)
        return line

    def _resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._inner, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def lines(self) -> list[str]:
        """All that was shown, from the top of the scrollback to the end of the screen, without empty lines at the
        end."""
        gone = [
            "".join(row[at].data for at in range(self._screen.columns)).rstrip() for row in self._screen.history.top
        ]
        lines = [*gone, *(line.rstrip() for line in self._screen.display)]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def screen(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display]

    @property
    def title(self) -> str:
        return self._screen.title

    async def shows(self, *texts: str) -> None:
        """Wait until all of these can be seen, on the screen or above it."""
        await self.until(lambda: all(text in "\n".join(self.lines) for text in texts), texts)

    async def hides(self, text: str) -> None:
        """Wait until this is not on the screen any more."""
        await self.until(lambda: text not in "\n".join(self.screen), (text,))

    async def rests(self) -> None:
        """Wait until nothing goes on: before that, keys are for what runs. The last line is drawn last."""
        await self.until(lambda: _is_at_rest([line for line in self.screen if line]), ("the prompt alone",))

    async def until(self, holds: Callable[[], bool], wanted: Sequence[str] = ()) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._outer, ready.set)
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    await ready.wait()
                    ready.clear()
                    self._read()
        except TimeoutError:
            shown = "\n".join(self.lines[-60:])
            raise AssertionError(f"{wanted} was awaited, and this is shown:\n{shown}") from None
        finally:
            loop.remove_reader(self._outer)

    def _read(self) -> None:
        with suppress(OSError):  # whoever was there is gone
            super()._read()
        self._stream.feed(self.raw[self._fed :])
        self._fed = len(self.raw)

    def is_sane(self) -> None:
        """As the shell wants to find it."""
        assert self.state() == self.before
        assert os.get_blocking(self._inner)
        assert self.raw.rfind(b"\x1b[?2004l") > self.raw.rfind(b"\x1b[?2004h")
        assert self.raw.rfind(b"\x1b[?25h") >= self.raw.rfind(b"\x1b[?25l")
        assert ALTERNATE not in self.raw


def _is_at_rest(lines: Sequence[str]) -> bool:
    return bool(lines) and "cli:" in lines[-1] and not any("Esc stops" in line for line in lines)
