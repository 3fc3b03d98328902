"""A conversation at the moment in which one of its calls is decided on."""

from typing import TYPE_CHECKING

from .exits import Exits, Giver, Way, Weighed
from .tool import ToolCall, parse_args

if TYPE_CHECKING:
    from .thread import Thread


class Moment:
    """The Circumstances of the call at `place`. Calls of one answer are decided on before any of them has run, so those
    that stand before it count as if they had, and those that a person is asked about as if they were allowed: if they
    are not, it is decided on anew."""

    __slots__ = ("place", "thread")

    def __init__(self, thread: "Thread", place: int) -> None:
        self.thread = thread
        self.place = place

    @property
    def outside(self) -> bool:
        return self.thread.outside

    def mentions(self, text: str) -> bool:
        return self.thread.mentions(text)

    def giver_of(self, url: str) -> Giver:
        return self.thread.sources.giver_of(url)

    def weigh(self, query: str) -> Weighed:
        return self.thread.sources.weigh(query)

    def left(self) -> Exits:
        exits = self.thread.turn.exits
        for place, way in self.thread.ways.items():
            if place < self.place and place in self.thread.open_calls:
                asked = place in self.thread.asked
                exits = (exits.renewed if asked else exits.then)(way, self.thread.sources)
        return exits


def way_out(call: ToolCall) -> Way | None:
    """How this call leads out, if it does. Reading on in a page that was fetched before asks nobody for anything."""
    if call.name not in ("web_fetch", "web_search"):
        return None
    try:
        args = parse_args(call)
    except ValueError:
        return None
    url, query = args.get("url"), args.get("query")
    if call.name == "web_fetch" and isinstance(url, str) and not args.get("offset"):
        return Way(url=url)
    return Way(query=query) if call.name == "web_search" and isinstance(query, str) else None
