"""Schedules in words: what the tool `cron`, the command `/cron` and `everloop cron` say."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from ..errors import MailRefused
from ..ports.schedules import Asker, FiredSchedule, ScheduleRow, ScheduleRun
from ..readings.cron_order import ACTIONS
from .schedule_desk import ScheduleDesk

NOTHING = "There are no schedules."
_DOES = {"turn": "asks the agent", "message": "tells you", "command": "runs a command"}
_RUNS = {
    "running": "running",
    "done": "done",
    "failed": "failed",
    "skipped": "left out",
    "asked": "asked about",
    "barred": "not allowed",
}
_SHOWN = 70


class ScheduleWords:
    def __init__(self, desk: ScheduleDesk) -> None:
        self.desk = desk

    async def act(self, asker: Asker, action: str, id: str, fields: Mapping[str, Any], key: str = "") -> str:
        """Do it, and say what came of it. `key` names the attempt. Raises MailRefused."""
        if action not in ("add", "list") and not id:
            raise MailRefused(f"say which: {action} needs the id of a schedule")
        match action:
            case "add":
                row = await self.desk.create(asker, fields, key)
                return f"{self.told(row)}\n{await self.desk.monthly_cost(row)}".rstrip()
            case "list":
                rows = await self.desk.listed(asker)
                return "\n".join(map(self.told, rows)) or NOTHING
            case "edit":
                row = await self.desk.edit(asker, id, fields)
                return f"{self.told(row)}\n{await self.desk.monthly_cost(row)}".rstrip()
            case "remove":
                return f"Removed: {(await self.desk.remove(asker, id)).name}"
            case "enable" | "disable":
                return self.told(await self.desk.enable(asker, id, action == "enable"))
            case "run":
                return _fired(await self.desk.run(asker, id, key))
            case "log":
                return await self.runs(asker, id)
        raise MailRefused(f"there is no {action[:40]!r}; there are {', '.join(ACTIONS)}")

    async def runs(self, asker: Asker, id: str) -> str:
        """How its last runs went, a line for each. Raises MailRefused."""
        zone = (await self.desk.find(asker, id)).schedule.zone
        return "\n".join(run_line(run, zone) for run in await self.desk.log(asker, id)) or "It has not run yet."

    def told(self, row: ScheduleRow) -> str:
        """One line: its id, name, what it does when, and its next times."""
        schedule = row.schedule
        what = f"{_DOES[schedule.does]}: {_short(schedule.text)}"
        if schedule.polls:
            what = f"looks at {_short(schedule.polls)} until it {schedule.condition}, then {what}"
        return f"{schedule.id}  {schedule.name}  ({schedule.when}, {schedule.zone}; {self.standing(row)})  {what}"

    def standing(self, row: ScheduleRow) -> str:
        """When it runs next, or why it does not."""
        if row.over:
            return f"over: {row.over}"
        if not row.enabled:
            return "disabled"
        if row.schedule.hook:
            return f"when its hook is called, of which `everloop cron hook {row.schedule.id}` tells"
        times = ", ".join(shown_at(at, row.schedule.zone) for at in self.desk.next_times(row))
        return f"next {times}"


def run_line(run: ScheduleRun, zone: str) -> str:
    cost = f", ${run.cost:.4f}" if run.cost else ""
    result = f": {_short(run.result)}" if run.result else ""
    return f"{shown_at(run.due, zone)}  {_RUNS[run.state]}{cost}{result}"


def shown_at(at: float, zone: str) -> str:
    """By the clock of a schedule."""
    return f"{datetime.fromtimestamp(at, ZoneInfo(zone)):%a %Y-%m-%d %H:%M}"


def _fired(fired: FiredSchedule | None) -> str:
    if fired is None:
        return "It has been run already."
    return f"{fired.name}: {_RUNS[fired.state]}" + (f" ({fired.result})" if fired.result else "")


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 1]}…"
