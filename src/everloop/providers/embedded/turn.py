"""Where a turn stands: what is wished, what was done for it, and what is known of the files by that."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from ...core.message import Message
from .intent import Wish, spans_of, wish_of
from .little import BY_NAME, LittleTool, in_little
from .results import faults_of, is_error, whole_file
from .world import World, stem_of

_GENERIC = frozenset(re.findall(r"\w+", "main test tests file files data code text index readme setup list name"))


class DoneCall(Struct, frozen=True):
    """A call of this turn, as the model knows it, and its result, as the tool gave it."""

    name: str
    args: Mapping[str, Any]
    result: str
    ok: bool


class TurnSoFar(Struct, frozen=True):
    wish: Wish
    world: World
    tools: Mapping[str, LittleTool]
    steps: tuple[DoneCall, ...] = ()
    contents: Mapping[str, str] = {}  # of files that were read in this turn
    focus: str = ""  # the file that was spoken of last, before this turn
    is_read: bool = False  # and whether it was read
    counted: bool = False  # a number was said last, before this turn

    def tried(self, name: str, **args: str) -> bool:
        return any(step.name == name and all(step.args.get(key) == args[key] for key in args) for step in self.steps)

    def did(self, *names: str) -> bool:
        return any(step.ok and step.name in names for step in self.steps)

    def did_write(self, path: str) -> bool:
        return any(step.ok and step.name == "write_file" and step.args.get("path") == path for step in self.steps)

    @property
    def failures(self) -> int:
        """In a row, at the end."""
        row = 0
        for step in reversed(self.steps):
            if step.ok:
                break
            row += 1
        return row

    @property
    def circles(self) -> bool:
        """The same call twice in a row."""
        return len(self.steps) > 1 and (self.steps[-1].name, self.steps[-1].args) == (
            self.steps[-2].name,
            self.steps[-2].args,
        )

    @property
    def targets(self) -> tuple[str, ...]:
        """The files that are meant: named, or called by their stem, or spoken of before."""
        if self.wish.files:
            return self.wish.files
        if self.wish.missing:
            return ()
        return self.by_stem or self._spoken_of

    @property
    def _spoken_of(self) -> tuple[str, ...]:
        """The file of before, if the request points at it, or has a word of it; it is read to find out."""
        if self.focus not in self.world.files:
            return ()
        known = self.contents.get(self.focus)
        if self.wish.points or known is None:
            return (self.focus,)
        return (self.focus,) if any(word.lower() in known.lower() for word in spans_of(self.wish.text, 1)) else ()

    @property
    def by_stem(self) -> tuple[str, ...]:
        """The one file whose name without its ending is a word of the request, if there is only one."""
        words = {word.lower() for word in re.findall(r"[\w-]{4,}", self.wish.text)} - _GENERIC
        found = [path for path in self.world.files if stem_of(path).lower() in words]
        return (found[0],) if len(found) == 1 else ()


def turn_of(messages: Sequence[Message], world: World, tools: Mapping[str, LittleTool]) -> TurnSoFar:
    begin = next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role == "user"), 0)
    asked = messages[begin].text if messages else ""
    steps = _steps(messages[begin:])
    spoken_of = [path for message in messages[:begin] for path in _paths(message, world)]
    focus = spoken_of[-1] if spoken_of else ""
    last = next((message.text for message in reversed(messages[:begin]) if message.role == "assistant"), "")
    return TurnSoFar(
        wish=wish_of(asked, world),
        world=world,
        tools=tools,
        steps=steps,
        contents=_contents(steps),
        focus=focus,
        is_read=any(
            in_little(call) == ("read_file", {"path": focus}) for each in messages[:begin] for call in each.calls
        ),
        counted=bool(re.search(r"\d", last)),
    )


def _paths(message: Message, world: World) -> list[str]:
    """The files that exist and that a call works on, or an answer names."""
    if message.role == "assistant" and not message.calls:
        return list(wish_of(message.text, world).files[:1])
    called = [in_little(call)[1] for call in message.calls]
    return [str(args[name]) for args in called for name in ("path", "to") if args.get(name) in world.files]


def _steps(messages: Sequence[Message]) -> tuple[DoneCall, ...]:
    calls = [call for message in messages for call in message.calls]
    results = [message.text for message in messages if message.role == "tool"]
    return tuple(_step(*in_little(call), result) for call, result in zip(calls, results, strict=False))


def _step(name: str, args: Mapping[str, Any], result: str) -> DoneCall:
    """To write what was there already, or what cannot be read any more, is a failure, too."""
    vain = name == "write_file" and (
        "nothing was changed" in result or any(faults_of(str(args.get("path")), str(args.get("content"))))
    )
    return DoneCall(name, args, result, not is_error(result) and not vain)


def _contents(steps: Sequence[DoneCall]) -> dict[str, str]:
    """What was read and not written since."""
    known: dict[str, str] = {}
    for step in steps:
        path = str(step.args.get("path", ""))
        if step.name == "read_file" and (text := whole_file(step.result)) is not None:
            known[path] = text
        elif step.name == "write_file" and not is_error(step.result):
            known[path] = str(step.args.get("content", ""))
        elif step.name not in BY_NAME or BY_NAME[step.name].changes:
            known.pop(path, None)
    return known
