"""Running tool calls: time limit, errors turned into results, long results shortened with the whole kept."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct, structs

from ..core.log import CallReturned, Outcome
from ..core.message import Media
from ..core.people import OWNER
from ..core.thread import Thread
from ..core.tool import Effect, FileChange, Ground, ToolSpec, parse_args
from ..errors import AnswerLost, HostTimeout, HostUnreachable, LinkFailed, StreamCut, ToolError
from ..ports import Files
from ..ports.tools import Assignment, CallContext, Picture, Result, Shown, Tool
from ..readings.definitions import is_another
from ..readings.linked_files import linked_files
from ..readings.media import kind_of
from .strangers import contained

_log = logging.getLogger("everloop.calls")

KITS = 1000  # that are known at once
GONE = 200  # tools that stay, for the turns that have begun with them: those that went last
LONGEST_RESULT = 8000  # characters
ANOTHER = (
    "Error: the tool {} has become another one since this turn began, so the call was not run. It can be called "
    "when the user has said something more."
)
MAY_HAVE = "It may have taken effect: look before you repeat it."
PAUSE = 0.5  # seconds before a call is tried once more
_REPEATABLE = (Effect.READ, Effect.IDEMPOTENT)
_LINK = (LinkFailed, HostTimeout, HostUnreachable, StreamCut, ConnectionError)


TakeBack = Callable[[FileChange, str, str], Awaitable[str]]


async def _leave(change: FileChange, key: str, user: str) -> str:
    return "nobody here can put files back"


Keep = Callable[[FileChange, str], Awaitable[Media | None]]


async def _keep_nothing(change: FileChange, user: str) -> None:
    return None


class Kit(Struct, frozen=True):
    """The tools of one principal, all of which work in their workspace, whose name is `place`.

    `take_back` undoes what a tool did to a file: given the change, a key for the attempt and whose it was, it says why
    it left the file alone, or nothing. `keep` keeps what a file holds after a change, so that people can have it.
    `longest` is how many characters of a result the model is shown. `personal` are tools for those who keep
    credentials: they are none of the `tools` until somebody does.
    """

    tools: Mapping[str, Tool]
    place: str = ""
    take_back: TakeBack = _leave
    keep: Keep = _keep_nothing
    longest: int = LONGEST_RESULT
    personal: Mapping[str, Tool] = {}


class Hides(Protocol):
    """Keeps what is a person's secret from models."""

    def has(self, person: str) -> bool:
        """Whether they have any; known at once."""
        ...

    async def hide(self, person: str, told: Shown) -> Shown:
        """A result of theirs without their secrets. Raises StoreError."""
        ...


class Toolbox:
    """The tools of this agent. `kit_of` finds the kit of a principal, who may have another one from one turn to the
    next; `hides` takes out of every result what a model must not see."""

    def __init__(self, kit_of: Callable[[str], Kit], files: Files, hides: Hides | None = None) -> None:
        self._hides = hides
        self._kit_of = kit_of
        self._kits: dict[str, tuple[Kit, Kit]] = {}  # as it was made, and with what stays
        self._files = files

    @classmethod
    def of(cls, tools: Iterable[Tool], files: Files, longest: int = LONGEST_RESULT) -> "Toolbox":
        """One with the same tools for everybody."""
        kit = Kit({tool.spec.name: tool for tool in tools}, longest=longest)
        return cls(lambda principal: kit, files)

    def kit(self, principal: str) -> Kit:
        """Tools that are not there any more stay, for the turns that have begun with them: what a model is offered is
        not decided here."""
        made = self._kit_of(principal)
        before, whole = self._kits.get(principal) or (None, made)
        if before is not made:
            if len(self._kits) >= KITS:
                self._kits.clear()
            if before is not None:
                gone = [name for name in whole.tools if name not in made.tools][-GONE:]
                whole = structs.replace(made, tools={**{name: whole.tools[name] for name in gone}, **made.tools})
            self._kits[principal] = made, whole
        return whole

    @property
    def specs(self) -> Mapping[str, ToolSpec]:
        """Of the owner's tools."""
        return {name: tool.spec for name, tool in self.kit(OWNER).tools.items()}

    async def take_back(self, change: FileChange, key: str, whose: str) -> str:
        return await self.kit(whose).take_back(change, key, whose)

    def spec(self, thread: Thread, place: int) -> ToolSpec:
        return self._find(thread, place).spec

    def changed(self, thread: Thread, places: Iterable[int], offered: Mapping[str, ToolSpec]) -> list[CallReturned]:
        """The calls whose tool is not any more the one that was offered, and decided on: they are not run."""
        tools = self.kit(thread.turn.principal).tools
        names = [(place, thread.open_calls[place].name) for place in places]
        return [
            CallReturned(thread.answer, place, ANOTHER.format(name), "denied")
            for place, name in names
            if name in tools and tools[name].spec is not offered[name] and is_another(tools[name].spec, offered[name])
        ]

    def ground(self, thread: Thread, place: int) -> tuple[Ground, ...]:
        """The folder that a call would run in, after all above it; () when there is none, or it cannot be told."""
        tool, args = self._find(thread, place), parse_args(thread.open_calls[place])
        try:
            with contained():
                return tool.ground(args) if tool.ground else ()
        except ToolError:  # the model is told when it runs
            return ()
        except Exception:  # a stranger's code runs here
            _log.warning("%s cannot tell where it runs", tool.spec.name, exc_info=True)
            return ()

    async def assignment(self, thread: Thread, place: int, context: CallContext) -> Assignment:
        """The task that a call hands on. Raises ToolError."""
        tool, args = self._find(thread, place), parse_args(thread.open_calls[place])
        if tool.assign is None:
            raise ToolError(f"{tool.spec.name} has nothing to hand on")
        try:
            with contained():
                return await tool.assign(args, context)
        except ToolError:
            raise
        except Exception as error:  # a stranger's code runs here
            _log.warning("%s failed", tool.spec.name, exc_info=True)
            raise ToolError(f"{type(error).__name__}: {error}") from error

    async def run(self, thread: Thread, place: int, context: CallContext) -> CallReturned:
        """Run a call that has been checked. A tool's failure is the model's to read, not ours to raise."""
        tool, args = self._find(thread, place), parse_args(thread.open_calls[place])
        outcome: Outcome = "failed"
        told = Shown("")
        try:
            async with asyncio.timeout(tool.spec.seconds) as limit:
                with contained():
                    told = _checked(await _attempt(tool, args, context))
                outcome = "done"
        except ToolError as error:
            told = Shown(f"Error: {error}", changes=error.changes, origin=error.origin, background=error.background)
            if isinstance(error, AnswerLost) and tool.spec.effect not in _REPEATABLE:
                outcome, told = "unknown", structs.replace(told, text=f"{told.text}\n{MAY_HAVE}")
        except TimeoutError as error:
            why = f"did not finish within {tool.spec.seconds:g} s" if limit.expired() else f"timed out: {error}"
            told = Shown(f"Error: {tool.spec.name} {why}")
        except asyncio.CancelledError:
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            told = Shown(f"Error: {tool.spec.name} cancelled itself")  # nobody told us to stop
        except Exception as error:  # a stranger's code runs here
            _log.warning("%s failed", tool.spec.name, exc_info=True)
            told = Shown(f"Error: {type(error).__name__}: {error}")
        told = await self._hidden(context, told)
        returned = await self._returned(thread.answer, place, told.text, context.principal, outcome)
        return await self._with_more(returned, told, context.principal)

    async def _with_more(self, returned: CallReturned, told: Shown, user: str) -> CallReturned:
        linked = () if told.origin or returned.outcome != "done" else linked_files(told.text)
        if not (told.pictures or told.changes or told.origin or told.background or told.made or linked):
            return returned
        media = tuple([await self._keep(picture, user) for picture in told.pictures])
        made = tuple([kept for change in told.changes if (kept := await self.kit(user).keep(change, user))])
        return structs.replace(
            returned,
            media=media,
            changes=told.changes,
            origin=told.origin,
            made=(*made, *(media for media in told.made if media.owner == user), *linked),
            background=told.background,
            public=told.public and bool(told.origin),
        )

    async def _keep(self, picture: Picture, user: str) -> Media:
        file = await self._files.put(user, picture.data, picture.name)
        name = picture.name.encode("utf-8", "replace").decode()
        return Media(file, kind_of(picture.data) or picture.mime, name, user)

    async def verify(self, thread: Thread, place: int, context: CallContext) -> CallReturned | None:
        """The result of an earlier attempt; None if it surely did not happen. Raises ToolError if nobody can tell."""
        tool, args = self._find(thread, place), parse_args(thread.open_calls[place])
        if tool.verify is None:
            raise ToolError(f"{tool.spec.name} cannot be verified")
        try:
            async with asyncio.timeout(tool.spec.seconds):
                with contained():
                    found = await tool.verify(args, context)
                told = None if found is None else _checked(found)
        except ToolError:
            raise
        except Exception as error:  # a stranger's code runs here
            raise ToolError(f"{tool.spec.name} cannot be verified: {type(error).__name__}: {error}") from error
        if told is None:
            return None
        told = await self._hidden(context, told)
        returned = await self._returned(thread.answer, place, told.text, context.principal)
        return await self._with_more(returned, told, context.principal)

    async def hidden(self, context: CallContext, told: Shown) -> Shown:
        """A result without the secrets of whom it is for."""
        return await self._hidden(context, told)

    async def _hidden(self, context: CallContext, told: Shown) -> Shown:
        return await self._hides.hide(context.user, told) if self._hides and self._hides.has(context.user) else told

    def _find(self, thread: Thread, place: int) -> Tool:
        name = thread.open_calls[place].name
        return self.kit(thread.turn.principal).tools.get(name) or _gone(name)

    async def _returned(self, answer: int, place: int, text: str, user: str, outcome: Outcome = "done") -> CallReturned:
        text = text.encode("utf-8", "replace").decode()  # half a character is no text, and cannot be stored
        longest = self.kit(user).longest
        if len(text) <= longest:
            return CallReturned(answer, place, text, outcome)
        file = await self._files.put(user, text.encode(), f"result-{answer}-{place}.txt")
        return CallReturned(answer, place, shorten(text, longest, file), outcome, file)


def _gone(name: str) -> Tool:
    """In the place of one that has gone since the model was offered it."""

    async def run(args: dict[str, Any], context: CallContext) -> Result:
        raise ToolError(f"there is no tool {name} any more")

    return Tool(ToolSpec(name, "", {"type": "object"}), run)


async def _attempt(tool: Tool, args: dict[str, Any], context: CallContext) -> Result:
    """Once more, if the network failed and a second time changes nothing."""
    try:
        return await tool.run(args, context)
    except _LINK as error:
        if tool.spec.effect not in _REPEATABLE:
            raise
        _log.info("%s is tried once more: %s", tool.spec.name, error)
    await asyncio.sleep(PAUSE)
    return await tool.run(args, context)


def _checked(result: Any) -> Shown:
    told = result if isinstance(result, Shown) else Shown(result)
    if not isinstance(told.text, str):
        raise TypeError(f"a tool returns text, not {type(told.text).__name__}")
    for picture in told.pictures:
        if not isinstance(picture, Picture) or not isinstance(picture.data, bytes):
            raise TypeError("a tool shows Pictures, whose data are bytes")
    return told


def shorten(text: str, limit: int, file: str) -> str:
    """Head and tail of a long text, with a note on where the whole can be read."""
    where = f'characters left out; read_file(path="{file}") has the whole] …\n'
    half = max(0, limit - len(where) - 20) // 2
    return f"{text[:half]}\n… [{len(text) - 2 * half} {where}{text[len(text) - half :]}"
