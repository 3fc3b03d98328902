"""What is mended without asking: modes, files that dead processes left, folders that are missing. Nothing else is."""

import fcntl
import os
import stat
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import assert_never

from ...ports.doctor import Diagnosis, MakeFolder, Mend, Mended, RemoveStale, SetMode

_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def mend_all(findings: Sequence[Diagnosis]) -> list[Mended]:
    """Each on its own: what fails keeps no other from being mended. By what a dead process left, the next start knows
    that it has to look the database through: it stays unless that was done just now."""
    is_whole = all(each.verdict == "ok" for each in findings if each.check == "store-pages")
    mends = [(finding.check, mend) for finding in findings for mend in finding.mends]
    return [_mended(check, mend) for check, mend in mends if is_whole or not isinstance(mend, RemoveStale)]


def _mended(check: str, mend: Mend) -> Mended:
    try:
        match mend:
            case SetMode(path=path, mode=mode):
                _set_mode(path, mode)
                return Mended(check, f"{path} is open to nobody else now (mode {mode:o})")
            case RemoveStale(path=path):
                gone = _remove(path)
                return Mended(check, f"{path} is removed" if gone else f"{path} stays: its process is alive")
            case MakeFolder(path=path):
                Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
                return Mended(check, f"{path} is made")
            case _:
                assert_never(mend)
    except OSError as error:
        return Mended(check, f"{mend.path} could not be mended", error.strerror or str(error))


def _set_mode(path: str, mode: int) -> None:
    """Of the thing itself: what a link leads to may be another's."""
    opened = os.open(path, _OPEN)
    try:
        kind = os.fstat(opened).st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
            raise OSError(0, "it is neither a file nor a folder")
        os.fchmod(opened, mode)
    finally:
        os.close(opened)


def _remove(path: str) -> bool:
    """Whoever lives holds a lock on its file: it is removed while we hold it."""
    with suppress(FileNotFoundError):
        opened = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)
        except BlockingIOError:
            return False
        finally:
            os.close(opened)
    return True
