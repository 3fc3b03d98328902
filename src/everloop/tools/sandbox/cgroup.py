"""A control group (cgroup) for each command, where one can be had: the kernel then holds it to its limits itself, and
there is nothing that it could take between two looks.

A group is a folder of the kernel's, or one for each controller. It is locked as long as its owner lives: what is not
locked was left behind, and is removed. `delegation` finds out where groups can be made.
"""

import fcntl
import os
from contextlib import suppress

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

_MARK = "everloop-"
_OF_THE_SANDBOX = 4  # processes
CONTROLLERS = ("memory", "pids")
_ATTEMPTS = 10

# What is written where, of the memory in bytes and the number of tasks. Without the first of each there is no group;
# where one of the others is missing, the kernel has no swap, or none of what it bounds.
_LIMITS = {
    1: {
        "memory": (
            ("memory.limit_in_bytes", "{memory}"),
            ("memory.memsw.limit_in_bytes", "{memory}"),
            ("memory.kmem.tcp.limit_in_bytes", "{memory}"),  # else what waits in connections is no one's
        ),
        "pids": (("pids.max", "{tasks}"),),
    },
    2: {
        "memory": (("memory.max", "{memory}"), ("memory.swap.max", "0"), ("memory.oom.group", "1")),
        "pids": (("pids.max", "{tasks}"),),
    },
}
# Where the kernel tells that it has ended a process for want of memory (or holds it up), or has refused to make one.
_EVENTS: dict[int, dict[str, tuple[str, tuple[str, ...]]]] = {
    1: {"memory": ("memory.oom_control", ("oom_kill", "under_oom")), "pids": ("pids.events", ("max",))},
    2: {"memory": ("memory.events", ("oom_kill",)), "pids": ("pids.events", ("max",))},
}
_CAUSES = {"memory": "memory", "pids": "processes"}


class Cgroup:
    """The group of one command. `folders` are its places, by controller."""

    def __init__(self, version: int, folders: dict[str, str]) -> None:
        """Makes it, without limits. Raises OSError."""
        self._version = version
        self._folders = folders
        self._locks: list[int] = []
        try:
            for folder in dict.fromkeys(folders.values()):
                self._locks.append(_made(folder))
        except OSError:
            self.remove()
            raise

    @property
    def doors(self) -> list[str]:
        """The files to which a process writes 0 to be in the group."""
        return [f"{folder}/cgroup.procs" for folder in dict.fromkeys(self._folders.values())]

    def limit(self, limits: "dict[str, Any]") -> None:
        """Raises OSError, also when the group has more already."""
        values = {"memory": limits["memory"], "tasks": limits["processes"] + _OF_THE_SANDBOX}
        for controller, folder in self._folders.items():
            needed, *others = _LIMITS[self._version][controller]
            write(f"{folder}/{needed[0]}", needed[1].format(**values))
            for name, value in others:
                with suppress(FileNotFoundError, PermissionError):
                    write(f"{folder}/{name}", value.format(**values))

    def exceeded(self) -> str:
        """Which limit the kernel has held it to: `memory` or `processes`; empty if none."""
        return next((_CAUSES[each] for each in self._folders if self._happened(each)), "")

    def was_killed(self) -> bool:
        """Whether the kernel has ended a process of it for want of memory."""
        return self._happened("memory")

    def _happened(self, controller: str) -> bool:
        name, events = _EVENTS[self._version][controller]
        try:
            lines = read(f"{self._folders[controller]}/{name}").splitlines()
        except OSError:  # somebody has removed it, or the kernel does not tell
            return False
        return any(int(line.split()[1]) for line in lines if line.split()[0] in events)

    def remove(self) -> bool:
        """Whether it is gone. It stays as long as a process in it has not quite ended."""
        for folder in dict.fromkeys(self._folders.values()):
            try:
                os.rmdir(folder)
            except FileNotFoundError:
                pass
            except OSError:
                return False
        for lock in self._locks:
            os.close(lock)
        self._locks = []
        return True


class Groups:
    """Where the groups of commands are made: in these folders, by controller."""

    def __init__(self, version: int, bases: dict[str, str]) -> None:
        self.version = version
        self._bases = bases
        self._made = 0
        self._left: list[Cgroup] = []

    def __str__(self) -> str:
        return f"held by the kernel, in control groups (version {self.version}: {', '.join(self._bases)})"

    @property
    def controllers(self) -> list[str]:
        return list(self._bases)

    def make(self) -> Cgroup:
        """Raises OSError."""
        self._left = [group for group in self._left if not group.remove()]
        for _ in range(_ATTEMPTS - 1):
            with suppress(FileNotFoundError):  # somebody who sweeps was there before its lock
                return self._new()
        return self._new()

    def _new(self) -> Cgroup:
        self._made += 1
        name = f"{_MARK}{os.getpid()}-{self._made}-{os.urandom(4).hex()}"
        return Cgroup(self.version, {controller: f"{base}/{name}" for controller, base in self._bases.items()})

    def remove(self, group: Cgroup) -> None:
        """Now, or before the next is made."""
        if not group.remove():
            self._left.append(group)

    def sweep(self) -> None:
        """Remove what was left behind by those who have died."""
        for base in dict.fromkeys(self._bases.values()):
            for name in os.listdir(base):
                if name.startswith(_MARK):
                    _remove_if_left(f"{base}/{name}")


def enter(doors: list[str]) -> None:
    """Put this process into a group. Raises OSError."""
    for door in doors:
        write(door, "0")


def _made(folder: str) -> int:
    """A descriptor that locks a new folder. Raises OSError."""
    os.mkdir(folder)
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not os.path.exists(f"{folder}/cgroup.procs"):  # somebody took it for one that was left behind
        os.close(lock)
        raise FileNotFoundError(folder)
    return lock


def _remove_if_left(folder: str) -> None:
    with suppress(OSError):  # another removes it too, its owner lives, or a process in it does
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rmdir(folder)
        finally:
            os.close(lock)


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def words(path: str) -> list[str]:
    return read(path).split()


def write(path: str, text: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)
