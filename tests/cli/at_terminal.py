"""A person in front of a real terminal, which keeps every byte that it was sent."""

import asyncio
import os
import pty
import sys
import termios
from contextlib import suppress
from typing import Any

from tests.cli.person import Person
from tests.processes import kill

PATIENCE = 60.0


class AtTerminal:
    """`everloop ARGUMENTS` with stdin, stdout and stderr at one pseudo terminal."""

    def __init__(
        self,
        person: Person,
        *arguments: str,
        term: str = "dumb",
        program: tuple[str, ...] = (),
        stdout: int | None = None,
    ) -> None:
        self._outer, self._inner = pty.openpty()
        self._person = person
        self._command = program or (sys.executable, "-m", "everloop", *arguments)
        self._term = term
        self._stdout = self._inner if stdout is None else stdout
        self.raw = b""  # all that has come
        self.seen = ""  # what has come since something was last waited for

    async def __aenter__(self) -> "AtTerminal":
        self.before = termios.tcgetattr(self._inner)
        self.process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=self._inner,
            stdout=self._stdout,
            stderr=self._inner,
            env={**self._person.environment, "TERM": self._term},
        )
        os.set_blocking(self._outer, False)
        return self

    async def __aexit__(self, *_: object) -> None:
        await kill(self.process)
        os.close(self._inner)
        os.close(self._outer)

    def send(self, keys: str) -> None:
        os.write(self._outer, keys.encode())

    def type(self, line: str) -> None:
        self.send(f"{line}\n")

    async def sees(self, text: str) -> None:
        """Wait until this has been shown, since the last time."""
        ready = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._outer, ready.set)
        try:
            async with asyncio.timeout(PATIENCE):
                while text not in self.seen:
                    await ready.wait()
                    ready.clear()
                    self._read()
        finally:
            loop.remove_reader(self._outer)
        self.seen = self.seen[self.seen.index(text) + len(text) :]

    async def ends(self) -> int:
        """How it ends, by itself. What it says on the way is read."""
        loop = asyncio.get_running_loop()
        loop.add_reader(self._outer, self._read)
        try:
            async with asyncio.timeout(PATIENCE):
                status = await self.process.wait()
        finally:
            loop.remove_reader(self._outer)
        self._read()
        return status

    def state(self) -> list[Any]:
        """What the terminal is set to, as `stty` tells it."""
        return termios.tcgetattr(self._inner)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            while data := os.read(self._outer, 65536):
                self.raw += data
                self.seen += data.decode(errors="replace")
