"""Schedules of people, put together: who makes them, who does their work, and what the settings say of them."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from zoneinfo import ZoneInfo

from msgspec import Struct

from ..bus.local import LocalBus
from ..ports import Bus, Clock, People, PromptFiles, Store, Vault
from ..runtime.calls import Toolbox
from ..runtime.clock import SystemClock
from ..runtime.deletions import Forget
from ..runtime.schedule_desk import ScheduleDesk, ScheduleRules
from ..runtime.schedule_words import NOTHING, ScheduleWords
from ..runtime.scheduled_work import ScheduledDeeds
from ..runtime.tainting import CommandTaints
from ..settings import Settings
from .briefer import policy_of
from .opening import opened_home

__all__ = ["NOTHING", "ScheduleWords", "open_schedules", "scheduled_deeds", "schedules_in", "zone_here"]

_LOCALTIME, _ZONES = Path("/etc/localtime"), "zoneinfo/"


def schedules_in(store: Store, bus: Bus, clock: Clock, settings: Callable[[], Settings]) -> ScheduleWords:
    return ScheduleWords(ScheduleDesk(store, bus, clock, lambda: rules_of(settings())))


def scheduled_deeds(
    store: Store,
    bus: Bus,
    people: People,
    toolbox: Toolbox,
    settings: Callable[[], Settings],
    forget: Forget,
    files: PromptFiles | None,
) -> ScheduledDeeds:
    taints = CommandTaints(store, files, lambda whose: toolbox.kit(whose).place) if files else None
    return ScheduledDeeds(store, bus, people, toolbox, lambda: policy_of(settings().tools), forget, taints)


class OpenSchedules(Struct, frozen=True):
    words: ScheduleWords
    links: Vault  # where the key lies from which the secrets of their hooks are made


@asynccontextmanager
async def open_schedules(home: Path | None = None) -> AsyncIterator[OpenSchedules]:
    """For a command of its own: another process has them run. Raises SettingsError, StoreError."""
    async with opened_home(home) as opened:
        words = schedules_in(opened.store, LocalBus(), SystemClock(), lambda: opened.settings)
        yield OpenSchedules(words, opened.links)


def rules_of(settings: Settings) -> ScheduleRules:
    chosen = settings.schedules
    return ScheduleRules(chosen.timezone or zone_here(), chosen.most_per_person, float(chosen.least_seconds))


def zone_here() -> str:
    """The name of the machine's time zone, as far as it has one."""
    named = os.environ.get("TZ", "").removeprefix(":")
    _, _, linked = str(_LOCALTIME.resolve()).partition(_ZONES)
    for name in (named, linked):
        try:
            if name:
                return ZoneInfo(name).key
        except (OSError, ValueError, KeyError):
            continue
    return "UTC"
