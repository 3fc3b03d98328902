"""What the runner looks after: whether it may go on, and what a command says."""

import time

from . import spool, usage
from .disk import disks

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

    from .launch import Started
    from .runner import WorkerConnection

_OF_THE_SANDBOX = 4  # processes
_SHARE = 20  # a machine of whose memory less than this part is available has none to spare


class RunningJob:
    """A process with all that it starts. What it adds to the file systems of `folders` is bounded."""

    def __init__(self, limits: "dict[str, Any]", started: "Started", folders: list[str]) -> None:
        self.limits = limits
        self.started = started
        self.begun = time.monotonic()
        self.why = "exited"
        self._machine = usage.Machine()
        self._shared = self._machine.shared
        self._disks = disks(folders)

    def overdue(self, now: float, machine: usage.Machine) -> str:
        """Why it has to end now; empty if it may go on."""
        return self._too_large(machine) or self._too_much_on_disk()

    def end(self, why: str) -> None:
        if self.why == "exited":
            self.why = why
        self.started.kill()

    def say_if_killed(self) -> None:
        """The kernel may have been faster than the last look."""
        group = self.started.group
        if self.why == "exited" and group and group.was_killed():
            self.why = "memory"

    def _too_large(self, machine: usage.Machine) -> str:
        if self.started.group and (why := self.started.group.exceeded()):
            return why
        self._shared = min(self._shared, machine.shared)
        tasks, memory = self.started.used(self.limits["memory"], machine.shared - self._shared)
        if tasks > self.limits["processes"] + _OF_THE_SANDBOX:
            return "processes"
        if memory > self.limits["memory"]:
            return "memory"
        return "machine" if is_short_of_memory(self._machine, machine) else ""

    def _too_much_on_disk(self) -> str:
        most = self.limits.get("disk"), self.limits.get("files")  # an older worker names none
        if most[0] is None or most[1] is None:
            return ""
        found = (disk.exceeded(most[0], most[1], self.started.written) for disk in self._disks)
        return next(filter(None, found), "")


class RunningCommand(RunningJob):
    """A command that runs, or is about to."""

    def __init__(self, folder: str, order: "dict[str, Any]", started: "Started", folders: list[str]) -> None:
        super().__init__(order["limits"], started, folders)
        self.folder = folder
        self.tape = spool.OutputSpool(folder, self.limits["output"])
        self.touched = self.begun  # when it last said or was asked something
        self.told = 0.0
        self.dirty = False
        self.listeners: list[WorkerConnection] = []

    def overdue(self, now: float, machine: usage.Machine) -> str:
        if self.limits["seconds"] and now - self.begun > self.limits["seconds"]:
            return "time"
        if self.limits["idle"] and now - self.touched > self.limits["idle"]:
            return "idle"
        if self.tape.size > self.limits["flood"]:
            return "flood"
        return super().overdue(now, machine)


def is_short_of_memory(began: usage.Machine, now: usage.Machine) -> bool:
    """Whether memory has become short since: whatever holds it, commands go before anything else has to."""
    little = now.memory // _SHARE
    return now.available < little < began.available - now.available
