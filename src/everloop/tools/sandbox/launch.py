"""Starting a command for the runner, and ending it with all that it has started.

In bubblewrap the command lives in a PID namespace: when the first process in there ends, the kernel ends the rest. The
runner holds a descriptor of that process, which tells when they are gone. Otherwise a supervisor stands above the
command: it inherits whatever the command leaves behind, and ends it.
"""

import ctypes
import fcntl
import json
import os
import resource
import signal
import stat
import subprocess
from contextlib import suppress

from . import landlock, seccomp, usage

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Ends = tuple[int, int, int]  # of pipes for input, output and errors

_DEATH_SIGNAL, _SUBREAPER = 1, 36
# A core dump of 1 byte is no dump at all, and unlike 0 it also keeps the kernel from piping one to a program outside.
_NO_CORE = 1
_UMASK = 0o022
_DESCRIPTORS = 16384
# Without a network of its own nobody can count the sockets that are on their way from one process to another. The
# kernel lets there be as many of these as a process may have open.
_DESCRIPTORS_WITHOUT_NAMESPACES = 1024
_DEVICES = {"null": 0x103, "zero": 0x105, "full": 0x107, "random": 0x108, "urandom": 0x109}


class Started:
    """A command that runs. `pidfds` are readable when all of it is gone; `info` tells of its first process."""

    def __init__(self, pid: int, pidfds: list[int], ours: "Ends", info: int = -1, block: int = -1) -> None:
        self.pid = pid
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
            for kind, limit in (*_limits(limits), (resource.RLIMIT_NOFILE, _DESCRIPTORS)):
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
            _send(self.pidfds[0], signal.SIGKILL)
        else:
            _send(self.pidfds[0], signal.SIGTERM)

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


class Launcher:
    """Starts commands. `folder` holds the filter that bubblewrap is given."""

    def __init__(self, folder: str) -> None:
        self._filter = os.path.join(folder, "filter")
        self._copies: dict[str, int] = {}

    def start(self, order: "dict[str, Any]") -> Started:
        """Raises OSError."""
        return self._in_bubblewrap(order) if order["way"] == "bwrap" else _supervised(order)

    def _in_bubblewrap(self, order: "dict[str, Any]") -> Started:
        theirs, ours = pipes(order["background"])
        info, say_info = os.pipe()
        wait, block = os.pipe()
        rules = self._open_filter()
        extra = ["--info-fd", str(say_info), "--block-fd", str(wait), "--seccomp", str(rules)]
        program, *rest = order["argv"]
        rest[rest.index("--") : rest.index("--")] = self._own_devices()
        try:
            process = subprocess.Popen(
                [program, *extra, *rest],
                executable=self._program(program),
                stdin=theirs[0],
                stdout=theirs[1],
                stderr=theirs[2],
                env=order["env"],
                cwd="/",
                pass_fds=[say_info, wait, rules],
                start_new_session=True,
                umask=_UMASK,
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

    def _open_filter(self) -> int:
        if not os.path.exists(self._filter):
            with open(f"{self._filter}.new", "wb") as file:
                file.write(seccomp.classic())
            os.rename(f"{self._filter}.new", self._filter)
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


def _supervised(order: "dict[str, Any]") -> Started:
    theirs, ours = pipes(order["background"])
    pid = os.fork()
    if not pid:
        _supervise(order, theirs)
    for fd in theirs:
        os.close(fd)
    return Started(pid, [os.pidfd_open(pid)], ours)


def _supervise(order: "dict[str, Any]", theirs: "Ends") -> "NoReturn":
    """The life of a supervisor: start the command, wait for it, end what it leaves behind, exit as it did."""
    code = 127
    try:
        libc = ctypes.CDLL(None)
        libc.prctl(_DEATH_SIGNAL, signal.SIGTERM, 0, 0, 0)
        libc.prctl(_SUBREAPER, 1, 0, 0, 0)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
        os.setsid()
        for target, source in enumerate(theirs):
            os.dup2(source, target)
        os.closerange(3, 1 << 16)
        child = os.fork()
        if not child:
            become(order)
        code = _wait_or_end(child)
        _end_descendants()
    finally:
        os._exit(code)


def become(order: "dict[str, Any]") -> "NoReturn":
    try:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number in (signal.SIGPIPE, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        most = [(resource.RLIMIT_NOFILE, _DESCRIPTORS_WITHOUT_NAMESPACES)] if order["way"] == "landlock" else []
        for kind, limit in (*_limits(order["limits"]), *most):
            if kind != resource.RLIMIT_NPROC:  # without a user namespace it counts all that the user runs
                limit = _within(limit, resource.getrlimit(kind)[1])
                resource.setrlimit(kind, (limit, limit))
        _let_it_be_killed_first(os.getpid())
        if order["way"] == "landlock":
            landlock.confine(order["readable"], order["writable"])
        os.umask(_UMASK)
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
