"""The runner's way to start commands: in bubblewrap or under a supervisor, in a control group where one can be had."""

import fcntl
import os
import stat
import subprocess

from . import duplex, seccomp
from .delegation import find_groups
from .launch import UMASK, Started, pipes, supervised
from .parked import Parking, descriptors

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any

    from .cgroup import Cgroup

COUNTED = "counted, ten times a second"
_DEVICES = {"null": 0x103, "zero": 0x105, "full": 0x107, "random": 0x108, "urandom": 0x109}


class Launcher:
    """Starts commands. `folder` holds the filter that bubblewrap is given, with the name of the runner."""

    def __init__(self, folder: str, name: str) -> None:
        self._filter = os.path.join(folder, f"{name}.filter")
        self._is_written = False
        self._copies: dict[str, int] = {}
        groups = find_groups()
        self._parking = Parking(groups, self._open_filter) if groups else None

    @property
    def limits(self) -> str:
        """Who holds commands to their limits."""
        return str(self._parking.groups) if self._parking else COUNTED

    def start(self, order: "dict[str, Any]") -> Started:
        """Raises OSError."""
        if order["way"] == "bwrap":
            order = self._order_for_bubblewrap(order)
        if self._parking and (started := self._parking.start(order)):
            return started
        return _in_bubblewrap(order, self._open_filter()) if order["way"] == "bwrap" else supervised(order)

    def start_duplex(self, order: "dict[str, Any]") -> Started:
        """Start a server. Raises OSError."""
        group = self._limited_group(order["limits"])
        try:
            if order["way"] == "bwrap":
                return duplex.start_in_bubblewrap(self._order_for_bubblewrap(order), self._open_filter(), group)
            return duplex.start_supervised(order, group)
        except OSError:
            if self._parking and group:
                self._parking.groups.remove(group)
            raise

    def _limited_group(self, limits: "dict[str, Any]") -> "Cgroup | None":
        """None if there is none to be had."""
        if not self._parking:
            return None
        try:
            group = self._parking.groups.make()
        except OSError:
            return None
        try:
            group.limit(limits)
        except OSError:
            self._parking.groups.remove(group)
            return None
        return group

    def prepare(self) -> None:
        """Make ready for the next command, while nobody waits."""
        if self._parking:
            self._parking.prepare()

    def finish(self, started: Started) -> None:
        """Let go of a command that has ended."""
        started.close()
        if self._parking and started.group:
            self._parking.groups.remove(started.group)

    def close(self) -> None:
        if self._parking:
            self._parking.close()

    def _order_for_bubblewrap(self, order: "dict[str, Any]") -> "dict[str, Any]":
        program, *rest = order["argv"]
        rest[rest.index("--") : rest.index("--")] = self._own_devices()
        return {**order, "argv": [program, *rest], "program": self._program(program)}

    def _open_filter(self) -> int:
        if not self._is_written:  # by this runner: the one that lies there may be that of an older everloop
            with open(f"{self._filter}.new", "wb") as file:
                file.write(seccomp.classic())
            os.rename(f"{self._filter}.new", self._filter)
            self._is_written = True
        return os.open(self._filter, os.O_RDONLY | os.O_CLOEXEC)

    def _program(self, program: str) -> str:
        """Bubblewrap, or if it belongs to us, as to root, a copy of it that can never be changed.

        For the sandbox sees its first process, and through /proc/1/exe the file it runs.
        """
        if os.stat(program).st_uid != os.geteuid():
            return program
        if program not in self._copies:
            copy = os.memfd_create("bwrap", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            with open(program, "rb") as file:
                os.sendfile(copy, file.fileno(), 0, os.fstat(file.fileno()).st_size)
            fcntl.fcntl(
                copy,
                fcntl.F_ADD_SEALS,
                fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL,
            )
            self._copies[program] = copy
        return f"/proc/{os.getpid()}/fd/{self._copies[program]}"

    def _own_devices(self) -> list[str]:
        """Device files for the sandbox, if we are root: those of the machine belong to root, who may change their mode.

        Where none can be made, as in many containers, there is only the machine's, which then is a container's own.
        """
        if os.geteuid() != 0:
            return []
        folder = os.path.join(os.path.dirname(self._filter), "devices")
        os.makedirs(folder, exist_ok=True)
        return [word for device in _DEVICES.items() for word in _own_device(folder, *device)]


def _in_bubblewrap(order: "dict[str, Any]", rules: int) -> Started:
    theirs, ours = pipes(order["background"])
    info, say_info = os.pipe()
    wait, block = os.pipe()
    extra = descriptors(say_info, wait, rules)
    program, *rest = order["argv"]
    try:
        process = subprocess.Popen(
            [program, *extra, *rest],
            executable=order["program"],
            stdin=theirs[0],
            stdout=theirs[1],
            stderr=theirs[2],
            env=order["env"],
            cwd="/",
            pass_fds=[say_info, wait, rules],
            start_new_session=True,
            umask=UMASK,
        )
    except OSError:
        for fd in (info, block, *ours):
            if fd >= 0:
                os.close(fd)
        raise
    finally:
        for fd in (*theirs, say_info, wait, rules):
            os.close(fd)
    process.returncode = 0  # the runner waits for it itself
    return Started(process.pid, [os.pidfd_open(process.pid)], ours, info, block)


def _own_device(folder: str, name: str, number: int) -> list[str]:
    path = os.path.join(folder, name)
    try:
        if not os.path.exists(path):
            os.mknod(path, stat.S_IFCHR, os.makedev(*divmod(number, 256)))
        os.chmod(path, 0o666)  # one command may have changed it for the next
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return []
    return ["--dev-bind", path, f"/dev/{name}"]
