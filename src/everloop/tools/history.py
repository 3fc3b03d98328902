"""search_history and read_history: what was said in this conversation before a summary took its place."""

import sys
from collections.abc import Iterable
from typing import Annotated, Protocol

from msgspec import Meta

from ..core.log import Entry
from ..core.people import Role
from ..core.tool import Effect
from ..errors import ToolError
from ..ports.conversation import SearchHit, Written
from ..ports.rows import ThreadRow
from ..ports.tools import CallContext, Tool
from ..readings.spoken import spoken
from .decorator import tool
from .untrusted import fence

_NOTE = 120  # characters for how to go on
_WHO = {"user": "user", "assistant": "assistant", "house": "assistant", "tool": "result"}


class Past(Protocol):
    """The part of the store that looks back."""

    async def session(self, key: str) -> ThreadRow | None: ...

    async def search(
        self, owner: str, words: str, *, thread: str = "", session: str = "", limit: int = 20
    ) -> list[SearchHit]: ...

    async def history(self, thread: str, after: int = 0, limit: int = ...) -> list[Written]: ...


def history_tools(past: Past, max_chars: int) -> tuple[Tool, ...]:
    return search_history_tool(past, max_chars), read_history_tool(past, max_chars)


def search_history_tool(past: Past, max_chars: int) -> Tool:
    @tool(Effect.READ, permission=Role.USER)
    async def search_history(
        query: Annotated[str, "Words"],
        context: CallContext,
        count: Annotated[int, Meta(ge=1, le=50, description="Places")] = 8,
    ) -> str:
        """Search this conversation, also what is only a summary now, for numbers to read_history."""
        if not query.strip():
            raise ToolError("the query is empty")
        row = await past.session(context.session)
        owner = row.owner if row else context.principal
        found = await past.search(owner, query, thread=context.thread, limit=count)
        lines = [_place(each) for each in found]
        return _fitted(lines, max_chars) or "[nothing was found]"

    return search_history


def read_history_tool(past: Past, max_chars: int) -> Tool:
    @tool(Effect.READ, permission=Role.USER)
    async def read_history(
        first: Annotated[int, Meta(ge=1, description="Its number")],
        context: CallContext,
        count: Annotated[int, Meta(ge=1, le=200, description="Entries")] = 20,
    ) -> str:
        """Read this conversation, word for word, from an entry on."""
        written = await past.history(context.thread, first - 1, count)
        shown: list[str] = []
        room = max_chars - _NOTE
        for each in written:
            line = told(each.seq, each.entry, room)
            if len(told(each.seq, each.entry)) > room and shown:
                return "\n".join((*shown, f"[there is more; continue with first={each.seq}]"))
            shown += [line] if line else []
            room -= len(line) + 1
        if written:
            shown.append(f"[continue with first={written[-1].seq + 1}]" if len(written) == count else "[the end]")
        return "\n".join(shown) or "[there is nothing so late in this conversation]"

    return read_history


def told(seq: int, entry: Entry, room: int = sys.maxsize) -> str:
    """An entry in so many characters; "" of one that says nothing. What strangers wrote stays marked as theirs."""
    said = spoken(entry)
    if said is None:
        return ""
    text = _cut(said.text + "".join(f"\n  called {call.name} {call.args}" for call in said.calls), room)
    if said.origin:
        return f"[{seq}] {_WHO[said.who]}:\n{fence(text, said.origin)}"
    return f"[{seq}] {_WHO[said.who]}: {text}"


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: max(0, room - 20)]}… [shortened]"


def _place(found: SearchHit) -> str:
    """A place that was found. Whose words a result told is not known here, so all are marked."""
    text = " ".join(found.text.split())
    return f"[{found.seq}] {found.who}: {text if found.who != 'tool' else fence(text, 'an earlier result')}"


def _fitted(lines: Iterable[str], room: int) -> str:
    shown: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    return "\n".join(shown)
