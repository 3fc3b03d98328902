"""What the next prompt of a conversation is made of, and about how many tokens each piece takes."""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from ..core.gauge import rough
from ..core.personas import PersonaChoice
from ..core.prompt import Section
from ..core.thread import Thread
from ..core.tool import ToolSpec
from ..core.wording import DETAILS, HEAD
from .compaction import spelled_out

WHOLE = 10**9  # characters: nothing is cut


class PromptPiece(Struct, frozen=True):
    """`of` is the larger piece that this one is a part of, if it is."""

    name: str
    tokens: int
    text: str = ""
    of: str = ""


class Contents(Struct, frozen=True):
    """`used` is what the next prompt takes of the `limit`, `counted` by the host itself or else by us; what the window
    holds beyond the limit is kept for the answer. `changed` are the parts of the prefix that were new at the call
    `changed_at`, `coming` those that will be at the next. `held` are files that say something else by now, which waits
    for a person."""

    session: str
    thread: str
    model: str
    window: int
    limit: int
    used: int
    counted: bool
    pieces: tuple[PromptPiece, ...]
    changed: tuple[str, ...] = ()
    changed_at: int = 0
    coming: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    assumed: bool = False  # that is: the window; nobody has said how large it is
    persona: PersonaChoice = PersonaChoice()


def pieces_of(
    sections: Iterable[Section], tools: Sequence[ToolSpec], thread: Thread, tail: str, recalled: str = ""
) -> tuple[PromptPiece, ...]:
    """In the order in which the model is shown them. `recalled` stands at the end of the tail, and is told apart."""
    told = [PromptPiece(section.name, tokens_of(section.text, ()), section.text) for section in sections]
    moment = [PromptPiece("tail", len(tail) // 4, tail)]
    if thread.condensed or recalled:
        moment.append(PromptPiece("recalled", len(recalled) // 3, recalled))
    return (*told, *_tools(tools), *_conversation(thread), *moment)


def _tools(tools: Sequence[ToolSpec]) -> list[PromptPiece]:
    each = [PromptPiece(tool.name, tokens_of("", (tool,)), _described(tool), "tools") for tool in tools]
    each.sort(key=lambda piece: -piece.tokens)
    return [PromptPiece("tools", tokens_of("", tools), "\n".join(piece.text for piece in each)), *each]


def _described(tool: ToolSpec) -> str:
    return f"{tool.name}: {tool.description}\n{msgspec.json.encode(tool.schema).decode()}"


def _conversation(thread: Thread) -> list[PromptPiece]:
    messages = thread.transcript.messages[int(thread.condensed) :]
    said = PromptPiece("messages", sum(map(rough, messages)), "\n".join(spelled_out(each, WHOLE) for each in messages))
    if not thread.condensed:
        return [said]
    facts = "\n".join(f"- {fact}" for fact in thread.facts)
    return [
        PromptPiece("summary", (len(HEAD) + len(thread.summary)) // 3 + 5, thread.summary),
        PromptPiece("facts", (len(DETAILS) + len(facts)) // 3 if facts else 0, facts),
        said,
    ]


def tokens_of(system: str, tools: Iterable[ToolSpec]) -> int:
    """Of what stands before the conversation, which is plain prose and JSON: four characters a token."""
    described = [(tool.name, tool.description, tool.schema) for tool in tools]
    return (len(system) + len(msgspec.json.encode(described))) // 4 + 10 * len(described)
