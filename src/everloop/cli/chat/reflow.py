"""Where the area at the bottom begins after the window has got another width.

A terminal of today wraps anew what stands on it when it becomes narrower: each row that was drawn is then a line of its
own that may take several. Counted as they were drawn, the upper ones of them would stay above, for good.
"""

from collections.abc import Mapping
from typing import Any

from prompt_toolkit.data_structures import Point
from prompt_toolkit.layout.screen import Char, Screen
from prompt_toolkit.renderer import Renderer


def reflows(environment: Mapping[str, str]) -> bool:
    """Whether the terminal wraps anew what stands on it. Those few that cut it off say who they are."""
    term = environment.get("TERM", "")
    if environment.get("TMUX"):
        return True
    return not (
        environment.get("XTERM_VERSION") or environment.get("STY") or term.startswith(("linux", "screen", "st-", "vt"))
    )


class ReflowRenderer(Renderer):
    """A renderer that knows of it."""

    def erase(self, leave_alternate_screen: bool = True) -> None:
        self._follow()
        super().erase(leave_alternate_screen)

    def render(self, *of: Any, **more: Any) -> None:
        self._follow()
        super().render(*of, **more)

    def _follow(self) -> None:
        columns = self.output.get_size().columns
        if self._last_screen and self._last_size and columns < self._last_size.columns:
            self._cursor_pos = moved(self._cursor_pos, self._last_screen, columns)
            self._last_size = None  # what stands there is known no longer


def moved(cursor: Point, screen: Screen, columns: int) -> Point:
    """Where the cursor is when all rows are wrapped into so many columns."""
    above = sum(-(-_cells(screen.data_buffer[row]) // columns) or 1 for row in range(cursor.y))
    at = min(cursor.x, _cells(screen.data_buffer[cursor.y]))
    return Point(at % columns, above + at // columns)


def _cells(row: Mapping[int, Char]) -> int:
    return max((at + cell.width for at, cell in row.items() if cell.char.strip()), default=0)
