"""A model that says its lines.

A *line* is one whole answer: an act, or several in the order in which they happen.

    Say("hello")                                  text, as one delta
    Say(["hel", "lo"])                            text, as two deltas
    Call("read_file", {"path": "notes.md"})       a tool call
    Calls(Call("a"), Call("b"))                   two calls in one answer
    (Think("hm"), Say("I look."), Call("look"))   thinking, then text, then a call
    (Say("half "), Wait(gate), Say("whole"))      an answer held open until the test sets the gate
    (Say("half "), Fail(StreamCut("gone")))       an answer that breaks off
    Empty()                                       an answer with nothing in it

A *script* says which line comes next: in order, as a function of what the model was shown, or by conversation.
A script by conversation is indexed by the number of assistant messages since the last user message and nothing
else, so that a process that was killed and started again is given the line that it is owed.
"""

from __future__ import annotations  # so that help() shows the names of types, and not what they stand for

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, assert_never

import msgspec
from msgspec import Struct

from ..core.message import Message
from ..core.prompt import Finish, Prompt, Usage
from ..core.tool import ToolCall
from ..errors import BadRequest, ProviderError
from ..ports.provider import Delta, Reply


class Say(Struct, frozen=True):
    """Text; a list of texts is one delta each."""

    text: str | Sequence[str]


class Think(Struct, frozen=True):
    """Reasoning; a list of texts is one delta each."""

    text: str | Sequence[str]


class Call(Struct, frozen=True):
    """A tool call. A string is sent as it is, well-formed or not; a list is how the string comes in pieces."""

    name: str
    args: Mapping[str, Any] | str | Sequence[str] = {}
    id: str = ""  # made from the length of the conversation and the call's place unless given


class Wait(Struct, frozen=True):
    """Go on when the gate is set."""

    gate: asyncio.Event


class Pause(Struct, frozen=True):
    """Go on after so many seconds: how slow a model is, never a way for a test to wait for something."""

    seconds: float


class Fail(Struct, frozen=True):
    """End with this error. Over HTTP it becomes what a host does that makes a client raise it."""

    error: ProviderError


class Empty(Struct, frozen=True):
    """Say nothing."""


class Spend(Struct, frozen=True):
    """Report this usage instead of an estimate."""

    usage: Usage


class End(Struct, frozen=True):
    """Report this finish instead of `stop` or `calls`."""

    finish: Finish


class Http(Struct, frozen=True):
    """Over HTTP only: answer with this status and body (text, or a value that becomes JSON)."""

    status: int
    body: Any = ""
    headers: Mapping[str, str] = {}


class Raw(Struct, frozen=True):
    """Over HTTP only: send this text into the stream as it is, garbage or a comment."""

    text: str


class CutAt(Struct, frozen=True):
    """Over HTTP only: close the connection after so many bytes of the body, at the latest before `[DONE]`."""

    byte: int


Act = Say | Think | Call | Wait | Pause | Fail | Empty | Spend | End | Http | Raw | CutAt
Line = Act | Sequence[Act]


def Calls(*calls: Call) -> Line:
    """Several calls in one answer."""
    return calls


def acts_of(line: Line) -> Sequence[Act]:
    return line if isinstance(line, Sequence) else (line,)


def pieces_of(text: str | Sequence[str]) -> Sequence[str]:
    return (text,) if isinstance(text, str) else text


def args_of(call: Call) -> str:
    """The arguments as the JSON text of the call."""
    if isinstance(call.args, Mapping):
        return msgspec.json.encode(call.args).decode()
    return "".join(call.args)


def paced(line: Line, first: float = 0.0, between: float = 0.0) -> Line:
    """The same line from a slower model: `first` seconds before anything, `between` seconds between the deltas."""
    acts = [Pause(first), *acts_of(line)] if first else acts_of(line)
    return _spaced(acts, Pause(between)) if between else acts


def _spaced(acts: Sequence[Act], pause: Pause) -> Sequence[Act]:
    spaced: list[Act] = []
    for act in (part for whole in acts for part in _parts_of(whole)):
        if isinstance(act, Say | Think | Call) and any(isinstance(before, Say | Think | Call) for before in spaced):
            spaced.append(pause)
        spaced.append(act)
    return spaced


def _parts_of(act: Act) -> Sequence[Act]:
    return [type(act)(piece) for piece in pieces_of(act.text)] if isinstance(act, Say | Think) else (act,)


class Shown(Struct, frozen=True):
    """What the model was shown at one call, as plain values that no later message changes."""

    model: str
    system: str
    messages: tuple[Message, ...]
    tools: tuple[str, ...] = ()
    tail: str = ""

    @property
    def said(self) -> list[tuple[str, str]]:
        """Role and text of each message."""
        return [(message.role, message.text) for message in self.messages]

    @property
    def asked(self) -> str:
        """The text of the last user message."""
        return next((message.text for message in reversed(self.messages) if message.role == "user"), "")

    @property
    def step(self) -> int:
        """How many assistant messages there are since the last user message."""
        return step_of(self.messages)


class _SpokenMessage(Protocol):
    @property
    def role(self) -> str: ...


def step_of(messages: Sequence[_SpokenMessage]) -> int:
    """How many assistant messages there are since the last user message."""
    step = 0
    for message in reversed(messages):
        if message.role == "user":
            break
        step += message.role == "assistant"
    return step


class Script(Protocol):
    """Which line comes next. `shown` is a function because a server that has no use for it need not parse it."""

    def pick(self, step: int, shown: Callable[[], Shown]) -> Line: ...


class InOrder:
    """The lines one after the other, whatever is asked."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines
        self._next = 0

    def pick(self, step: int, shown: Callable[[], Shown]) -> Line:
        self._next += 1
        return _line_of(self.lines, self._next - 1)


class ByConversation:
    """The line whose number is that of the assistant messages since the last user message."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = lines

    def pick(self, step: int, shown: Callable[[], Shown]) -> Line:
        return _line_of(self.lines, step)


class ByFunction:
    """The line that the function makes of what was shown."""

    def __init__(self, answer: Callable[[Shown], Line]) -> None:
        self.answer = answer

    def pick(self, step: int, shown: Callable[[], Shown]) -> Line:
        return self.answer(shown())


def script_of(script: Sequence[Line] | Callable[[Shown], Line] | Script) -> Script:
    """A list of lines is said in order; a function answers what it is shown."""
    if isinstance(script, InOrder | ByConversation | ByFunction):
        return script
    if isinstance(script, Sequence):
        return InOrder(script)
    return ByFunction(script) if callable(script) else script


class Tally:
    """Counts, and lets a test wait for a count."""

    def __init__(self) -> None:
        self.count = 0
        self._more = asyncio.Event()

    def add(self) -> None:
        self.count += 1
        self._more.set()
        self._more = asyncio.Event()

    async def reached(self, count: int) -> None:
        while self.count < count:
            await self._more.wait()


class ScriptedModel:
    """A Provider that says its lines. `prompts` holds what it was shown, call by call.

    `ScriptedModel([Say("hi")])` goes in order, `ScriptedModel(by_conversation=[…])` by conversation, and
    `ScriptedModel(lambda shown: Say(shown.asked))` answers by a function. With no line left it raises BadRequest.
    """

    def __init__(
        self,
        script: Sequence[Line] | Callable[[Shown], Line] | Script = (),
        *,
        by_conversation: Sequence[Line] | None = None,
        name: str = "scripted",
    ) -> None:
        self.name = name
        self.script: Script = script_of(script) if by_conversation is None else ByConversation(by_conversation)
        self.prompts: list[Shown] = []
        self.closed = False
        self._tally = Tally()

    @property
    def calls(self) -> int:
        """How often it was asked."""
        return self._tally.count

    async def called(self, times: int) -> None:
        """Wait until it has been asked so many times in all."""
        await self._tally.reached(times)

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        shown = shown_of(prompt)
        self.prompts.append(shown)
        self._tally.add()
        return await _ScriptedAnswer(shown, show).play(self.script.pick(shown.step, lambda: shown))

    async def close(self) -> None:
        self.closed = True


class _ScriptedAnswer:
    """One answer while it is being given."""

    def __init__(self, shown: Shown, show: Callable[[Delta], None]) -> None:
        self._shown = shown
        self._show = show
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[ToolCall] = []
        self._usage: Usage | None = None
        self._finish: Finish | None = None

    async def play(self, line: Line) -> Reply:
        for act in acts_of(line):
            await self._do(act)
        text, reasoning = "".join(self._text), "".join(self._reasoning)
        return Reply(
            text=text,
            calls=tuple(self._calls),
            usage=self._usage or _estimate(self._shown, text + reasoning + "".join(call.args for call in self._calls)),
            finish=self._finish or ("calls" if self._calls else "stop"),
            model=self._shown.model,
            reasoning=reasoning,
        )

    async def _do(self, act: Act) -> None:
        match act:
            case Say(text=text):
                for piece in pieces_of(text):
                    self._text.append(piece)
                    await self._give(Delta(text=piece))
            case Think(text=text):
                for piece in pieces_of(text):
                    self._reasoning.append(piece)
                    await self._give(Delta(reasoning=piece))
            case Call():
                number = call_id(act, len(self._shown.messages), len(self._calls))
                self._calls.append(ToolCall(number, act.name, args_of(act)))
            case Wait(gate=gate):
                await gate.wait()
            case Pause(seconds=seconds):
                await asyncio.sleep(seconds)
            case Fail(error=error):
                raise error.with_traceback(None)  # the script may raise the same error many times
            case Spend(usage=usage):
                self._usage = usage
            case End(finish=finish):
                self._finish = finish
            case Empty():
                pass
            case Http() | Raw() | CutAt():
                raise TypeError(f"{act} needs a wire; play it with everloop.testing.model_server")
            case _:
                assert_never(act)

    async def _give(self, delta: Delta) -> None:
        self._show(delta)
        await asyncio.sleep(0)  # as after a network read, others get their turn


def call_id(call: Call, messages: int, place: int) -> str:
    """The call's own id, or one that is the same whenever the same conversation is shown."""
    return call.id or f"call_{messages}_{place}"


def shown_of(prompt: Prompt) -> Shown:
    """A prompt as it stands now; its transcript goes on growing."""
    tools = tuple(tool.name for tool in prompt.tools)
    return Shown(prompt.model, prompt.system, tuple(prompt.transcript.messages), tools, prompt.tail)


def tokens_in(characters: int) -> int:
    """The usual estimate of four characters a token."""
    return characters // 4 + 1


def _estimate(shown: Shown, answer: str) -> Usage:
    characters = len(shown.system) + len(shown.tail) + sum(len(message.text) for message in shown.messages)
    return Usage(tokens_in(characters), tokens_in(len(answer)))


def _line_of(lines: Sequence[Line], index: int) -> Line:
    if index < len(lines):
        return lines[index]
    return Fail(BadRequest(f"the script has {len(lines)} lines and was asked for line {index + 1}"))
