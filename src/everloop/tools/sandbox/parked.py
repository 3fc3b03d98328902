"""A process that waits in a control group of its own for the command that it is to become.

Putting a process into a group takes the kernel some 10 ms, in which it waits for all processors. So it is done before
there is a command. Whatever a process starts is in its group too; so all of a command is, from its first instruction.
"""

import json
import os
from contextlib import suppress

from .cgroup import enter
from .launch import UMASK, Started, become, hear_signals, pipes, speak_through, supervise

TYPE_CHECKING = False  # as in typing, which takes longer to load than all of this
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

    from .cgroup import Cgroup, Groups
    from .launch import Ends


class Parking:
    """Processes that wait, one for each way that commands have gone and will go again."""

    def __init__(self, groups: "Groups", open_filter: "Callable[[], int]") -> None:
        self.groups = groups
        self._open_filter = open_filter
        self._parked: dict[str, Parked | None] = {}

    def start(self, order: "dict[str, Any]") -> Started | None:
        """None if there is no group to be had for it."""
        way = order["way"]
        try:
            parked = self._parked.get(way) or self._park(way)
        except OSError:
            return None
        self._parked[way] = None
        try:
            parked.group.limit(order["limits"])
        except OSError:  # it has more already, or somebody has removed it
            self._give_up(parked)
            return None
        return parked.start(order)

    def prepare(self) -> None:
        for way in [way for way, parked in self._parked.items() if not parked]:
            with suppress(OSError):
                self._parked[way] = self._park(way)

    def close(self) -> None:
        for parked in filter(None, self._parked.values()):
            self._give_up(parked)

    def _park(self, way: str) -> "Parked":
        """Raises OSError."""
        group = self.groups.make()
        try:
            return Parked(group, self._open_filter() if way == "bwrap" else -1)
        except OSError:
            self.groups.remove(group)
            raise

    def _give_up(self, parked: "Parked") -> None:
        parked.give_up()
        self.groups.remove(parked.group)


class Parked:
    """A process in a group. `rules` is the filter of system calls for bubblewrap; -1 if it is not to become that."""

    def __init__(self, group: "Cgroup", rules: int) -> None:
        """Raises OSError."""
        self.group = group
        theirs, self._ours = pipes(background=True)
        self._info, say_info, wait, self._block = (*os.pipe(), *os.pipe()) if rules >= 0 else (-1, -1, -1, -1)
        hears, self._order = os.pipe()
        self._inherited = (say_info, wait, rules)
        runner = os.getpid()
        self._pid = os.fork()
        if not self._pid:
            if rules >= 0:
                _wait_to_be_bubblewrap(group, hears, theirs, self._inherited)
            supervise(lambda: _wait_to_be_a_command(group, hears), theirs, runner, kept=(hears,))
        for fd in (*theirs, hears, *self._inherited):
            if fd >= 0:
                os.close(fd)

    def start(self, order: "dict[str, Any]") -> Started:
        """Raises OSError if it has died."""
        into, out, err = self._ours
        if not order["background"]:
            os.close(into)
            into = -1
        pidfds = [os.pidfd_open(self._pid)]
        started = Started(self._pid, pidfds, (into, out, err), self._info, self._block, self.group)
        order = {**order, "script": None}  # which is a file by now
        if self._info >= 0:
            order["argv"][1:1] = descriptors(*self._inherited)
        with suppress(BrokenPipeError), open(self._order, "wb") as file:  # if it has died, its end says so
            file.write(json.dumps(order).encode())
        return started

    def give_up(self) -> None:
        """End it, and see it gone."""
        os.close(self._order)
        for fd in (*self._ours, self._info, self._block):
            if fd >= 0:
                os.close(fd)
        os.waitpid(self._pid, 0)


def descriptors(info: int, wait: int, rules: int) -> list[str]:
    """The options by which bubblewrap speaks with us."""
    return ["--info-fd", str(info), "--block-fd", str(wait), "--seccomp", str(rules)]


def _wait_to_be_bubblewrap(group: "Cgroup", hears: int, theirs: "Ends", inherited: tuple[int, ...]) -> "NoReturn":
    try:
        os.setsid()
        speak_through(theirs, (hears, *inherited))
        become_bubblewrap(_wait_in(group, hears), inherited)
    except OSError as error:
        os.write(2, f"it could not be put into a control group, or started: {error}\n".encode())
    finally:
        os._exit(127)


def become_bubblewrap(order: "dict[str, Any]", inherited: tuple[int, ...]) -> "NoReturn":
    """Raises OSError."""
    for fd in inherited:
        os.set_inheritable(fd, True)
    hear_signals()
    os.umask(UMASK)
    os.execve(order["program"], order["argv"], order["env"])


def _wait_to_be_a_command(group: "Cgroup", hears: int) -> "NoReturn":
    try:
        order = _wait_in(group, hears)
    except OSError as error:
        os.write(2, f"it could not be put into a control group: {error}\n".encode())
        os._exit(127)
    become(order)


def _wait_in(group: "Cgroup", hears: int) -> "dict[str, Any]":
    """What this process is to become, which is in the group then. Without an order it ends. Raises OSError."""
    enter(group.doors)
    with open(hears, "rb") as file:
        told = file.read()
    if not told:
        os._exit(0)
    order: dict[str, Any] = json.loads(told)
    return order
