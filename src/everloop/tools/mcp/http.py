"""A wire to a server that is reached by HTTP: streamable HTTP, or the older SSE, as the SDK speaks them over our `net`.

Nobody is reached before the first message. A request that fails is answered by us in the server's place (`failures`),
so that one failure is one call's, with a sentence that says what to do. A stream of events that the server keeps open
for news is taken up again whenever it ends; what answers a request may be taken up where it broke off, as the SDK does.
"""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
from mcp import MCPError
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from ...errors import AnswerTooLarge, EverloopError, McpDown, ProviderError
from ...ports import Hops, Vault
from ...ports.mcp import McpServer
from .answers import failure_from, judge
from .failures import WireFailure, down_of
from .hidden import without_secrets
from .kept_auth import KeptAuth
from .kept_logins import Clock, LoginKeeper
from .server_pace import ServerPace
from .transport import EVENTS, LONGEST_ANSWER, NetTransport, Reach, is_event_stream

_STREAMS, _STREAMS_A_SECOND = 20, 1  # that are opened at once, and then in a second
_ASK_AGAIN = b"retry: 15000\n\n"  # milliseconds until a stream of news that could not be had is asked for again


@asynccontextmanager
async def http_wire(
    server: McpServer, *, trusted: Hops, open: Hops, vault: Vault, now: Clock = time.time
) -> AsyncIterator[tuple[Any, Any]]:
    """The SDK's two streams. `trusted` is for the server's own origin, `open` for all that others name.

    Raises McpDown and McpLogin, also in place of an MCPError that leaves it and was our own word.
    """
    quiet_sdk()
    client = _client(server, NetTransport(server, Reach(server, trusted, open)), vault, now)
    try:
        async with AsyncExitStack() as stack:
            read, write = await _opened(server, stack, client)
            yield read, write
    except Exception as error:  # a border: the SDK gathers what its tasks raise into groups
        named = _named(server, error, client.failure)
        if named is error:
            raise
        raise named from error


async def _opened(server: McpServer, stack: AsyncExitStack, client: "_ServerClient") -> tuple[Any, Any]:
    try:
        async with asyncio.timeout(server.seconds):
            read, write = await stack.enter_async_context(client.wire())
    except TimeoutError as error:
        raise McpDown(f"{server.name} has not opened its stream of events within {server.seconds:g} s.") from error
    return read, write


def plain_client(transport: NetTransport) -> httpx2.AsyncClient:
    """Which reads neither proxies nor passwords from its surroundings: both would be used beside our transport."""
    return httpx2.AsyncClient(transport=transport, trust_env=False, follow_redirects=False)


def quiet_sdk() -> None:
    """It logs whole exceptions, which quote what servers and authorization servers say; each is told in a sentence."""
    for name in ("mcp", "httpx2"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)


def _client(server: McpServer, transport: NetTransport, vault: Vault, now: Clock) -> "_ServerClient":
    keeper = LoginKeeper(server.name, server.url, vault, now)
    auth = None if _has_key(server) else KeptAuth(server, keeper, plain_client(transport), now)
    return (_SseClient if server.transport == "sse" else _StreamableClient)(server, transport, auth)


def _has_key(server: McpServer) -> bool:
    return "authorization" in {name.lower() for name in server.headers} or bool(httpx2.URL(server.url).userinfo)


class _ServerClient(httpx2.AsyncClient, ABC):
    """The client that the SDK is given. `failure` is what has ended the wire as a whole."""

    def __init__(self, server: McpServer, transport: NetTransport, auth: httpx2.Auth | None) -> None:
        super().__init__(transport=transport, trust_env=False, follow_redirects=False, auth=auth)
        self._server = server
        self.failure: WireFailure | None = None

    @abstractmethod
    def wire(self) -> AbstractAsyncContextManager[Any]:
        """The SDK's transport over this client."""

    async def fetch(self, request: httpx2.Request, **how: Any) -> httpx2.Response | WireFailure:
        """The answer, whole unless it is a stream of events, or why there is none."""
        try:
            response = await super().send(request, **how)
            if not _is_stream(response):
                await response.aread()
        except EverloopError as error:
            return failure_from(self._server, error)
        return response


class _StreamableClient(_ServerClient):
    def __init__(self, server: McpServer, transport: NetTransport, auth: httpx2.Auth | None) -> None:
        super().__init__(server, transport, auth)
        # It says itself how soon a stream that has ended is opened again, and may say: at once, for ever.
        self._streams = ServerPace(_STREAMS, _STREAMS_A_SECOND)

    def wire(self) -> AbstractAsyncContextManager[Any]:
        return streamable_http_client(self._server.url, http_client=self, max_sse_event_size=LONGEST_ANSWER)

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        if request.method == "GET":
            await self._streams.keep(1)
        answer = await self.fetch(request, **how)
        if request.method == "GET":
            return self._news(request, answer)
        if isinstance(answer, WireFailure):
            return _told(request, answer)
        failure = judge(self._server, answer)
        return _told(request, failure) if failure else answer

    def _news(self, request: httpx2.Request, answer: httpx2.Response | WireFailure) -> httpx2.Response:
        """The SDK gives up a stream of news after two failures. A server that is away for a while comes back; one that
        offers no such stream says so (405). What goes on with an answer that broke off is given up as the SDK does."""
        if isinstance(answer, WireFailure):
            return _told(request, answer) if answer.kind == "login" or _resumes(request) else _later(request)
        if answer.status_code >= 500 or answer.status_code == 429:
            return answer if _resumes(request) else _later(request)
        if _is_stream(answer):
            answer.stream = _News(answer.stream)
        return answer


def _told(request: httpx2.Request, failure: WireFailure) -> httpx2.Response:
    headers = {"content-type": "application/json"}
    return httpx2.Response(502, headers=headers, content=failure.as_answer(), request=request)


def _later(request: httpx2.Request) -> httpx2.Response:
    return httpx2.Response(200, headers={"content-type": EVENTS}, content=_ASK_AGAIN, request=request)


def _resumes(request: httpx2.Request) -> bool:
    return "last-event-id" in request.headers


def _is_stream(response: httpx2.Response) -> bool:
    return response.status_code == 200 and is_event_stream(response.headers.get("content-type", ""))


class _News(httpx2.AsyncByteStream):
    """A stream that is asked for again when it has ended, in whichever way."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for piece in self._stream:
                yield piece
        except (ProviderError, AnswerTooLarge):
            return

    async def aclose(self) -> None:
        await self._stream.aclose()


class _SseClient(_ServerClient):
    """What answers a message comes by the one stream of events; so a message that cannot be sent ends it."""

    def __init__(self, server: McpServer, transport: NetTransport, auth: httpx2.Auth | None) -> None:
        super().__init__(server, transport, auth)
        self._events: httpx2.Response | None = None

    def wire(self) -> AbstractAsyncContextManager[Any]:
        return sse_client(self._server.url, httpx_client_factory=self._myself)

    def _myself(
        self,
        headers: dict[str, str] | None = None,
        timeout: httpx2.Timeout | None = None,
        auth: httpx2.Auth | None = None,
    ) -> httpx2.AsyncClient:
        return self

    async def send(self, request: httpx2.Request, **how: Any) -> httpx2.Response:
        answer = await self.fetch(request, **how)
        failure = answer if isinstance(answer, WireFailure) else judge(self._server, answer)
        if failure:
            self.failure = failure
            if self._events:
                await self._events.aclose()
            raise failure.as_error()
        assert isinstance(answer, httpx2.Response)
        if request.method == "GET":
            self._events = answer
        return answer


def _named(server: McpServer, error: Exception, failure: WireFailure | None) -> Exception:
    """One error for whatever has ended a wire: our own word first."""
    leaves = [*_leaves(error)]
    ours = [down_of(each) if isinstance(each, MCPError) else each for each in leaves]
    for each in ours:
        if isinstance(each, McpDown):
            return each
    if failure:
        return failure.as_error()
    for leaf in leaves:
        match leaf:
            case httpx2.SSEError() if "exceeded" in str(leaf):  # the SDK's own limit there is 1 MiB
                return McpDown(f"{server.name} sends an event that is larger than is taken over SSE.")
            case httpx2.HTTPStatusError() | httpx2.SSEError():
                place = without_secrets(server, server.url)
                return McpDown(
                    f"{server.name} does not answer with a stream of events: check that its address ({place}) is that "
                    f"of MCP over SSE."
                )
    return leaves[0] if len(leaves) == 1 else error


def _leaves(error: BaseException) -> Iterator[Exception]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    elif isinstance(error, Exception):
        yield error
