"""The heartbeat: who has a HEARTBEAT.md has it looked at again and again, and is told what is worth a message.

A beat is the work of a job. What it has seen is committed with the letter that begins its turn, and the job is settled
after that: a beat that is killed before is made again and sees the same, one that is killed after sees that nothing has
changed.
"""

import logging
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct, structs

from ..core.mail import Address, Inbound, Notice
from ..core.people import OWNER, Role
from ..errors import MailRefused, Postponed, StoreError, ToolError
from ..ports import Archive, Bus, Clock, Directory
from ..ports.events import HeartbeatTicked
from ..ports.failpoint import reach
from ..ports.heartbeat import (
    AT_ONCE,
    HEARTBEAT,
    HEARTBEAT_FILE,
    HEARTBEAT_SOURCE,
    HeartbeatFiles,
    HeartbeatRow,
    Heartbeats,
)
from ..ports.jobs import JobRow
from ..ports.rows import ThreadRow
from ..ports.schedules import Schedule
from ..ports.tools import Shown
from ..readings.heartbeat import (
    BeatOutcome,
    HeartbeatLook,
    Instructions,
    checks_digest,
    decide_beat,
    instructions_in,
    not_asked,
)
from .schedule_times import quiet_left

_log = logging.getLogger("everloop.heartbeat")

GLANCE = 30.0  # seconds between glances at who has a HEARTBEAT.md
HELD = f"a change of {HEARTBEAT_FILE} waits for permission, and nothing was accepted before"
BUSY = "the turn of the last look is not over"
NOWHERE = "there is no conversation yet in which it could answer"
UNREACHED = "heartbeat.session names no conversation of theirs"

Check = Callable[[Schedule, str], Awaitable[Shown]]
"""Runs a command that only looks; see ScheduledDeeds.check."""


class HeartbeatRules(Struct, frozen=True, kw_only=True):
    """By the settings. `every` and `again` are seconds."""

    enabled: bool = True
    every: float = 1800.0
    again: float = 86_400.0
    quiet: str = ""
    zone: str = "UTC"
    session: str = ""
    people: bool = False

    def hold_for(self, owner: str) -> bool:
        """Whether somebody's heart may beat."""
        return self.enabled and (owner == OWNER or self.people)


class HeartbeatStore(Heartbeats, Archive, Directory, Protocol):
    """What it asks of the store."""


class Heartbeat:
    """`look` is the Worker of its jobs. `run` it under a supervisor: it plans those jobs. `whose` is who is seen to, ""
    is everyone."""

    def __init__(
        self,
        store: HeartbeatStore,
        bus: Bus,
        clock: Clock,
        files: HeartbeatFiles,
        check: Check,
        rules: Callable[[], HeartbeatRules],
        whose: str = "",
    ) -> None:
        self._store = store
        self._bus = bus
        self._clock = clock
        self._files = files
        self._check = check
        self._rules = rules
        self._whose = whose
        self._planned: dict[str, float] = {}
        self._by: HeartbeatRules | None = None  # what was planned by

    async def run(self) -> None:
        while True:
            try:
                await self.plan()
            except StoreError as error:
                _log.warning("heartbeats are planned when the store is back: %s", error)
            await self._clock.sleep(GLANCE)

    async def plan(self) -> None:
        """Have a job for each who has a HEARTBEAT.md. While nothing changes, the store is not asked."""
        rules = self._rules()
        if self._by != rules:
            self._planned = {}
            for owner in await self._store.beating():
                if not rules.hold_for(owner) and self._whose in ("", owner):
                    await self._store.drop_heartbeat(owner)
            self._by = rules
        for owner in await self._owners(rules):
            if self._planned.get(owner) != rules.every and self._files.is_there(owner):
                await self._store.plan_heartbeat(owner, rules.every)
                self._planned[owner] = rules.every

    async def _owners(self, rules: HeartbeatRules) -> list[str]:
        owners = [OWNER] if self._whose in ("", OWNER) else [self._whose]
        if rules.people and not self._whose:
            people = await self._store.people()
            owners += [each.id for each in people if each.role >= Role.USER and not each.blocked and each.id != OWNER]
        return [owner for owner in owners if rules.hold_for(owner)]

    async def look(self, row: JobRow) -> str:
        """The Worker. Raises Postponed in quiet hours."""
        owner, rules, now = row.job.owner, self._rules(), self._clock.now()
        if not rules.hold_for(owner):
            return "switched off"
        found = await self._store.heartbeat(owner)
        where = await self._where(owner, rules)
        left = 0.0 if row.job.payload == AT_ONCE else quiet_left(rules.quiet, now, rules.zone)
        if left:
            if found.state.decided != "quiet":
                state = not_asked(found.state, now, "quiet", f"these are quiet hours ({rules.quiet})")
                await self._keep(found, BeatOutcome(state), "", where)
            raise Postponed("quiet hours", left)
        session = where.session if where else rules.session
        outcome = await self._outcome(found, session, rules, now)
        reach("heartbeat.looked")
        return await self._keep(found, outcome, session, where)

    async def _where(self, owner: str, rules: HeartbeatRules) -> ThreadRow | None:
        """The conversation in which it answers, if there is one yet."""
        if owner == OWNER and rules.session:
            return await self._store.session(rules.session)
        return await self._store.latest(owner)

    async def _outcome(self, found: HeartbeatRow, session: str, rules: HeartbeatRules, now: float) -> BeatOutcome:
        if found.barred:
            return BeatOutcome(not_asked(found.state, now, "barred", found.barred))
        text, held = await self._files.read(found.owner)
        if text is None:
            why = HELD if held else f"there is no {HEARTBEAT_FILE}"
            return BeatOutcome(not_asked(found.state, now, "held" if held else "missing", why))
        instructions = instructions_in(text)
        if instructions.asks and found.busy:
            return BeatOutcome(not_asked(found.state, now, "busy", BUSY))
        if instructions.asks and not session:
            return BeatOutcome(not_asked(found.state, now, "nowhere", NOWHERE))
        look = await self._seen(found, instructions, session)
        return decide_beat(found.state, look, now, rules.again)

    async def _seen(self, found: HeartbeatRow, instructions: Instructions, session: str) -> HeartbeatLook:
        files = await self._files.stamps(found.owner, instructions.watch, found.state.files)
        said, failed, outside = {}, {}, set()
        by_hand = bool(instructions.checks) and found.state.allowed == checks_digest(instructions)
        for place, command in enumerate(instructions.checks):
            gate = Schedule(
                id=HEARTBEAT,
                owner=found.owner,
                name=HEARTBEAT_FILE,
                does="command",
                text=command,
                session=session,
                by_hand=by_hand,
            )
            try:
                shown = await self._check(gate, f"{HEARTBEAT}-{found.owner}-{found.version}-{place}")
            except ToolError as error:
                failed[command] = str(error)
                continue
            said[command] = shown.text
            outside |= {command} if shown.origin else set()
        return HeartbeatLook(instructions, files, said, failed, frozenset(outside))

    async def _keep(self, found: HeartbeatRow, outcome: BeatOutcome, session: str, where: ThreadRow | None) -> str:
        """Commit what was seen, with the letter; and tell who looks on."""
        state, now = outcome.state, outcome.state.looked
        letter = _letter(found, session, outcome.text) if outcome.text else None
        if letter:
            state = structs.replace(state, event=letter.event, channel=letter.address.channel)
        otherwise = not_asked(found.state, now, "nowhere", UNREACHED)
        kept = otherwise if outcome.text and not letter else state
        thread = await self._store.keep_beat(found.owner, found.version, kept, letter, otherwise)
        reach("heartbeat.kept")
        if thread is None:
            return "another was quicker"
        told = otherwise if letter and not thread else kept
        if thread:
            self._bus.wake(thread)
        if thread or where:
            at = thread or (where.id if where else "")
            self._bus.publish(HeartbeatTicked(at, 0, told.decided, told.why))
        return f"{told.decided}: {told.why}"


def _letter(found: HeartbeatRow, session: str, text: str) -> Inbound | None:
    """None where there is no such conversation."""
    owner, event = found.owner, f"job:{HEARTBEAT}:{found.owner}:{found.version + 1}"
    try:
        address = Address.parse(session)
    except MailRefused:
        return None
    notice = Notice(text, f"{HEARTBEAT_SOURCE}{owner}", owner, session, unattended=True)
    return Inbound(address, event, notice, owner)
