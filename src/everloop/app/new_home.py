"""The folder that a backup is restored into, until it is a home.

`restoring.json` lies in it from before the first file until all is there, is checked and is made a copy: a home with it
is half restored, is opened by nobody, and is restored again from the beginning. It is locked as long as somebody
restores: what another one has begun and left is known by that.

Where a home was there before, such a file lies beside it, too, from before that is moved aside until all is there or as
it was: between the two there is a moment without any home, and a new, empty one is not to take its place.
"""

import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from ..errors import HomeError
from ..ports.failpoint import reach
from .restore_marker import RESTORING, marker_beside

# What does not make a folder somebody's home; `lost+found` lies in every volume of its own (ext4).
_IDLE = ("logs", "run", "backups", "models", "lost+found", RESTORING)
_AS_IT_IS = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class RestoreMarker(Struct, frozen=True):
    """`store` was empty when it was begun with; `aside` is where the home lies that was there before."""

    file: str = ""
    store: str = ""
    aside: str = ""


class NewHome(Struct, frozen=True):
    path: Path
    aside: Path | None  # where the home lies that was there before

    @contextmanager
    def marked(self, file: str, store: str) -> Iterator[None]:
        """Raises HomeError."""
        marker, path = RestoreMarker(file, store, str(self.aside or "")), self.path / RESTORING
        try:
            opened = open(path, "wb", opener=_not_cut)  # noqa: SIM115 (closed below)
        except OSError as error:
            if self.aside:
                self.put_back()
            raise HomeError(f"{path} cannot be written ({error.strerror}): name another home with --home") from error
        with opened:
            self._write(opened, msgspec.json.encode(marker))
            yield

    def _write(self, opened: BinaryIO, marker: bytes) -> None:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise HomeError(f"another process is restoring into {self.path}: wait until it has ended") from error
        try:
            os.ftruncate(opened.fileno(), 0)
            os.write(opened.fileno(), marker)
            os.fsync(opened.fileno())
        except OSError as error:
            self.put_back()
            raise HomeError(
                f"{self.path} could not be written ({error.strerror}); what was written was removed"
            ) from error

    def put_back(self) -> None:
        """As if nothing had been begun."""
        if self.aside is None:
            _clear(self.path)
            (self.path / RESTORING).unlink(missing_ok=True)
            return
        shutil.rmtree(self.path)
        self.aside.rename(self.path)
        marker_beside(self.path).unlink(missing_ok=True)

    def finish(self) -> None:
        os.sync()  # thousands of files, once
        marker_beside(self.path).unlink(missing_ok=True)
        (self.path / RESTORING).unlink()


def make_room(home: Path, replace: bool) -> NewHome:
    """An empty folder; with `replace`, a home that is there is moved aside first. Raises HomeError."""
    try:
        _check_unused(home)
        cut_off = aside_of(home)
        if cut_off or os.path.lexists(home / RESTORING):
            _clear(home)
            home.mkdir(exist_ok=True, mode=0o700)
            return NewHome(home, cut_off)
        names = set(os.listdir(home)) - set(_IDLE) if home.exists() else set[str]()
        aside_now = _move_aside(home, names, replace) if names else None
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        home.chmod(0o700)
        return NewHome(home, aside_now)
    except OSError as error:
        raise HomeError(f"the home {home} cannot be made ({error.strerror}): name another with --home") from error


def _move_aside(home: Path, names: set[str], replace: bool) -> Path:
    if not replace:
        raise HomeError(
            f"{home} is not empty ({', '.join(sorted(names)[:3])}): name a new folder with --home, or say "
            "--replace, which moves it aside first"
        )
    aside = home.with_name(f"{home.name}.before-{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}")
    _mark_beside(home, aside)
    try:
        home.rename(aside)
    except OSError as error:
        marker_beside(home).unlink(missing_ok=True)
        if error.errno != errno.EBUSY:
            raise
        raise HomeError(
            f"{home} is a volume of its own, which cannot be moved aside: move what lies in it elsewhere, or name a "
            "new folder with --home"
        ) from error
    reach("restore.aside")
    return aside


def _mark_beside(home: Path, aside: Path) -> None:
    with open(marker_beside(home), "wb", opener=_not_cut) as file:
        file.truncate()
        file.write(msgspec.json.encode(RestoreMarker(aside=str(aside))))
        file.flush()
        os.fsync(file.fileno())
    parent = os.open(home.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def aside_of(home: Path) -> Path | None:
    """Where the home lies that was there before a restore that was cut off, if it does."""
    told = (marker_in(home).aside, _marker_at(marker_beside(home)).aside)
    return next((Path(aside) for aside in told if aside and os.path.isdir(aside)), None)


def marker_in(home: Path) -> RestoreMarker:
    """What was begun there; an empty one where there is none, or it was cut off."""
    return _marker_at(home / RESTORING)


def _marker_at(path: Path) -> RestoreMarker:
    try:
        with open(path, "rb", opener=_as_it_is) as file:
            return msgspec.json.decode(file.read(10_000), type=RestoreMarker)
    except (OSError, msgspec.DecodeError):
        return RestoreMarker()


def _as_it_is(name: str, flags: int) -> int:
    return os.open(name, flags | _AS_IT_IS)


def _not_cut(name: str, flags: int) -> int:
    """What is in it stays, for it may be another's that restores just now."""
    return os.open(name, flags & ~os.O_TRUNC | _AS_IT_IS, 0o600)


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


def _is_being_restored(home: Path) -> bool:
    try:
        with open(home / RESTORING, "rb", opener=_as_it_is) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # there is none, or something else is called so
        return False
    return False


def _clear(home: Path) -> None:
    """All that a restore has written; the marker stays, and says what was begun."""
    for path in home.iterdir() if home.exists() else ():
        if path.name in _IDLE:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
