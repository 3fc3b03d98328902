"""Who is alive on this machine: each process holds a lock on its own file in the home's `run/` folder.

The kernel lets the lock go when the process ends, however it ends, so a lease whose holder's lock is free can be
taken at once instead of waiting for it to run out.
"""

import fcntl
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

BUSY_SECONDS = 3600.0  # for which a process may say that it holds the write lock on purpose


class Holders:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.me = f"{os.getpid()}-{start_time(os.getpid())}-{secrets.token_hex(4)}"
        # Locked before it can be seen: a file without a lock is a dead process to the others.
        hidden = folder / f".{self.me}"
        self._file = os.open(hidden, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        hidden.rename(folder / self.me)

    def alive(self, holder: str) -> bool:
        if holder == self.me:
            return True
        try:
            file = os.open(self._folder / holder, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(file)
        return False

    def knows(self, pid: int, started: str) -> bool:
        """Whether this process is one of ours, and not a later one with the same number."""
        return bool(started) and any(path.name.startswith(f"{pid}-{started}-") for path in self._folder.iterdir())

    @contextmanager
    def marked_busy(self) -> Iterator[None]:
        """While this process holds the write lock for long, and is not frozen."""
        mark = self._mark(os.getpid())
        mark.touch(0o600)
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)

    def is_busy(self, pid: int) -> bool:
        try:
            return time.time() - self._mark(pid).stat().st_mtime < BUSY_SECONDS
        except FileNotFoundError:
            return False

    def _mark(self, pid: int) -> Path:
        return self._folder / f".busy-{pid}-{start_time(pid)}"

    def dead(self) -> list[str]:
        """Those who ended without taking their file away."""
        return [name for name in names_in(self._folder) if not self.alive(name)]

    def bury(self, names: list[str]) -> None:
        for name in names:
            (self._folder / name).unlink(missing_ok=True)

    def close(self) -> None:
        (self._folder / self.me).unlink(missing_ok=True)
        os.close(self._file)


def names_in(folder: Path) -> list[str]:
    """Of all who live or have died. What is no file, as a socket that somebody else has left, is none of ours."""
    return [path.name for path in folder.iterdir() if not path.name.startswith(".") and path.is_file()]


def start_time(pid: int) -> str:
    """When a process began, in the kernel's ticks: with the pid it names one process for ever. Empty where unknown."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
