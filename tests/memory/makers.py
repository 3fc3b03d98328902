"""Conversations of logs, as what is consolidated is read from them."""

from everloop.core.log import CallReturned, CallStarted, Entry, ModelCalled, ModelSaid, UserSaid
from everloop.core.message import Part, said
from everloop.core.speakers import GroupSpeaker
from everloop.core.tool import ToolCall
from everloop.memory.material import Excerpt, first_excerpt
from everloop.ports.conversation import Written

from .remembering import NOON


def person(text: str, author: str = "ann", *more: Part, name: str = "", role: str = "user", **rest) -> UserSaid:
    speaker = GroupSpeaker(name, role) if name else None
    return UserSaid((*said(text), *more), author, speaker=speaker, **rest)


def answer(text: str) -> list[Entry]:
    return [ModelCalled("m"), ModelSaid(text)]


def page(text: str, origin: str = "https://evil.example", seq: int = 3) -> list[Entry]:
    """An answer that stands at `seq` and reads this."""
    call = ToolCall("1", "web_fetch", '{"url": "https://evil.example"}')
    return [ModelCalled("m"), ModelSaid("", (call,)), CallStarted(seq, 0), CallReturned(seq, 0, text, origin=origin)]


def excerpt_of(*entries: Entry, owner: str = "ann", after: int = 0, room: int = 20_000) -> Excerpt:
    written = [Written(seq, NOON + seq, entry) for seq, entry in enumerate(entries, 1)]
    return first_excerpt("t" * 16, "page:one", owner, written, after, room)
