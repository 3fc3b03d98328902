"""What is wrong with this house, and what to do about it. It works where the house itself does not open: on broken
settings, a damaged store, a home that is another's; and it changes nothing unless it is told to mend."""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...errors import EverloopError, SettingsError, StoreError
from ...ports import Store
from ...ports.doctor import CheckRow, Diagnosis, Mended
from ...ports.jobs import TaskState
from ...settings import Settings, home_of, load
from ...store.channel_state import SealedChannelRecords
from ...store.onlooking import DATABASE, KNOWN, look_at_sqlite, nothing_yet
from ...store.vault import EncryptedVault, key_of
from ..models import network_of
from ..opening import OpenHome
from ..settings_files import SettingsFiles
from . import (
    backups,
    channels,
    configuration,
    files,
    listening,
    machine,
    models,
    network,
    people,
    running,
    sandbox,
    storage,
)
from .check import Check, Patient, skipped
from .mending import mend_all

__all__ = ["CHECKS", "GROUPS", "HouseDoctor", "Progress", "examine", "examined", "mend_all", "patient_of"]

OPENING = 12.0  # seconds for the store
AT_ONCE = 8
FRESH = 5.0  # seconds for which a look counts

# In the order in which they are told. A check is another row in one of these files, or a file of its own here.
GROUPS: dict[str, tuple[Check, ...]] = {
    "settings": configuration.CHECKS,
    "files": files.CHECKS,
    "store": (*storage.CHECKS, *backups.CHECKS),
    "machine": machine.CHECKS,
    "network": network.CHECKS,
    "models": models.CHECKS,
    "sandbox": sandbox.CHECKS,
    "channels": channels.CHECKS,
    "people": people.CHECKS,
    "running": (*running.CHECKS, *listening.CHECKS),
}
CHECKS = tuple((group, check) for group, checks in GROUPS.items() for check in checks)


class Progress(Struct, frozen=True):
    """What has just been looked at, and how far this is."""

    check: str
    done: int
    of: int


class SeenStore(Struct, frozen=True):
    """`version` is that of its schema, 0 where there is no store yet."""

    store: Store
    version: int


Told = Callable[[Progress], None]


async def examine(patient: Patient, told: Told = lambda progress: None) -> list[Diagnosis]:
    """All checks, several at once; what they find, in their own order."""
    seats, done = asyncio.Semaphore(AT_ONCE), 0

    async def one(group: str, check: Check) -> list[Diagnosis]:
        nonlocal done
        async with seats:
            found = await _looked(check, patient)
        done += 1
        told(Progress(check.name, done, len(CHECKS)))
        return [replace(each, check=check.name, group=group) for each in found]

    found = await asyncio.gather(*(one(group, check) for group, check in CHECKS))
    return [each for some in found for each in some]


async def _looked(check: Check, patient: Patient) -> Sequence[Diagnosis]:
    if check.needs and patient.settings is None:
        return skipped("the settings cannot be read")
    if check.needs == "store" and (patient.opened is None or patient.schema not in (0, KNOWN)):
        return skipped("the store cannot be asked, see there")
    try:
        async with asyncio.timeout(check.seconds):
            return await check.look(patient)
    except TimeoutError:
        return [
            Diagnosis("broken", f"this has not ended within {check.seconds:g} s", "Something it asks does not answer")
        ]
    except PermissionError as error:  # of the home the check of that name tells
        return skipped(f"{error.filename} may not be looked at")
    except (EverloopError, OSError) as error:
        return [Diagnosis("broken", f"this could not be looked at: {error}", "Mend that, and look again")]
    except Exception as error:  # the border to one check: what is wrong with it keeps no other from being told
        why = " ".join(f"{type(error).__name__}: {error}".split())
        return [Diagnosis("broken", f"this could not be looked at ({why})", "This is a mistake in everloop: report it")]


@asynccontextmanager
async def patient_of(
    home: Path | None = None,
    *,
    live: bool = False,
    tasks: Callable[[], Sequence[TaskState]] | None = None,
    confine: Callable[[], Awaitable[Any]] | None = None,
) -> AsyncIterator[Patient]:
    """A home as far as it can be looked into. Raises nothing that a home can be the cause of."""
    folder = home or home_of(os.environ)
    settings, unread = await asyncio.to_thread(_read, folder)
    seen, unopened = await _seen(folder, settings)
    async with AsyncExitStack() as stack:
        if seen:
            stack.push_async_callback(seen.store.close)
        yield Patient(
            home=folder,
            environ=os.environ,
            settings=settings,
            unread=unread,
            opened=_opened(folder, settings, seen) if settings and seen else None,
            unopened=unopened,
            schema=seen.version if seen else 0,
            http=cache(lambda: network_of(settings or Settings(), stack)),
            live=live,
            tasks=tasks,
            confine=confine,
        )


def _read(home: Path) -> tuple[Settings | None, str]:
    try:
        return load(home, os.environ), ""
    except SettingsError as error:
        return None, str(error)


async def _seen(home: Path, settings: Settings | None) -> tuple[SeenStore | None, str]:
    if settings is None:
        return None, "the settings cannot be read, which say where the store is"
    try:
        async with asyncio.timeout(OPENING):
            return await _looked_into(home, settings), ""
    except TimeoutError:
        return None, f"the store has not opened within {OPENING:g} s"
    except (EverloopError, OSError, ImportError) as error:
        return None, str(error)


async def _looked_into(home: Path, settings: Settings) -> SeenStore:
    if not settings.store.url:
        path = home / DATABASE
        if path.is_file() and not path.stat().st_size:
            raise StoreError(f"{path} is empty: whatever was in it is gone")
        return SeenStore(*await look_at_sqlite(home, settings.store.lease_seconds))
    from ...store.onlooking_server import look_at_postgres

    found = await look_at_postgres(settings.store.url, settings.store.lease_seconds)
    return SeenStore(*found) if found else SeenStore(nothing_yet(home), 0)


def _opened(home: Path, settings: Settings, seen: SeenStore) -> OpenHome:
    key = key_of(home, os.environ)
    vault, links = EncryptedVault(seen.store, key), EncryptedVault(seen.store, key, "gateway")
    state_of = partial(SealedChannelRecords, seen.store, key)
    vault_of = partial(EncryptedVault, seen.store, key)
    return OpenHome(home, settings, seen.store, vault, links, vault_of, SettingsFiles(home), state_of)


async def examined(
    home: Path | None = None, *, live: bool = False, told: Told = lambda progress: None
) -> list[Diagnosis]:
    async with patient_of(home, live=live) as patient:
        return await examine(patient, told)


class HouseDoctor:
    """The Doctor port of a gateway, which looks at its own home. One look at a time, and none again at once: whoever
    asks meanwhile, or a moment later, is told what that one has found, for it starts processes and asks hosts."""

    def __init__(self, home: Path, tasks: Callable[[], Sequence[TaskState]]) -> None:
        self._home = home
        self._tasks = tasks
        self._alone = asyncio.Lock()
        self._found: list[Diagnosis] = []
        self._fresh_until = 0.0

    def checks(self) -> Sequence[CheckRow]:
        return [CheckRow(check.name, group, check.about) for group, check in CHECKS]

    async def examine(self) -> Sequence[Diagnosis]:
        async with self._alone:
            if time.monotonic() > self._fresh_until:
                async with patient_of(self._home, tasks=self._tasks) as patient:
                    self._found = await examine(patient)
                self._fresh_until = time.monotonic() + FRESH
            return self._found

    async def mend(self) -> Sequence[Mended]:
        mended = await asyncio.to_thread(mend_all, await self.examine(), self._home)
        if mended:
            self._fresh_until = 0.0
        return mended
