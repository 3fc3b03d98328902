"""Connections before anything is known of them: they are counted, and have to say soon what they want.

Whoever opens many connections, or takes for ever to finish a request (slowloris), holds a place that somebody else
could have. So there is a number of places in all and for each address, and time for a request to arrive: some seconds,
and more as its bytes come. What is answered, or has become a WebSocket, has all the time it wants.

Behind a proxy, and for all programs of this machine, everybody has one address. So that one of them does not keep out
the others, a connection that has shown no credentials yet and lets us wait gives its place to the next that comes, the
oldest first. Whoever has shown a token or a login keeps theirs.
"""

import asyncio
import ipaddress
import logging
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Protocol

from aiohttp import web

from ..http.handler import Handler, Middleware

KEPT = 75.0  # seconds for which a connection without a request is kept open
LINGER = 2.0  # seconds for which the rest of a refused request is read and thrown away
RATE = 10_000  # bytes for which a request has a second more
LOOK = 1.0

_log = logging.getLogger("everloop.gateway")


class LimitSettings(Protocol):
    """What the settings allow."""

    @property
    def connections(self) -> int: ...
    @property
    def connections_per_address(self) -> int: ...
    @property
    def sockets_per_user(self) -> int: ...
    @property
    def request_seconds(self) -> float: ...
    @property
    def behind_proxy(self) -> bool: ...


class Caller(web.RequestHandler):
    """One connection. `since` is when what is waited for began: its first request, or the body of the present one."""

    __slots__ = ("_counts", "_request", "address", "known", "received", "since")

    def __init__(self, counts: "ConnectionLimits", server: web.Server, **given: Any) -> None:
        super().__init__(server, **given)
        self._counts = counts
        self._request: web.BaseRequest | None = None
        self.address = ""
        self.known = False  # it has shown credentials that hold
        self.since: float | None = None
        self.received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.address = _address(transport.get_extra_info("peername"))
        self.since = self._counts.clock()
        if not self._counts.enter(self):
            self.turn_away(503, "Service Unavailable")

    def connection_lost(self, exc: BaseException | None) -> None:
        self._counts.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        super().data_received(data)

    def begin(self, request: web.BaseRequest) -> None:
        self._request, self.since, self.received = request, self._counts.clock(), 0

    def end(self) -> None:
        self._request, self.since = None, None

    @property
    def is_idle(self) -> bool:
        """Whether we wait for it, and not it for us."""
        return self._request is None or not self._request.content.is_eof()

    def is_late(self, now: float, seconds: float) -> bool:
        if self.since is None or (self._request is not None and self._request.content.is_eof()):
            return False
        allowed = seconds + (self.received / RATE if self._request is not None else 0)
        return now > self.since + allowed

    def turn_away(self, status: int, reason: str) -> None:
        self.since = None
        if self.transport is not None:
            lines = f"HTTP/1.1 {status} {reason}\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n"
            self.transport.write(lines.encode())
            self.transport.close()

    def log_exception(self, *args: Any, **given: Any) -> None:
        """What a stranger has sent, or that they have gone, is worth a line; our own faults are told elsewhere."""
        _log.info("a request from %s was not answered: %.200r", self.address, given.get("exc_info"))


class ConnectionLimits:
    """All connections. `connect` makes one for the event loop; `patrol` sends away those that are late."""

    def __init__(self, limits: LimitSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._callers: dict[Caller, None] = {}  # in the order in which they came
        self._by_address: Counter[str] = Counter()
        self.clock = clock

    def __len__(self) -> int:
        return len(self._callers)

    def connect(self, server: web.Server) -> Callable[[], Caller]:
        loop = asyncio.get_running_loop()
        kept: dict[str, Any] = {"access_log": None, "lingering_time": LINGER, "keepalive_timeout": KEPT}
        kept["auto_decompress"] = False  # what is packed is refused, and not unpacked before that
        return lambda: Caller(self, server, loop=loop, **kept)

    def enter(self, caller: Caller) -> bool:
        """Whether there is room, or was made. Behind a proxy all come from its address, and it has to count them."""
        if len(self._callers) >= self._limits.connections and not self._make_room():
            return False
        taken = self._by_address[caller.address]
        bounded = taken >= self._limits.connections_per_address and not self._limits.behind_proxy
        if bounded and not self._make_room(caller.address):
            return False
        self._callers[caller] = None
        self._by_address[caller.address] += 1
        return True

    def _make_room(self, address: str | None = None) -> bool:
        """Send the oldest stranger away who lets us wait: of one address, or of all."""
        for caller in self._callers:
            if not caller.known and caller.is_idle and address in (None, caller.address):
                self.leave(caller)
                caller.turn_away(503, "Service Unavailable")
                return True
        return False

    def leave(self, caller: Caller) -> None:
        if caller in self._callers:
            del self._callers[caller]
            self._by_address[caller.address] -= 1
            if not self._by_address[caller.address]:
                del self._by_address[caller.address]

    async def patrol(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            now = self.clock()
            for caller in [each for each in self._callers if each.is_late(now, self._limits.request_seconds)]:
                caller.turn_away(408, "Request Timeout")

    def watch(self) -> Middleware:
        """Tells a connection that its request is there, and that it has been answered."""

        @web.middleware
        async def middleware(request: web.Request, handler: Handler) -> web.StreamResponse:
            caller = request.protocol
            if not isinstance(caller, Caller):
                return await handler(request)
            caller.begin(request)
            try:
                return await handler(request)
            finally:
                caller.end()

        return middleware


def note_known(request: web.Request) -> None:
    """Tells a connection that it has shown credentials that hold, once the guard has let it in."""
    if "principal" in request and isinstance(request.protocol, Caller):
        request.protocol.known = True


def _address(peer: Any) -> str:
    """Whose connection it is; of an IPv6 address the part that its owner cannot choose."""
    host = str(peer[0]) if isinstance(peer, tuple) and peer else ""
    if ":" not in host:
        return host
    return str(ipaddress.ip_network((host.partition("%")[0], 64), strict=False))
