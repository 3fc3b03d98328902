"""Restores a backup into a new home, and looks at one without restoring it.

`restoring.json` lies in the home from before the first file until all is there, is checked and is made a copy: a home
with it is half restored, is opened by nobody, and is restored again from the beginning.
"""

import asyncio
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event
from typing import IO, TYPE_CHECKING

import msgspec
from msgspec import Struct

from ..backup.manifest import DATABASE, About, Member, PackSummary
from ..backup.unpack import Unpacked, is_sealed_file, read_backup
from ..errors import BackupDamaged, BackupError, HomeError, StoreNewer
from ..ports.backup import HeldBack, RestoredCopy
from ..ports.failpoint import reach
from ..runtime.cutting_off import cut_off
from ..runtime.people import KnownPeople
from ..settings.edit import SettingChange, edited_json, edited_toml
from ..settings.sources import file_of, read_bytes, read_layer
from ..store import schema
from ..store.copying import counts_in, schema_in
from .backup_making import WORKSPACE
from .finishing import to_its_end
from .home_folders import FOLDERS
from .home_taking import HomeTaker, check_room
from .opening import RESTORING

if TYPE_CHECKING:
    from ..store.postgres import PostgresStore
    from ..store.sqlite import SqliteStore

__all__ = ["RestorePlan", "Restored", "is_sealed_file", "restore", "verify"]

MARKER = RESTORING
STORE_URL = "EVERLOOP_STORE__URL"
NEW_URL = "store.url in its settings is the new one."
_IDLE = ("logs", "run", "backups", "models", MARKER)  # what does not make a folder somebody's home


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


class _Marker(Struct, frozen=True):
    file: str
    store: str = ""  # that was empty when it was begun with


def verify(file: Path, passphrase: str, staging: Path | None = None) -> Unpacked:
    """Read all of it, and restore nothing. The database lies in a file without a name meanwhile, which is gone with
    this process however that ends: in `staging`, or where the system has what is temporary. Raises BackupError."""
    place = staging if staging and staging.is_dir() else Path(tempfile.gettempdir())
    try:
        with tempfile.TemporaryFile(dir=place) as database:
            taker = _DatabaseOnly(database, place)
            found = read_backup(file, passphrase, taker, staging=place, belongs=_belongs)
            _check_rows(file, database.fileno() if taker.has_found else None, found)
    except OSError as error:
        raise BackupError(
            f"{file} could not be looked through: nothing can be written into {place} ({error.strerror})"
        ) from error
    return found


async def restore(plan: RestorePlan) -> Restored:
    """Raises BackupError, HomeError, StoreError, SettingsError."""
    plan = msgspec.structs.replace(plan, home=Path(await asyncio.to_thread(os.path.realpath, plan.home)))
    await _check_store(plan)
    aside = await asyncio.to_thread(_make_room, plan)
    with _marked_as_begun(plan):
        reach("restore.begun")
        unpacking = _Unpacking(plan)
        try:
            found, notes = await to_its_end(unpacking.run, unpacking.stop)
        except BaseException:
            await to_its_end(lambda: _put_back(plan.home, aside))
            raise
        reach("restore.unpacked")
        held = await _settle(plan, found)
        reach("restore.settled")
        await asyncio.to_thread(_finish, plan.home)
    return Restored(found.about, found.summary, held, aside, tuple(notes))


def _make_room(plan: RestorePlan) -> Path | None:
    """Where the home was moved that lay there."""
    home = plan.home
    try:
        names = set(os.listdir(home)) - set(_IDLE) if home.exists() else set[str]()
        _check_unused(home)
        if os.path.lexists(home / MARKER):
            _clear(home)  # of one that was cut off
            names = set()
        if not names:
            home.mkdir(parents=True, exist_ok=True, mode=0o700)
            home.chmod(0o700)
            return None
        if not plan.replace:
            raise HomeError(
                f"{home} is not empty ({', '.join(sorted(names)[:3])}): name a new folder with --home, or say "
                "--replace, which moves it aside first"
            )
        aside = home.with_name(f"{home.name}.before-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
        home.rename(aside)
        home.mkdir(mode=0o700)
        return aside
    except OSError as error:
        raise HomeError(f"the home {home} cannot be made ({error.strerror}): name another with --home") from error


def _check_unused(home: Path) -> None:
    from ..store.holders import Holders

    if _is_being_restored(home):
        raise HomeError(f"another process is restoring into {home}: wait until it has ended, or end it")
    if not (home / "run").is_dir():
        return
    holders = Holders(home / "run")
    try:
        names = [path.name for path in (home / "run").iterdir() if not path.name.startswith(".")]
        others = [name for name in names if name != holders.me and name[:1].isdecimal() and holders.alive(name)]
    finally:
        holders.close()
    if others:
        raise HomeError(f"the home {home} is in use by process {others[0].partition('-')[0]}: end it first")


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
        if await store.has_rows() and _marked(plan.home).store != plan.store:
            raise BackupError("the database of --store is not empty: name one that is, or remove its tables yourself")
    finally:
        await store.close()


def _marked(home: Path) -> _Marker:
    try:
        with open(home / MARKER, "rb", opener=_as_it_is) as file:
            return msgspec.json.decode(file.read(10_000), type=_Marker)
    except (OSError, msgspec.DecodeError):
        return _Marker("")


def _as_it_is(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)


def _not_cut(name: str, flags: int) -> int:
    """What is in it stays, for it may be another's that restores just now."""
    return os.open(name, flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)


def _is_being_restored(home: Path) -> bool:
    try:
        with open(home / MARKER, "rb", opener=_as_it_is) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is none, or something else is called so
        return False
    return False


@contextmanager
def _marked_as_begun(plan: RestorePlan) -> Iterator[None]:
    """The marker is locked as long as this process restores: what another one has begun and left is known by that."""
    path = plan.home / MARKER
    try:
        file = open(path, "wb", opener=_not_cut)  # noqa: SIM115 (closed below)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise HomeError(f"{path} cannot be written ({error.strerror}): another may be restoring there") from error
    with file:
        file.truncate(0)
        file.write(msgspec.json.encode(_Marker(plan.file.name, plan.store)))
        file.flush()
        os.fsync(file.fileno())
        yield


def _put_back(home: Path, aside: Path | None) -> None:
    """As if nothing had been begun."""
    _clear(home)
    (home / MARKER).unlink(missing_ok=True)
    if aside is not None:
        shutil.rmtree(home)
        aside.rename(home)


def _clear(home: Path) -> None:
    """All that a restore has written; the marker stays, and says what was begun."""
    for path in home.iterdir() if home.exists() else ():
        if path.name in _IDLE:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


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
                found = read_backup(self._plan.file, self._plan.passphrase, taker, staging=home, belongs=_belongs)
                notes = taker.link_all()
            database = home / DATABASE
            _check_rows(self._plan.file, database if database.exists() else None, found)
            return found, notes + _own_settings(self._plan)
        except OSError as error:
            raise HomeError(f"{home} could not be written ({error.strerror}); what was written was removed") from error


def _check_rows(file: Path, database: Path | int | None, found: Unpacked) -> None:
    if database is None:
        raise BackupDamaged(f"{file}: there is no database in it")
    if (version := schema_in(database)) > len(schema.MIGRATIONS):
        raise StoreNewer(schema.newer(str(file), version, len(schema.MIGRATIONS)))
    try:
        rows = counts_in(database)
    except BackupError as error:
        raise BackupDamaged(f"{file}: {error}") from error
    wrong = [table for table, count in found.summary.rows.items() if rows.get(table) != count]
    if wrong or found.about.schema != version:
        raise BackupDamaged(f"{file}: the database in it is not the one that was backed up ({', '.join(wrong[:5])})")


def _own_settings(plan: RestorePlan) -> list[str]:
    """The settings of then, but for where the original keeps its rows and its workspace: the copy has its own."""
    path = file_of(plan.home)
    if path is None:
        return [] if not plan.store else _keep_url(plan)
    data = read_bytes(path)
    said = read_layer(path, data, {}).values
    store = said.get("store")
    changes, notes = list[SettingChange](), list[str]()
    if plan.store or (isinstance(store, dict) and store.get("url")):
        changes.append(SettingChange(("store", "url"), plan.store or None))
        notes.append(NEW_URL if plan.store else "store.url in its settings was removed: it has SQLite.")
    if said.get("workspace"):
        changes.append(SettingChange(("workspace",), None))
        notes.append(f"workspace in its settings was removed: it lies in {plan.home / WORKSPACE}.")
    edit = edited_toml if path.suffix == ".toml" else edited_json
    if changes:
        path.write_text(edit(data.decode("utf-8-sig"), changes))
    return notes


def _keep_url(plan: RestorePlan) -> list[str]:
    (plan.home / "config.toml").write_text(edited_toml("", [SettingChange(("store", "url"), plan.store)]))
    os.chmod(plan.home / "config.toml", 0o600)
    return [NEW_URL]


async def _settle(plan: RestorePlan, found: Unpacked) -> HeldBack | None:
    """Bring the rows up to date, and make them a copy's."""
    from ..store.sqlite import SqliteStore

    store = await SqliteStore.connect(plan.home)
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


def _finish(home: Path) -> None:
    os.sync()  # thousands of files, once
    (home / MARKER).unlink()


def _belongs(name: str) -> bool:
    """Whether it is the name of something in a home that a backup has."""
    return any(fnmatchcase(name, each.name) for each in FOLDERS if not each.left_out) or name in (DATABASE, "vault.key")


class _DatabaseOnly:
    """Keeps the database, and reads all else to its end."""

    def __init__(self, database: IO[bytes], place: Path) -> None:
        self._database = database
        self._place = place
        self.has_found = False

    def begin(self, about: About) -> None: ...

    def folder(self, member: Member) -> None: ...

    def link(self, member: Member) -> None: ...

    def file(self, member: Member, pieces: Iterator[bytes]) -> None:
        if member.name != DATABASE:
            for _ in pieces:
                pass
            return
        if self.has_found:
            raise BackupDamaged("there are two databases in it")
        self.has_found = True
        check_room(self._place, member)
        for piece in pieces:
            self._database.write(piece)
        self._database.flush()
