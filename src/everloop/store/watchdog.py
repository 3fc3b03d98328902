"""Someone holds the write lock for too long: find out who, say so, and after a limit end it if it is one of ours.

A process that is frozen inside a write transaction (SIGSTOP, a debugger) would block the store for all.
"""

import logging
import os
import signal
from collections.abc import Callable
from pathlib import Path

from .holders import Holders, start_time

SAY_AFTER = 5.0
END_AFTER = 30.0

_log = logging.getLogger("everloop.store")


class Watchdog:
    def __init__(
        self,
        database: Path,
        holders: Holders,
        *,
        say_after: float = SAY_AFTER,
        end_after: float = END_AFTER,
        kill: Callable[[int, int], None] = os.kill,
    ) -> None:
        self._shm = Path(f"{database}-shm")
        self._run = holders
        self._say_after = say_after
        self._end_after = end_after
        self._kill = kill
        self._named: set[int] = set()
        self._spared: set[int] = set()  # which we may not end

    def waited(self, seconds: float) -> None:
        """Called while the write lock is being waited for."""
        if seconds < self._say_after:
            return
        for pid in self._pids():
            if self._run.is_busy(pid):
                continue
            if pid not in self._named:
                self._named.add(pid)
                _log.warning("process %d holds the database's write lock since %.0f s", pid, seconds)
            if seconds > self._end_after and pid not in self._spared and self._run.knows(pid, start_time(pid)):
                self._end(pid)

    def _end(self, pid: int) -> None:
        _log.warning("ending process %d, which blocks the database", pid)
        try:
            self._kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it is over
        except PermissionError:
            self._spared.add(pid)
            _log.warning("process %d is another user's: end it, nothing can be written before", pid)

    def _pids(self) -> list[int]:
        return [pid for pid in writers_of(self._shm) if pid != os.getpid()]


def writers_of(shm: Path) -> list[int]:
    """Who holds a write lock on the shared-memory file; read from the kernel, never by opening the file."""
    try:
        inode = str(shm.stat().st_ino)
        lines = Path("/proc/locks").read_text().splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines]
    return [int(f[4]) for f in fields if f[1] != "->" and f[3] == "WRITE" and f[5].endswith(f":{inode}")]
