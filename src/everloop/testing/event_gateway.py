"""A platform that tells its events over a WebSocket, as Discord's gateway does: hello, heartbeats, sessions that can be
resumed. Its ways to fail are methods.

    async with EventGateway("token") as gateway:
        …  # gateway.url is ws://127.0.0.1:PORT/; a client identifies itself there
        await gateway.emit("MESSAGE_CREATE", {"content": "hello"})
        gateway.cut()

What is emitted while nobody listens is told after a resume (op 6). A session is forgotten when its client says
farewell with 1000 or 1001, as there.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import count
from types import TracebackType
from typing import Any, Self

import msgspec
from aiohttp import web
from msgspec import Struct

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID_SESSION, HELLO, HEARTBEAT_ACK = 0, 1, 2, 6, 7, 9, 10, 11
UNKNOWN_OPCODE, DECODE_ERROR, NOT_AUTHENTICATED, AUTHENTICATION_FAILED = 4001, 4002, 4003, 4004
INVALID_SEQ, SESSION_TIMED_OUT, DISALLOWED_INTENTS = 4007, 4009, 4014

LEAST_PATIENCE = 5.0  # seconds without a sign of life: a test that beats often may be held up


class GatewayFrame(Struct, omit_defaults=True):
    """What is said in either direction."""

    op: int
    d: Any = None
    s: int | None = None
    t: str | None = None


class GatewaySession(Struct):
    id: str
    events: list[GatewayFrame] = []
    acknowledged: int = 0  # the last event that its client's heartbeats speak of
    wire: web.WebSocketResponse | None = None  # while somebody listens


class EventGateway:
    """`identified` and `resumed` count what clients have asked for, `heartbeats` the signs of life that have come.
    `ready` is told with READY, `welcome` are events that follow it."""

    def __init__(self, token: str = "token", heartbeat: float = 10.0) -> None:
        self.sessions: dict[str, GatewaySession] = {}
        self.identified = self.resumed = self.heartbeats = 0
        self.is_frozen = False  # heartbeats are not acknowledged, and nothing is said
        self.ready: Mapping[str, Any] = {}
        self.welcome: Sequence[tuple[str, Any]] = ()
        self.allowed_intents = -1  # those that a client may ask for; -1: any
        self._token = token
        self._heartbeat = heartbeat
        self._numbers = count(1)
        self._wires: dict[web.WebSocketResponse, asyncio.Transport | None] = {}
        self._changed = asyncio.Condition()
        app = web.Application()
        app.router.add_get("/", self._serve)
        self._runner = web.AppRunner(app, shutdown_timeout=1.0)
        self.url = ""

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"ws://127.0.0.1:{self._runner.addresses[0][1]}/"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        await self._runner.cleanup()

    async def emit(self, kind: str, data: Any) -> None:
        """Tell every session; those that nobody listens to hear of it after a resume."""
        for session in self.sessions.values():
            await self._tell(session, kind, data)

    async def until_acknowledged(self, session: GatewaySession, events: int) -> None:
        """Until its client's heartbeats speak of so many."""
        async with self._changed:
            await self._changed.wait_for(lambda: session.acknowledged >= events)

    async def until_listening(self, sessions: int = 1) -> None:
        """Until so many are listened to."""
        async with self._changed:
            await self._changed.wait_for(lambda: sum(1 for each in self.sessions.values() if each.wire) >= sessions)

    async def until_left(self) -> None:
        """Until nobody listens to any."""
        async with self._changed:
            await self._changed.wait_for(lambda: not any(each.wire for each in self.sessions.values()))

    def cut(self) -> None:
        """Tear all connections, without a farewell."""
        for transport in filter(None, self._wires.values()):
            transport.abort()

    async def close(self, code: int, reason: str = "") -> None:
        for wire in [*self._wires]:
            await wire.close(code=code, message=reason.encode())

    async def ask_to_reconnect(self) -> None:
        await self._say_to_all(GatewayFrame(RECONNECT))

    async def invalidate(self, resumable: bool) -> None:
        if not resumable:
            self.sessions.clear()
        await self._say_to_all(GatewayFrame(INVALID_SESSION, resumable))

    async def _serve(self, request: web.Request) -> web.WebSocketResponse:
        wire = web.WebSocketResponse()
        await wire.prepare(request)
        self._wires[wire] = request.transport
        farewell = 0
        try:
            await self._say(wire, GatewayFrame(HELLO, {"heartbeat_interval": round(self._heartbeat * 1000)}))
            async with asyncio.timeout(None) as patience:
                farewell = await self._listen(wire, patience)
        except TimeoutError:
            await wire.close(code=SESSION_TIMED_OUT)
        finally:
            del self._wires[wire]
            await self._leave(wire, farewell)
        return wire

    async def _listen(self, wire: web.WebSocketResponse, patience: asyncio.Timeout) -> int:
        """Gives the code with which the client leaves; 0 when it says none."""
        session: GatewaySession | None = None
        while True:
            patience.reschedule(asyncio.get_running_loop().time() + max(3 * self._heartbeat, LEAST_PATIENCE))
            message = await wire.receive()
            if message.type is not web.WSMsgType.TEXT:
                return int(message.data) if message.type is web.WSMsgType.CLOSE else 0
            try:
                said = msgspec.json.decode(message.data, type=GatewayFrame)
            except msgspec.DecodeError:
                await wire.close(code=DECODE_ERROR)
                return 0
            if said.op == HEARTBEAT:
                await self._take_heartbeat(wire, said, session)
            elif said.op in (IDENTIFY, RESUME) and session is None:
                session = await self._admit(wire, said)
            else:
                await wire.close(code=UNKNOWN_OPCODE if session else NOT_AUTHENTICATED)

    async def _take_heartbeat(
        self, wire: web.WebSocketResponse, said: GatewayFrame, session: GatewaySession | None
    ) -> None:
        self.heartbeats += 1
        if session and isinstance(said.d, int):
            async with self._changed:
                session.acknowledged = said.d
                self._changed.notify_all()
        await self._say(wire, GatewayFrame(HEARTBEAT_ACK))

    async def _admit(self, wire: web.WebSocketResponse, said: GatewayFrame) -> GatewaySession | None:
        asked = said.d if isinstance(said.d, dict) else {}
        if asked.get("token") != self._token:
            await wire.close(code=AUTHENTICATION_FAILED, message=b"Authentication failed.")
            return None
        if said.op == IDENTIFY and asked.get("intents", 0) & ~self.allowed_intents:
            await wire.close(code=DISALLOWED_INTENTS, message=b"Disallowed intent(s).")
            return None
        return await (self._identify(wire) if said.op == IDENTIFY else self._resume(wire, asked))

    async def _identify(self, wire: web.WebSocketResponse) -> GatewaySession:
        self.identified += 1
        session = GatewaySession(f"session-{next(self._numbers)}")
        self.sessions[session.id] = session
        await self._listen_to(session, wire)
        ready = {**self.ready, "session_id": session.id, "resume_gateway_url": self.url}
        for kind, data in (("READY", ready), *self.welcome):
            await self._tell(session, kind, data)
        return session

    async def _resume(self, wire: web.WebSocketResponse, asked: dict[str, Any]) -> GatewaySession | None:
        self.resumed += 1
        session, heard = self.sessions.get(asked.get("session_id", "")), asked.get("seq")
        if session is None:
            await self._say(wire, GatewayFrame(INVALID_SESSION, False))
            return None
        if not isinstance(heard, int) or not 0 <= heard <= len(session.events):
            await wire.close(code=INVALID_SEQ)
            return None
        while heard < len(session.events):  # which may grow meanwhile
            await self._say(wire, session.events[heard])
            heard += 1
        await self._listen_to(session, wire)
        await self._tell(session, "RESUMED", {})
        return session

    async def _listen_to(self, session: GatewaySession, wire: web.WebSocketResponse) -> None:
        session.wire = wire
        async with self._changed:
            self._changed.notify_all()

    async def _leave(self, wire: web.WebSocketResponse, farewell: int) -> None:
        for session in [each for each in self.sessions.values() if each.wire is wire]:
            session.wire = None
            if farewell in (1000, 1001):
                self.sessions.pop(session.id)
        async with self._changed:
            self._changed.notify_all()

    async def _tell(self, session: GatewaySession, kind: str, data: Any) -> None:
        event = GatewayFrame(DISPATCH, data, len(session.events) + 1, kind)
        session.events.append(event)
        if session.wire is not None:
            await self._say(session.wire, event)

    async def _say_to_all(self, frame: GatewayFrame) -> None:
        for wire in [*self._wires]:
            await self._say(wire, frame)

    async def _say(self, wire: web.WebSocketResponse, frame: GatewayFrame) -> None:
        if self.is_frozen or wire.closed:
            return
        with suppress(ConnectionError):  # its client has gone, and will hear of it after a resume
            await wire.send_str(msgspec.json.encode(frame).decode())
