"""The way out of sandboxes that may reach some hosts: a socket in a folder that they see, behind which we answer.

The folder belongs to one list of hosts, so that a command meets only workers who hold it to that list. Each worker of
a home has a socket there; a command takes whichever answers, and so one in the background goes on with the next.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
"""Answers one connection out of a sandbox, and closes it."""


def outlet_folder(spool: Path, hosts: Sequence[str]) -> Path:
    return spool / "net" / sha256("\n".join(hosts).encode()).hexdigest()[:16]


class Outlet:
    """Our socket in that folder, from the first use on."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self._opening = asyncio.Lock()
        self._server: asyncio.Server | None = None
        self._path: Path | None = None
        self._answering: set[asyncio.Task[None]] = set()

    async def open(self, folder: Path) -> None:
        async with self._opening:
            if self._server is None:
                sock, self._path = _listening(folder)
                self._server = await asyncio.start_unix_server(self._answer, sock=sock)

    async def close(self) -> None:
        if self._server is not None and self._path is not None:
            self._path.unlink(missing_ok=True)
            self._server.close()
            for task in self._answering:
                task.cancel()
            await asyncio.gather(*self._answering, return_exceptions=True)
            self._server = None

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._answering.add(task)
        try:
            await self._serve(reader, writer)
        finally:
            self._answering.discard(task)


def _listening(folder: Path) -> tuple[socket.socket, Path]:
    """A socket in the folder, which gets its name when it listens: who finds one that does not may remove it."""
    for each in (folder.parents[1], folder.parent, folder):
        each.mkdir(mode=0o700, exist_ok=True)
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)  # the path may be too long for a socket
    try:
        _sweep(f"/proc/self/fd/{fd}")
        name = os.urandom(8).hex()
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(f"/proc/self/fd/{fd}/.{name}")
        sock.listen(128)
        os.rename(f".{name}", name, src_dir_fd=fd, dst_dir_fd=fd)
    finally:
        os.close(fd)
    return sock, folder / name


def _sweep(folder: str) -> None:
    """Remove the sockets of workers that are dead."""
    for name in sorted(os.listdir(folder)):
        if name.startswith("."):  # it is about to listen
            continue
        with socket.socket(socket.AF_UNIX) as sock:
            sock.setblocking(False)
            try:
                sock.connect(f"{folder}/{name}")
            except ConnectionRefusedError:
                with suppress(FileNotFoundError):
                    os.unlink(f"{folder}/{name}")
            except OSError:
                pass  # it is busy, or was removed in this moment
