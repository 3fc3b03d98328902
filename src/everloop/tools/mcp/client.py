"""All servers that this process speaks with.

Whatever one of them does, its caller has an answer within the server's seconds, and nobody else waits. A tool is called
as it was allowed: what a server lists on this connection is compared with that before each call.
"""

import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, Prompt, Resource, ResourceTemplate

from ...errors import McpDown, ToolError
from ...ports import Clock, KeepsFiles
from ...ports.mcp import McpHealth, McpOffer, McpPin, McpQuestions, McpServer, McpWires
from ...ports.tools import CallContext, Result
from ...readings.visible import in_one_line
from ..untrusted import fence
from .answering import Roots, ServersQuestions
from .connection import McpConnection, SessionOver
from .hidden import secrets_by_name, without_secrets
from .keeper import Keeper, Upkeep
from .limits import LONGEST_TEXT, QUESTION_SECONDS
from .results import ResultReader, origin_of
from .running import RunningCall
from .schema import cleaned

Told = Callable[[CallContext, str], None]

PROGRESS = 0.5  # seconds between two that are told
_LONGEST_PROGRESS = 200  # characters


def _quiet_sdk() -> None:
    """Its loggers repeat what servers say, unbounded and with a traceback each; the guard tells the same, bounded."""
    for name in ("mcp.client", "mcp.shared", "client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)


def _tell_nobody(context: CallContext, text: str) -> None:
    pass


def _no_roots(server: McpServer) -> Sequence[str]:
    return ()


class McpConnections:
    """An McpClient. `told` hears of the progress of calls, `roots` are the folders of a server as it sees them, and
    `keeper` keeps the files that it answers with. `question_seconds` is how long a person may take to answer what it
    asks, for which the time of a call stands still. A command that nobody has called for `idle_minutes` is ended."""

    def __init__(
        self,
        *,
        wires: McpWires,
        questions: McpQuestions,
        clock: Clock,
        told: Told = _tell_nobody,
        roots: Roots = _no_roots,
        keeper: KeepsFiles | None = None,
        idle_minutes: float = 10.0,
        question_seconds: float = QUESTION_SECONDS,
        spread: Callable[[], float] = random.random,
    ) -> None:
        _quiet_sdk()
        self._questions = questions
        self._clock = clock
        self._told = told
        self._roots = roots
        self._keeper = keeper
        self._question_seconds = question_seconds
        self._upkeep = Upkeep(wires, clock, spread, self._note_offer, idle_minutes * 60)
        self._keepers: dict[str, Keeper] = {}
        self._offers: dict[str, McpOffer] = {}  # that nobody was told yet
        self._has_offers = anyio.Event()

    async def look(self, server: McpServer) -> McpOffer:
        """What it offers now; it is connected for that. Raises McpDown, McpLogin."""
        call = self._call(server)
        connection = await (await self._of(server)).connection(call)
        return await connection.offer(call, is_new=True)

    async def call(self, server: McpServer, pin: McpPin, args: dict[str, Any], context: CallContext) -> Result:
        """Call a tool that was allowed. Raises ToolError: McpDown where it surely was not called, McpLost where nobody
        knows."""
        _check_setup(server, pin)
        call = self._call(server, context)
        try:
            result = await self._called(call, server, pin, args, context)
        except SessionOver:
            result = await self._called(call, server, pin, args, context)
        finally:
            call.end()
        return await self._reader(server).of_call(result, context, call.asides)

    async def _called(
        self, call: RunningCall, server: McpServer, pin: McpPin, args: dict[str, Any], context: CallContext
    ) -> CallToolResult:
        kept = await self._of(server)
        connection = await _connected(kept, server, call)
        _check_definition(server, pin, await connection.offer(call))
        try:
            return await connection.call(call, pin.definition.tool, args, self._progress(context))
        finally:
            kept.used()

    async def resources(self, server: McpServer) -> str:
        """What there is to read, as text for a model. Raises ToolError."""
        call = self._call(server)
        resources, templates = await (await self._connected(server, call)).resources(call)
        lines = [_line(each.uri, each) for each in resources]
        lines += [_line(each.uri_template, each) for each in templates]
        return _listed(server, lines, "offers no resources")

    async def read(self, server: McpServer, uri: str) -> Result:
        """Raises ToolError."""
        call = self._call(server)
        found = await (await self._connected(server, call)).read(call, uri)
        return await self._reader(server).of_resource(found)

    async def prompts(self, server: McpServer) -> str:
        """Raises ToolError."""
        call = self._call(server)
        found = await (await self._connected(server, call)).prompts(call)
        return _listed(server, [_line(_signature(each), each) for each in found], "offers no prompts")

    async def prompt(self, server: McpServer, name: str, args: Mapping[str, str]) -> Result:
        """Raises ToolError."""
        call = self._call(server)
        found = await (await self._connected(server, call)).prompt(call, name, args)
        return await self._reader(server).of_prompt(found)

    async def changes(self) -> AsyncIterator[tuple[str, McpOffer]]:
        """For one reader. Of each server the latest that nobody was told yet."""
        while True:
            await self._has_offers.wait()
            self._has_offers = anyio.Event()
            while self._offers:
                yield self._offers.popitem()

    def health(self, name: str) -> McpHealth:
        return self._keepers[name].health if name in self._keepers else McpHealth("idle")

    async def end(self, name: str) -> None:
        """End its connection, and whatever runs for it; what was wrong is forgotten."""
        if keeper := self._keepers.pop(name, None):
            await keeper.end()

    async def close(self) -> None:
        async with anyio.create_task_group() as ending:
            for name in list(self._keepers):
                ending.start_soon(self.end, name)

    async def _connected(self, server: McpServer, call: RunningCall) -> McpConnection:
        return await _connected(await self._of(server), server, call)

    async def _of(self, server: McpServer) -> Keeper:
        known = self._keepers.get(server.name)
        if known and not known.serves(server):
            await self.end(server.name)
        if server.name not in self._keepers:
            questions = partial(ServersQuestions, server, self._questions, self._roots)
            self._keepers[server.name] = Keeper(server, self._upkeep, questions)
        return self._keepers[server.name]

    def _call(self, server: McpServer, context: CallContext | None = None) -> RunningCall:
        return RunningCall(context, server.seconds, self._question_seconds)

    def _reader(self, server: McpServer) -> ResultReader:
        return ResultReader(server.name, self._keeper, secrets_by_name(server))

    def _note_offer(self, name: str, offer: McpOffer) -> None:
        self._offers[name] = offer
        self._has_offers.set()

    def _progress(self, context: CallContext) -> ProgressFnT:
        """What tells how far a call is, a little later each time."""
        told_at = 0.0

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            nonlocal told_at
            now = time.monotonic()
            if now - told_at < PROGRESS:
                return
            told_at = now
            share = f"{progress:g}/{total:g}" if total else f"{progress:g}"
            said = in_one_line(cleaned(message or "", _LONGEST_PROGRESS))
            self._told(context, f"{share} {said}".rstrip() + "\n")

        return tell


async def _connected(kept: Keeper, server: McpServer, call: RunningCall) -> McpConnection:
    """Raises McpDown, as a model may read it: the last that the server said is a stranger's word."""
    try:
        return await kept.connection(call)
    except McpDown as error:
        if not error.said:
            raise
        origin = origin_of(server.name)
        raise type(error)(error.message, fence(error.said, origin), origin) from error


def _check_setup(server: McpServer, pin: McpPin) -> None:
    if pin.setup != server.setup:
        raise ToolError(
            f"the MCP server {server.name} is set up in another way than when {pin.definition.tool} was allowed, so it "
            f"was not called; `everloop mcp allow {server.name}` shows what has changed, and allows it again"
        )


def _check_definition(server: McpServer, pin: McpPin, offer: McpOffer) -> None:
    tool = pin.definition.tool
    listed = next((each for each in offer.definitions if each.tool == tool), None)
    if listed is None:
        raise ToolError(f"the MCP server {server.name} has no tool {in_one_line(tool)[:100]} any more")
    if listed.digest != pin.definition.digest:
        raise ToolError(
            f"{in_one_line(tool)[:100]} of the MCP server {server.name} is described in another way than when it was "
            f"allowed, so it was not called; `everloop mcp allow {server.name}` shows the difference, and allows it"
        )


def _line(what: str, each: Resource | ResourceTemplate | Prompt) -> str:
    said = f": {each.description}" if each.description else ""
    name = f" ({each.title or each.name})" if (each.title or each.name) != what else ""
    return in_one_line(cleaned(f"- {what}{name}{said}", 500))


def _signature(prompt: Prompt) -> str:
    args = [each.name if each.required else f"{each.name}?" for each in prompt.arguments or ()]
    return f"{prompt.name}({', '.join(args)})"


def _listed(server: McpServer, lines: Sequence[str], none: str) -> str:
    if not lines:
        return f"The MCP server {server.name} {none}."
    return fence(without_secrets(server, "\n".join(lines))[:LONGEST_TEXT], origin_of(server.name))
