"""Arming the failpoints that `everloop.ports.failpoint.reach` marks in the source.

In a test process: `arm("outbox.sent", nth=2, action="kill")`. For a process under test, in its environment:

    EVERLOOP_TEST=1
    EVERLOOP_FAILPOINT=outbox.sent:2:kill          name:nth:action, several with commas between
    EVERLOOP_FAILPOINT_RECORD=/tmp/reached.jsonl   append every name reached, to prove that none is dead

and the process calls `from_environment()` when it starts. Without EVERLOOP_TEST=1 arming is refused.
"""

import ast
import itertools
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from ..ports import failpoint
from . import outside

EXIT_CODE = 70


class Reached(Exception):
    """What the action `raise` raises: an error that nobody expects."""


class NotUnderTest(Exception):
    """Failpoints were to be armed in a process that is not under test."""


def _kill(name: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _exit(name: str) -> None:
    # Not sys.exit: in a writer thread that would end the thread and leave the process alive.
    os._exit(EXIT_CODE)


def _stop(name: str) -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _raise(name: str) -> None:
    raise Reached(name)


ACTIONS: dict[str, Callable[[str], None]] = {"kill": _kill, "exit": _exit, "stop": _stop, "raise": _raise}


class _Armed:
    """The hook: counts how often each armed name is reached and acts at the nth time, once."""

    def __init__(self) -> None:
        self.points: dict[str, list[tuple[int, Callable[[str], None]]]] = {}
        self.record: Path | None = None
        self._times: dict[str, Iterator[int]] = {}

    def add(self, name: str, nth: int, action: Callable[[str], None]) -> None:
        self.points.setdefault(name, []).append((nth, action))
        self._times.setdefault(name, itertools.count(1))

    def __call__(self, name: str) -> None:
        if self.record is not None:
            outside.append(self.record, {"name": name, "pid": os.getpid()})
        if name in self.points:
            time = next(self._times[name])  # one bytecode, so that threads never count the same time twice
            for nth, action in self.points[name]:
                if time == nth:
                    action(name)


def arm(name: str, nth: int = 1, action: str | Callable[[str], None] = "kill") -> None:
    """Do `action` (kill, exit, stop, raise or a function of the name) when `name` is reached for the nth time from now.

    Raises NotUnderTest without EVERLOOP_TEST=1, and ValueError for an action that does not exist.
    """
    if isinstance(action, str) and action not in ACTIONS:
        raise ValueError(f"a failpoint can {', '.join(ACTIONS)}, not {action!r}")
    if nth < 1:
        raise ValueError(f"a failpoint acts the first time or later, not at {nth}")
    _armed().add(name, nth, ACTIONS[action] if isinstance(action, str) else action)


def record(path: Path) -> None:
    """From now on append each name reached to the file. Raises NotUnderTest without EVERLOOP_TEST=1."""
    _armed().record = path


def disarm() -> None:
    """Forget every armed failpoint and the recording."""
    failpoint.hook = None


def from_environment() -> None:
    """Arm what EVERLOOP_FAILPOINT and EVERLOOP_FAILPOINT_RECORD ask for; nothing if neither is set. Raises as `arm`."""
    if recording := os.environ.get("EVERLOOP_FAILPOINT_RECORD"):
        record(Path(recording))
    for point in filter(None, os.environ.get("EVERLOOP_FAILPOINT", "").split(",")):
        match point.split(":"):
            case [name, nth, action] if nth.isdecimal():
                arm(name, int(nth), action)
            case _:
                raise ValueError(f"EVERLOOP_FAILPOINT looks like name:nth:action, not {point!r}")


def reached_in(path: Path) -> list[str]:
    """The names that a recording holds, in the order in which they were reached."""
    return [record["name"] for record in outside.records_in(path)]


def names_in_source(root: Path) -> list[str]:
    """The failpoints of the source files under `root`, sorted: the names in their `reach("…")` calls.

    Raises ValueError at a call whose name is not written out, since no list could hold it.
    """
    names = {name for file in sorted(root.rglob("*.py")) for name in _names_in(file)}
    return sorted(names)


def _names_in(file: Path) -> Iterator[str]:
    source = file.read_bytes()
    if b"reach(" not in source:  # as most are; to parse a thousand files takes seconds
        return
    for node in ast.walk(ast.parse(source, filename=str(file))):
        match node:
            case ast.Call(func=ast.Name(id="reach") | ast.Attribute(value=ast.Name(id="failpoint"), attr="reach")):
                match node.args:
                    case [ast.Constant(value=str(name))]:
                        yield name
                    case _:
                        raise ValueError(f"{file}:{node.lineno}: write the failpoint's name out as one string")


def _armed() -> _Armed:
    if os.environ.get("EVERLOOP_TEST") != "1":
        raise NotUnderTest("failpoints end and freeze processes; set EVERLOOP_TEST=1 to arm them, and only in a test")
    if not isinstance(failpoint.hook, _Armed):
        failpoint.hook = _Armed()
    return failpoint.hook
