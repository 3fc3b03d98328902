"""What schedules do without a model: commands in the sandbox, and looking whether a condition holds.

A command runs as its owner, with the rights of that moment. Where the settings would have a person asked about it, it
runs only if an approver has made the schedule by hand. One that a crash has cut off is looked for before it is run
again: what it did is not done twice.
"""

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ..core.approval import Policy, risk_of
from ..core.decide import APPROVER
from ..core.exits import Exits, Giver, Weighed
from ..core.people import Role
from ..core.tool import Effect, ToolCall
from ..errors import EverloopError, ToolError
from ..ports import Bus, People
from ..ports.events import ScheduleFired
from ..ports.jobs import JobRow
from ..ports.schedules import Firing, Schedule, ScheduledWork, ScheduleRow, Schedules
from ..ports.tools import CallContext, Shown, Tool
from .calls import Toolbox
from .deletions import Forget
from .scheduler import tell_of
from .strangers import contained
from .tainting import CommandTaints, taint_of

_log = logging.getLogger("everloop.schedules")

WELL = "[exit code 0"  # how exec begins to tell of a command that has ended well
EXEC, FETCH = "exec", "web_fetch"
LOOKED_AT = 100  # runs of a schedule
LONGEST = 4000  # characters of what a command has said that are told
NOT_ALLOWED = "the settings do not allow it (tools.policy)"
TO_BE_ASKED = (
    "the settings would have a person asked, and nobody is there: who may approve it can make the schedule by hand, in "
    "the page or with everloop cron"
)
_NOTE = re.compile(r"\n?\[(?:with the answer go|also written, and not sent): [^\n]*\]\s*\Z")
UNKNOWN = "it was cut off, and nobody knows whether it took effect; it was not run again"


class NotDone(EverloopError):
    """A command has failed, and may be tried again."""


class _EndedBadly(ToolError):
    """What a command has said that failed; `outside`: strangers' words may be in it."""

    def __init__(self, ran: Shown) -> None:
        super().__init__(ran.text.strip()[:LONGEST])
        self.outside = bool(ran.origin)


class WorkStore(Schedules, Firing, Protocol):
    """What it asks of the store."""


class Alone(Struct, frozen=True):
    """The circumstances of a call that no conversation has led to: its person has written it."""

    outside: bool = False

    def mentions(self, text: str) -> bool:
        return True

    def giver_of(self, url: str) -> Giver:
        return "person"

    def weigh(self, query: str) -> Weighed:
        return Weighed()

    def left(self) -> Exits:
        return Exits()


class ScheduledDeeds:
    """The Workers of commands and polls."""

    def __init__(
        self,
        store: WorkStore,
        bus: Bus,
        people: People,
        toolbox: Toolbox,
        policy: Callable[[], Policy],
        forget: Forget,
        taints: CommandTaints | None = None,
    ) -> None:
        """`taints` are None where no file stands in prompts."""
        self._taints = taints
        self._forget = forget
        self._store = store
        self._bus = bus
        self._people = people
        self._toolbox = toolbox
        self._policy = policy

    async def run_command(self, row: JobRow) -> str:
        """The Worker. Raises NotDone if it is to be tried again."""
        work = msgspec.json.decode(row.job.payload, type=ScheduledWork)
        found = await self._store.schedule(work.schedule)
        if found is None or not await self._is_running(work):
            await self._leave(work)
            return "its schedule is gone" if found is None else "it was done before"
        schedule = found.schedule
        work = msgspec.structs.replace(work, whose=work.whose or schedule.principal or schedule.owner)
        try:
            told = await self._shell(schedule, work, row.attempts)
        except ToolError as error:
            if row.attempts <= schedule.retries and str(error) != UNKNOWN:
                raise NotDone(str(error)) from error
            outside = isinstance(error, _EndedBadly) and error.outside
            await self._finish(found, work, "failed", str(error), f"{schedule.name} failed: {error}", outside)
            return "failed"
        text = _output(told.text).strip()
        await self._finish(found, work, "done", text or "no output", text[:LONGEST], bool(told.origin))
        return "done"

    async def check(self, schedule: Schedule, key: str) -> Shown:
        """What a command says that only looks, so that it may be run again: as `run_command`, however it ends. `key`
        names the attempt. Raises ToolError if it cannot be run."""
        told = await self.run_now(schedule, key)
        return msgspec.structs.replace(told, text=_output(told.text).strip())

    async def run_now(self, schedule: Schedule, key: str) -> Shown:
        """As `check`, with how it has ended. What it says meanwhile is told in the thread `check KEY`."""
        args, place = {"command": schedule.text}, f"check {key}"
        tool, context = await self._allowed(schedule, EXEC, args, place, f"{place}:1:0")
        whose = schedule.principal or schedule.owner
        if self._taints:  # what a killed attempt has left open is ended by the next, which has the same key
            await self._taints.begin(place, whose, outside=bool(taint_of(tool.spec, False)))
        try:
            told = await self._call(tool.run, args, context, tool) or Shown("")
            if told.origin and self._taints:
                await self._taints.begin(place, whose, outside=True)
        finally:
            await self._forget(place)
            if self._taints:
                await self._taints.end(place, whose)
        return told

    async def _is_running(self, work: ScheduledWork) -> bool:
        """Whether nobody has told yet how it has ended."""
        runs = await self._store.schedule_runs(work.schedule, LOOKED_AT)
        return any(run.event == work.event and run.state == "running" for run in runs)

    async def look(self, row: JobRow) -> str:
        """The Worker of polls: what it says is kept, and seen again the next time."""
        found = await self._store.schedule(row.job.payload)
        if found is None:
            return "its schedule is gone"
        schedule = found.schedule
        try:
            seen = (await self._read(schedule, row)).text
        except ToolError as error:
            await self._store.note_look(schedule.id, str(error), None)
            return f"failed: {error}"[:200]
        digest = f"seen {sha256(seen.encode()).hexdigest()[:16]}"
        holds = condition_holds(schedule.condition, seen, row.result, digest)
        fired = await self._store.note_look(schedule.id, f"{schedule.polls} {schedule.condition}", holds)
        if fired is not None:
            tell_of(fired, self._bus)
        return digest

    async def _finish(
        self, row: ScheduleRow, work: ScheduledWork, state: Any, result: str, tell: str, outside: bool
    ) -> None:
        thread = await self._store.finish_run(work, state, result, tell, outside)
        await self._leave(work)
        if thread:
            self._bus.wake(thread)
            self._bus.publish(ScheduleFired(thread, 0, work.schedule, row.schedule.name, state, result[:200]))

    async def _leave(self, work: ScheduledWork) -> None:
        """Nothing of it runs any more, and what it has written is judged."""
        await self._forget(_thread_of(work))
        if self._taints and work.whose:
            await self._taints.end(_taint_of(work), work.whose)

    async def _shell(self, schedule: Schedule, work: ScheduledWork, attempt: int) -> Shown:
        """Raises ToolError."""
        args, place = {"command": schedule.text}, _thread_of(work)
        tool, context = await self._allowed(schedule, EXEC, args, place, f"{place}:{attempt}:0")
        if self._taints:
            await self._taints.begin(_taint_of(work), work.whose, outside=bool(taint_of(tool.spec, False)))
        told = await self._run(schedule, tool, args, context, attempt)
        if told.origin and self._taints:  # it may have written what it has read
            await self._taints.begin(_taint_of(work), work.whose, outside=True)
        return _checked(told)

    async def _run(
        self, schedule: Schedule, tool: Tool, args: Mapping[str, Any], context: CallContext, attempt: int
    ) -> Shown:
        """Raises ToolError."""
        if attempt > 1:
            key = f"{context.thread}:{attempt - 1}:0"
            before = await self._earlier(tool, args, msgspec.structs.replace(context, key=key))
            if before is not None and (_is_well(before) or attempt - 1 > schedule.retries):
                return before
        ran = await self._call(tool.run, args, context, tool)
        if ran is None:
            raise ToolError(UNKNOWN)
        return ran

    async def _earlier(self, tool: Tool, args: Mapping[str, Any], context: CallContext) -> Shown | None:
        """What the last attempt has said; None if it was never begun. Raises ToolError if nobody can tell."""
        if tool.verify is None:
            raise ToolError(UNKNOWN)
        try:
            return await self._call(tool.verify, args, context, tool)
        except ToolError as error:
            raise ToolError(UNKNOWN) from error

    async def _read(self, schedule: Schedule, row: JobRow) -> Shown:
        """Raises ToolError."""
        name, args = polled(schedule.polls)
        place = f"poll {schedule.id}"
        tool, context = await self._allowed(schedule, name, args, place, f"{place}:{row.epoch}:0")
        if tool.spec.effect is not Effect.READ:
            raise ToolError(f"{name} does more than look, so that it is not polled")
        return await self._call(tool.run, args, context, tool) or Shown("")

    async def _allowed(
        self, schedule: Schedule, name: str, args: Mapping[str, Any], place: str, key: str
    ) -> tuple[Tool, CallContext]:
        """Raises ToolError."""
        role = await self._people.role(schedule.owner)
        tool = self._toolbox.kit(schedule.principal or schedule.owner).tools.get(name)
        if tool is None:
            raise ToolError(f"there is no tool {name} here")
        if role < max(tool.spec.permission, Role.USER):
            raise ToolError(f"{name} is not for {role.name.lower()}s")
        call = ToolCall("", name, msgspec.json.encode(args).decode())
        stance = self._policy().stance(call, tool.spec, Alone())
        if stance == "deny":
            raise ToolError(NOT_ALLOWED)
        if stance == "ask" and not (schedule.by_hand and role >= APPROVER):
            _log.info("%s of schedule %s is not run: %s", name, schedule.id, risk_of(call, tool.spec, Alone()).why)
            raise ToolError(TO_BE_ASKED)
        context = CallContext(
            key,
            place,
            schedule.session,
            schedule.owner,
            role=role,
            whose=schedule.principal,
        )
        return tool, context

    async def _call(self, do: Any, args: Mapping[str, Any], context: CallContext, tool: Tool) -> Shown | None:
        """Raises ToolError."""
        try:
            async with asyncio.timeout(tool.spec.seconds):
                with contained():
                    result = await do(dict(args), context)
        except ToolError:
            raise
        except TimeoutError as error:
            raise ToolError(f"{tool.spec.name} did not finish within {tool.spec.seconds:g} s") from error
        except Exception as error:  # a stranger's code runs here
            _log.warning("%s failed for a schedule", tool.spec.name, exc_info=True)
            raise ToolError(f"{type(error).__name__}: {error}") from error
        if result is None:
            return None
        told = result if isinstance(result, Shown) else Shown(str(result))
        return _without_note(await self._toolbox.hidden(context, told))


def polled(text: str) -> tuple[str, dict[str, Any]]:
    """What a poll looks at: an address, or the name of a tool and its arguments as JSON. Raises ToolError."""
    if text.lower().startswith(("http://", "https://")):
        return FETCH, {"url": text}
    name, _, rest = text.partition(" ")
    try:
        args = msgspec.json.decode(rest or "{}", type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ToolError(f"a poll looks at an address, or `TOOL {{…}}` with its arguments as JSON ({error})") from error
    return name, args


def condition_holds(condition: str, seen: str, before: str, digest: str) -> bool:
    """`contains WORDS`, `lacks WORDS` or `changes`; what was seen `before` is told by its digest."""
    word, _, words = condition.strip().partition(" ")
    match word.lower():
        case "contains":
            return words.casefold() in seen.casefold()
        case "lacks":
            return words.casefold() not in seen.casefold()
        case "changes":
            return before.startswith("seen ") and before != digest
    return False


def _thread_of(work: ScheduledWork) -> str:
    """Under which its command is known, as those of conversations are under theirs."""
    return f"schedule {work.event}"


def _taint_of(work: ScheduledWork) -> str:
    return f"{work.thread}:{work.event}"


def _checked(ran: Shown) -> Shown:
    """Raises ToolError for what has not ended well."""
    if not _is_well(ran):
        raise _EndedBadly(ran)
    return ran


def _is_well(ran: Shown) -> bool:
    return ran.text.startswith(WELL)


def _output(text: str) -> str:
    """What it said, without how it ended."""
    return text.partition("]\n")[2]


def _without_note(told: Shown) -> Shown:
    """What it wrote lies in the workspace: with a turn's answer it would go along, and a model is told so."""
    return msgspec.structs.replace(told, text=_NOTE.sub("", told.text))
