"""All the WebSockets of a gateway: taken in, watched over, and closed when their credentials or the gateway end."""

import asyncio
import logging
from collections import Counter

from aiohttp import web

from ...errors import EverloopError
from ..access.principal import Principal, principal_of
from ..http.errors import Refused
from .connection import ClientConnection, ConnectionContext

OF_ONE = 1000
LARGEST = 8_000_000  # bytes of a frame
PATROL = 0.5  # seconds between looks whether the credentials still hold
BEAT = 30.0

_log = logging.getLogger("everloop.gateway")


class ClientConnections:
    """All connections of a gateway."""

    def __init__(self, context: ConnectionContext, of_one: int = OF_ONE) -> None:
        self._context = context
        self._of_one = of_one  # the most of one user
        self._users: Counter[str] = Counter()
        self._open: set[ClientConnection] = set()
        self._judged: dict[str, Principal | None] | None = None
        self.draining = False

    def __len__(self) -> int:
        return len(self._open)

    def judged(self) -> dict[str, Principal | None]:
        """The credentials that were looked at in this round of the event loop, by what was shown.

        What is dealt with in a round had arrived before it, so nobody is let in by a look that is older than what they
        sent; and whoever's look takes longer than a round keeps it to themselves, for the next has another book.
        """
        if self._judged is None:
            self._judged = {}
            asyncio.get_running_loop().call_soon(self._end_round)
        return self._judged

    def _end_round(self) -> None:
        self._judged = None

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.headers.get("Upgrade", "").lower() != "websocket":
            raise Refused(426, "upgrade", "this is a WebSocket; see docs/websocket.md")
        user = principal_of(request).user
        if self._users[user] >= self._of_one:
            raise Refused(429, "busy", f"you have {self._of_one} WebSockets open; close some, or raise the limit", 5)
        self._users[user] += 1
        try:
            return await self._run(request)
        finally:
            self._users[user] -= 1

    async def _run(self, request: web.Request) -> web.StreamResponse:
        wire = web.WebSocketResponse(heartbeat=BEAT, max_msg_size=LARGEST, compress=False)
        await wire.prepare(request)
        connection = ClientConnection(self._context, request, wire, self)
        self._open.add(connection)
        try:
            await connection.run()
        except* Exception as error:  # the border to one client: it has to come again, and others do not notice
            _log.error("a connection failed", exc_info=error)
        finally:
            self._open.discard(connection)
        return wire

    async def patrol(self) -> None:
        """Close what was opened with credentials that hold no longer."""
        while True:
            await asyncio.sleep(PATROL)
            judged: dict[str, Principal | None] = {}
            for connection in tuple(self._open):
                try:
                    await connection.check(judged)
                except EverloopError as error:  # a store that does not answer has revoked nothing
                    _log.warning("looking at credentials: %s", error)

    def drain(self) -> None:
        """Take no further messages."""
        self.draining = True

    async def close(self) -> None:
        await asyncio.gather(*(connection.close(1001, "the gateway stops") for connection in tuple(self._open)))
