"""What others have given in a conversation, and what of it has left: people, and strangers whose words were read."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from .exits import Exits, Giver, Sources, WayOut, Weighed
from .log import Answered
from .message import Message, Text, is_strange
from .tool import Exit, ToolCall, parse_args

if TYPE_CHECKING:
    from .thread import Thread

# How the tools of older logs led out, in which a call does not say so itself.
_BY_NAME: Mapping[str, Exit] = {"web_fetch": "address", "web_search": "words"}


class Strangers:
    """`outside` says whether what strangers wrote has been read, `sources` are what may be quoted."""

    __slots__ = ("_ways", "outside", "sources")

    def __init__(self, outside: bool = False) -> None:
        self.outside = outside
        self.sources = Sources()
        self._ways: tuple[int, dict[int, WayOut]] = 0, {}  # of the calls of which answer

    def hear(self, message: Message, gives: bool = True) -> None:
        """Who gives what with it. What the model says, or has a tool repeat, does not count: with that it could give
        itself whatever it wants. Nor does what the house says."""
        for part in message.parts if message.role != "assistant" else ():
            strange = is_strange(part)
            self.outside = self.outside or strange
            if gives and isinstance(part, Text) and (part.public or (message.role == "user" and not strange)):
                self.sources.add(part.text, public=part.public)

    def after_call(self, exits: Exits, call: ToolCall) -> Exits:
        """What has left, now that this call has run without anybody being asked."""
        way = way_out(call) if self.outside else None
        return exits.after(way, self.sources) if way else exits

    def after_answer(self, exits: Exits, call: ToolCall | None, answered: Answered) -> Exits:
        """What a person was shown and has allowed they may as well have said."""
        by_person = answered.verdict == "allowed" and not answered.by.startswith("grant:")
        way = way_out(call) if self.outside and call and by_person else None
        if way is None:
            return exits
        renewed = exits.renewed(way, self.sources)
        self.sources.add(way.url or way.query)
        return renewed

    def ways(self, answer: int, calls: Mapping[int, ToolCall]) -> dict[int, WayOut]:
        """How the open calls of an answer lead out, by their places; worked out once for each answer."""
        if self._ways[0] != answer:
            self._ways = answer, {place: way for place, call in calls.items() if (way := way_out(call))}
        return self._ways[1]


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
        return bool(self.giver_of(text))

    def giver_of(self, url: str) -> Giver:
        return self.thread.strangers.sources.giver_of(url)

    def weigh(self, query: str) -> Weighed:
        return self.thread.strangers.sources.weigh(query)

    def left(self) -> Exits:
        thread = self.thread
        exits, sources = thread.turn.exits, thread.strangers.sources
        for place, way in thread.strangers.ways(thread.answer, thread.open_calls).items():
            if place < self.place and place in thread.open_calls:
                exits = (exits.renewed if place in thread.asked else exits.then)(way, sources)
        return exits


def way_out(call: ToolCall) -> WayOut | None:
    """How this call leads out, if it does. Reading on in a page that was fetched before asks nobody for anything."""
    leads = call.exit or _BY_NAME.get(call.name, "")
    if not leads:
        return None
    try:
        args = parse_args(call)
    except ValueError:
        return None
    url, query = args.get("url"), args.get("query")
    if leads == "address" and isinstance(url, str) and not args.get("offset"):
        return WayOut(url=url)
    return WayOut(query=query) if leads == "words" and isinstance(query, str) else None
