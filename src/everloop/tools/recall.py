"""recall: what is remembered, and what was said in any conversation of whoever asks, with where it is known from."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Protocol

from ..core.people import Role
from ..core.tool import Effect
from ..errors import ToolError
from ..ports.conversation import Conversation, SearchHit
from ..ports.memory import FactFinder, FactHit
from ..ports.tools import CallContext, Tool
from .decorator import tool
from .untrusted import fence

FACTS, PLACES = 8, 8  # that are shown
_THIS_TURN = 4  # places in the turn that runs, in which the question itself is found
_STRANGERS = "what strangers wrote"


class SaidBefore(Protocol):
    """The part of the store that looks into conversations."""

    async def search(
        self, owner: str, words: str, *, thread: str = "", session: str = "", limit: int = 20
    ) -> list[SearchHit]: ...

    async def conversations(
        self, owner: str, *, session: str = "", id: str = "", archived: bool = False, limit: int = ...
    ) -> list[Conversation]: ...


def recall_tool(finder: FactFinder, past: SaidBefore, max_chars: int) -> Tool:
    @tool(Effect.READ, permission=Role.USER)
    async def recall(query: Annotated[str, "A question, names, numbers"], context: CallContext) -> str:
        """Find what you remember of these people, or was said in any conversation with them."""
        if not query.strip():
            raise ToolError("the query is empty")
        facts = await finder.find(context.principal, query, FACTS)
        said = await past.search(context.principal, query, limit=PLACES + _THIS_TURN)
        said = [hit for hit in said if hit.thread != context.thread or not hit.seq >= context.turn > 0][:PLACES]
        names = {hit.thread: await _name_of(past, context.principal, hit.thread) for hit in said}
        shown = _fitted((*_known(facts, context.principal), *_places(said, names)), max_chars)
        return shown or "[nothing of that is remembered, and it was not said in any conversation]"

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


def _places(said: Sequence[SearchHit], names: dict[str, str]) -> list[str]:
    """Whose words a result told is not known here, so all are marked."""
    lines = []
    for hit in said:
        text = " ".join(hit.text.split())
        told = fence(text, "an earlier result") if hit.who == "tool" else text
        lines.append(f"- {_day(hit.at)}, {names[hit.thread]}, entry {hit.seq}, {hit.who}: {told}")
    return ["Said in conversations:", *lines] if lines else []


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
