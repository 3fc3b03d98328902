"""Checks: disk, folders and who may read them."""

import os
import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path

from ...errors import SettingsError
from ...ports.doctor import Diagnosis, MakeFolder, RemoveStale, SetMode
from ...ports.log_lines import FILE, FOLDER
from ...settings import path_in, workspace_of
from ...settings.shape import Settings
from ...settings.sources import file_of
from ...store.onlooking import DATABASE
from ...store.vault import KEY_FILE
from ..channels import is_secret, references_in
from ..home_folders import SERVICE_ENV
from ..opening import half_restored
from .check import Check, Patient, advice, aside, broken, fine, found_or_fine, many, opening_of, skipped
from .configuration import has_data

LITTLE, TOO_LITTLE = 1_000_000_000, 100_000_000  # bytes that are free
FEW_FILES = 1000
OTHERS = 0o077
MOST = 2000  # files that are looked at for their owner
OLD = 3600.0  # seconds
DRAFT = "[0-9a-f]" * 16
HALF_MADE = (f"{DATABASE}.before-*.part*", f"{KEY_FILE}.{DRAFT}", f".config.*.{DRAFT}", "logs/*.erasing")
MADE = ("run", "files", "views", "logs", "spool", "people", "chats", "skills", "mcp", "models", "personas", "terminals")
FOREIGN = ("workspace", "people", "chats", "mcp")  # in which commands and people may well have files of others


async def look_at_space(patient: Patient) -> Sequence[Diagnosis]:
    workspace = workspace_of(patient.chosen, patient.home)
    return await aside(_space, *(_folder_at(each) for each in (patient.home, workspace)))


def _folder_at(folder: Path) -> Path:
    """The folder, or the nearest above it."""
    return next(each for each in (folder, *folder.parents) if each.is_dir())


def _space(home: Path, workspace: Path) -> Sequence[Diagnosis]:
    found = list(_room_in(home))
    if os.stat(workspace).st_dev != os.stat(home).st_dev:
        found += [each for each in _room_in(workspace) if each.verdict == "broken"]  # it may well be small
    status = os.statvfs(home)
    return found_or_fine(found, f"{status.f_bavail * status.f_frsize / 1e9:,.1f} GB are free")


def _room_in(folder: Path) -> Iterator[Diagnosis]:
    status = os.statvfs(folder)
    free = status.f_bavail * status.f_frsize
    todo = (
        "Make room: old copies are everloop.db.before-… and backups; where everloop still starts, everloop files clean "
        "removes what nothing names any more"
    )
    if free < TOO_LITTLE:
        yield broken(f"the disk of {folder} has {free / 1e6:,.0f} MB left: soon nothing can be kept", todo)
    elif free < LITTLE:
        yield advice(f"the disk of {folder} has {free / 1e6:,.0f} MB left", todo)
    if status.f_files and status.f_favail < FEW_FILES:
        yield broken(f"the disk of {folder} has room for {status.f_favail:,} more files (inodes)", todo)


async def look_at_home(patient: Patient) -> Sequence[Diagnosis]:
    return await aside(_home, patient.home, _existing(patient.home))


def _home(home: Path, folder: Path) -> Sequence[Diagnosis]:
    if said := half_restored(home):
        what, _, todo = said.partition(". ")
        return [broken(what, todo)]
    if not home.exists() and folder != home and os.access(folder, os.W_OK):
        return fine(f"{home} is not there yet; the first start makes it")
    if home.is_symlink() and not home.exists():
        return [
            broken(f"{home} is a link to {home.readlink()}, which is not there", "Make that folder, or the link anew")
        ]
    if not folder.is_dir():
        return [broken(f"{folder} is no folder", "Set EVERLOOP_HOME to a folder that is yours")]
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return [
            broken(f"{folder} is on a read-only file system", "Mount it for writing, or set EVERLOOP_HOME elsewhere")
        ]
    if not os.access(folder, os.W_OK | os.X_OK):
        is_mine = os.stat(folder).st_uid == os.getuid()
        opening = f"chmod u+rwx {folder}" if is_mine else f"sudo chown -R {os.getuid()} {folder}"
        todo = f"{opening}, or set EVERLOOP_HOME elsewhere"
        return [broken(f"{folder} cannot be written by you (uid {os.getuid()})", todo)]
    return fine(f"{home} can be written")


async def look_at_folders(patient: Patient) -> Sequence[Diagnosis]:
    return found_or_fine([*await aside(_spoiled, patient.home)], "the folders of the home can be used")


def _spoiled(home: Path) -> Iterator[Diagnosis]:
    """What everloop makes there when it is first needed, and something else stands in its place."""
    for folder in (home / name for name in MADE):
        if os.path.lexists(folder) and not folder.is_dir():
            yield broken(f"{folder} is no folder", "Move it away; everloop makes the folder when it needs it")
        elif folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
            yield broken(f"{folder} cannot be written by you", opening_of(folder))
    for path in (home / FOLDER / FILE, home / "history"):
        if os.path.exists(path) and not os.path.isfile(path):
            yield broken(f"{path} is no file, so nothing is kept there", "Move it away; everloop makes the file anew")
        elif os.path.exists(path) and not os.access(path, os.R_OK | os.W_OK):
            yield broken(f"{path} cannot be read and written by you", opening_of(path, "rw"))


async def look_at_workspace(patient: Patient) -> Sequence[Diagnosis]:
    if not has_data(patient.home) and not patient.chosen.store.url:
        return skipped("nobody has begun yet")
    return await aside(_workspace, workspace_of(patient.chosen, patient.home))


def _workspace(folder: Path) -> Sequence[Diagnosis]:
    if folder.is_dir() and not os.access(folder, os.W_OK | os.X_OK):
        return [broken(f"the workspace {folder} cannot be written by you", opening_of(folder))]
    if folder.is_dir():
        return fine(f"the workspace is {folder}")
    if folder.is_symlink() and not folder.exists():
        lost = f"the workspace {folder} is a link to {folder.readlink()}, which is not there"
        return [broken(lost, "Mount or make that folder, or the link anew")]
    if os.path.lexists(folder):
        return [broken(f"the workspace {folder} is no folder", "Move it away, or set workspace to another place")]
    return [
        advice(
            f"the workspace {folder} is missing",
            f"everloop doctor --fix makes it: mkdir {folder}",
            MakeFolder(str(folder)),
        )
    ]


async def look_at_modes(patient: Patient) -> Sequence[Diagnosis]:
    if not patient.home.is_dir():
        return skipped("there is no home yet")
    found = [
        *_open_to_others(patient.home, 0o700, "the home"),
        *_open_to_others(patient.home / DATABASE, 0o600, "every conversation"),
        *(each for path in _with_secrets(patient) for each in _open_to_others(path, 0o600, "a key or a password")),
    ]
    return found_or_fine(found, "what is kept can be read by nobody else")


def _open_to_others(path: Path, mode: int, what: str) -> Iterator[Diagnosis]:
    now = _mode_of(path)
    if now is not None and now & OTHERS and path.is_dir() == (mode == 0o700):
        yield advice(
            f"{path} holds {what} and can be read by other users of this machine (mode {now:o})"
            if mode == 0o600
            else f"{path} is open to other users of this machine (mode {now:o})",
            f"everloop doctor --fix closes it: chmod {mode:o} {path}",
            SetMode(str(path), mode),
        )


def _mode_of(path: Path) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except OSError:
        return None


def _with_secrets(patient: Patient) -> Iterator[Path]:
    """The settings file, where it holds a secret and no reference to one; files that hold keys; that of TLS."""
    settings = patient.chosen
    try:
        path = file_of(patient.home)
    except SettingsError:
        path = None
    if path and (patient.settings is None or _says_secret(settings)):
        yield path
    yield patient.home / SERVICE_ENV
    named = [account.api_key_file for account in settings.providers.accounts.values()]
    yield from (path_in(patient.home, name) for name in (*named, settings.gateway.tls_key) if name)


def _says_secret(settings: Settings) -> bool:
    own = (settings.store.url, settings.files.secret_key, settings.tools.web.search.api_key, settings.net.proxy)
    keys = [account.api_key for account in settings.providers.accounts.values()]
    tables = settings.channels.values() if isinstance(settings.channels, dict) else ()
    tokens = [
        value
        for table in tables
        if isinstance(table, dict)
        for key, value in table.items()
        if is_secret(str(key)) and isinstance(value, str) and not references_in(value)
    ]
    return any((*own, *keys, *tokens))


async def look_at_vault_file(patient: Patient) -> Sequence[Diagnosis]:
    path = patient.home / KEY_FILE
    mode = _mode_of(path)
    if path.exists() and not path.is_file():
        return [broken(f"{path} is no file, so the vault does not open", "Move it away, and bring its copy back")]
    if mode is None:
        return fine("there is no key file of the vault; it is made with the first secret")
    if mode & OTHERS:
        return [
            broken(
                f"{path} can be used by others (mode {mode:o}), so the vault does not open",
                f"everloop doctor --fix closes it: chmod 600 {path}; change what the vault holds if others saw it",
                SetMode(str(path), 0o600),
            )
        ]
    if not os.access(path, os.R_OK):
        return [
            broken(
                f"{path} cannot be read by you (mode {mode:03o}), so the vault does not open",
                f"chmod 600 {path}, or see whose it is",
            )
        ]
    return fine("the key file of the vault is yours alone")


async def look_at_owners(patient: Patient) -> Sequence[Diagnosis]:
    if not patient.home.exists():
        return skipped("there is no home yet")
    others = await aside(_foreign, patient.home)
    if not others:
        return fine("all files are yours")
    path, uid = others[0]
    more = f" and {len(others) - 1} more" if len(others) > 1 else ""
    return [
        broken(
            f"{path}{more} belongs to another user (uid {uid}): everloop was started as somebody else, perhaps by sudo",
            f"sudo chown -R {os.getuid()} {patient.home}",
        )
    ]


def _foreign(home: Path) -> list[tuple[Path, int]]:
    """Of everloop's own files; the home itself says whose they should be, where root looks."""
    mine = {os.getuid(), os.stat(home).st_uid} if os.getuid() == 0 else {os.getuid()}
    found: list[tuple[Path, int]] = []
    looked = 0
    for folder, names, files in os.walk(home):
        if Path(folder) == home:
            names[:] = [name for name in names if not any(fnmatchcase(name, each) for each in FOREIGN)]
        for name in (*names, *files):
            looked += 1
            if looked > MOST:
                return found
            path = Path(folder, name)
            with suppress(FileNotFoundError):  # it has gone meanwhile
                if (uid := os.lstat(path).st_uid) not in mine:
                    found.append((path, uid))
    return found


async def look_at_leftovers(patient: Patient) -> Sequence[Diagnosis]:
    """What was being made when its process was killed."""
    left = await aside(_half_made, patient.home)
    if not left:
        return fine("nothing half-made was left over")
    return [
        advice(
            f"{many(len(left), 'file')} half-made by a process that was killed, as {left[0]}",
            "everloop doctor --fix removes what is older than an hour",
            *(RemoveStale(str(path)) for path in left),
        )
    ]


def _half_made(home: Path) -> list[Path]:
    found = [path for pattern in HALF_MADE for path in sorted(home.glob(pattern))]
    return [path for path in found if path.is_file() and time.time() - path.stat().st_mtime > OLD]


def _existing(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next(each for each in (folder, *folder.parents) if os.path.lexists(each))


CHECKS = (
    Check("disk", "room on the disks of the home and the workspace, in bytes and in files", look_at_space),
    Check("home", "the home is a folder that can be written", look_at_home),
    Check("folders", "the folders in the home are folders, and can be written", look_at_folders),
    Check("workspace", "the folder of the workspace is there", look_at_workspace),
    Check("file-modes", "the home, the database and files with secrets are open to nobody else", look_at_modes),
    Check("vault-file", "the key file of the vault is its owner's alone", look_at_vault_file),
    Check("leftovers", "files that were half-made when a process was killed", look_at_leftovers),
    Check("file-owners", "no file of the home belongs to another user", look_at_owners),
)
