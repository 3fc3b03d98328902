"""Starting a command for the runner, and ending it with all that it has started.

In bubblewrap the command lives in a PID namespace: when the first process in there ends, the kernel ends the rest. The
runner holds a descriptor of that process, which tells when they are gone. Otherwise a supervisor stands above the
command: it inherits whatever the command leaves behind, and ends it.
"""

import ctypes
import json
import os
import resource
import signal
import time
from contextlib import suppress

from . import landlock, usage

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .cgroup import Cgroup

    Ends = tuple[int, int, int]  # of pipes for input, output and errors

_DEATH_SIGNAL, _SUBREAPER = 1, 36
_HAS_STOPPED = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG  # or has ended; whoever waits is told as well
# A core dump of 1 byte is no dump at all, and unlike 0 it also keeps the kernel from piping one to a program outside.
_NO_CORE = 1
UMASK = 0o022
STOPS_WITHIN = 50  # milliseconds: a process that is busy in the kernel is not waited for


class Started:
    """A command that runs. `pidfds` are readable when all of it is gone; `info` tells of its first process. `group` is
    its control group, if it has one."""

    def __init__(
        self,
        pid: int,
        pidfds: list[int],
        ours: "Ends",
        info: int = -1,
        block: int = -1,
        group: "Cgroup | None" = None,
    ) -> None:
        self.pid = pid
        self.group = group
        self.pidfds = pidfds
        self.into, self.out, self.err = ours
        self.info = info
        self._block = block
        self._inner = -1
        self._first = 0
        self._said = b""

    def hear(self) -> bool:
        """What is to be done when `info` is readable. True if all has been said, and it may go ahead."""
        said = os.read(self.info, 4096)
        self._said += said
        return not said or b"}" in said

    def go(self, limits: "dict[str, Any]") -> bool:
        """Set the limits and let the command begin. False if it failed."""
        os.close(self.info)
        self.info = -1
        try:
            self._first = inner = int(json.loads(self._said)["child-pid"])
            self._inner = os.pidfd_open(inner)
            self.pidfds.append(self._inner)
            for kind, limit in (*_limits(limits), (resource.RLIMIT_NOFILE, usage.DESCRIPTORS)):
                limit = _within(limit, resource.prlimit(inner, kind)[1])
                resource.prlimit(inner, kind, (limit, limit))
            _let_it_be_killed_first(inner)
            os.write(self._block, b"x")
        except (ValueError, OSError):  # it said nothing, or is gone already
            self.kill()
            return False
        finally:
            os.close(self._block)
            self._block = -1
        return True

    def used(self, limit: int, grown: int) -> tuple[int, int]:
        """How many processes and threads it has, and how many bytes of memory they hold: see `tasks_and_memory`."""
        return usage.tasks_and_memory(self.pid, self._first, limit, grown)

    def written(self) -> float:
        """How many bytes it has written at most."""
        return usage.written_by(self.pid)

    def kill(self) -> None:
        if self._inner >= 0:
            _send(self._inner, signal.SIGKILL)
        elif self._block >= 0:
            self._kill_unheard()
        else:
            _send(self.pidfds[0], signal.SIGTERM)

    def _kill_unheard(self) -> None:
        """bubblewrap has not said yet whom it has begun, and whoever that is would wait for its word for ever."""
        _send(self.pidfds[0], signal.SIGSTOP)  # it begins nobody else
        with suppress(ChildProcessError):  # it is gone
            for _ in range(STOPS_WITHIN):
                if os.waitid(os.P_PIDFD, self.pidfds[0], _HAS_STOPPED):
                    break
                time.sleep(0.001)
        for pid in usage.descendants(self.pid):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _send(self.pidfds[0], signal.SIGKILL)

    def let_go_of_pipes(self) -> None:
        """Another speaks with it."""
        for fd in (self.into, self.out, self.err):
            os.close(fd)
        self.into = self.out = self.err = -1

    def close(self) -> None:
        for fd in (*self.pidfds, self.out, self.err, self.into, self.info, self._block):
            if fd >= 0:
                os.close(fd)


def _send(pidfd: int, number: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, number)


def _let_it_be_killed_first(pid: int) -> None:
    with suppress(OSError), open(f"/proc/{pid}/oom_score_adj", "w") as file:
        file.write("800")


def _limits(limits: "dict[str, Any]") -> list[tuple[int, int]]:
    """The limits of a single process; the runner watches over the sum.

    RLIMIT_DATA, for RLIMIT_AS counts what is only reserved, of which node, Go and Java take many gigabytes.
    """
    cpu = [(resource.RLIMIT_CPU, int(limits["seconds"]) + 60)] if limits["seconds"] else []
    return [
        (resource.RLIMIT_DATA, limits["memory"]),
        (resource.RLIMIT_FSIZE, limits["file"]),
        (resource.RLIMIT_CORE, _NO_CORE),
        *cpu,
        (resource.RLIMIT_NPROC, limits["processes"]),
    ]


def leave_no_core() -> None:
    """What this process holds in memory goes nowhere if it crashes."""
    most = _within(_NO_CORE, resource.getrlimit(resource.RLIMIT_CORE)[1])
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def _within(limit: int, hard: int) -> int:
    """A limit, or a lower one that is there already and that only root may raise."""
    return limit if hard == resource.RLIM_INFINITY else min(limit, hard)


def pipes(background: bool) -> "tuple[Ends, Ends]":
    """A command's input, output and errors, and our ends of them; that of its input is -1 if it has none.

    Without input it gets a pipe that is at its end: /dev/null would be the one outside, whose mode root may change.
    """
    stdin, into = os.pipe()
    if not background:
        os.close(into)
        into = -1
    else:
        os.set_blocking(into, False)
    out, stdout = os.pipe()
    err, stderr = os.pipe()
    for fd in (out, err):
        os.set_blocking(fd, False)
    return (stdin, stdout, stderr), (into, out, err)


def supervised(order: "dict[str, Any]") -> Started:
    theirs, ours = pipes(order["background"])
    runner = os.getpid()
    pid = os.fork()
    if not pid:
        supervise(lambda: become(order), theirs, runner)
    for fd in theirs:
        os.close(fd)
    return Started(pid, [os.pidfd_open(pid)], ours)


def supervise(begin: "Callable[[], NoReturn]", theirs: "Ends", runner: int, kept: "tuple[int, ...]" = ()) -> "NoReturn":
    """The life of a supervisor: start the command, wait for it, end what it leaves behind, exit as it did.

    It ends with `runner`, which has begun it."""
    code = 127
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
        libc.prctl(_SUBREAPER, 1, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
        if os.getppid() != runner:  # it died before it could be asked to tell
            os._exit(code)
        os.setsid()
        speak_through(theirs, kept)
        child = os.fork()
        if not child:
            begin()
        code = _wait_or_end(child)
        _end_descendants()
    finally:
        os._exit(code)


def speak_through(theirs: "Ends", kept: "tuple[int, ...]") -> None:
    """Take these as input, output and errors, and close all else but what is kept."""
    for target, source in enumerate(theirs):
        os.dup2(source, target)
    begin = 3
    for fd in sorted(each for each in kept if each >= 0):
        os.closerange(begin, fd)
        begin = fd + 1
    os.closerange(begin, 1 << 16)


def hear_signals() -> None:
    """As a program does that nobody has told otherwise."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in (signal.SIGPIPE, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def become(order: "dict[str, Any]") -> "NoReturn":
    try:
        os.setsid()
        hear_signals()
        most = [(resource.RLIMIT_NOFILE, usage.DESCRIPTORS_WITHOUT_NAMESPACES)] if order["way"] == "landlock" else []
        for kind, limit in (*_limits(order["limits"]), *most):
            if kind != resource.RLIMIT_NPROC:  # without a user namespace it counts all that the user runs
                limit = _within(limit, resource.getrlimit(kind)[1])
                resource.setrlimit(kind, (limit, limit))
        _let_it_be_killed_first(os.getpid())
        if order["way"] == "landlock":
            landlock.confine(order["readable"], order["writable"])
        os.umask(UMASK)
        os.chdir(order["cwd"])
        _stand_on(order.get("inode", ""))
        os.execve(order["argv"][0], order["argv"], order["env"])
    except OSError as error:
        os.write(2, f"{order['argv'][0]} could not be started: {error}\n".encode())
    finally:
        os._exit(127)


def _stand_on(inode: str) -> None:
    """See that this process is in the folder that it was allowed in, if one was named."""
    here = os.stat(".")
    if inode and inode != f"{here.st_dev}:{here.st_ino}":
        os.write(2, b"not run: the folder is not the one that was allowed\n")
        os._exit(126)


def _wait_or_end(child: int) -> int:
    while True:
        number = signal.sigwait({signal.SIGTERM, signal.SIGCHLD})
        if number == signal.SIGTERM:
            return 128 + signal.SIGKILL
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return 0
            if pid == child:
                return exit_code(status)
            if not pid:
                break


def _end_descendants() -> None:
    """Until none is left: each that dies hands its children to us. They are stopped first, so that none can fork on."""
    while True:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in usage.descendants(os.getpid()):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def exit_code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code
