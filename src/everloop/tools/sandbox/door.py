"""The worker's way to the runner: finds it, starts it when it is not there, and talks with it in lines of JSON."""

import asyncio
import json
import os
import socket
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from ...errors import ToolError
from .runner import BUSY, NAME
from .spool import socket_path

_PACKAGE = Path(__file__).parents[3]
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from everloop.tools.sandbox.runner import main; main(sys.argv[2])"
)
_ATTEMPTS = 100
_STARTS = 3
_LONGEST_LINE = 1 << 20
_IDLE_TALKS = 4
_CANNOT_START = "the process that runs commands cannot be started"

Line = dict[str, Any]


class RunnerAway(Exception):
    """The runner is not there, or has gone."""


class Talk:
    """A connection to the runner. One that is `over` may be used for the next talk."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.over = False

    def ask(self, order: Line) -> None:
        self.over = False
        self._writer.write(json.dumps(order).encode() + b"\n")

    async def hear(self) -> Line:
        """The next line. Raises ToolError if it says that something failed, RunnerAway if there is none."""
        try:
            line = await self._reader.readline()
        except ConnectionError as error:
            raise RunnerAway from error
        if not line:
            raise RunnerAway
        told: Line = json.loads(line)
        if "failed" in told:
            raise ToolError(told["failed"])
        return told

    @property
    def open(self) -> bool:
        return not self._reader.at_eof() and not self._writer.is_closing()

    def close(self) -> None:
        self._writer.close()


class Door:
    """The runner of one spool. `python` starts a Python for it, which finds everloop in `package`."""

    def __init__(self, spool: Path, python: Sequence[str] = (sys.executable,), package: Path = _PACKAGE) -> None:
        self._spool = spool
        self._command = (*python, "-I", "-S", "-c", _START, str(package), str(spool))
        self._starting = asyncio.Lock()
        self._idle: list[Talk] = []
        self.limits = ""  # who holds commands to them, as the runner says
        self._has_servers = False  # whether the runner knows how to run them
        self._complaint = b""  # of the last runner that was started
        self._presence: socket.socket | None = None  # the runner stays as long as someone is connected

    @asynccontextmanager
    async def talk(self, order: Line) -> AsyncIterator[Talk]:
        """Give an order and hear what comes of it. Raises ToolError when the runner cannot be had, or ends."""
        talk = self._known() or await self._connect()
        try:
            talk.ask(order)
            yield talk
        except RunnerAway as error:
            raise ToolError(
                "the process that runs commands has ended in the middle; the command may have done a part of its work"
            ) from error
        finally:
            if talk.over and len(self._idle) < _IDLE_TALKS:
                self._idle.append(talk)
            else:
                talk.close()

    async def connect(self) -> socket.socket:
        """A connection of one's own for a server, not yet greeted. Raises ToolError when the runner cannot be had."""
        self._idle.append(self._known() or await self._connect())
        if not self._has_servers:
            raise ToolError(
                "the process that runs commands is that of an older everloop and knows no servers; it ends with the "
                "last command that runs in the background"
            )
        try:
            return self._socket()
        except OSError as error:
            raise ToolError(f"the process that runs commands has ended ({error.strerror})") from error

    def close(self) -> None:
        for talk in self._idle:
            talk.close()
        self._idle.clear()
        self._leave()

    def _known(self) -> Talk | None:
        while self._idle:
            if (talk := self._idle.pop()).open:
                return talk
            talk.close()
        return None

    async def _connect(self) -> Talk:
        starts = 0
        for _ in range(_ATTEMPTS):
            with suppress(RunnerAway, OSError):
                return await self._greeted()
            async with self._starting:
                with suppress(RunnerAway, OSError):
                    return await self._greeted()
                starts += await self._start()
            if starts > _STARTS:
                break
        raise ToolError(f"{_CANNOT_START}: {_last_line(self._complaint or _read(self._spool / f'{NAME}.log'))}")

    async def _greeted(self) -> Talk:
        talk = Talk(*await asyncio.open_unix_connection(sock=self._socket(), limit=_LONGEST_LINE))
        try:
            hello = await talk.hear()
        except RunnerAway:
            talk.close()
            raise
        self.limits, self._has_servers = hello.get("limits", ""), "duplex" in hello
        if self._presence is None:
            self._presence = self._socket()
        return talk

    def _socket(self) -> socket.socket:
        """Connected to the runner, through a descriptor, for a path may be too long for a socket. Raises OSError."""
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        fd = -1
        try:
            fd = os.open(self._spool, os.O_RDONLY | os.O_DIRECTORY)
            sock.connect(socket_path(str(self._spool), fd, f"{NAME}.sock"))
        except OSError:
            sock.close()
            raise
        finally:
            if fd >= 0:
                os.close(fd)
        return sock

    async def _start(self) -> bool:
        """Whether one was started; another may be there."""
        self._leave()
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env={"PATH": os.defpath},
                cwd="/",
            )
        except OSError as error:
            raise ToolError(f"{_CANNOT_START}: {self._command[0]}: {error.strerror}") from error
        _, self._complaint = await process.communicate()
        if process.returncode == BUSY:
            await asyncio.sleep(0.02)  # it is about to listen, or about to leave
            return False
        if process.returncode:
            raise ToolError(f"{_CANNOT_START}: {_last_line(self._complaint)}")
        return True

    def _leave(self) -> None:
        if self._presence is not None:
            self._presence.close()
            self._presence = None


def _read(log: Path) -> bytes:
    return log.read_bytes() if log.is_file() else b""


def _last_line(text: bytes) -> str:
    lines = text.decode(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else "it said nothing"
