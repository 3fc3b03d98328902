"""Restores a backup into a new home (`new_home`): unpacks it, checks it, and makes of its rows a copy's."""

import asyncio
import os
import time
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from ..backup.manifest import DATABASE, About, PackSummary
from ..backup.unpack import Unpacked, read_backup
from ..errors import BackupDamaged, BackupError, HomeError
from ..ports.backup import HeldBack, RestoredCopy
from ..ports.failpoint import reach
from ..runtime.cutting_off import cut_off
from ..runtime.people import KnownPeople
from .backup_making import WORKSPACE
from .finishing import to_its_end
from .home_taking import HomeTaker
from .new_home import make_room, marker_in
from .restored_settings import own_settings
from .verifying import belongs, check_rows

if TYPE_CHECKING:
    from ..store.postgres import PostgresStore
    from ..store.sqlite import SqliteStore

STORE_URL = "EVERLOOP_STORE__URL"


class RestorePlan(Struct, frozen=True):
    """`store` is the address of an empty PostgreSQL database; "": SQLite in the home. `same_place`: this is now the one
    and only copy, which goes on as after a crash."""

    file: Path
    home: Path
    passphrase: str = ""
    store: str = ""
    same_place: bool = False
    replace: bool = False


class Restored(Struct, frozen=True):
    about: About
    summary: PackSummary
    held: HeldBack | None  # None: it goes on
    aside: Path | None = None  # where the home lies that was there before
    notes: tuple[str, ...] = ()


async def restore(plan: RestorePlan) -> Restored:
    """What fails is put back. Only where rows may be in the database of `--store`, it stays half restored: the same
    command begins again. Raises BackupError, HomeError, StoreError."""
    plan = msgspec.structs.replace(plan, home=Path(await asyncio.to_thread(os.path.realpath, plan.home)))
    await _check_store(plan)
    home = await asyncio.to_thread(make_room, plan.home, plan.replace)
    with home.marked(plan.file.name, plan.store):
        reach("restore.begun")
        try:
            found, notes = await _unpack(plan)
            held = None if plan.store else await _settle(plan, found)
        except BaseException:
            await to_its_end(home.put_back)
            raise
        if plan.store:
            held = await _settle(plan, found)
        reach("restore.settled")
        await asyncio.to_thread(home.finish)
    return Restored(found.about, found.summary, held, home.aside, tuple(notes))


async def _unpack(plan: RestorePlan) -> tuple[Unpacked, list[str]]:
    unpacking = _Unpacking(plan)
    done = await to_its_end(unpacking.run, unpacking.stop)
    reach("restore.unpacked")
    return done


async def _check_store(plan: RestorePlan) -> None:
    """Only a database that nobody uses is written over: or the one that was empty when this was begun with before."""
    if not plan.store:
        if os.environ.get(STORE_URL):
            raise BackupError(
                f"{STORE_URL} names a database, which the restored home would use in place of what is restored: unset "
                "it, or name an empty database with --store"
            )
        return
    from ..store.postgres import PostgresStore

    store = await PostgresStore.connect(plan.store)
    try:
        if await store.has_rows() and marker_in(plan.home).store != plan.store:
            raise BackupError("the database of --store is not empty: name one that is, or remove its tables yourself")
    finally:
        await store.close()


class _Unpacking:
    """The whole of a backup into its home; `stop` is asked from elsewhere."""

    def __init__(self, plan: RestorePlan) -> None:
        self._plan = plan
        self._stopped = Event()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> tuple[Unpacked, list[str]]:
        home = self._plan.home
        try:
            with HomeTaker(home, self._stopped.is_set) as taker:
                found = read_backup(self._plan.file, self._plan.passphrase, taker, staging=home, belongs=belongs)
                notes = taker.link_all()
            database = home / DATABASE
            check_rows(self._plan.file, database if database.exists() else None, found)
            return found, notes + own_settings(home, self._plan.store)
        except OSError as error:
            raise HomeError(f"{home} could not be written ({error.strerror}); what was written was removed") from error


async def _settle(plan: RestorePlan, found: Unpacked) -> HeldBack | None:
    """Bring the rows up to date, and make them a copy's."""
    from ..store.sqlite import SqliteStore

    store = await SqliteStore.connect(plan.home)
    for copy in plan.home.glob(f"{DATABASE}.before-*"):  # it was brought up to date, and lies in the backup as it was
        copy.unlink()
    if not plan.store:
        try:
            return await _become(store, plan, found.about)
        finally:
            await store.close()
    await store.close()
    from ..store.postgres import PostgresStore

    server = await PostgresStore.connect(plan.store)
    try:
        await server.load_from(str(plan.home / DATABASE))
        held = await _become(server, plan, found.about)
    finally:
        await server.close()
    for left in plan.home.glob(f"{DATABASE}*"):
        left.unlink()
    return held


async def _become(store: "SqliteStore | PostgresStore", plan: RestorePlan, about: About) -> HeldBack | None:
    try:
        return await _made_a_copy(store, plan, about)
    except msgspec.DecodeError as error:
        raise BackupDamaged(f"{plan.file}: something in its database cannot be read ({error})") from error


async def _made_a_copy(store: "SqliteStore | PostgresStore", plan: RestorePlan, about: About) -> HeldBack | None:
    home = str(await asyncio.to_thread(plan.home.resolve))
    places = [(about.workspace, os.path.join(home, WORKSPACE)), (about.home, home)]
    copy = RestoredCopy(plan.file.name, about.made, time.time())
    if plan.same_place:
        await store.succeed(copy, places)
        return None
    held = await store.hold_back(copy, places)
    turns = await cut_off(store, KnownPeople(store))
    answers = await store.hold_answers(copy)  # what they were told
    return msgspec.structs.replace(held, turns=turns, answers=held.answers + answers)
