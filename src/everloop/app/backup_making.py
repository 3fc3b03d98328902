"""Makes a backup of an open home: the database as it is at one moment, then files, which were there before a row named
them."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

from .. import __version__
from ..backup.listing import SEALED, BackupFile, MadeBackup, new_backup
from ..backup.manifest import DATABASE, About, PackSummary
from ..backup.pack import Pack
from ..backup.sealing import is_sealed
from ..backup.walk import pack_tree, size_of
from ..errors import BackupError
from ..ports import Clock, Store
from ..ports.failpoint import reach
from ..settings import Settings, workspace_of
from ..store.copying import counts_in, schema_in
from .backups import FOLDER, Tell
from .home_folders import FOLDERS

WORKSPACE = "workspace"
KEY = "vault.key"
NO_KEY = (
    "It is not encrypted, so the key of the vault (vault.key) was left out: from this backup alone, API keys, tokens "
    "and logins in the vault cannot be read again. Keep vault.key elsewhere, or make it with a passphrase."
)
IN_A_BUCKET = "files: they lie in a bucket (files.url), which has backups of its own"


class HomePacker:
    """Of one home, with these settings."""

    def __init__(self, home: Path, settings: Settings, clock: Clock) -> None:
        self._home = home
        self._settings = settings
        self._clock = clock

    async def make(self, store: Store, folder: Path, passphrase: str, tell: Tell | None) -> MadeBackup:
        """`tell` is called from another thread. Raises BackupError, StoreError, HomeError."""
        made = self._clock.now()
        staging = await asyncio.to_thread(_staging, self._home)
        try:
            copy = staging / DATABASE
            await asyncio.to_thread(copy.touch, 0o600)
            await store.copy_to(str(copy))
            reach("backup.copied")
            return await asyncio.to_thread(self._pack, copy, folder, made, passphrase, tell)
        finally:
            await asyncio.to_thread(shutil.rmtree, staging, True)

    def _pack(self, copy: Path, folder: Path, made: float, passphrase: str, tell: Tell | None) -> MadeBackup:
        settings, key = self._settings, self._home / KEY
        about = About(
            everloop=__version__,
            schema=schema_in(copy),
            made=made,
            store="postgres" if settings.store.url else "sqlite",
            home=os.path.realpath(self._home),
            workspace=os.path.realpath(workspace_of(settings, self._home)),
            has_key=bool(passphrase) and key.exists(),
        )
        rows = counts_in(copy)
        places = {DATABASE: copy} | dict(self._places(settings, bool(passphrase)))
        count = _counted(tell, sum(size_of(str(path)) for path in places.values()) if tell else 0)
        with new_backup(folder, made, bool(passphrase)) as (file, target):
            pack = Pack(file, about, passphrase=passphrase, staging=copy.parent, tell=count)
            try:
                for name, path in places.items():
                    pack_tree(pack, str(path), name)
                    reach("backup.packing")
                if settings.files.url:
                    pack.leave_out("files", IN_A_BUCKET)
                summary = pack.finish(rows)
            finally:
                pack.close()
            reach("backup.packed")
        found = BackupFile(target, made, target.stat().st_size, bool(passphrase))
        return MadeBackup(found, summary, self._warnings(settings, summary, bool(passphrase)))

    def _places(self, settings: Settings, sealed: bool) -> Iterator[tuple[str, Path]]:
        """What lies in the home and is part of it, by the name that it has in a backup."""
        for name in sorted(os.listdir(self._home)):
            rule = next((each for each in FOLDERS if fnmatchcase(name, each.name)), None)
            if rule is None or name == WORKSPACE or (rule.left_out and not (name == KEY and sealed)):
                continue
            if name != "files" or not settings.files.url:
                yield name, self._home / name
        yield WORKSPACE, workspace_of(settings, self._home)

    def _warnings(self, settings: Settings, summary: PackSummary, sealed: bool) -> tuple[str, ...]:
        found = []
        if not sealed and (self._home / KEY).exists():
            found.append(NO_KEY)
        if settings.files.url:
            found.append("Not in it are the files in the bucket of files.url, which has backups of its own.")
        if summary.changed:
            found.append(
                f"{len(summary.changed)} files were written while they were read, such as {summary.changed[0]}."
            )
        if others := [each for each in summary.left_out if each != f"files: {IN_A_BUCKET}"]:
            found.append(f"{len(others)} things are not in it, such as {others[0]}.")
        return tuple(found)


def is_named_sealed(file: Path) -> bool:
    """Whether its name says that it is encrypted, which a file cannot be believed about."""
    return file.name.endswith(SEALED)


def is_sealed_file(file: Path) -> bool:
    """Whether a passphrase is needed. Raises BackupError."""
    try:
        with open(file, "rb") as opened:
            return is_sealed(opened)
    except OSError as error:
        raise BackupError(f"{file} cannot be read ({error.strerror}); see: everloop backup list") from error


def _counted(tell: Tell | None, total: int) -> Callable[[int], None]:
    done = 0

    def count(piece: int) -> None:
        nonlocal done
        done += piece
        if tell:
            tell(done, total)

    return count


def _staging(home: Path) -> Path:
    """For the copy of the database, where it is as safe as the database itself. What killed processes have left there
    goes."""
    try:
        (home / FOLDER).mkdir(mode=0o700, exist_ok=True)
        for old in (home / FOLDER).glob(".copy-*"):
            if not _is_running(old.name.split("-")[1]):
                shutil.rmtree(old, ignore_errors=True)
        return Path(tempfile.mkdtemp(prefix=f".copy-{os.getpid()}-", dir=home / FOLDER))
    except OSError as error:
        raise BackupError(f"no copy can be made in {home / FOLDER} ({error.strerror})") from error


def _is_running(pid: str) -> bool:
    return pid.isdecimal() and Path(f"/proc/{pid}").exists()


@contextmanager
def staging_beside(path: Path) -> Iterator[Path]:
    """A folder for what a backup holds while it is looked at."""
    try:
        with tempfile.TemporaryDirectory(prefix=".everloop-verify-", dir=path) as folder:
            yield Path(folder)
    except OSError as error:
        raise BackupError(f"nothing can be written into {path} ({error.strerror})") from error
