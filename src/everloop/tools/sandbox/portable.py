"""Starting and ending commands where there is neither a PID namespace nor /proc, as on macOS.

A keeper stands above the command. The runner holds it on a leash: a pipe that ends when the runner lets go or dies.
Then, or when the command ends, the keeper ends the command's process group and whatever else hangs from it. What has
left both, as a daemon does, is not found; it stays as confined as it was.
"""

import os
import select
import signal
import subprocess
import time
from contextlib import suppress

from .launch import Started, become, exit_code, pipes

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .launch import Ends

_TO_DIE = 2.0
_EVERY = 1.0  # seconds between two looks at all processes, for which a program has to be started


class StartedWithKeeper(Started):
    """A command with a keeper, whose end closes the pipe that is watched."""

    def __init__(self, pid: int, watch: int, leash: int, ours: "Ends") -> None:
        super().__init__(pid, [watch], ours)
        self._leash = leash
        self._looked = time.monotonic()
        self._used = (0, 0)

    def used(self, limit: int, grown: int) -> tuple[int, int]:
        if time.monotonic() - self._looked > _EVERY:
            self._used = used_by(self.pid)
            self._looked = time.monotonic()
        return self._used

    def written(self) -> float:
        return float("inf")  # nobody tells

    def kill(self) -> None:
        if self._leash >= 0:
            os.close(self._leash)
            self._leash = -1

    def close(self) -> None:
        self.kill()
        super().close()


def start(order: "dict[str, Any]") -> StartedWithKeeper:
    """Raises OSError."""
    theirs, ours = pipes(order["background"])
    watch, alive = os.pipe()
    held, leash = os.pipe()
    pid = os.fork()
    if not pid:
        _keep(order, theirs, held, alive)
    for fd in (*theirs, alive, held):
        os.close(fd)
    return StartedWithKeeper(pid, watch, leash, ours)


def _keep(order: "dict[str, Any]", theirs: "Ends", held: int, alive: int) -> "NoReturn":
    """The life of a keeper: start the command, wait for it or for the leash, end what is left, exit as it did."""
    code = 127
    try:
        os.setsid()
        for target, source in enumerate(theirs):
            os.dup2(source, target)
        first, second = sorted((held, alive))
        for begin, end in ((3, first), (first + 1, second), (second + 1, 1 << 16)):
            os.closerange(begin, end)
        woken = _wake_on_children()
        child = os.fork()
        if not child:
            become(order)
        code = _wait(child, woken, held)
        _end(child)
    finally:
        os._exit(code)


def _wake_on_children() -> int:
    """A pipe that can be read when a child has ended."""
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return woken


def _wait(child: int, woken: int, held: int) -> int:
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            return exit_code(status)
        ready, _, _ = select.select([woken, held], [], [])
        if held in ready:
            return 128 + signal.SIGKILL
        os.read(woken, 4096)


def _end(group: int) -> None:
    """They are stopped first, so that none can fork on, and none loses its parent before it is found."""
    found: set[int] = set()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        found |= set(_below(os.getpid(), _processes()))
        with suppress(OSError):
            os.killpg(group, number)
        for pid in found:
            with suppress(OSError):
                os.kill(pid, number)
    _see_them_gone(group, found)


def _see_them_gone(group: int, pids: set[int]) -> None:
    """Nobody tells when another's child is gone, so this looks, for as long as a kill should take."""
    until = time.monotonic() + _TO_DIE
    while time.monotonic() < until:
        with suppress(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
        if not _can(os.killpg, group) and not any(_can(os.kill, pid) for pid in pids):
            return
        time.sleep(0.002)


def _can(send: "Callable[[int, int], None]", number: int) -> bool:
    try:
        send(number, 0)
    except OSError:
        return False
    return True


def used_by(pid: int) -> tuple[int, int]:
    """How many processes are below this one, and how many bytes of memory they use together."""
    processes = _processes()
    below = _below(pid, processes)
    return len(below), sum(processes[each][1] for each in below)


def _processes() -> dict[int, tuple[int, int]]:
    """All that `ps` sees, with their parents and the bytes they use, except for `ps` itself."""
    ps = subprocess.Popen(["/bin/ps", "-axo", "pid=,ppid=,rss="], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    rows = [tuple(map(int, line.split())) for line in ps.communicate()[0].splitlines()]
    return {pid: (parent, size << 10) for pid, parent, size in rows if pid != ps.pid}


def _below(pid: int, processes: dict[int, tuple[int, int]]) -> list[int]:
    found: list[int] = []
    above = {pid}
    while above:
        above = {each for each, (parent, _) in processes.items() if parent in above}
        found += above
    return found
