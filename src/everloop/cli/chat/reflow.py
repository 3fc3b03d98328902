"""Where the area at the bottom begins after the window has got another width.

A terminal of today wraps anew what stands on it when it becomes narrower: each row that was drawn is then a line of its
own that may take several. Counted as they were drawn, the upper ones of them would stay above, for good.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Char, Screen
from prompt_toolkit.output import Output
from prompt_toolkit.renderer import Renderer
from prompt_toolkit.styles import BaseStyle


def reflows(environment: Mapping[str, str]) -> bool:
    """Whether the terminal wraps anew what stands on it. Those few that cut it off say who they are."""
    term = environment.get("TERM", "")
    if counts_cleared(environment):
        return True
    return not (
        environment.get("XTERM_VERSION") or environment.get("STY") or term.startswith(("linux", "screen", "st-", "vt"))
    )


def counts_cleared(environment: Mapping[str, str]) -> bool:
    """Whether the end of a row that was cleared is wrapped with the row, until all of the row is cleared: so does
    tmux."""
    return bool(environment.get("TMUX"))


class ReflowRenderer(Renderer):
    """A renderer that knows of it."""

    def __init__(self, style: BaseStyle, output: Output, *, counts_cleared: bool) -> None:
        self._counts_cleared = counts_cleared
        self._longest: dict[int, int] = {}  # cells that each row has had since all of it was cleared
        super().__init__(style, output)

    def erase(self, leave_alternate_screen: bool = True) -> None:
        self._follow()
        super().erase(leave_alternate_screen)
        self._longest = {}

    def render(self, *of: Any, **more: Any) -> None:
        self._follow()
        if self._last_size != self.output.get_size():
            self._longest = {}  # all is drawn anew
        super().render(*of, **more)
        if self._counts_cleared and (screen := self._last_screen):
            for row in range(screen.height):
                self._longest[row] = max(self._longest.get(row, 0), _cells(screen.data_buffer[row]))

    def _follow(self) -> None:
        columns = self.output.get_size().columns
        if self._last_screen and self._last_size and columns < self._last_size.columns:
            rows = [self._cells(row, self._last_screen) for row in range(self._cursor_pos.y + 1)]
            self.output.write_raw("\r")  # terminals differ in the column that a cursor behind the end of a row gets
            self._cursor_pos = Point(0, row_of(self._cursor_pos, rows, columns))
            self._last_size = None  # what stands there is known no longer

    def _cells(self, row: int, screen: Screen) -> int:
        return max(self._longest.get(row, 0), _cells(screen.data_buffer[row]))


def row_of(cursor: Point, rows: Sequence[int], columns: int) -> int:
    """In which row the cursor is when all rows are wrapped into so many columns; `rows` has the cells of each, down to
    that of the cursor. A cursor behind the end of a row stays in its last part."""
    *above, own = (-(-cells // columns) or 1 for cells in rows)
    return sum(above) + min(cursor.x // columns, own - 1)


def _cells(row: Mapping[int, Char]) -> int:
    return max((at + cell.width for at, cell in row.items() if cell.char.strip()), default=0)
