"""The wire to an MCP server that is a command: one line of JSON for each message, in and out.

The command runs in the sandbox of commands, as a server that ends with us. It has a folder `mcp/<name>` in the home:
`data` is its own, where it begins and which it takes for its home, and `package` holds what was installed for it, which
it can only read.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from ...errors import McpDown, ToolError
from ...ports.mcp import McpServer
from ...readings.visible import in_one_line
from ..sandbox.bwrap import Bubblewrap
from ..sandbox.choose import Confinement, Unconfined
from ..sandbox.port import CommandLimits, CommandSpec, CommandView
from ..sandbox.servers import LONGEST_LINE, SandboxedServers, ServerEnd, ServerProcess
from .hidden import secrets_by_name
from .packages import offline_command
from .programs import Program, find_program
from .server_pace import ServerPace, lines_in
from .stderr import ErrorTail

_log = logging.getLogger("everloop.mcp")
CONFINED_LIMITS = CommandLimits(seconds=0, memory=2 << 30, processes=512)
_PLAIN = CommandLimits(seconds=0, memory=16 << 30, processes=8192, file=64 << 30, disk=64 << 30, files=2_000_000)
_MOST_JUNK = 1 << 20  # bytes on stdout that are no message, between two messages
_TO_TELL = 1.0  # seconds to hear how a server ended that says nothing any more
_CHUNK = 1 << 16
_CHEAPER, _LONG_LINE = 10, 1000  # lines of stderr, and bytes of it, that cost as much as a line of messages
_ENDS = {
    "memory": "was ended because it used more than {memory} MiB of memory",
    "machine": "was ended because the machine was running out of memory",
    "processes": "was ended because it started more than {processes} processes and threads",
    "growth": "was ended because it added more than {disk} MiB to the disk",
    "files": "was ended because it made more than {files} files",
    "full": "was ended because the disk is nearly full",
    "failed": "could not be put into its sandbox",
    "lost": "was ended with the process that runs servers",
    "stopped": "was stopped",
}

Heard = MemoryObjectSendStream[SessionMessage | Exception]
Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


def folder_of(home: Path, name: str) -> Path:
    """The folder of a server, which no other has."""
    plain = quote(name, safe="")
    return home / "mcp" / (plain if plain.strip(".") else f"%{plain}")


class StdioWires:
    """The McpWires of servers that are commands. Those with `workspace` see that folder, which is the owner's."""

    def __init__(
        self, home: Path, servers: SandboxedServers, workspace: Path, limits: CommandLimits = CONFINED_LIMITS
    ) -> None:
        self._limits = limits
        self._home = home
        self._servers = servers
        self._workspace = workspace
        self._errors: dict[str, ErrorTail] = {}

    @asynccontextmanager
    async def open(self, server: McpServer) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        """The streams of the SDK to a server that has been started. Raises McpDown, also for a failure of whoever
        uses them when the server has ended by then."""
        self._errors.pop(server.name, None)  # what an earlier one said is no word of this one
        async with AsyncExitStack() as stack:
            try:
                way = await self._way(server)
                job = await asyncio.to_thread(self._job, server)
                process = await stack.enter_async_context(self._servers.open(job, way))
            except (ToolError, OSError) as error:
                raise McpDown(f"the MCP server {server.name} cannot be started: {error}") from error
            errors = self._errors[server.name] = ErrorTail(server.name, _hidden(server))
            yield await stack.enter_async_context(_Wire(server, process, errors, job.limits).open())

    def last_said(self, server: McpServer) -> str:
        return self._errors[server.name].last() if server.name in self._errors else ""

    async def _way(self, server: McpServer) -> Confinement:
        """Raises ToolError."""
        if not server.sandbox:
            return Unconfined()
        way = await self._servers.way()
        if server.network and not isinstance(way, Bubblewrap):
            raise McpDown(
                "its `network` names hosts that it may reach, and only bubblewrap can hold it to these; install "
                "bubblewrap, or make the list empty"
            )
        return way

    def _job(self, server: McpServer) -> CommandSpec:
        """Raises McpDown, OSError."""
        folder = folder_of(self._home, server.name)
        data = folder / "data"
        (data / "tmp").mkdir(mode=0o700, parents=True, exist_ok=True)
        command = offline_command(server.command, folder, server.package, server.sandbox)
        if server.workspace:
            command = _in_workspace(command, self._workspace)
        program = find_program(command, os.environ.get("PATH", ""), server.sandbox)
        package = (folder / "package",) if (folder / "package").is_dir() else ()
        view = CommandView(
            workspace=data,
            readable=(*program.readable, *package),
            hidden=(self._home,),
            network=server.network if server.sandbox else (),
            writable=(self._workspace,) if server.workspace else (),
        )
        limits = self._limits if server.sandbox else _PLAIN
        return CommandSpec(program.argv, view, data, _environment(server, program, data), limits)


def _in_workspace(command: tuple[str, ...], workspace: Path) -> tuple[str, ...]:
    """With `.` and `./…` among its arguments as in other clients. It does not begin there: a Python server would
    load modules from a folder into which models write, beside its tokens."""
    program, *args = command
    here = (str(workspace / each) if each == "." or each.startswith("./") else each for each in args)
    return (program, *here)


def _environment(server: McpServer, program: Program, data: Path) -> dict[str, str]:
    """What the owner has named for it, and little else. Outside of a sandbox it is at home where the owner is."""
    outside = {name: os.environ[name] for name in ("LANG", "LC_ALL", "TZ") if name in os.environ}
    if not server.sandbox:
        plain = {name: os.environ[name] for name in ("HOME", "PATH", "USER", "TMPDIR") if name in os.environ}
        return {"PATH": program.path, "LANG": "C.UTF-8", **outside, **plain, **server.env}
    own = {"PATH": program.path, "HOME": str(data), "TMPDIR": str(data / "tmp")}
    proxied = {"NODE_USE_ENV_PROXY": "1"} if server.network else {}
    return {"LANG": "C.UTF-8", **outside, **own, **proxied, **server.env}


def _hidden(server: McpServer) -> dict[str, str]:
    """What is not to be shown, each with what is shown in its place."""
    return {**secrets_by_name(server), **server.env}


class _Wire:
    """One connection: carries messages between the SDK and the pipes of a process."""

    def __init__(self, server: McpServer, process: ServerProcess, errors: ErrorTail, limits: CommandLimits) -> None:
        self._server = server
        self._limits = limits
        self._process = process
        self._errors = errors
        self._junk = 0
        self._is_leaving = False
        self._down: McpDown | None = None  # how it ended, if nobody has told it to

    @asynccontextmanager
    async def open(self) -> AsyncIterator[tuple[Incoming, Outgoing]]:
        heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, said = anyio.create_memory_object_stream[SessionMessage](0)
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks, heard, incoming, outgoing, said:
            tasks.start_soon(self._hear_errors)
            tasks.start_soon(self._hear, heard)
            tasks.start_soon(self._say, said, heard)
            try:
                yield incoming, outgoing
            except Exception as error:  # raised again below, where no group wraps it
                failure = error
            finally:
                with anyio.CancelScope(shield=True):
                    await self._leave(incoming, outgoing)
                tasks.cancel_scope.cancel()
        if failure and self._down:
            raise self._down from failure
        if failure:
            raise failure

    async def _leave(self, incoming: Incoming, outgoing: Outgoing) -> None:
        """What it says from now on is read and left: one that cannot speak would not hear that it is to leave."""
        self._is_leaving = True
        incoming.close()
        outgoing.close()
        await self._process.leave()

    async def _hear(self, heard: Heard) -> None:
        try:
            async for message in self._messages():
                await heard.send(message)
        except McpDown as down:
            await self._tell(heard, down)
        except anyio.BrokenResourceError:
            pass  # nobody listens any more
        heard.close()
        while await self._process.stdout.read(_CHUNK):
            pass

    async def _messages(self) -> AsyncIterator[SessionMessage]:
        """What it says, until it ends. Raises McpDown for how it ends."""
        while True:
            try:
                line = await self._process.stdout.readuntil()
            except asyncio.LimitOverrunError as error:
                raise self._told(f"said a line of more than {LONGEST_LINE >> 20} MiB") from error
            except asyncio.IncompleteReadError as error:
                raise await self._ended(half=bool(error.partial.strip())) from error
            if message := self._parsed(line):
                yield message

    def _parsed(self, line: bytes) -> SessionMessage | None:
        """None for what is no message, such as a greeting, which servers should not say there and do."""
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._junk += len(line)
            if self._junk > _MOST_JUNK:
                raise self._told(f"said {_MOST_JUNK >> 20} MiB on stdout that are no messages") from None
            self._errors.add(b"(on stdout) " + line)
            return None
        self._junk = 0
        return SessionMessage(message)

    async def _say(self, said: MemoryObjectReceiveStream[SessionMessage], heard: Heard) -> None:
        try:
            async for message in said:
                text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._process.stdin.write(text.encode() + b"\n")
                await self._process.stdin.drain()
        except OSError:  # it does not listen any more, so no answer will come
            await self._tell(heard, await self._ended(half=False))
            heard.close()

    async def _hear_errors(self) -> None:
        pace = ServerPace()
        while data := await self._process.stderr.read(_CHUNK):
            self._errors.add(data)
            await pace.keep(lines_in(data) // _CHEAPER + len(data) // _LONG_LINE)

    async def _tell(self, heard: Heard, down: McpDown) -> None:
        if self._down is None and not self._is_leaving:
            self._down = down
            _log.warning("%s", in_one_line(str(down)))
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            await heard.send(down)

    async def _ended(self, half: bool) -> McpDown:
        """It speaks or listens no more: it has ended, or is about to, or does not want to."""
        with anyio.move_on_after(_TO_TELL):
            end = await self._process.wait()
            return self._told(_how(end, self._limits) + (" in the middle of a message" if half else ""))
        return self._told("closed its input or output")

    def _told(self, what: str) -> McpDown:
        name, last = self._server.name, self._errors.last()
        return McpDown(f"the MCP server {name} {what}{'' if last else '; it said nothing on stderr'}", last)


def _how(end: ServerEnd, limits: CommandLimits) -> str:
    amounts: dict[str, Any] = {
        "memory": limits.memory >> 20,
        "processes": limits.processes,
        "disk": limits.disk >> 20,
        "files": limits.files,
    }
    return _ENDS.get(end.why, f"ended with code {end.code}").format(**amounts)
