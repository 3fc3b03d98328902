"""What is mended without asking: modes, files that dead processes left, folders that are missing. Nothing else is."""

import errno
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import assert_never

from ...ports.doctor import Diagnosis, MakeFolder, Mend, Mended, RemoveStale, SetMode

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_LINK = "a link leads to it, so it may be another's: see to it yourself"


def mend_all(findings: Sequence[Diagnosis], home: Path) -> list[Mended]:
    """Each on its own: what fails keeps no other from being mended. By what a dead process left, the next start knows
    that it has to look the database through: it stays unless that was done just now."""
    is_whole = all(each.verdict == "ok" for each in findings if each.check == "store-pages")
    mends = [(finding.check, mend) for finding in findings for mend in finding.mends]
    return [_mended(check, mend, home) for check, mend in mends if is_whole or not isinstance(mend, RemoveStale)]


def _mended(check: str, mend: Mend, home: Path) -> Mended:
    try:
        match mend:
            case SetMode(path=path, mode=mode):
                _set_mode(Path(path), mode, home)
                return Mended(check, f"{path} is open to nobody else now (mode {mode:o})")
            case RemoveStale(path=path):
                gone = _remove(Path(path), home)
                return Mended(check, f"{path} is removed" if gone else f"{path} stays: its process is alive")
            case MakeFolder(path=path):
                _make_folder(Path(path), home)
                return Mended(check, f"{path} is made")
            case _:
                assert_never(mend)
    except OSError as error:
        why = _LINK if error.errno == errno.ELOOP else error.strerror or str(error)
        return Mended(check, f"{mend.path} could not be mended", why)


@contextmanager
def _folder_above(path: Path, home: Path) -> Iterator[int]:
    """The one in which something lies. Within the home no link is followed on the way there: a `logs` that leads
    elsewhere leads nobody to mend what lies there."""
    is_within = path != home and path.is_relative_to(home)
    now = os.open(home if is_within else path.parent, _FOLDER)
    try:
        for part in path.relative_to(home).parts[:-1] if is_within else ():
            inner = _into(now, part)
            os.close(now)
            now = inner
        yield now
    finally:
        os.close(now)


def _into(folder: int, part: str) -> int:
    try:
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except NotADirectoryError as error:  # so Linux says it of a link, too
        raise OSError(errno.ELOOP, _LINK) from error


def _make_folder(path: Path, home: Path) -> None:
    if not path.is_relative_to(home):
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return
    now = os.open(home, _FOLDER)
    try:
        for part in path.relative_to(home).parts:
            with suppress(FileExistsError):
                os.mkdir(part, 0o700, dir_fd=now)
            inner = _into(now, part)
            os.close(now)
            now = inner
    finally:
        os.close(now)


def _set_mode(path: Path, mode: int, home: Path) -> None:
    """Of the thing itself: what a link leads to may be another's. The home may be a link, to a folder of ours."""
    with _folder_above(path, home) as folder:
        opened = os.open(path.name, _FOLDER if path == home else _OPEN, dir_fd=folder)
    try:
        status = os.fstat(opened)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise OSError(0, "it is neither a file nor a folder")
        if path.is_symlink() and status.st_uid != os.getuid():
            raise OSError(errno.ELOOP, _LINK)
        os.fchmod(opened, mode)
    finally:
        os.close(opened)


def _remove(path: Path, home: Path) -> bool:
    """Whoever lives holds a lock on its file: it is removed while we hold it."""
    with suppress(FileNotFoundError), _folder_above(path, home) as folder:
        opened = os.open(path.name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path.name, dir_fd=folder)
        except BlockingIOError:
            return False
        finally:
            os.close(opened)
    return True
