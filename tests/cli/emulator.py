"""What a terminal would show of the bytes that it was sent: enough of one for what our commands send."""

import re
import unicodedata

_CODE = re.compile(r"\x1b\[([?0-9;]*)([A-Za-z~])|\x1b([78DM])")


class Emulator:
    """A grid of `rows` lines, and those that have left it at the top. A full line waits, as xterm's does."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self.gone: list[str] = []
        self._grid = [[" "] * columns for _ in range(rows)]
        self._at = self._saved = (0, 0, False)  # row, column, whether the line is full

    @property
    def lines(self) -> list[str]:
        """All that was shown, without what is empty at the end."""
        shown = [*self.gone, *("".join(row).rstrip() for row in self._grid)]
        while shown and not shown[-1]:
            shown.pop()
        return shown

    def feed(self, data: bytes) -> "Emulator":
        text = data.decode()
        at = 0
        while at < len(text):
            if found := _CODE.match(text, at):
                self._obey(found)
                at = found.end()
            else:
                self._put(text[at])
                at += 1
        return self

    def _obey(self, code: re.Match[str]) -> None:
        row, column, full = self._at
        match code[2] or code[3]:
            case "7":
                self._saved = self._at
            case "8":
                self._at = self._saved
            case "D":
                self._down(column)
            case "A":
                self._at = (max(0, row - int(code[1] or 1)), column, False)
            case "K":
                self._grid[row][column:] = [" "] * (self.columns - column)
            case "J":
                self._grid[row][column + full :] = [" "] * (self.columns - column - full)
                for below in range(row + 1, self.rows):
                    self._grid[below] = [" "] * self.columns
            case "h" | "l" | "m":
                pass  # modes, and colours
            case other:
                raise AssertionError(f"this terminal does not know {other!r}")

    def _put(self, letter: str) -> None:
        row, column, full = self._at
        if letter == "\n":
            self._down(column)
        elif letter == "\r":
            self._at = (row, 0, False)
        elif letter == "\b":
            self._at = (row, max(0, column - 1), False)
        elif letter != "\a":
            cells = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
            if full or column + cells > self.columns:
                self._down(0)
                row, column, full = self._at
            self._grid[row][column] = letter
            if cells == 2:
                self._grid[row][column + 1] = ""
            last = column + cells >= self.columns
            self._at = (row, self.columns - 1 if last else column + cells, last)

    def _down(self, column: int) -> None:
        row = self._at[0] + 1
        if row == self.rows:
            self.gone.append("".join(self._grid.pop(0)).rstrip())
            self._grid.append([" "] * self.columns)
            row -= 1
        self._at = (row, column, False)
