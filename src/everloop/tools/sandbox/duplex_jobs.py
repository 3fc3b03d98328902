"""Servers that the runner looks after: each belongs to one connection, and ends with it.

Their pipes are handed to the worker, so what is said does not pass through here, and whoever reads slowly makes the
other wait. A worker may end in any way: then its connection does, and with that the server and all that it has begun.
"""

import os
import time

from . import portable, usage
from .command import RunningJob
from .launch import exit_code

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .launch import Started
    from .launcher import Launcher
    from .runner import WorkerConnection


class DuplexJobs:
    """The servers of all workers. `on` and `off` watch a descriptor, or no longer."""

    PATIENCE = 0.5  # seconds between two looks at what they use

    def __init__(
        self, launcher: "Launcher", on: "Callable[[int, Callable[[], None]], None]", off: "Callable[[int], None]"
    ) -> None:
        self._launcher = launcher
        self._on = on
        self._off = off
        self._jobs: dict[WorkerConnection, RunningJob] = {}
        self._watched = 0.0

    def __len__(self) -> int:
        return len(self._jobs)

    def start(self, connection: "WorkerConnection", order: "dict[str, Any]") -> None:
        if connection in self._jobs:
            connection.tell({"failed": "a connection carries one server"})
            return
        try:
            started = self._started(order)
        except OSError as error:
            connection.tell({"failed": f"the sandbox could not be started ({error})"})
            return
        folders = [folder for folder in order["writes"] if os.path.isdir(folder)]
        job = self._jobs[connection] = RunningJob(order["limits"], started, folders)
        self._on(started.pidfds[0], lambda: self._gone(connection, job))
        if started.info >= 0:
            self._on(started.info, lambda: self._hear_of(job))
        connection.hand_over({"began": True}, [started.into, started.out, started.err])
        started.let_go_of_pipes()

    def end(self, connection: "WorkerConnection") -> None:
        """Begin to end its server, if it has one."""
        if job := self._jobs.get(connection):
            job.end("stopped")

    def look_after(self, now: float) -> None:
        if not self._jobs or now - self._watched < self.PATIENCE:
            return
        self._watched = now
        machine = usage.Machine()
        for job in self._jobs.values():
            if why := job.overdue(now, machine):
                job.end(why)

    def _started(self, order: "dict[str, Any]") -> "Started":
        if order["way"] == "seatbelt" or not hasattr(os, "pidfd_open"):
            return portable.start(order)
        return self._launcher.start_duplex(order)

    def _hear_of(self, job: RunningJob) -> None:
        if job.started.hear():
            self._off(job.started.info)
            if not job.started.go(job.limits):
                job.end("failed")

    def _gone(self, connection: "WorkerConnection", job: RunningJob) -> None:
        del self._jobs[connection]
        code = exit_code(os.waitpid(job.started.pid, 0)[1])
        for fd in (job.started.info, job.started.pidfds[0]):
            self._off(fd)
        job.say_if_killed()
        self._launcher.finish(job.started)
        end = {"why": job.why, "code": code, "seconds": time.monotonic() - job.begun}
        connection.tell({"end": end})
