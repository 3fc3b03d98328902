"""A client of events over our WebSocket: it reconnects with a backoff, resumes, and loses and doubles nothing."""

import asyncio
from collections.abc import AsyncIterator
from random import Random

import msgspec
import pytest

from everloop.errors import ProviderError, SocketClosed
from everloop.net.trusted import TrustedHttp
from everloop.ports import SocketTerms, WebSocket
from everloop.testing.event_gateway import (
    AUTHENTICATION_FAILED,
    DISPATCH,
    HEARTBEAT,
    HEARTBEAT_ACK,
    HELLO,
    IDENTIFY,
    INVALID_SESSION,
    RECONNECT,
    RESUME,
    EventGateway,
    GatewayFrame,
)


class Again(Exception):
    """The connection is to be made anew."""


class Listener:
    """As a channel does it, in short. `heard` are the events, by their numbers; `pauses` what it waited before each
    further try."""

    def __init__(self, http: TrustedHttp, url: str, token: str = "token") -> None:
        self.heard: asyncio.Queue[int] = asyncio.Queue()
        self.pauses: asyncio.Queue[float] = asyncio.Queue()
        self._http, self._url, self._token = http, url, token
        self._session, self._seq, self._failed, self._is_acknowledged = "", 0, 0, True

    async def run(self) -> None:
        """Until the platform refuses the token."""
        while True:
            try:
                await self._listen()
            except Again:
                pass
            except SocketClosed as closed:
                if closed.code == AUTHENTICATION_FAILED:
                    raise
            except ProviderError:
                pass
            self._failed += 1
            pause = min(0.001 * 2**self._failed, 0.05)
            await self.pauses.put(pause)
            await asyncio.sleep(pause)

    async def _listen(self) -> None:
        async with self._http.websocket(self._url, terms=SocketTerms(seconds=5, farewell=4900)) as wire:
            hello = msgspec.json.decode(await wire.receive(), type=GatewayFrame)
            assert hello.op == HELLO
            beating = asyncio.create_task(self._beat(wire, hello.d["heartbeat_interval"] / 1000))
            try:
                await self._greet(wire)
                async for message in wire:
                    await self._hear(msgspec.json.decode(message, type=GatewayFrame))
            finally:
                beating.cancel()

    async def _greet(self, wire: WebSocket) -> None:
        asked = {"token": self._token}
        if self._session:
            asked |= {"session_id": self._session, "seq": self._seq}
        await self._say(wire, GatewayFrame(RESUME if self._session else IDENTIFY, asked))

    async def _beat(self, wire: WebSocket, seconds: float) -> None:
        self._is_acknowledged = True
        while True:
            await asyncio.sleep(seconds)
            if not self._is_acknowledged:  # a zombie
                await wire.close(4900)
                return
            self._is_acknowledged = False
            await self._say(wire, GatewayFrame(HEARTBEAT, self._seq))

    async def _say(self, wire: WebSocket, frame: GatewayFrame) -> None:
        await wire.send(msgspec.json.encode(frame).decode())

    async def _hear(self, frame: GatewayFrame) -> None:
        if frame.op == RECONNECT:
            raise Again
        if frame.op == INVALID_SESSION:
            self._session, self._seq = (self._session, self._seq) if frame.d else ("", 0)
            raise Again
        if frame.op == HEARTBEAT_ACK:
            self._is_acknowledged = True
        if frame.op == DISPATCH:
            self._seq, self._failed = frame.s, 0
            if frame.t == "READY":
                self._session = frame.d["session_id"]
            if frame.t == "NUMBER":
                await self.heard.put(frame.d)


@pytest.fixture
async def http() -> AsyncIterator[TrustedHttp]:
    http = TrustedHttp()
    yield http
    await http.close()


async def test_through_cuts_closes_and_reconnects_every_event_is_heard_once_and_in_order(http):
    chance, wanted = Random(1), range(400)
    async with EventGateway() as gateway:
        listener = Listener(http, gateway.url)
        running = asyncio.create_task(listener.run())
        await gateway.until_listening()
        got: list[int] = []
        for number in wanted:
            while chance.random() < 0.9 and len(got) < number:  # else it fails while the last failure is not over
                got.append(await listener.heard.get())
            match chance.randrange(8):
                case 0:
                    gateway.cut()
                case 1:
                    await gateway.close(chance.choice([4000, 4008, 1012]))
                case 2:
                    await gateway.ask_to_reconnect()
                case 3:
                    await gateway.invalidate(resumable=True)
            await gateway.emit("NUMBER", number)
        while len(got) < len(wanted):
            got.append(await listener.heard.get())
        assert got == list(wanted)
        running.cancel()
        assert (gateway.identified, len(gateway.sessions)) == (1, 1)
        assert gateway.resumed > len(wanted) // 8


async def test_a_session_that_cannot_be_resumed_is_begun_anew(http):
    async with EventGateway() as gateway:
        running = asyncio.create_task((listener := Listener(http, gateway.url)).run())
        await gateway.until_listening()
        await gateway.emit("NUMBER", 1)
        assert await listener.heard.get() == 1
        await gateway.invalidate(resumable=False)
        await gateway.until_listening()
        await gateway.emit("NUMBER", 2)
        assert await listener.heard.get() == 2
        running.cancel()
        assert gateway.identified == 2


async def test_a_platform_that_does_not_answer_heartbeats_is_left_and_found_again(http):
    async with EventGateway(heartbeat=0.1) as gateway:
        running = asyncio.create_task((listener := Listener(http, gateway.url)).run())
        await gateway.until_listening()
        gateway.is_frozen = True
        await gateway.emit("NUMBER", 1)  # is not told now
        await listener.pauses.get()
        gateway.is_frozen = False
        assert await listener.heard.get() == 1
        running.cancel()
        assert (gateway.identified, gateway.resumed >= 1) == (1, True)


async def test_a_platform_that_is_away_is_tried_less_and_less_often(http):
    async with EventGateway() as gateway:
        url = gateway.url
    listener = Listener(http, url)
    running = asyncio.create_task(listener.run())
    pauses = [await listener.pauses.get() for _ in range(8)]
    running.cancel()
    assert pauses == [0.002, 0.004, 0.008, 0.016, 0.032, 0.05, 0.05, 0.05]


async def test_a_wrong_token_is_told_once_and_not_tried_again(http):
    async with EventGateway("another") as gateway:
        with pytest.raises(SocketClosed, match=r"has closed the WebSocket \(4004: Authentication failed\.\)"):
            await Listener(http, gateway.url).run()
        assert gateway.sessions == {}


@pytest.mark.parametrize("code, kept", [(1000, 0), (1001, 0), (4900, 1)])
async def test_the_farewell_decides_whether_a_session_is_kept(http, code: int, kept: int):
    async with EventGateway() as gateway:
        async with http.websocket(gateway.url, terms=SocketTerms(farewell=code)) as wire:
            await wire.receive()
            await wire.send('{"op": 2, "d": {"token": "token"}}')
            await wire.receive()
        assert len(gateway.sessions) == kept
