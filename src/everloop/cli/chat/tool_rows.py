"""The calls that run at the same time, each with the last lines of what it says."""

from ..chat_view.tool_view import ToolView

ROWS = 6  # of one call


class RunningTools:
    def __init__(self) -> None:
        self._views: dict[int, tuple[str, ToolView]] = {}  # by their place in the answer

    def __bool__(self) -> bool:
        return bool(self._views)

    def begin(self, place: int, tool: str, view: ToolView) -> None:
        self._views[place] = (tool, view)

    def begin_own(self, view: ToolView) -> int:
        """Of a call that no answer has made; returns where it stands."""
        place = min(0, *self._views, 0) - 1
        self._views[place] = ("", view)
        return place

    def drop(self, place: int) -> None:
        self._views.pop(place, None)

    def output(self, call: str, text: str) -> None:
        """`call` is thread:answer:place."""
        place = call.rpartition(":")[2]
        if place.isdecimal() and (found := self._views.get(int(place))):
            found[1].output(text)

    def progress(self, steps: int, doing: str) -> None:
        for tool, view in self._views.values():
            if tool == "spawn":
                view.progress(steps, doing)

    def end(self, tool: str) -> ToolView | None:
        """The first of those that are called so: calls return in the order in which they were made."""
        place = next((place for place, (name, _) in self._views.items() if name == tool), None)
        return self._views.pop(place)[1] if place is not None else None

    def leave(self) -> list[ToolView]:
        """Those of which nothing more is heard."""
        return [self._views.pop(place)[1] for place in [*self._views] if place >= 0]

    def live(self, rows: int) -> str:
        if not self._views or rows < 1:
            return ""
        each = max(0, min(ROWS, rows // len(self._views) - 1))
        shown = [part for _, view in self._views.values() for part in (view.head(), view.live(each)) if part]
        return "\n".join(shown)
