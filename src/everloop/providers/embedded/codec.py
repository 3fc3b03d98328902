"""Between the loop and the model: what a prompt comes to for this model, and what of its answer comes to a call.

It remembers, for each conversation, what lay in the workspace when a turn began, on which day something was said, and
in which words a result was told: the names in a request mean what they meant then, and what the model has read stays
the same to the byte.
"""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...core.prompt import Prompt
from ...core.tool import ToolCall, ToolSpec
from ...ports.provider import Reply
from .answer import REPLY
from .grammar import grammar_of
from .little import LittleTool, translated, usable
from .profile import others, render_messages, render_prefix
from .pure import is_pure
from .results import retold
from .rules import REPLY_ONLY, AllowedAnswer, allowed
from .turn import TurnSoFar, turn_of
from .world import Look, World

_REMEMBERED = 64

Kept = TypeVar("Kept")
_TIME = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|date|dates|day|days|weekday|week|weeks|month|months|year|years|time|now|clock|hour|hours|"
    r"old|age|born|until|till|since|ago|century|decade|season|weekend|christmas|birthday|heute|datum|jahr|tag|uhr|morgen|monat)\b|\b20\d\d\b",
    re.IGNORECASE,
)
_CLOCK = re.compile(r"\b(?:time|clock|hour|hours|late|now|uhr)\b", re.IGNORECASE)
_NEXT = re.compile(r"\btomorrow\b|\byesterday\b", re.IGNORECASE)
_LONGEST = {"content": 1400, "code": 400}
_SHORT = 300  # tokens of a call that holds no text of any length


class Question(Struct, frozen=True):
    """What the model is asked: the prefix whose state is kept, what follows it, and what it may answer."""

    prefix: str
    messages: str
    grammar: str
    names: frozenset[str]
    longest: int


class Codec:
    """One prompt, made ready."""

    def __init__(
        self, prompt: Prompt, tools: tuple[ToolSpec, ...], turn: TurnSoFar, told: dict[int, str], days: dict[int, str]
    ) -> None:
        self._prompt, self._tools, self._turn, self._told, self._days = prompt, tools, turn, told, days
        self.allowed = allowed(turn) if prompt.tools else REPLY_ONLY

    @property
    def settled(self) -> ToolCall | None:
        """The call that is made without asking the model, because it is the only one that is left."""
        choice = self.allowed.settled
        return self._translate(choice.tool, choice.args) if choice else None

    def question(self, spoken: dict[str, str], allowed: AllowedAnswer) -> Question:
        messages = self._prompt.transcript.messages
        foreign = others(self._tools) if allowed.free and self._prompt.tools else ()
        names = {choice.tool.name for choice in allowed.choices} | {tool.name for tool in foreign}
        longest = [_SHORT] + [_LONGEST.get(name, 0) for choice in allowed.choices for name in choice.tool.params]
        return Question(
            prefix=render_prefix(self._prompt.system, self._tools),
            messages=render_messages(
                messages, spoken, as_json=bool(self._tools), tail=self._prompt.tail, told=self._told, days=self._days
            ),
            grammar=grammar_of(foreign, allowed) if self._tools else "",
            names=frozenset(names | {REPLY}) if self._tools else frozenset(),
            longest=2048 if allowed.reply or foreign or not self._tools else max(longest),
        )

    def call(self, reply: Reply) -> Reply | None:
        """The answer with its call as the house knows it; None if the call is one that must not be made."""
        if not reply.calls:
            return reply
        made = reply.calls[0]
        tool = self._turn.tools.get(made.name)
        if tool is None:
            return reply
        args: dict[str, Any] = msgspec.json.decode(made.args)
        if tool.name == "python" and not is_pure(args["code"]):
            return None
        if tool.changes and not self._turn.wish.changes:
            return None
        return replace(reply, calls=(self._translate(tool, args),))

    def _translate(self, tool: LittleTool, args: dict[str, Any]) -> ToolCall:
        return translated(tool, args, self._turn.contents, f"call_{len(self._prompt.transcript.messages)}")


Key = tuple[str, int, str]
"""A message: the conversation, its place there, and what it says, for places begin anew after a compaction."""


class Memory:
    """What is remembered from one call of a conversation to the next. `look` tells what exists, `now` the time."""

    def __init__(self, look: Look, now: Callable[[], datetime] = datetime.now) -> None:
        self._look, self._now = look, now
        self._worlds: dict[Key, World] = {}
        self._told: dict[Key, str] = {}
        self._days: dict[Key, str] = {}

    def codec(self, prompt: Prompt, tools: tuple[ToolSpec, ...]) -> Codec:
        """Blocks while it looks at the workspace."""
        messages = prompt.transcript.messages
        little = usable({tool.name: tool for tool in tools})
        world = self._world(prompt) if little else World()
        turn = turn_of(messages, world, little)
        return Codec(prompt, tools, turn, self._results(prompt, world) if little else {}, self._dates(prompt))

    def _world(self, prompt: Prompt) -> World:
        """What existed when the turn began."""
        messages = prompt.transcript.messages
        begin = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user"), 0)
        key = prompt.conversation, begin, messages[begin].text if messages else ""
        if begin >= len(messages) - 1:
            self._worlds.pop(key, None)
        return _kept(self._worlds, key, lambda: self._look(prompt.place))

    def _results(self, prompt: Prompt, world: World) -> dict[int, str]:
        found: dict[int, str] = {}
        asked, calls = "", dict[str, ToolCall]()
        for place, message in enumerate(prompt.transcript.messages):
            asked = message.text if message.role == "user" else asked
            calls |= {call.id: call for call in message.calls}
            if message.role == "tool" and (call := calls.get(message.answers)):
                key = prompt.conversation, place, f"{call.name} {call.args} {message.text}"
                found[place] = _kept(self._told, key, partial(retold, call, message.text, asked, world))
        return found

    def _dates(self, prompt: Prompt) -> dict[int, str]:
        """What day it was, for each message that asks for something of time."""
        now = self._now()
        return {
            place: _kept(self._days, (prompt.conversation, place, message.text), partial(today, message.text, now))
            for place, message in enumerate(prompt.transcript.messages)
            if message.role == "user" and _TIME.search(message.text)
        }


def _kept(memory: dict[Key, Kept], key: Key, make: Callable[[], Kept]) -> Kept:
    if not key[0]:  # nobody's conversation, or anybody's
        return make()
    if key not in memory:
        memory[key] = make()
        while len(memory) > _REMEMBERED:
            del memory[next(iter(memory))]
    return memory[key]


def today(asked: str, now: datetime) -> str:
    """What day it is, and the time or the days beside it where these are asked for."""
    text = f"Today is {now:%A}, {now.day} {now:%B %Y}"
    text += f", {now:%H:%M}." if _CLOCK.search(asked) else "."
    if _NEXT.search(asked):
        after, before = now + timedelta(1), now - timedelta(1)
        text += f" Tomorrow is {after:%A}, {after.day} {after:%B}; yesterday was {before:%A}, {before.day} {before:%B}."
    return text
