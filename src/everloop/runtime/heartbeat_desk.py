"""Somebody's heartbeat, for whoever shows it: the command, the API, `/status`."""

from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from msgspec import Struct, structs

from ..core.decide import APPROVER
from ..errors import MailRefused
from ..ports.heartbeat import HEARTBEAT_FILE, HeartbeatFiles, HeartbeatRow, Heartbeats
from ..ports.schedules import Asker
from ..readings.heartbeat import checks_digest, instructions_in
from .heartbeat import HeartbeatRules

OFF = "The heartbeat is switched off (heartbeat.enabled)."
NOT_YOURS = "Heartbeats are the owner's alone here (heartbeat.people)."
NO_FILE = (
    f"There is no {HEARTBEAT_FILE} in your workspace. Write into one what the agent should look after; it is found "
    "where everloop gateway runs, or a chat of yours is open."
)
UNPLANNED = "It was not looked at yet: that is done where everloop gateway runs, or a chat of yours is open."
IN_A_COPY = "nothing begins by itself in a restored copy; if this is the one that goes on: everloop backup adopt"
SOON = "It is looked at within seconds, where everloop gateway runs or a chat of yours is open."


class HeartbeatShown(Struct, frozen=True):
    """`off` says why there is none; else the row says how it stands. `checks` are commands that wait to be allowed by
    hand, should the settings not allow them."""

    row: HeartbeatRow
    off: str = ""
    checks: tuple[str, ...] = ()


class HeartbeatDesk:
    def __init__(self, store: Heartbeats, files: HeartbeatFiles, rules: Callable[[], HeartbeatRules]) -> None:
        self._store = store
        self._files = files
        self._rules = rules

    async def shown(self, person: str) -> HeartbeatShown:
        rules, row = self._rules(), await self._store.heartbeat(person)
        if not rules.hold_for(person):
            return HeartbeatShown(row, OFF if not rules.enabled else NOT_YOURS)
        if not self._files.is_there(person) and row.next is None:
            return HeartbeatShown(row, NO_FILE)
        text, _ = await self._files.read(person)
        asked = instructions_in(text or "")
        return HeartbeatShown(row, checks=() if row.state.allowed == checks_digest(asked) else asked.checks)

    async def run(self, person: str) -> str:
        """Have it looked at now. Raises MailRefused."""
        shown = await self.shown(person)
        if shown.off:
            raise MailRefused(_plain(shown.off))
        await self._store.plan_heartbeat(person, self._rules().every)
        if not await self._store.hasten_heartbeat(person):
            raise MailRefused(IN_A_COPY)
        return SOON

    async def allow(self, asker: Asker) -> str:
        """Let the checks run as they are written now, for whoever may approve them. Raises MailRefused."""
        if not asker.by_hand or asker.role < APPROVER:
            raise MailRefused("the checks of a heartbeat are allowed by who may approve commands")
        shown = await self.shown(asker.person)
        text, _ = await self._files.read(asker.person)
        asked = instructions_in(text or "")
        if shown.off or not asked.checks:
            raise MailRefused(_plain(shown.off) if shown.off else f"{HEARTBEAT_FILE} has no line `check: COMMAND`")
        await self._store.plan_heartbeat(asker.person, self._rules().every)
        row = await self._store.heartbeat(asker.person)
        state = structs.replace(row.state, allowed=checks_digest(asked))
        if await self._store.keep_beat(asker.person, row.version, state, None, state) is None:
            raise MailRefused("it was looked at in this moment; try again")
        return f"These are run from now on, until one of them is written otherwise: {'; '.join(asked.checks)}"

    async def lines(self, person: str) -> list[str]:
        """How it stands, in sentences."""
        shown = await self.shown(person)
        if shown.off:
            return [shown.off]
        row, zone = shown.row, self._rules().zone
        if not row.state.looked:
            return [UNPLANNED]
        lines = [f"Looked at {_at(row.state.looked, zone)}: {row.state.decided} ({row.state.why})."]
        if row.state.asked:
            cost = f", ${row.cost:.4f}" if row.cost else ""
            told = "not over yet" if row.busy else f"told: “{_short(row.result)}”" if row.result else "nothing to tell"
            lines.append(f"The agent was asked last {_at(row.state.asked, zone)}: {told}{cost}.")
        if row.next is not None:
            lines.append(f"Next: {_at(row.next, zone)}.")
        return lines

    async def line(self, person: str) -> str:
        """For `/status`; "" where there is none."""
        row = await self._store.heartbeat(person)
        if not self._rules().hold_for(person) or not row.state.looked or row.next is None:
            return ""
        zone = self._rules().zone
        state = row.state
        return f"Heartbeat: {state.decided} {_at(state.looked, zone)} ({state.why}); next {_at(row.next, zone)}."


def _plain(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:]}".removesuffix(".")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"


def _at(at: float, zone: str) -> str:
    return f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%a %Y-%m-%d %H:%M}"
