"""recall: what is remembered, and what was said in any conversation of whoever asks, with where it is known from.

What strangers wrote is told as theirs, and marks the conversation in which it is told, as a page does (prompt
injection). So does what the agent said, or a tool, where strangers' words had been read: it may be them in other words.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Protocol

from msgspec import Struct

from ..core.log import UserSaid
from ..core.people import Role
from ..core.thread import Thread
from ..core.tool import Effect
from ..errors import ToolError
from ..ports.conversation import Conversation, SearchHit, Written
from ..ports.memory import FactFinder, FactHit
from ..ports.rows import Opened
from ..ports.tools import CallContext, Shown, Tool
from .decorator import tool
from .untrusted import fence

FACTS, PLACES = 8, 8  # that are shown
LOOKED_AT = 40  # places, of which some are the question itself, and others somebody else's
_READ = 50  # entries at once
_STRANGERS = "what strangers wrote"
_NOTHING = "[nothing of that is remembered, and it was not said in any conversation]"
_EARLIER = {"tool": "an earlier result", "assistant": "an earlier answer", "user": "an earlier message"}
_BEFORE = "what strangers wrote, in earlier conversations"


class SaidBefore(Protocol):
    """The part of the store that looks into conversations."""

    async def search(
        self, owner: str, words: str, *, thread: str = "", session: str = "", limit: int = 20
    ) -> list[SearchHit]: ...

    async def conversations(
        self, owner: str, *, session: str = "", id: str = "", archived: bool = False, limit: int = ...
    ) -> list[Conversation]: ...

    async def open(self, thread: str, after: int = 0) -> Opened: ...

    async def history(self, thread: str, after: int = 0, limit: int = ...) -> list[Written]: ...


def recall_tool(finder: FactFinder, past: SaidBefore, max_chars: int) -> Tool:
    @tool(Effect.READ, permission=Role.USER)
    async def recall(query: Annotated[str, "A question, names, numbers"], context: CallContext) -> Shown:
        """Find what you remember of these people, or was said in any conversation with them."""
        if not query.strip():
            raise ToolError("the query is empty")
        facts = await finder.find(context.principal, query, FACTS)
        said = await past.search(context.principal, query, limit=LOOKED_AT)
        said = [hit for hit in said if hit.thread != context.thread or not hit.seq >= context.turn > 0]
        places = await _places(past, context.principal, said)
        shown = _fitted((*_known(facts, context.principal), *_told(places)), max_chars)
        strange = any(hit.fact.marked for hit in facts) or any(place.strange for place in places)
        return Shown(shown or _NOTHING, origin=_BEFORE if strange else "")

    return recall


def _known(facts: Sequence[FactHit], owner: str) -> list[str]:
    lines = [_fact(hit, owner) for hit in facts]
    return ["Remembered:", *lines] if lines else []


def _fact(hit: FactHit, owner: str) -> str:
    fact, source = hit.fact, hit.fact.source
    who = f", said by {source.person}" if source.person and source.person != owner else ""
    where = f", entry {source.seq} of {source.thread[:8]}" if source.thread else ", written down by hand"
    text = fence(fact.text, _STRANGERS) if fact.marked else fact.text
    return f"- {text} ({_day(source.at or fact.at)}{who}{where})"


class _RecalledPlace(Struct, frozen=True):
    """Where something was said, as it is told; `strange`: strangers' words may be in it."""

    line: str
    strange: bool


async def _places(past: SaidBefore, owner: str, said: Sequence[SearchHit]) -> list[_RecalledPlace]:
    found: list[_RecalledPlace] = []
    for hit in said:
        if len(found) < PLACES and await _is_theirs(past, owner, hit):
            found.append(await _place(past, owner, hit))
    return found


async def _is_theirs(past: SaidBefore, owner: str, hit: SearchHit) -> bool:
    """Whether it belongs to their memory: a conversation of their bot is theirs, and what others say there is not."""
    last = hit.seq
    while last > 0:
        written = await past.history(hit.thread, max(0, last - _READ), min(_READ, last))
        said = next((each.entry for each in reversed(written) if isinstance(each.entry, UserSaid)), None)
        if said:
            return (said.principal or said.author) == owner
        last -= _READ
    return True  # nobody but the agent has said anything


async def _place(past: SaidBefore, owner: str, hit: SearchHit) -> _RecalledPlace:
    """Whose words a result told is not known here, so all are fenced. A title may be made of what was read there."""
    opened = await past.open(hit.thread)
    thread = Thread(hit.thread, opened.first - 1)
    thread.extend(opened.entries)
    strange = hit.strange or (thread.outside and hit.who != "user")
    text = " ".join(hit.text.split())
    told = fence(text, _EARLIER[hit.who]) if strange or hit.who == "tool" else text
    name = hit.thread[:8] if thread.outside else await _name_of(past, owner, hit.thread)
    return _RecalledPlace(f"- {_day(hit.at)}, {name}, entry {hit.seq}, {hit.who}: {told}", strange)


def _told(places: Sequence[_RecalledPlace]) -> list[str]:
    return ["Said in conversations:", *(place.line for place in places)] if places else []


async def _name_of(past: SaidBefore, owner: str, thread: str) -> str:
    found = await past.conversations(owner, id=thread, archived=True, limit=1)
    title = " ".join(found[0].title.split())[:60] if found else ""
    return f"{thread[:8]} “{title}”" if title else thread[:8]


def _day(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d}" if at else "on an unknown day"


def _fitted(lines: Sequence[str], room: int) -> str:
    shown: list[str] = []
    for line in lines:
        if (room := room - len(line) - 1) < 0:
            shown.append("[there is more: ask more narrowly]")
            break
        shown.append(line)
    return "\n".join(shown)
