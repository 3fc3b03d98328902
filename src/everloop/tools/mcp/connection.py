"""One session with one server, over the SDK's client.

It is opened and left by one task; calls come from others. Each request runs in a task of its own, which its caller may
leave behind: the server is told that it was cancelled, and nobody waits for a server that does not even hear that.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Literal, TypeVar

import anyio
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    CallToolResult,
    GetPromptResult,
    Implementation,
    Prompt,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    Tool,
)
from pydantic import ValidationError

from ... import __version__
from ...errors import McpDown, McpLost, ToolError
from ...ports.mcp import McpDefinition, McpOffer, McpServer
from ...readings.visible import in_one_line
from ..untrusted import fence
from .answering import ServersQuestions
from .definitions import distinct
from .failures import down_of, failure_of
from .guard import DEFINITION, GuardedStream
from .hidden import without_secrets
from .limits import LONGEST_ERROR, MOST_ITEMS, MOST_LISTED, MOST_PAGES, MOST_TOOLS
from .results import origin_of
from .running import CURRENT, RunningCall
from .schema import cleaned

_log = logging.getLogger("everloop.mcp")

Mode = Literal["auto", "legacy"]
Wire = AbstractAsyncContextManager[Any]
T = TypeVar("T")

_LONGEST_INSTRUCTIONS = 10_000  # characters
_ENDING = 6.0  # seconds for requests to end, in which the server is told that they were cancelled


class SessionOver(McpDown):
    """An HTTP server does not know our session any more, as after a restart. The call was not made; another connection
    can make it."""


class _GuardedWire:
    """A wire whose words are guarded before the SDK hears them."""

    def __init__(self, server: str, wire: Wire, on_lists_changed: Callable[[], None]) -> None:
        self._server = server
        self._wire = wire
        self._on_lists_changed = on_lists_changed
        self.guard: GuardedStream | None = None

    async def __aenter__(self) -> tuple[Any, Any]:
        read, write = await self._wire.__aenter__()
        self.guard = GuardedStream(self._server, read, on_lists_changed=self._on_lists_changed)
        return self.guard, write

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._wire.__aexit__(kind, error, trace)


class McpConnection:
    """Use as `async with connection.opened():`; whatever runs there ends with it."""

    def __init__(
        self,
        server: McpServer,
        wire: Wire,
        questions: Callable[[Callable[[], Sequence[RunningCall]]], ServersQuestions],
        *,
        on_offer: Callable[[McpOffer], None],
        mode: Mode = "auto",
    ) -> None:
        """`questions` makes what answers the server, given where the calls that run can be seen. `on_offer` hears what
        it offers: at first, and when that is another."""
        self._on_offer = on_offer
        self._server = server
        self._who = f"the MCP server {server.name}"
        self._calls: list[RunningCall] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_stale = False
        self._listing = asyncio.Lock()
        self._offer = McpOffer()
        self.lists_changed = asyncio.Event()
        answers = questions(lambda: self._calls)
        self._wire = _GuardedWire(server.name, wire, self._note_change)
        self._client = Client(
            self._wire,
            mode=mode,
            cache=None,
            client_info=Implementation(name="everloop", version=__version__),
            elicitation_callback=answers.elicit,
            sampling_callback=answers.sample if server.sampling else None,
            list_roots_callback=answers.roots,
        )

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Raises McpDown, McpLogin, and what the SDK raises where a server does not speak as it should."""
        async with self._client:
            self._offer = await self._listed()
            self._on_offer(self._offer)
            try:
                yield
            finally:
                await self._end_requests()

    @property
    def is_lost(self) -> bool:
        return self._wire.guard is None or self._wire.guard.ended.is_set()

    @property
    def is_busy(self) -> bool:
        return bool(self._tasks)

    @property
    def why(self) -> str:
        """What was wrong, once it is lost."""
        return self._wire.guard.why if self._wire.guard else ""

    @property
    def said(self) -> str:
        """The last that it has said itself, where it has ended; a stranger's words."""
        return self._wire.guard.said if self._wire.guard else ""

    def retire(self) -> None:
        """Have it end, though nothing is wrong."""
        if self._wire.guard:
            self._wire.guard.end("")

    async def until_lost(self) -> None:
        if self._wire.guard:
            await self._wire.guard.ended.wait()

    async def follow(self) -> None:
        """Hear of changes of the list also from a server that has to be asked to tell them."""
        tools = self._client.server_capabilities.tools
        if tools is None or not tools.list_changed:
            return
        try:
            async with self._client.listen(tools_list_changed=True) as told:
                async for _ in told:
                    self._note_change()
        except ListenNotSupportedError:  # an older protocol, in which it tells them unasked
            return
        except (MCPError, SubscriptionLost, TimeoutError) as error:
            _log.debug("%s does not tell changes of its list: %s", self._server.name, in_log(error))

    async def offer(self, call: RunningCall, is_new: bool = False) -> McpOffer:
        """What it offers; it is asked again where it has said that this has changed, or `is_new` is wanted. Raises
        McpDown."""
        self._is_stale = self._is_stale or is_new
        if self._is_stale:
            try:
                await self._request(call, self._list_again, "did not tell within {} s what it offers")
            except McpLost as error:  # nothing was called yet
                raise McpDown(str(error)) from error
        return self._offer

    async def call(self, call: RunningCall, tool: str, args: dict[str, Any], progress: ProgressFnT) -> CallToolResult:
        """Raises ToolError for what the server says, McpLost where no answer came."""

        async def send() -> CallToolResult:
            return await self._client.call_tool(tool, args, progress_callback=progress)

        return await self._answered(call, send)

    async def read(self, call: RunningCall, uri: str) -> ReadResourceResult:
        """Raises ToolError."""
        return await self._answered(call, lambda: self._client.read_resource(uri))

    async def prompt(self, call: RunningCall, name: str, args: Mapping[str, str]) -> GetPromptResult:
        """Raises ToolError."""
        return await self._answered(call, lambda: self._client.get_prompt(name, dict(args)))

    async def resources(self, call: RunningCall) -> tuple[list[Resource], list[ResourceTemplate]]:
        """Raises ToolError."""
        if not self._offer.has_resources:
            return [], []

        async def listed() -> tuple[list[Resource], list[ResourceTemplate]]:
            resources = await _pages(self._resource_page, MOST_ITEMS)
            try:
                return resources, await _pages(self._template_page, MOST_ITEMS)
            except MCPError:  # many know no templates
                return resources, []

        return await self._answered(call, listed)

    async def prompts(self, call: RunningCall) -> list[Prompt]:
        """Raises ToolError."""
        if not self._offer.has_prompts:
            return []
        return await self._answered(call, lambda: _pages(self._prompt_page, MOST_ITEMS))

    async def _answered(self, call: RunningCall, send: Callable[[], Awaitable[T]]) -> T:
        """What it answers to a request that may have done something. Raises ToolError."""
        try:
            return await self._request(call, send, "did not answer within {} s")
        except MCPError as error:
            if self.is_lost or _is_cut(error):
                why, origin = self.why or "the connection has ended", origin_of(self._server.name)
                said = fence(self.said, origin) if self.said else ""
                lost = f"{self._who} was lost in the middle of the call: {why}"
                raise McpLost(lost, said, origin if said else "") from error
            if _is_session_over(error):
                self.retire()
                raise SessionOver(f"{self._who} has ended the session, and nothing was called") from error
            if failure := failure_of(error):
                raise McpLost(failure.text) if failure.kind == "lost" else failure.as_error() from error
            origin = origin_of(self._server.name)
            said = without_secrets(self._server, error.message)
            raise ToolError(fence(cleaned(said, LONGEST_ERROR), origin), origin=origin) from error
        except ToolError:
            raise
        except Exception as error:  # the border to the SDK, which raises many things at what a stranger says
            _log.info("the answer of %s cannot be read: %s", self._server.name, in_log(error))
            raise McpLost(
                f"{self._who} has answered in a way that is not MCP ({type(error).__name__}), so nobody knows "
                "what it has done"
            ) from error

    async def _request(self, call: RunningCall, send: Callable[[], Awaitable[T]], too_late: str) -> T:
        """Raises McpLost when its time is over or the connection ends, and whatever `send` raises."""
        task = asyncio.create_task(_within(call, send))
        self._tasks.add(task)
        task.add_done_callback(self._forget)
        self._calls.append(call)
        try:
            while not task.done():
                if (left := call.left) <= 0:
                    raise self._gives_up(call, too_late)
                await asyncio.wait({task}, timeout=left)
            if task.cancelled():
                raise McpLost(f"the connection to {self._who} was ended in the middle of the call")
            return task.result()
        finally:
            self._calls.remove(call)
            task.cancel()

    def _gives_up(self, call: RunningCall, too_late: str) -> McpLost:
        """A server that has said nothing at all since then hangs, and is lost; unless somebody else waits for it."""
        guard = self._wire.guard
        silent = guard is not None and anyio.current_time() - guard.heard_at >= call.seconds
        if guard and silent and len(self._calls) == 1:
            guard.end("it hangs: it has said nothing for the whole time of a call")
        return McpLost(f"{self._who} {too_late.format(f'{call.seconds:g}')}")

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # its caller may be gone; then nobody else looks at it

    async def _end_requests(self) -> None:
        tasks = set(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(tasks, timeout=_ENDING)

    def _note_change(self) -> None:
        self._is_stale = True
        self.lists_changed.set()

    async def _list_again(self) -> None:
        async with self._listing:
            if not self._is_stale:
                return
            self._is_stale = False
            try:
                before, self._offer = self._offer, await self._listed()
            except BaseException as error:
                self._is_stale = True
                if isinstance(error, MCPError) and (down := down_of(error)):
                    raise down from error
                if isinstance(error, Exception) and not isinstance(error, ToolError):
                    raise McpDown(f"{self._who} cannot tell what it offers ({reason_of(error)})") from error
                raise
            if self._offer != before:
                self._on_offer(self._offer)

    async def _listed(self) -> McpOffer:
        """Raises McpDown, MCPError, and ValidationError."""
        client = self._client
        can, who = client.server_capabilities, client.server_info
        tools = await self._tools() if can.tools is not None else []
        return McpOffer(
            distinct(tools),
            title=cleaned((who.title or who.name) if who else "", 200),
            version=cleaned(who.version if who else "", 100),
            protocol=client.protocol_version,
            instructions=(client.instructions or "")[:_LONGEST_INSTRUCTIONS],
            has_resources=can.resources is not None,
            has_prompts=can.prompts is not None,
        )

    async def _tools(self) -> list[McpDefinition]:
        tools = await _pages(self._tool_page, MOST_TOOLS)
        found = [McpDefinition(tool.name, (tool.meta or {})[DEFINITION]) for tool in tools]
        taken, length = 0, 0
        while taken < len(found) and length + len(found[taken].body) <= MOST_LISTED:
            length += len(found[taken].body)
            taken += 1
        if taken < len(found) or taken >= MOST_TOOLS:
            _log.warning("%s lists more tools than are taken: the first %d are", self._server.name, taken)
        return found[:taken]

    async def _tool_page(self, cursor: str | None) -> tuple[list[Tool], str | None]:
        page = await self._client.list_tools(cursor=cursor)
        return page.tools, page.next_cursor

    async def _resource_page(self, cursor: str | None) -> tuple[list[Resource], str | None]:
        page = await self._client.list_resources(cursor=cursor)
        return page.resources, page.next_cursor

    async def _template_page(self, cursor: str | None) -> tuple[list[ResourceTemplate], str | None]:
        page = await self._client.list_resource_templates(cursor=cursor)
        return page.resource_templates, page.next_cursor

    async def _prompt_page(self, cursor: str | None) -> tuple[list[Prompt], str | None]:
        page = await self._client.list_prompts(cursor=cursor)
        return page.prompts, page.next_cursor


def _is_session_over(error: MCPError) -> bool:
    """As the SDK's HTTP transport tells it; a server that says so itself is begun anew, too."""
    return error.code == INVALID_REQUEST and error.message == "Session terminated"


def _is_cut(error: MCPError) -> bool:
    """An answer over HTTP that broke off, as the SDK's transport tells it."""
    return error.code == CONNECTION_CLOSED and error.message.startswith("SSE stream ")


async def _within(call: RunningCall, send: Callable[[], Awaitable[T]]) -> T:
    CURRENT.set(call)
    return await send()


async def _pages(page: Callable[[str | None], Awaitable[tuple[list[T], str | None]]], most: int) -> list[T]:
    """Up to `most` items. Raises McpDown where there is no end of pages."""
    found: list[T] = []
    seen: set[str] = set()
    cursor: str | None = None
    for _ in range(MOST_PAGES):
        items, cursor = await page(cursor)
        found += items
        if cursor is None or len(found) >= most:
            return found[:most]
        if cursor in seen:
            raise McpDown("the list of the MCP server has no end: the same page comes again and again")
        seen.add(cursor)
    raise McpDown(f"the list of the MCP server has more than {MOST_PAGES} pages")


def reason_of(error: BaseException) -> str:
    """What went wrong, in no word of the server's: the sentence goes to a model, unmarked."""
    match error:
        case MCPError():
            return f"it answers with error {error.code}"
        case ValidationError():
            return "its answer is of another shape"
        case RuntimeError():
            return "it has no version of the protocol that is known here"
    return type(error).__name__


def in_log(error: BaseException) -> str:
    """Without its traceback, in which a stranger can say as much as they like."""
    return in_one_line(f"{type(error).__name__}: {str(error)[:500]}")
