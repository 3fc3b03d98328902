"""Starting a server for the runner: a command that a worker speaks with, and that has to end with both of them.

A supervisor stands above it, also above bubblewrap: killed in the wrong moment, that would leave a process behind. The
supervisor is told when the runner dies, inherits whatever is left behind, and ends it. Only the server is in the
control group.
"""

import os
import signal
from contextlib import suppress

from .cgroup import enter
from .launch import Started, become, pipes, supervise
from .parked import become_bubblewrap, descriptors

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .cgroup import Cgroup


class StartedServer(Started):
    """A server with its supervisor, whose end is the end of all of it."""

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.pidfds[0], signal.SIGTERM)


def start_in_bubblewrap(order: "dict[str, Any]", rules: int, group: "Cgroup | None") -> StartedServer:
    """`rules` is the filter of system calls. Raises OSError."""
    theirs, ours = pipes(background=True)
    info, say_info = os.pipe()
    wait, block = os.pipe()
    inherited = (say_info, wait, rules)
    program, *rest = order["argv"]
    order = {**order, "argv": [program, *descriptors(*inherited), *rest]}
    runner = os.getpid()
    pid = os.fork()
    if not pid:
        supervise(lambda: _begin_bubblewrap(order, group, inherited), theirs, runner, kept=inherited)
    for fd in (*theirs, *inherited):
        os.close(fd)
    return StartedServer(pid, [os.pidfd_open(pid)], ours, info, block, group)


def start_supervised(order: "dict[str, Any]", group: "Cgroup | None") -> StartedServer:
    """Raises OSError."""
    theirs, ours = pipes(background=True)
    runner = os.getpid()
    pid = os.fork()
    if not pid:
        supervise(lambda: _begin(order, group), theirs, runner)
    for fd in theirs:
        os.close(fd)
    return StartedServer(pid, [os.pidfd_open(pid)], ours, group=group)


def _begin(order: "dict[str, Any]", group: "Cgroup | None") -> "NoReturn":
    _enter(group)
    become(order)


def _begin_bubblewrap(order: "dict[str, Any]", group: "Cgroup | None", inherited: tuple[int, ...]) -> "NoReturn":
    _enter(group)
    try:
        become_bubblewrap(order, inherited)
    except OSError as error:
        os.write(2, f"bubblewrap could not be started: {error}\n".encode())
    finally:
        os._exit(127)


def _enter(group: "Cgroup | None") -> None:
    try:
        if group:
            enter(group.doors)
    except OSError as error:
        os.write(2, f"it could not be put into a control group: {error}\n".encode())
        os._exit(127)
