"""A world: a home, everything outside it, and the processes that live and die on it."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from msgspec import Struct

from everloop.testing import outside

from .feed import Event, write_feed
from .worker import Life, Sabotage, live

# Processes are forked from one that has imported everything: a life then begins within milliseconds.
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        "tests.torture.worker",
        "everloop.app.open_house",
        "everloop.store.sqlite",
        "everloop.net.trusted",
        "everloop.providers.host",
    ]
)
UNBORN = 255  # what the fork server says of a process that ended before it had reported itself: nothing of ours


class Troubles(Struct):
    """What was done to the lines of a world, as far as it excuses anything."""

    faults: Counter[str]
    away: float = 0.0  # seconds for which the database was away at a stretch, at most
    broken: int = 0  # connections to the model's host, in the middle of a call


class Model:
    """The model server's process, for all worlds of a campaign."""

    def __init__(self, log: Path, pace: float = 0.0) -> None:
        command = [sys.executable, "-m", "tests.torture.model", str(log), str(pace)]
        self.log = log
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().removeprefix("ready ").strip()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


@contextmanager
def model_server(folder: Path, pace: float = 0.0) -> Iterator[Model]:
    model = Model(folder / f"model{pace:g}.jsonl", pace)
    try:
        yield model
    finally:
        model.close()


class World:
    def __init__(
        self,
        folder: Path,
        events: Sequence[Event],
        model: Model,
        *,
        url: str = "",
        host: str = "",
        lease_seconds: float = 30.0,
        faulty: bool = False,
        sabotage: Sabotage | None = None,
    ) -> None:
        """`host` is where the model is asked, when that is not at its own address."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.model = model
        self.url = url
        self.host = host or model.url
        self.troubles: Troubles | None = None
        self.kills = 0
        self.crashes: list[str] = []
        self.lease_seconds = lease_seconds
        self.faulty = faulty
        self.sabotage = sabotage
        self._births = 0
        write_feed(folder / "feed.jsonl", list(events))

    @property
    def settings(self) -> dict[str, Any]:
        return {
            "agents": {"defaults": {"model": "custom/scripted"}},
            "providers": {"custom": {"api_base": self.host, "api_key": "sk-canary-torture"}},
            "store": {"url": self.url, "lease_seconds": self.lease_seconds},
        }

    def start(self, *, failpoint: str = "", stay: bool = False) -> BaseProcess:
        """Another process on this home."""
        self._births += 1
        record = str(self.folder / "reached.jsonl")
        environment = {"EVERLOOP_TEST": "1", "EVERLOOP_FAILPOINT": failpoint, "EVERLOOP_FAILPOINT_RECORD": record}
        armed = environment if failpoint else {}
        nature = {"frozen": self.lease_seconds < 30, "faulty": self.faulty, "sabotage": self.sabotage}
        life = Life(self.folder, self.settings, self._births, armed, stay=stay, **nature)
        process = _context.Process(target=live, args=(life,), daemon=True)
        process.start()
        return process

    def kill(self, process: BaseProcess) -> None:
        if process.is_alive():
            self.kills += 1
            process.kill()
        elif process.exitcode not in (0, UNBORN):
            self.crashes.append(f"a process ended by itself with {process.exitcode}; see {self.folder / 'stderr.txt'}")
        process.join()

    def freeze(self, process: BaseProcess) -> None:
        _signal(process, signal.SIGSTOP)

    def thaw(self, process: BaseProcess) -> None:
        _signal(process, signal.SIGCONT)

    def wait_until_awake(self, process: BaseProcess, seconds: float = 60.0) -> None:
        """Wait for a process that has opened its home, or has ended; whoever finds no disk at birth ends, rightly."""
        end = time.monotonic() + seconds
        while process.is_alive() and time.monotonic() < end:
            if any(life["pid"] == process.pid for life in outside.records_in(self.folder / "lives.jsonl")):
                return
            time.sleep(0.02)

    def wait_until_quiet(self, seconds: float = 60.0) -> list[str]:
        """Wait for a process that stays to say that all is answered; returns what was wrong with that."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if (self.folder / "quiet").exists():
                return []
            time.sleep(0.02)
        return [f"it was not over it within {seconds:g} s; see {self.folder / 'stderr.txt'}"]

    def finish(self) -> list[str]:
        """Let one process go on to the end, undisturbed; returns what was wrong with that."""
        seconds = 150.0 if self.url else 60.0  # where nobody sees the dead, what they were sending waits two minutes
        process = self.start()
        process.join(seconds)
        if process.exitcode == UNBORN:
            process = self.start()
            process.join(seconds)
        if process.exitcode == 0:
            return []
        state = "was not done" if process.is_alive() else f"ended with {process.exitcode}"
        _signal(process, signal.SIGUSR1)  # where is it?
        process.join(0.5)
        process.kill()
        process.join()
        return [f"the last process {state} within {seconds:g} s; see {self.folder / 'stderr.txt'}"]


def _signal(process: BaseProcess, number: signal.Signals) -> None:
    if process.pid is not None:
        with suppress(ProcessLookupError):  # one that died is found by its exit code
            os.kill(process.pid, number)
