"""How the whole house stands: read from what is kept, and from who can be asked for nothing."""

import asyncio
import os
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from .. import __version__
from ..core.people import OWNER, Role
from ..memory.forgetting import all_facts
from ..ports import Store, Vault
from ..ports.house_status import (
    AnsweringModel,
    ChannelHealth,
    DiskUse,
    DueSchedule,
    HouseStatus,
    LoggedError,
    McpStanding,
    MonthSpent,
)
from ..providers.choose import EMBEDDED
from ..runtime.allotments import Allotments
from ..settings import Settings
from .channel_status import ChannelStatus
from .models import ModelLibrary
from .survey import find_uses, look_at_host
from .whereabouts import running_gateway

SHOWN = 5
PATIENCE = 5.0  # seconds for who answers to say that it is there
TAIL = 400_000  # bytes of the log that are looked through
WEEK = timedelta(days=7)
LEAST_FREE = 500_000_000  # bytes, below which the disk is called full
BROKEN = ("wrong", "failed")


async def read_status(
    home: Path, settings: Settings, store: Store, vault: Vault, library: ModelLibrary | None, budgets: Allotments
) -> HouseStatus:
    """Without a `library`, one model was handed over, which is not asked. Raises StoreError."""
    model = await _model(library)
    channels = [row for row in await ChannelStatus(home, store, vault).rows(settings) if row.state != "unset"]
    to_come = [row for row in await store.schedules() if row.enabled and not row.over and row.next is not None]
    disk = await asyncio.to_thread(_disk_use, home)
    mcp = [McpStanding(name, each.enabled, each.wrong) for name, each in settings.tools.mcp_servers.items()]
    health = [
        ChannelHealth(row.name, row.state, row.why, row.traffic.waiting, row.traffic.given_up) for row in channels
    ]
    return HouseStatus(
        version=__version__,
        home=str(home),
        store=_store_words(settings, home),
        model=model,
        gateway=running_gateway(home),
        channels=health,
        schedules=[DueSchedule(row.schedule.name, row.schedule.owner, row.next or 0.0) for row in to_come[:SHOWN]],
        schedules_to_come=len(to_come),
        tasks_open=sum(task.is_open for task in await store.tasks()),
        mcp=mcp,
        facts=await _count_facts(store),
        month=await _month(store, budgets),
        disk=disk,
        errors=await asyncio.to_thread(_last_errors, home),
        problems=[*_problems(model, health, mcp, disk)],
    )


def _problems(
    model: AnsweringModel, channels: Sequence[ChannelHealth], mcp: Sequence[McpStanding], disk: DiskUse
) -> list[str]:
    """What is broken. A channel that nobody listens at is not: the gateway may be meant not to run."""
    found = []
    if model.why:
        found.append(
            f"{model.name} cannot be asked ({model.why.rstrip('.')}): everloop models test, or everloop onboard"
        )
    found += [f"channel {each.name}: {each.why or each.state}" for each in channels if each.state in BROKEN]
    given_up = [each.name for each in channels if each.given_up]
    if given_up:
        found.append(f"answers were given up on {', '.join(given_up)}: everloop outbox list")
    found += [f"MCP server {each.name}: {each.wrong}" for each in mcp if each.wrong and each.enabled]
    if disk.free < LEAST_FREE:
        found.append(f"the disk has {disk.free / 1e6:,.0f} MB left: make room, everloop files clean")
    return found


async def _model(library: ModelLibrary | None) -> AnsweringModel:
    if library is None:
        return AnsweringModel("", "was handed over by the program")
    use = (await find_uses(library))[0]
    if use.why:
        return AnsweringModel(use.model, "cannot be had", use.why)
    host = use.model.partition("/")[0]
    if host == EMBEDDED:
        download = library.models.find(use.model).download
        return AnsweringModel(use.model, "ready" if download and download.is_here else "fetched with the first message")
    row = await look_at_host(library, host, PATIENCE)
    return AnsweringModel(use.model, row.state, row.why)


def _store_words(settings: Settings, home: Path) -> str:
    if not settings.store.url:
        return f"SQLite, {home / 'everloop.db'}"
    parts = urlsplit(settings.store.url)
    return f"PostgreSQL, {parts.hostname or 'local'}{parts.path}"


async def _count_facts(store: Store) -> int:
    return len(await all_facts(store, OWNER, ended=False))


async def _month(store: Store, budgets: Allotments) -> MonthSpent:
    first = datetime.now().replace(day=1, hour=0, minute=0, second=0, microsecond=0).timestamp()
    rows = await store.spent(first)
    limit = next((line.money for line in await budgets.of(OWNER, Role.OWNER) if line.per == "month"), None)
    return MonthSpent(
        calls=sum(row.calls for row in rows),
        tokens=sum(row.usage.input + row.usage.output for row in rows),
        cost=sum(row.cost for row in rows),
        unpriced=sum(row.unpriced for row in rows),
        limit=limit,
    )


def _disk_use(home: Path) -> DiskUse:
    used = 0
    for folder, _, names in os.walk(home):
        for name in names:
            try:
                used += os.lstat(os.path.join(folder, name)).st_size
            except OSError:  # it has gone meanwhile
                continue
    return DiskUse(used, shutil.disk_usage(home).free)


def _last_errors(home: Path) -> list[LoggedError]:
    path, since = home / "logs" / "everloop.log", (datetime.now(UTC) - WEEK).isoformat()
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - TAIL))
            lines = file.read().split(b"\n")
    except OSError:
        return []
    found = [line for line in map(_logged, lines) if line and line["time"] >= since]
    return [LoggedError(each["time"], each["message"][:300], each.get("error", "")) for each in found[-SHOWN:]]


def _logged(line: bytes) -> dict[str, Any] | None:
    """An error, if this line of the log is one, whole and of ours."""
    try:
        told = msgspec.json.decode(line)
    except msgspec.DecodeError:
        return None
    if not isinstance(told, dict) or told.get("level") not in ("error", "critical"):
        return None
    return told if isinstance(told.get("time"), str) and isinstance(told.get("message"), str) else None
