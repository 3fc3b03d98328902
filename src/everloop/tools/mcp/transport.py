"""The SDK's HTTP over our `net`: it opens no socket, resolves no name and follows no redirect but those we decided on.

The owner has named one place, the server's origin, and maybe those of its authorization servers: what they are asked
goes there, also where that is private. Every other address has come from a server (OAuth metadata, a redirect), which
may aim it anywhere (SSRF): it is asked over https alone, and by the door that checks each address it leads to.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager

import httpx2

from ...errors import AddressRefused, AnswerTooLarge, HostTimeout
from ...ports import Hops, HttpAnswer
from ...ports.mcp import McpServer
from .server_pace import ServerPace, lines_in

LONGEST_ANSWER = 10_000_000  # bytes of a body that is no stream of events, and of one event
EVENTS = "text/event-stream"
_SLOWEST = 2**16  # bytes in a second of a body that has an end
_PATIENCE = 10.0  # seconds at most beyond those of a call, after which the client itself has given it up
_SILENCE = 300.0  # seconds without a word in a stream of events that the server may keep open for ever
_FAREWELL = 5.0  # seconds that the end of a session may take
_OTHERS = 30.0  # seconds for a host that is not the server
# What `net` says itself, or what it has already undone in the answer.
_NOT_OURS = {"accept-encoding", "connection", "content-length", "host", "transfer-encoding", "user-agent"}
_UNDONE = {"content-encoding", "content-length", "transfer-encoding", "connection", "keep-alive"}


def origin_of(url: httpx2.URL | str) -> str:
    """`https://host[:port]`; a port that goes without saying is left out."""
    read = httpx2.URL(url)
    return str(read.copy_with(path="", query=None, fragment=None, userinfo=b"")).rstrip("/")


class Reach:
    """By which door an address is asked. Raises AddressRefused."""

    def __init__(self, server: McpServer, trusted: Hops, open: Hops) -> None:
        self._name = server.name
        self._owners = {origin_of(url) for url in (server.url, *server.oauth.issuers)}
        self._trusted = trusted
        self._open = open

    def door(self, url: httpx2.URL) -> Hops:
        origin = origin_of(url)
        if origin in self._owners:
            return self._trusted
        if url.scheme != "https":
            raise AddressRefused(
                f"{self._name} points at {origin}, which is not encrypted and not its own address. If that is its "
                f"authorization server, name it in the server's oauth.issuers."
            )
        return self._open


class NetTransport(httpx2.AsyncBaseTransport):
    """Raises what `net` raises, and AddressRefused. The server's headers go to its own origin and to no other."""

    def __init__(self, server: McpServer, reach: Reach) -> None:
        self._server = server
        self._reach = reach
        self._origin = origin_of(server.url)
        self._pace = ServerPace()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        door = self._reach.door(request.url)
        exchange = door.hop(
            request.method,
            self._address(request),
            body=await request.aread(),
            headers=self._headers(request),
            seconds=self._seconds(request),
        )
        answer = await exchange.__aenter__()
        headers = [(name, value) for name, value in answer.headers.items() if name.lower() not in _UNDONE]
        body = AnswerBody(exchange, answer, request.url.host, self._seconds(request), self._pace)
        return httpx2.Response(answer.status, headers=headers, stream=body)

    def _address(self, request: httpx2.Request) -> str:
        """Without a login in it that httpx has made a header of: told twice, it would be refused."""
        has_own = "authorization" in {name.lower() for name in self._server.headers}
        is_told = "authorization" in request.headers and not has_own
        return str(request.url.copy_with(userinfo=b"") if is_told else request.url)

    def _headers(self, request: httpx2.Request) -> Mapping[str, str]:
        asked = {name: value for name, value in request.headers.items() if name.lower() not in _NOT_OURS}
        if origin_of(request.url) != self._origin:
            return asked
        own = {name: value for name, value in self._server.headers.items() if name.lower() not in asked}
        return {**asked, **own}

    def _seconds(self, request: httpx2.Request) -> float:
        """Without a byte. Who answers in JSON says nothing before a call has ended."""
        call = self._server.seconds + min(self._server.seconds, _PATIENCE)
        if origin_of(request.url) != self._origin:
            return _OTHERS
        match request.method:
            case "DELETE":
                return _FAREWELL
            case "GET" if EVENTS in request.headers.get("accept", ""):
                return max(_SILENCE, call)
        return call


class AnswerBody(httpx2.AsyncByteStream):
    """The body as it comes. A stream of events may last for ever; anything else has to end in size and time."""

    def __init__(
        self,
        exchange: AbstractAsyncContextManager[HttpAnswer],
        answer: HttpAnswer,
        host: str,
        seconds: float,
        pace: ServerPace,
    ) -> None:
        self._exchange = exchange
        self._answer = answer
        self._host = host
        self._is_stream = is_event_stream(answer.headers.get("Content-Type", ""))
        self._seconds = seconds
        self._pace = pace
        self._is_read = self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._is_stream:
            async for piece in self._answer.chunks():
                await self._pace.keep(lines_in(piece))
                yield piece
        else:
            yield await self._whole()
        self._is_read = True

    async def _whole(self) -> bytes:
        """Whoever trickles it is waited for no longer than the bytes that came may take."""
        body, until = bytearray(), asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(until) as limit:
                async for piece in self._answer.chunks():
                    body += piece
                    limit.reschedule(until + len(body) / _SLOWEST)
                    if len(body) > LONGEST_ANSWER:
                        raise AnswerTooLarge(f"{self._host} sends more than {LONGEST_ANSWER:,} bytes.")
        except TimeoutError as error:
            raise HostTimeout(f"{self._host} sends its answer more slowly than is waited for.") from error
        return bytes(body)

    async def aclose(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        # Of what was not read to its end nobody waits for the rest.
        kind = None if self._is_read else GeneratorExit
        await self._exchange.__aexit__(kind, None, None)


def is_event_stream(content_type: str) -> bool:
    return content_type.partition(";")[0].strip().lower() == EVENTS
