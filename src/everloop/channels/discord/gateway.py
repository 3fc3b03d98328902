"""One connection to the gateway: who we are, heartbeats, and what is told, until it ends.

https://discord.com/developers/docs/events/gateway
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import NoReturn
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Raw, Struct

from ...errors import ChannelRefused, SocketClosed
from ...ports import WebSocket
from ..wellformed import read_json
from .rest import REFUSED
from .resume import ResumePoint

DISPATCH, HEARTBEAT, IDENTIFY, RESUME, RECONNECT, INVALID_SESSION, HELLO, HEARTBEAT_ACK = 0, 1, 2, 6, 7, 9, 10, 11
GUILDS, GUILD_MESSAGES, DIRECT_MESSAGES, MESSAGE_CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15
INTENTS = GUILDS | GUILD_MESSAGES | DIRECT_MESSAGES | MESSAGE_CONTENT
KEEPS_SESSION = 4000  # the code to leave with: Discord forgets a session after 1000 and 1001
GREETING = 20.0  # seconds for the gateway to say hello
BACKLOG, BATCH = 1_000, 200  # events that wait for us, and that are taken at once
FORGOTTEN = frozenset({4003, 4007, 4009})  # after which a session cannot be resumed
NEVER = {
    4004: REFUSED,
    4010: "Discord says that the bot is to be split into shards (4010), which everloop does not do.",
    4011: "Discord says that the bot is in too many servers for one connection and must be split into shards (4011), "
    "which everloop does not do: let it leave some of them.",
    4012: "Discord does not speak this version of its gateway any more (4012): a newer everloop is needed.",
    4013: "Discord does not know what the bot asks to be told (4013): a newer everloop is needed.",
    4014: "Discord does not let the bot read messages: switch on MESSAGE CONTENT INTENT for it "
    "(https://discord.com/developers/applications, Bot, Privileged Gateway Intents).",
}


class GatewayEvent(Struct):
    """Something that is told. `d` is read only if somebody wants to know."""

    op: int
    d: Raw = Raw(b"null")
    s: int | None = None
    t: str | None = None


class Reconnect(Exception):
    """The connection is to be made anew; `fresh`: without the session."""

    def __init__(self, why: str, *, fresh: bool = False) -> None:
        super().__init__(why)
        self.fresh = fresh


Take = Callable[[list[GatewayEvent]], Awaitable[None]]


def address(url: str) -> str:
    """With the version and the encoding that we speak."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(path=parts.path or "/", query="v=10&encoding=json", fragment=""))


def after(closed: SocketClosed) -> Exception:
    """What is to be done when the gateway has closed a connection. Its reason is not told: it has heard our token."""
    if closed.code in NEVER:
        return ChannelRefused(NEVER[closed.code])
    return Reconnect(f"the connection has ended ({closed.why}, {closed.code})", fresh=closed.code in FORGOTTEN)


class GatewayConnection:
    """`committed` says up to which event all is committed: that is what heartbeats tell, and nothing later."""

    def __init__(self, wire: WebSocket, token: str, committed: Callable[[], int]) -> None:
        self._wire = wire
        self._token = token
        self._committed = committed
        self._events: asyncio.Queue[GatewayEvent | None] = asyncio.Queue(BACKLOG)  # None: there will be no more
        self._is_acknowledged = True

    async def converse(self, point: ResumePoint, take: Take) -> None:
        """Hand over what is told, batch by batch, also what was told before the connection has ended: what is being
        committed is not broken off. Raises Reconnect, ChannelRefused, and what `take` raises."""
        try:
            async with asyncio.TaskGroup() as group:
                interval = await self._greet(point)
                beating = group.create_task(self._beat(interval))
                taking = group.create_task(self._hand_over(take))
                ended = await self._read_to_the_end()
                await self._events.put(None)
                await taking
                beating.cancel()
                raise ended
        except BaseExceptionGroup as errors:
            error = errors.exceptions[0]
            raise (after(error) if isinstance(error, SocketClosed) else error) from None

    async def _greet(self, point: ResumePoint) -> float:
        """Say who we are; returns the seconds between heartbeats."""
        try:
            async with asyncio.timeout(GREETING):
                hello = msgspec.json.decode(await self._wire.receive(), type=GatewayEvent)
        except TimeoutError as error:
            raise Reconnect("the gateway does not say hello") from error
        if hello.op != HELLO:
            raise Reconnect("the gateway does not say hello")
        if point.session:
            await self._say(RESUME, {"token": self._token, "session_id": point.session, "seq": point.seq})
        else:
            names = {"os": "linux", "browser": "everloop", "device": "everloop"}
            await self._say(IDENTIFY, {"token": self._token, "intents": INTENTS, "properties": names})
        return float(msgspec.json.decode(hello.d)["heartbeat_interval"]) / 1000

    async def _read_to_the_end(self) -> Exception:
        try:
            await self._read()
        except (Reconnect, SocketClosed) as error:
            return error

    async def _read(self) -> NoReturn:
        while True:
            event = read_json(await self._wire.receive(), GatewayEvent)
            match event.op:
                case 0:
                    await self._events.put(event)
                case 1:
                    await self._say_alive()
                case 7:
                    raise Reconnect("the gateway asks for another connection")
                case 9:
                    raise Reconnect("the gateway does not know the session", fresh=bytes(event.d) != b"true")
                case 11:
                    self._is_acknowledged = True

    async def _hand_over(self, take: Take) -> None:
        while batch := await self._next_batch():
            await take(batch)

    async def _next_batch(self) -> list[GatewayEvent]:
        """Empty when there will be no more."""
        batch: list[GatewayEvent] = []
        while len(batch) < BATCH and not (batch and self._events.empty()):
            event = await self._events.get()
            if event is None:
                self._events.put_nowait(None)
                break
            batch.append(event)
        return batch

    async def _beat(self, seconds: float) -> None:
        """Without an answer the connection is a zombie, and is left; unless it is us who do not read."""
        await asyncio.sleep(seconds * random.random())  # those who come back together do not beat together
        try:
            while self._is_acknowledged or self._events.full():
                self._is_acknowledged = False
                await self._say_alive()
                await asyncio.sleep(seconds)
            await self._wire.close(KEEPS_SESSION)
        except SocketClosed:
            pass  # who reads hears of it, too

    async def _say_alive(self) -> None:
        await self._say(HEARTBEAT, self._committed() or None)

    async def _say(self, op: int, d: object) -> None:
        await self._wire.send(msgspec.json.encode({"op": op, "d": d}).decode())
