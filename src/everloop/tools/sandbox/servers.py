"""The worker's side of servers in the sandbox: commands that it speaks with, as those of MCP, and that end with it.

A server belongs to a connection with the runner, by which its pipes come to us; whatever ends that connection, be it
the death of this process, ends the server with all that it has begun.
"""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct, to_builtins

from ...errors import ToolError
from .choose import Confinement, choose_way
from .door import Door
from .outlet import Outlet, Serve, outlet_folder
from .port import CommandSpec

LONGEST_LINE = 10 << 20
_PIPES = 3
_CHUNK = 1 << 16
_TO_LEAVE = 2.0  # seconds for a server whose input has ended
_TO_END = 10.0  # seconds in which one that is ended should be gone
_GONE = "the process that runs servers has ended, and the server with it"


class ServerEnd(Struct, frozen=True):
    """How a server ended; `why` as in Outcome, or `failed` where its sandbox could not be made."""

    why: str
    code: int = 0


class SandboxedServers:
    """The servers of one home, started by the runner of its `spool`. `serve(hosts)` answers those that reach hosts."""

    def __init__(
        self,
        spool: Path,
        choose: Callable[[], Awaitable[Confinement]] = choose_way,
        *,
        door: Door | None = None,
        serve: Callable[[tuple[str, ...]], Serve] | None = None,
    ) -> None:
        self._spool = spool
        self._choose = choose
        self._door = door or Door(spool)
        self._serve = serve
        self._way: Confinement | None = None
        self._outlets: dict[tuple[str, ...], Outlet] = {}

    async def way(self) -> Confinement:
        """How servers are confined, found out at the first use. Raises ToolError if they cannot be."""
        self._way = self._way or await self._choose()
        return self._way

    @asynccontextmanager
    async def open(self, job: CommandSpec, way: Confinement | None = None) -> "AsyncIterator[ServerProcess]":
        """Run a server as long as this is open, confined in `way`. Raises ToolError when it cannot be started.

        Variables of `job` stand before those that a way sets."""
        way = way or await self.way()
        order = way.order(job, self._spool / "servers" / "server")
        hosts = job.view.network
        if hosts and self._serve:
            outlet = self._outlets.setdefault(hosts, Outlet(self._serve(hosts)))
            await outlet.open(outlet_folder(self._spool, hosts))
        order |= {
            "do": "duplex",
            "env": {**order.get("env", {}), **job.env},
            "limits": to_builtins(job.limits),
            "background": True,
            "writes": [str(folder) for folder in (job.view.workspace, *job.view.writable)],
        }
        orders = _Orders(await self._door.connect())
        try:
            process = await _started(orders, order)
            try:
                yield process
                await process.leave()
            finally:
                process.close()
        finally:
            orders.close()

    async def close(self) -> None:
        self._door.close()
        for outlet in self._outlets.values():
            await outlet.close()


class ServerProcess:
    """A server that runs: what it reads from us, what it says, and what it says beside that."""

    def __init__(
        self,
        orders: "_Orders",
        stdin: asyncio.StreamWriter,
        stdout: asyncio.StreamReader,
        stderr: asyncio.StreamReader,
        pipes: tuple[asyncio.ReadTransport, ...],
    ) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self._orders = orders
        self._pipes = pipes
        self._end = asyncio.create_task(orders.hear_end())

    async def wait(self) -> ServerEnd:
        """How it ended, when all of it has."""
        return await asyncio.shield(self._end)

    async def leave(self) -> None:
        """Let it leave by itself, and end it if it does not. With a task that is cancelled it is ended by `close`."""
        self.stdin.close()
        if not await self._ended_within(_TO_LEAVE):
            await self._orders.give({"do": "end"})
            await self._ended_within(_TO_END)

    async def _ended_within(self, seconds: float) -> bool:
        done, _ = await asyncio.wait((self._end,), timeout=seconds)
        return bool(done)

    def close(self) -> None:
        self._end.cancel()
        if not self.stdin.is_closing():
            self.stdin.transport.abort()  # what it has not read by now is for nobody
        for pipe in self._pipes:
            pipe.close()


class _Orders:
    """What is said over the connection with the runner, in lines of JSON."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._heard = b""

    def close(self) -> None:
        """At once, also where somebody waits for a line: by the time that they hear of it the descriptor may be
        another's."""
        asyncio.get_running_loop().remove_reader(self._sock)
        self._sock.close()

    async def give(self, order: dict[str, Any]) -> None:
        with suppress(OSError):  # then it has ended
            await asyncio.get_running_loop().sock_sendall(self._sock, json.dumps(order).encode() + b"\n")

    async def hear(self) -> dict[str, Any]:
        """Raises ToolError if it says that something failed, or nothing any more."""
        line, _ = await self.hear_with_pipes()
        return line

    async def hear_with_pipes(self) -> tuple[dict[str, Any], list[int]]:
        """A line, and the pipes that came with it, which nobody else closes."""
        fds: list[int] = []
        try:
            while b"\n" not in self._heard:
                await self._readable()
                data, more, _, _ = socket.recv_fds(self._sock, _CHUNK, _PIPES)
                fds += more
                if not data:
                    raise ToolError(_GONE)
                self._heard += data
            line, _, self._heard = self._heard.partition(b"\n")
            told: dict[str, Any] = json.loads(line)
            if "failed" in told:
                raise ToolError(told["failed"])
        except BaseException as error:
            for fd in fds:
                os.close(fd)
            if isinstance(error, OSError):
                raise ToolError(_GONE) from error
            raise
        return told, fds

    async def _readable(self) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._sock, ready.set)
        try:
            await ready.wait()
        finally:
            if self._sock.fileno() >= 0:
                loop.remove_reader(self._sock)

    async def hear_end(self) -> ServerEnd:
        try:
            end = (await self.hear())["end"]
        except ToolError:
            return ServerEnd("lost")
        return ServerEnd(end["why"], end["code"])


async def _started(orders: _Orders, order: dict[str, Any]) -> ServerProcess:
    await orders.hear()  # its greeting
    await orders.give(order)
    _, fds = await orders.hear_with_pipes()
    return await _speaking(orders, fds)


async def _speaking(orders: _Orders, fds: list[int]) -> ServerProcess:
    into, out, err = (os.fdopen(fd, mode, 0) for fd, mode in zip(fds, ("wb", "rb", "rb"), strict=True))
    loop = asyncio.get_running_loop()
    writing, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, into)
    stdin = asyncio.StreamWriter(writing, protocol, None, loop)
    stdout, stderr = asyncio.StreamReader(limit=LONGEST_LINE), asyncio.StreamReader(limit=_CHUNK)
    reading, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdout), out)
    hearing, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stderr), err)
    return ServerProcess(orders, stdin, stdout, stderr, (reading, hearing))
