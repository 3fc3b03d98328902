"""Someone at a terminal, for tests of commands as people run them."""

import asyncio
import os
import shutil
import sys
from pathlib import Path

import msgspec
from tests.canary import EAR, PRINTED
from tests.cli.forking import Forked, can_fork, fork_server
from tests.processes import kill

from everloop.testing import Shown
from everloop.testing.model_server import ModelServer

SECRET = "sk-canary-very-secret"


class Ran(msgspec.Struct):
    status: int
    out: str
    err: str


class Person:
    """Someone at a terminal: a home, an environment with nothing else in it, and the command."""

    def __init__(self, folder: Path, model: ModelServer) -> None:
        self.home = folder / "home"
        self._started: list[asyncio.subprocess.Process] = []
        self._forked: list[Forked] = []
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "EVERLOOP_HOME": str(self.home),
            "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/scripted",
            "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": model.url,
            "EVERLOOP_PROVIDERS__CUSTOM__API_KEY": SECRET,
        }

    async def start(self, *arguments: str) -> asyncio.subprocess.Process:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)  # one that is not there is looked into by nobody
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "everloop", *arguments), stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment
        )
        self._started.append(process)
        return process

    async def leave(self) -> None:
        """End what a failed test has left running."""
        for forked in self._forked:
            forked.leave()
        for process in self._started:
            await kill(process)

    async def run(self, *arguments: str, typed: bytes = b"") -> Ran:
        self.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not can_fork(self.environment, typed):
            return await ended(await self.start(*arguments), typed)
        forked = fork_server().begin(arguments, self.environment, typed)
        self._forked.append(forked)
        status, out, err = await forked.ended()
        return heard(Ran(status, out.decode(), err.decode()))


def someone(folder: Path, home: Path, model: ModelServer, **environment: str) -> Person:
    """A person with a copy of the home."""
    person = Person(folder, model)
    if not person.home.exists():
        shutil.copytree(home, person.home)
    person.environment.update(environment)
    return person


async def ended(process: asyncio.subprocess.Process, typed: bytes | None = b"") -> Ran:
    out, err = await process.communicate(typed)
    assert process.returncode is not None
    return heard(Ran(process.returncode, out.decode(), err.decode()))


def heard(ran: Ran) -> Ran:
    """What a command prints is looked at by the guard over keys."""
    EAR.hear(PRINTED, ran.out + ran.err)
    return ran


def is_one_plain_sentence(text: str) -> bool:
    return text.startswith("everloop: ") and text.count("\n") == 1 and "Traceback" not in text and SECRET not in text


def said_in(shown: Shown) -> list[tuple[str, str]]:
    """What the model was shown without the tail of the moment, which stands at the end of the last message."""
    return [(role, text.partition("\n\nCurrent time:")[0]) for role, text in shown.said]


def asked_in(shown: Shown) -> list[str]:
    return [text for role, text in said_in(shown) if role == "user"]
