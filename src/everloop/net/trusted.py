"""Requests to the hosts that the owner has configured, over connections that are kept for the next one
(a connection pool)."""

import asyncio
import os
import ssl
import zlib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType

from yarl import URL

from ..errors import HostFailed, HostTimeout
from ..ports import PLAIN_TERMS, SocketTerms
from .answer_reader import AnswerReader, NotHttp
from .connection import HttpConnection
from .dialing import dial, trusting
from .failures import FAILURES, explain_cut, explain_no_answer
from .proxies import find_proxy
from .request import HttpRequest
from .resolver import Resolver
from .socket_address import http_address
from .socket_opening import websocket_opening
from .stream import StreamDialer, StreamOpening
from .trusted_target import TrustedTarget, read_target, redirected, written_for
from .unzip import Unzip, make_room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .websocket import WebSocketOpening

_MOST_REDIRECTS = 10
_NO_HEADERS: Mapping[str, str] = {}
_REDIRECTS = {301, 302, 303, 307, 308}
_ZIPPED = {"gzip", "x-gzip", "deflate"}
_SLOWEST = 2**16  # bytes in a second of a body that is read as a whole
_MAY_TRAVEL = {"accept", "authorization", "range", "user-agent"}


class TrustedHttp:
    """The Http port. `ca_file` is trusted beside the system's authorities, as is REQUESTS_CA_BUNDLE.

    OpenSSL reads SSL_CERT_FILE by itself. `proxy` takes the place of those that the environment names. A connection
    waits for the next request as long as its host says, else so many seconds (`kept`): many servers close theirs after
    5 s without a word, and a request that meets this on its way is lost.
    """

    def __init__(self, ca_file: str | None = None, proxy: str = "", kept: float = 4.0) -> None:
        self._ca_file = ca_file
        self._proxy = proxy
        self._kept = kept
        self._proxies: dict[str, URL | None] = {}
        self._authorities: ssl.SSLContext | None = None
        self._resolver = Resolver()
        self._idle: dict[str, list[HttpConnection]] = {}
        self._busy: set[HttpConnection] = set()
        self._broom: asyncio.TimerHandle | None = None
        self._dialer = StreamDialer(ca_file, proxy, self._resolver)

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = _NO_HEADERS,
        seconds: float = 120.0,
        deadline: float | None = None,
    ) -> "_TrustedExchange":
        return _TrustedExchange(self, HttpRequest(method, url, body, headers, seconds, deadline))

    def hop(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = _NO_HEADERS,
        seconds: float = 120.0,
    ) -> "_TrustedExchange":
        """The Hops port."""
        return _TrustedExchange(self, HttpRequest(method, url, body, headers, seconds, follows=False))

    async def close(self) -> None:
        if self._broom:
            self._broom.cancel()
            self._broom = None
        for connection in [*self._busy, *(each for waiting in self._idle.values() for each in waiting)]:
            connection.close()
        self._dialer.close()
        self._busy.clear()
        self._idle.clear()
        self._resolver.close()
        await asyncio.sleep(0)  # in which the event loop lets them go

    async def connect(self, target: TrustedTarget, seconds: float) -> tuple[HttpConnection, bool]:
        """A connection for one exchange, and whether it has carried one before."""
        waiting = self._idle.get(target.origin)
        while waiting:
            connection = waiting.pop()
            if connection.is_rested:
                self._busy.add(connection)
                return connection, True
            connection.close()
        return await self._dial(target, seconds), False

    async def _dial(self, target: TrustedTarget, seconds: float, *, always_tunnel: bool = False) -> HttpConnection:
        proxy = self.proxy_for(target)
        trust = self._trust() if "https" in (target.url.scheme, proxy and proxy.scheme) else None
        connection = await dial(target.url, proxy, trust, seconds, self._resolver, always_tunnel=always_tunnel)
        self._busy.add(connection)
        return connection

    def websocket(
        self,
        url: str,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        terms: SocketTerms = PLAIN_TERMS,
        named_by: str = "",
    ) -> "WebSocketOpening":
        """The WebSockets port."""
        target = read_target(http_address(url, named_by))
        return websocket_opening()(
            partial(self._ask_to_upgrade, target), url, target.name, headers=headers, terms=terms, part=self._let_go
        )

    def dial(self, host: str, port: int, *, tls: bool = True, seconds: float = 30.0) -> StreamOpening:
        """The Dials port."""
        return self._dialer.dial(host, port, tls=tls, seconds=seconds)

    async def _ask_to_upgrade(
        self, target: TrustedTarget, headers: Mapping[str, str], seconds: float
    ) -> tuple[HttpConnection, AnswerReader]:
        """Over a connection of its own: one that has rested may be closed, and this cannot be asked twice."""
        request = written_for(target, "GET", headers, b"", None)
        connection = await self._dial(target, seconds, always_tunnel=True)
        try:
            connection.send(request, seconds)
            return connection, await connection.head()
        except BaseException as error:
            self._let_go(connection)
            if not isinstance(error, FAILURES):
                raise
            raise explain_no_answer(error, target.name, seconds) from error

    def _let_go(self, connection: HttpConnection) -> None:
        self._busy.discard(connection)
        connection.close()

    def part(self, target: TrustedTarget, connection: HttpConnection) -> None:
        """The exchange is over, in one way or another."""
        self._busy.discard(connection)
        if not connection.is_usable:
            connection.close()
            return
        connection.rest(self._kept)
        self._idle.setdefault(target.origin, []).append(connection)
        if self._broom is None:
            self._broom = asyncio.get_running_loop().call_later(self._kept, self._sweep)

    def _sweep(self) -> None:
        """Let those go that nobody has needed for a while."""
        loop = asyncio.get_running_loop()
        for origin, waiting in [*self._idle.items()]:
            kept = [each for each in waiting if each.is_rested]
            for each in set(waiting).difference(kept):
                each.close()
            if kept:
                self._idle[origin] = kept
            else:
                del self._idle[origin]
        self._broom = loop.call_later(self._kept, self._sweep) if self._idle else None

    def proxy_for(self, target: TrustedTarget) -> URL | None:
        """The environment is asked once per host."""
        if target.origin not in self._proxies:
            self._proxies[target.origin] = find_proxy(target.url, self._proxy)
        return self._proxies[target.origin]

    def _trust(self) -> ssl.SSLContext:
        if self._authorities is None:
            self._authorities = trusting(self._ca_file, os.environ.get("REQUESTS_CA_BUNDLE"))
        return self._authorities


class _TrustedExchange:
    """A request and its answer. Not a generator, for the same reason as _BodyChunks."""

    __slots__ = ("_connection", "_http", "_request", "_target")

    def __init__(self, http: TrustedHttp, request: HttpRequest) -> None:
        self._http = http
        self._request = request

    async def __aenter__(self) -> "TrustedAnswer":
        target, headers = read_target(self._request.url), self._request.headers
        for _ in range(_MOST_REDIRECTS + 1):
            reader = await self._ask(target, headers)
            location = self._redirection(reader) if reader.status in _REDIRECTS else None
            if location is None:
                return TrustedAnswer(self._connection, reader, target.name, self._request.seconds)
            self._http.part(target, self._connection)
            following = redirected(target, location)
            if following.origin != target.origin:
                headers = {name: value for name, value in headers.items() if name.lower() != "authorization"}
            target = following
        raise HostFailed(f"{target.name} redirects more than {_MOST_REDIRECTS} times.")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None and not self._connection.has_ended:
                with suppress(*FAILURES):
                    await self._connection.take_leave()
        finally:
            self._http.part(self._target, self._connection)

    async def _ask(self, target: TrustedTarget, headers: Mapping[str, str]) -> AnswerReader:
        http, asked, proxy = self._http, self._request, self._http.proxy_for(target)
        written = written_for(target, asked.method, headers, asked.body, proxy)
        while True:
            self._connection, used = await http.connect(target, asked.seconds)
            self._target = target
            try:
                self._connection.send(written, asked.seconds, asked.method == "HEAD", asked.deadline)
                return await self._connection.head()
            except BaseException as error:
                self._connection.close()
                http.part(target, self._connection)
                if not isinstance(error, FAILURES):
                    raise
                if isinstance(error, TimeoutError | NotHttp) or not used or asked.method not in ("GET", "HEAD"):
                    raise explain_no_answer(error, target.name, asked.seconds) from error
                # It was closed while nobody used it; to look once more does no harm.

    def _redirection(self, reader: AnswerReader) -> str | None:
        """A POST would arrive as a GET without its body, which no one could explain. And a key in a header that we
        don't know would be told to a stranger."""
        location = reader.headers.get("Location")
        asked = self._request
        if not asked.follows or not location or asked.method not in ("GET", "HEAD"):
            return None
        return location if {name.lower() for name in asked.headers} <= _MAY_TRAVEL else None


class TrustedAnswer:
    """The HttpAnswer port: what a host answers, its body still on the way."""

    __slots__ = ("_connection", "_host", "_seconds", "headers", "status")

    def __init__(self, connection: HttpConnection, reader: AnswerReader, host: str, seconds: float) -> None:
        self._connection = connection
        self._host = host
        self._seconds = seconds
        self.status: int = reader.status
        self.headers: Mapping[str, str] = reader.headers

    def chunks(self) -> AsyncIterator[bytes]:
        zipped = self.headers.get("Content-Encoding", "").strip().lower() in _ZIPPED
        return _BodyChunks(self._connection, self._host, Unzip() if zipped else None)

    async def read(self, limit: int = 1_000_000) -> bytes:
        """The body as a whole, or its first `limit` bytes. A host that trickles it is waited for a little longer than
        one that is silent."""
        body, seconds = bytearray(), self._seconds + limit / _SLOWEST
        try:
            async with asyncio.timeout(seconds):
                async for data in self.chunks():
                    body += data
                    if len(body) >= limit:
                        break
        except TimeoutError as error:
            raise HostTimeout(f"{self._host} has not sent all of its answer within {seconds:.0f} s.") from error
        return bytes(body[:limit])


class _BodyChunks:
    """Not a generator: to leave one in the middle costs a task and a wake-up of the loop for its clean-up."""

    __slots__ = ("_connection", "_host", "_pieces", "_unzip")

    def __init__(self, connection: HttpConnection, host: str, unzip: Unzip | None) -> None:
        self._connection = connection
        self._host = host
        self._unzip = unzip
        self._pieces: Iterator[bytes] = iter(())

    def __aiter__(self) -> "_BodyChunks":
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await (self._unzipped(self._unzip) if self._unzip else self._connection.read())
        except (*FAILURES, zlib.error) as error:
            raise explain_cut(error, self._host) from error
        if not data:
            raise StopAsyncIteration
        return data

    async def _unzipped(self, unzip: Unzip) -> bytes:
        """Of some bytes nothing comes yet, of others more than one wants to hold."""
        while True:
            for piece in self._pieces:
                await make_room(piece)
                if piece:
                    return piece
            data = await self._connection.read()
            if not data:
                break
            self._pieces = unzip.pieces(data)
        if not unzip.is_whole:
            raise EOFError
        return b""
