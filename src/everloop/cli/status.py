"""`everloop status`: how the whole house stands, whether or not a gateway runs."""

import argparse
import sys
from contextlib import AsyncExitStack

from ..app.house_status import read_status
from ..app.models import open_models
from ..app.records import open_records
from ..ports.house_status import ChannelHealth, HouseStatus, RunningGateway
from ..readings.visible import in_one_line
from .table import counted, dollars, sized, to_json
from .terminal import Terminal
from .times import clock

MORE = (
    "Nothing that it does costs anything: whether the model can be reached is found by asking for its list of models. "
    "Ends with 1 when something is broken, which it names, else with 0; also when no gateway runs."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object instead")


async def run(arguments: argparse.Namespace) -> int:
    terminal = Terminal(sys.stdout, sys.stderr)
    terminal.status("looking …")
    told = await _read()
    terminal.clear()
    if arguments.json:
        terminal.answer(to_json(told))
    else:
        terminal.answer("\n".join(lines_of(told)))
        for problem in told.problems:
            terminal.tell(in_one_line(f"Broken: {problem}"))
    return 1 if told.problems else 0


async def _read() -> HouseStatus:
    async with open_records() as records, AsyncExitStack() as stack:
        settings, vault = records.settings, records.vault
        library = await open_models(records.home, settings, vault, stack)
        return await read_status(records.home, settings, records.store, vault, library, records.budgets)


def lines_of(told: HouseStatus) -> list[str]:
    rows = {
        "everloop": f"{told.version}, home {told.home}",
        "store": told.store,
        "model": f"{told.model.name}: {told.model.state}" if told.model.name else told.model.state,
        "gateway": _gateway(told.gateway),
        "channels": ", ".join(_channel(each) for each in told.channels) or "none is set up",
        "schedules": _schedules(told),
        "tasks": f"{told.tasks_open} open",
        "MCP servers": ", ".join(f"{each.name}{'' if each.enabled else ' (off)'}" for each in told.mcp) or "none",
        "memory": f"{counted(told.facts)} facts of yours",
        "this month": _month(told),
        "disk": f"{sized(told.disk.home)} in the home, {sized(told.disk.free)} free",
        "errors": f"{len(told.errors)} of the last seven days" if told.errors else "none in the last seven days",
    }
    width = max(map(len, rows)) + 2
    lines = [in_one_line(f"{name:<{width}}{text}") for name, text in rows.items()]
    shown = [f"{'':<{width}}{each.time[:19]} {each.message}{_id(each.error)}" for each in told.errors]
    return [*lines, *map(in_one_line, shown)]


def _gateway(told: RunningGateway) -> str:
    return f"runs at {told.address} (pid {told.pid})" if told.running else "does not run"


def _channel(told: ChannelHealth) -> str:
    return f"{told.name} {told.state}{f', {told.waiting} waiting' if told.waiting else ''}"


def _schedules(told: HouseStatus) -> str:
    if not told.schedules:
        return "none to come"
    following = ", ".join(f"{each.name} at {clock(each.at)}" for each in told.schedules)
    return f"{told.schedules_to_come} to come: {following}"


def _month(told: HouseStatus) -> str:
    month = told.month
    limit = "" if month.limit is None else f" of {dollars(month.limit)}"
    return (
        f"{dollars(month.cost, month.unpriced)}{limit}, {month.calls:,} model call(s), {counted(month.tokens)} tokens"
    )


def _id(error: str) -> str:
    return f" (everloop logs --error {error})" if error else ""
