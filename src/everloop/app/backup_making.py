"""Makes a backup of an open home: the database as it is at one moment, then files, which were there before a row named
them."""

import asyncio
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Event

from .. import __version__
from ..backup.listing import FOLDER, SEALED, BackupFile, MadeBackup, Tell, new_backup
from ..backup.manifest import DATABASE, About, PackSummary
from ..backup.pack import Pack
from ..backup.walk import Apart, Place, pack_tree, place_of, size_of
from ..errors import BackupError
from ..ports import Clock, Store
from ..ports.failpoint import reach
from ..settings import Settings, workspace_of
from ..store.copying import counts_in, schema_in
from .finishing import to_its_end
from .home_folders import FOLDERS, SERVICE_ENV, FolderRule, sweep_copies

WORKSPACE = "workspace"
KEY = "vault.key"
NO_KEY = (
    "It is not encrypted, so the key of the vault (vault.key) was left out: from this backup alone, API keys, tokens "
    "and logins in the vault cannot be read again. Keep vault.key elsewhere, or make it with a passphrase."
)
SPARE, SMALL = 50_000_000, 25_000_000  # bytes that stay free; that are written without looking
NOT_OURS = "it lies in the home, and is nothing of everloop's"
NOT_THE_WORKSPACE = "the settings name another folder as the workspace"
OF_THE_SERVICE = "variables of that machine's service, which may name its database: bring along what you need of them"
IN_A_BUCKET = "files: they lie in a bucket (files.url), which has backups of its own"


class HomePacker:
    """Of one home, with these settings; `usual` is where its backups lie."""

    def __init__(self, home: Path, usual: Path, settings: Settings, clock: Clock) -> None:
        self._home = home
        self._usual = usual
        self._settings = settings
        self._clock = clock

    async def make(self, store: Store, folder: Path, passphrase: str, tell: Tell | None) -> MadeBackup:
        """`tell` is called from another thread. Raises BackupError, StoreError, HomeError."""
        made = self._clock.now()
        with _staging(self._home) as staging:
            copy, count = staging / DATABASE, _Count(tell, _SpareRoom(staging, folder))
            await asyncio.to_thread(self._check_room, staging)
            await asyncio.to_thread(copy.touch, 0o600)
            await store.copy_to(str(copy))
            reach("backup.copied")
            return await to_its_end(lambda: self._pack(copy, folder, made, passphrase, count), count.stop)

    def _check_room(self, staging: Path) -> None:
        """For the copy; of PostgreSQL nobody knows how large it will be."""
        database = self._home / DATABASE
        if not self._settings.store.url and database.exists():
            _SpareRoom(staging).check(database.stat().st_size)

    def _pack(self, copy: Path, folder: Path, made: float, passphrase: str, count: "_Count") -> MadeBackup:
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
        places = {DATABASE: copy} | dict(sorted(self._places(settings, bool(passphrase))))
        count.expect(size_of(str(path)) for path in places.values())
        with new_backup(folder, made, bool(passphrase)) as (file, target):
            pack = Pack(file, about, passphrase=passphrase, staging=copy.parent, tell=count)
            apart = Apart(place_of(os.stat(self._home)), frozenset(_places_of(folder, self._usual)))
            try:
                for name, path in places.items():
                    pack_tree(pack, str(path), name, apart)
                    reach("backup.packing")
                for name, why in self._strangers(settings):
                    pack.leave_out(name, why)
                if settings.files.url:
                    pack.leave_out("files", IN_A_BUCKET)
                summary = pack.finish(rows)
            finally:
                pack.close()
            reach("backup.packed")
        found = BackupFile(target, made, target.stat().st_size, bool(passphrase))
        return MadeBackup(found, summary, self._warnings(settings, summary, bool(passphrase)))

    def _strangers(self, settings: Settings) -> Iterator[tuple[str, str]]:
        """What lies in the home and somebody may miss, and why: another agent's whose home this is, too, or somebody's
        own."""
        chosen = os.path.realpath(workspace_of(settings, self._home))
        for name in sorted(os.listdir(self._home)):
            if _rule_of(name) is None:
                yield name, NOT_OURS
            elif name == SERVICE_ENV:
                yield name, OF_THE_SERVICE
            elif name == WORKSPACE and os.path.realpath(self._home / name) != chosen:
                yield f"{name} of the home", NOT_THE_WORKSPACE

    def _places(self, settings: Settings, sealed: bool) -> Iterator[tuple[str, Path]]:
        """What lies in the home and is part of it, by the name that it has in a backup."""
        for name in os.listdir(self._home):
            rule = _rule_of(name)
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


def _places_of(*folders: Path) -> Iterator[Place]:
    for each in folders:
        if each.exists():
            yield place_of(os.stat(each))


def _rule_of(name: str) -> FolderRule | None:
    return next((each for each in FOLDERS if fnmatchcase(name, each.name)), None)


def is_named_sealed(file: Path) -> bool:
    """Whether its name says that it is encrypted, which a file cannot be believed about."""
    return file.name.endswith(SEALED)


class _SpareRoom:
    """What is left on disks, which a house that runs meanwhile needs to keep what people say: no backup takes all."""

    def __init__(self, *folders: Path) -> None:
        self._folders = folders
        self._since = 0

    def check(self, size: int) -> None:
        """That so much more finds room. Raises BackupError."""
        for folder in self._folders:
            place = next(each for each in (folder, *folder.parents) if each.exists())
            status = os.statvfs(place)
            free = status.f_bavail * status.f_frsize
            if size > SMALL and size + SPARE > free:
                raise BackupError(
                    f"the disk of {place} has {free:,} bytes left, and a backup would leave too little for what runs "
                    "meanwhile: make room there, or name another folder with --folder"
                )

    def use(self, piece: int) -> None:
        """A piece was read, and so as much may be written. Raises BackupError."""
        self._since += piece
        if self._since > SMALL:
            self.check(self._since)
            self._since = 0


class _Count:
    """How much has been read, told to who wants to know; and whether it is still wanted, and finds room."""

    def __init__(self, tell: Tell | None, room: _SpareRoom) -> None:
        self._tell = tell
        self._room = room
        self._done = self._total = 0
        self._stopped = Event()

    def expect(self, sizes: Iterable[int]) -> None:
        self._total = sum(sizes) if self._tell else 0

    def stop(self) -> None:
        self._stopped.set()

    def __call__(self, piece: int) -> None:
        if self._stopped.is_set():
            raise BackupError("the backup was ended, and nothing is left of it")
        self._room.use(piece)
        self._done += piece
        if self._tell:
            self._tell(self._done, self._total)


@contextmanager
def _staging(home: Path) -> Iterator[Path]:
    """For the copy of the database, where it is as safe as the database itself. It is locked as long as somebody uses
    it: what killed processes have left there goes."""
    above = home / FOLDER
    try:
        above.mkdir(mode=0o700, exist_ok=True)
        sweep_copies(home)
        unlocked = Path(tempfile.mkdtemp(prefix=".new-copy-", dir=above))
        held = os.open(unlocked, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder = unlocked.rename(unlocked.with_name(unlocked.name.replace(".new-", ".", 1)))
    except OSError as error:
        raise BackupError(f"no copy can be made in {above} ({error.strerror})") from error
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)
