"""Checks: the store, SQLite or PostgreSQL: whether it opens, is whole, is of this version, and who keeps it locked."""

import asyncio
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import apsw

from ...errors import StoreError
from ...ports.doctor import Diagnosis
from ...store import onlooking
from ...store.holders import Holders
from ...store.onlooking import DATABASE, KNOWN, Onlooker
from ...store.schema import newer
from ...store.vault import KEY_FILE
from ...store.watchdog import writers_of
from .check import Check, Patient, advice, aside, broken, fine, found_or_fine, opening_of, skipped
from .processes import command_of

LARGE_WAL = 256_000_000  # bytes
WHOLE = 60.0  # seconds for the look at every page
LOOKS, BETWEEN = 6, 0.2  # a lock that the same process holds at each of them is held for long
OLDEST_POSTGRES = 130_000
RESTORE = "Restore a backup: the file was left untouched, so move it away and put the copy in its place"


async def look_whether_it_opens(patient: Patient) -> Sequence[Diagnosis]:
    kind = await aside(onlooking.file_system_of, patient.home)
    if onlooking.is_on_network(kind) and not patient.chosen.store.url:
        return [
            broken(
                f"the home is on a network file system ({kind}), where SQLite is not safe",
                "Set EVERLOOP_HOME to a folder of this machine, or keep the data in PostgreSQL (store.url)",
            )
        ]
    database = patient.home / DATABASE
    if not patient.chosen.store.url and (shut := _unwritable(database)):
        return [broken(f"{shut} cannot be written by you: nothing can be kept", opening_of(shut, "rw"))]
    if patient.unopened and _waits_for_index(database):
        return skipped("the file cannot be looked into before its write-ahead log was taken in, see store-wal")
    if patient.unopened:
        return [broken(patient.unopened, _cure_for(patient))]
    if patient.schema == 0 and not patient.chosen.store.url and (kept := _kept_beside(patient.home)):
        return [
            advice(
                f"{database} is not there, but {', '.join(kept)} of a home that was used: its conversations are gone",
                "Put it back, or a backup: everloop backup restore FILE; else the next start makes an empty one",
            )
        ]
    if patient.schema == 0:
        return fine("there is no store yet; the first start makes it")
    return fine("the store opens")


def _unwritable(database: Path) -> Path | None:
    """Of the database and what lies beside it while it is open."""
    files = (database, *(database.with_name(f"{DATABASE}-{kind}") for kind in ("wal", "shm")))
    return next((each for each in files if os.path.isfile(each) and not os.access(each, os.R_OK | os.W_OK)), None)


def _waits_for_index(database: Path) -> bool:
    log, index = (database.with_name(f"{DATABASE}-{kind}") for kind in ("wal", "shm"))
    return os.path.isfile(database) and os.path.exists(log) and log.stat().st_size > 0 and not os.path.exists(index)


def _kept_beside(home: Path) -> list[str]:
    """What only somebody leaves behind who had conversations."""
    return [name for name in (KEY_FILE, "files", "views", "history", f"{DATABASE}-wal") if os.path.exists(home / name)]


def _cure_for(patient: Patient) -> str:
    if patient.settings is None:
        return "Mend the settings first: they say where the store is"
    if patient.chosen.store.url:
        if not find_spec("asyncpg"):
            return "Install the extra: pip install 'everloop[postgres]'"
        return "See that the server runs and store.url is right; docs/postgres.md tells of TLS and poolers"
    if "is empty" in patient.unopened:
        return "Put a backup in its place; if nothing was ever in it, remove it, and the next start makes it"
    if "where the database should be" in patient.unopened or "of another program" in patient.unopened:
        return "Look into it first; a backup is brought back with everloop backup restore FILE"
    if "damaged" in patient.unopened:
        return RESTORE
    return f"See that you may read {patient.home / DATABASE} and what lies beside it, and that nothing holds it"


async def look_at_schema(patient: Patient) -> Sequence[Diagnosis]:
    if patient.unopened:
        return skipped("the store cannot be opened")
    if patient.schema > KNOWN:
        place = (patient.chosen.store.url and "the database") or str(patient.home / DATABASE)
        return [broken(newer(place, patient.schema, KNOWN), "Upgrade everloop: pip install -U everloop")]
    if 0 < patient.schema < KNOWN:
        return [
            advice(
                f"the store has schema {patient.schema}, and this version brings it to {KNOWN} when it next starts",
                "End what runs of the older version, then start this one; a copy is kept as everloop.db.before-…",
            )
        ]
    database = patient.home / DATABASE
    if patient.schema and not patient.chosen.store.url and (missing := await aside(onlooking.missing_in, database)):
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        return [broken(f"somebody has taken something out of {database}: {missing[0]}{more}", RESTORE)]
    return fine(f"the schema is {KNOWN}, the one of this version")


async def look_at_pages(patient: Patient) -> Sequence[Diagnosis]:
    path = patient.home / DATABASE
    if patient.chosen.store.url or not path.is_file():
        return fine("there is no SQLite file")
    try:
        connection = onlooking.read_only(path)
    except apsw.Error:
        return skipped("the file cannot be opened, see store")
    try:
        async with asyncio.timeout(WHOLE):
            damage = await aside(onlooking.damage_in, path, connection)
    except apsw.CantOpenError:  # such as what lies beside it is of another
        return skipped("the file cannot be opened, see store")
    except TimeoutError:
        connection.interrupt()
        return skipped(f"{path} is so large that it could not be looked through in {WHOLE:g} s")
    connection.close()
    return [broken(f"{path} is damaged ({damage})", RESTORE)] if damage else fine("the database file is whole")


async def look_at_wal(patient: Patient) -> Sequence[Diagnosis]:
    path = patient.home / DATABASE
    wal = path.with_name(f"{DATABASE}-wal")
    if patient.chosen.store.url or not wal.exists():
        return fine("no write-ahead log is left over")
    status = await aside(os.stat, wal)
    found = []
    if status.st_uid not in (path.stat().st_uid, os.getuid()):
        found.append(
            broken(
                f"{wal} belongs to another user (uid {status.st_uid}): everloop was started as somebody else",
                f"Give it back: sudo chown {os.getuid()} {path}*",
            )
        )
    if status.st_size > LARGE_WAL:
        found.append(
            advice(
                f"{wal} has grown to {status.st_size / 1e6:,.0f} MB: something reads without end",
                "Restart what runs with this home; the last one to end empties it",
            )
        )
    if not wal.with_name(f"{DATABASE}-shm").exists():
        found.append(
            advice(
                f"{wal} was left over without its index, as by a copy",
                "Start it once, as by everloop sessions: that takes it in",
            )
        )
    return found_or_fine(found, f"the write-ahead log has {status.st_size / 1e6:.1f} MB")


async def look_at_lock(patient: Patient) -> Sequence[Diagnosis]:
    """Who writes lets go within milliseconds: whoever is seen at every look is stuck, or does something long."""
    shm = patient.home / f"{DATABASE}-shm"
    if patient.chosen.store.url or not shm.exists():
        return fine("nobody has the database open")
    seen = set(writers_of(shm))
    for _ in range(LOOKS):
        if not seen:
            return fine("nobody holds the write lock for long")
        await asyncio.sleep(BETWEEN)
        seen &= set(writers_of(shm))
    return [_holder(pid, Onlooker(patient.home / "run")) for pid in sorted(seen)] or fine(
        "nobody holds the write lock for long"
    )


def _holder(pid: int, holders: Holders) -> Diagnosis:
    who = f"process {pid} ({command_of(pid)})"
    if holders.is_busy(pid):
        return advice(f"{who} holds the write lock, and says that its work takes long", "Wait for it to end")
    return broken(
        f"{who} holds the write lock of the database: nothing can be written",
        f"Let it go on (kill -CONT {pid}) or end it (kill {pid}); a running everloop ends one of its own after 30 s",
    )


async def look_at_server(patient: Patient) -> Sequence[Diagnosis]:
    url = patient.chosen.store.url
    if not url:
        return skipped("the data is kept in SQLite")
    if not find_spec("asyncpg"):
        return [broken("store.url is set, and PostgreSQL's driver is not installed", _cure_for(patient))]
    from ...store.onlooking_server import facts_of

    try:
        facts = await facts_of(url)
    except StoreError as error:
        return [broken(str(error), _cure_for(patient))]
    found = []
    if facts.number < OLDEST_POSTGRES:
        found.append(advice(f"the server is PostgreSQL {facts.version}", "Use PostgreSQL 13 or newer"))
    for name in ("synchronous_commit", "fsync", "full_page_writes"):
        if getattr(facts, name) == "off":
            found.append(
                broken(
                    f"the server has {name} = off: what was promised to be kept may be lost with its power",
                    f"Set {name} = on in postgresql.conf, and reload it",
                )
            )
    if not facts.may_make:
        found.append(
            broken(
                f"the user {facts.user} may make no tables in the database {facts.database}",
                f'Let it belong to them: ALTER DATABASE "{facts.database}" OWNER TO "{facts.user}"',
            )
        )
    if not facts.tls and not _is_here(url):
        found.append(
            advice("what is kept goes to the server in the clear", "Add sslmode=verify-full to store.url, if it can")
        )
    return found_or_fine(found, f"PostgreSQL {facts.version} answers{', by TLS' if facts.tls else ''}")


def _is_here(url: str) -> bool:
    from urllib.parse import urlsplit

    host = urlsplit(url).hostname or ""
    return host in ("", "localhost", "127.0.0.1", "::1") or Path(host).is_absolute()


CHECKS = (
    Check("store", "the store opens, on a file system that is safe for it", look_whether_it_opens),
    Check("schema", "the store is of this version, neither older (it is brought up to date) nor newer", look_at_schema),
    Check("store-pages", "every page of the SQLite file is whole (`quick_check`)", look_at_pages, seconds=WHOLE + 5),
    Check("store-wal", "the write-ahead log: its size, its owner, whether it was left over", look_at_wal),
    Check("store-lock", "whether a process keeps the database locked, and which", look_at_lock),
    Check(
        "postgres", "PostgreSQL answers, by TLS, is new enough and keeps what it promises", look_at_server, seconds=15
    ),
)
