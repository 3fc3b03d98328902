"""search_history and read_history: what was said in this conversation before a summary took its place."""

from collections.abc import Iterable
from typing import Annotated, Protocol

from msgspec import Meta

from everloop.core.conversation import Found, Written
from everloop.core.errors import ToolError
from everloop.core.log import CallReturned, Entry, GaveUp, ModelSaid, UserSaid
from everloop.core.message import text_of
from everloop.core.people import Role
from everloop.core.ports import ThreadRow
from everloop.core.tool import CallContext, Effect, Tool, tool

_NOTE = 120  # characters for how to go on


class Past(Protocol):
    """The part of the store that looks back."""

    async def session(self, key: str) -> ThreadRow | None: ...

    async def search(
        self, owner: str, words: str, *, thread: str = "", session: str = "", limit: int = 20
    ) -> list[Found]: ...

    async def history(self, thread: str, after: int = 0, limit: int = ...) -> list[Written]: ...


def history_tools(past: Past, max_chars: int) -> tuple[Tool, ...]:
    return search_history_tool(past, max_chars), read_history_tool(past, max_chars)


def search_history_tool(past: Past, max_chars: int) -> Tool:
    @tool(Effect.READ, permission=Role.USER)
    async def search_history(
        query: Annotated[str, "Words that were said, or stood in a result"],
        context: CallContext,
        count: Annotated[int, Meta(ge=1, le=50, description="How many places to show")] = 8,
    ) -> str:
        """Search this conversation, also what is only a summary now. Each place has a number for read_history."""
        if not query.strip():
            raise ToolError("the query is empty")
        row = await past.session(context.session)
        owner = row.owner if row else context.user
        found = await past.search(owner, query, thread=context.thread, limit=count)
        lines = [f"[{each.seq}] {each.who}: {' '.join(each.text.split())}" for each in found]
        return _fitted(lines, max_chars) or "[nothing was found]"

    return search_history


def read_history_tool(past: Past, max_chars: int) -> Tool:
    @tool(Effect.READ, permission=Role.USER)
    async def read_history(
        first: Annotated[int, Meta(ge=1, description="The number of the first entry to show")],
        context: CallContext,
        count: Annotated[int, Meta(ge=1, le=200, description="How many entries to look at")] = 20,
    ) -> str:
        """Read what was said in this conversation, word for word, from an entry on."""
        written = await past.history(context.thread, first - 1, count)
        lines = [line for each in written if (line := told(each.seq, each.entry))]
        shown: list[str] = []
        room = max_chars - _NOTE
        for line in lines:
            if len(line) > room and shown:
                return "\n".join((*shown, f"[there is more; continue with first={_number(line)}]"))
            shown.append(line[:room] + ("… [shortened]" if len(line) > room else ""))
            room -= len(line) + 1
        if written:
            shown.append(f"[continue with first={written[-1].seq + 1}]" if len(written) == count else "[the end]")
        return "\n".join(shown) or "[there is nothing so late in this conversation]"

    return read_history


def told(seq: int, entry: Entry) -> str:
    """An entry as a line; "" of one that says nothing."""
    match entry:
        case UserSaid():
            return f"[{seq}] user: {text_of(entry.parts)}"
        case ModelSaid():
            calls = "".join(f"\n  called {call.name} {call.args}" for call in entry.calls)
            return f"[{seq}] assistant: {entry.text}{calls}"
        case CallReturned():
            return f"[{seq}] result: {entry.text}"
        case GaveUp():
            return f"[{seq}] assistant: {entry.text}"
        case _:
            return ""


def _number(line: str) -> str:
    return line[1 : line.index("]")]


def _fitted(lines: Iterable[str], room: int) -> str:
    shown: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            break
        shown.append(line)
    return "\n".join(shown)
