"""The heartbeat, put together: who sees to it, and who shows it."""

from collections.abc import Callable
from pathlib import Path

from ..ports import Bus, Clock, Store
from ..ports.heartbeat import HeartbeatFiles
from ..runtime.heartbeat import Heartbeat, HeartbeatRules
from ..runtime.heartbeat_desk import HeartbeatDesk
from ..runtime.scheduled_work import ScheduledDeeds
from ..settings import Settings, workspace_of
from ..tools.heartbeat_files import WatchedHeartbeats
from ..tools.home import Home
from ..tools.house_prompt_files import HousePromptFiles
from .schedules import rules_of
from .workspaces import workspace_for


def heartbeat_rules(settings: Settings) -> HeartbeatRules:
    chosen = settings.heartbeat
    return HeartbeatRules(
        enabled=chosen.enabled,
        every=chosen.every * 60.0,
        again=chosen.again_hours * 3600.0,
        quiet=chosen.quiet,
        zone=rules_of(settings).zone,
        session=chosen.session,
        people=chosen.people,
    )


def heartbeat_files(
    files: Callable[[], HousePromptFiles], home: Home, settings: Callable[[], Settings]
) -> WatchedHeartbeats:
    def folder_of(owner: str) -> Path:
        return workspace_for(owner, home.path, workspace_of(settings(), home.path))

    return WatchedHeartbeats(files, folder_of, home)


def heartbeat_in(
    store: Store,
    bus: Bus,
    clock: Clock,
    *,
    files: HeartbeatFiles,
    deeds: ScheduledDeeds,
    settings: Callable[[], Settings],
    whose: str,
) -> Heartbeat:
    return Heartbeat(store, bus, clock, files, deeds.check, lambda: heartbeat_rules(settings()), whose)


def heartbeat_desk(store: Store, files: HeartbeatFiles, settings: Callable[[], Settings]) -> HeartbeatDesk:
    return HeartbeatDesk(store, files, lambda: heartbeat_rules(settings()))
