"""A WebSocket as a channel uses it: beside two servers that are not ours, and beside a bare host."""

import asyncio
import logging
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web
from tests.net.socket_peers import BINARY, CLOSE, CONT, PING, PONG, TEXT, Peer, agreement, farewell, frame, hosting
from websockets.asyncio.server import serve

from everloop.errors import HostTimeout, HostUnreachable, KeyRefused, SocketClosed, SocketRefused
from everloop.net.trusted import TrustedHttp
from everloop.ports import PLAIN_TERMS, SocketTerms, WebSocket

SAID = ["", "hello", "ü€😀" * 50, "x" * 125, "x" * 126, "x" * 65_535, "x" * 65_536, b"", b"\0\xff", os.urandom(300_000)]


@pytest.fixture
async def http() -> AsyncIterator[TrustedHttp]:
    http = TrustedHttp()
    yield http
    await http.close()


@asynccontextmanager
async def websockets_echo() -> AsyncIterator[str]:
    async def echo(peer) -> None:
        async for message in peer:
            await peer.send(message)

    async with serve(echo, "127.0.0.1", 0) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


@asynccontextmanager
async def aiohttp_echo() -> AsyncIterator[str]:
    async def echo(request: web.Request) -> web.WebSocketResponse:
        peer = web.WebSocketResponse()
        await peer.prepare(request)
        async for message in peer:
            await (peer.send_str if message.type is WSMsgType.TEXT else peer.send_bytes)(message.data)
        return peer

    app = web.Application()
    app.router.add_get("/", echo)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"ws://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    await runner.cleanup()


Echo = Callable[[], AbstractAsyncContextManager[str]]
ESTABLISHED = "01"


@pytest.mark.parametrize("compress", [False, True], ids=["plain", "packed"])
@pytest.mark.parametrize("echo, answered", [(websockets_echo, 4001), (aiohttp_echo, 1000)])
async def test_what_is_sent_comes_back_from_servers_that_are_not_ours(http, echo: Echo, answered: int, compress: bool):
    async with echo() as url, http.websocket(url, terms=SocketTerms(compress=compress)) as wire:
        got = []
        for message in SAID:
            await wire.send(message)
            got.append(await wire.receive())
        assert got == SAID
        assert wire.code == 0
        await wire.close(4001, "enough")
        assert wire.code == answered


@pytest.mark.parametrize("echo", [websockets_echo, aiohttp_echo])
async def test_many_may_send_while_one_reads(http, echo: Echo):
    async with echo() as url, http.websocket(url) as wire:

        async def say(name: int) -> None:
            for number in range(50):
                await wire.send(f"{name} {number} " + "x" * 20_000)

        async with asyncio.TaskGroup() as group:
            for name in range(4):
                group.create_task(say(name))
            got = [(await wire.receive()).split()[:2] for _ in range(200)]
    for name in range(4):
        assert [each[1] for each in got if each[0] == str(name)] == [str(number) for number in range(50)]


def heard_by(peers: list[list[tuple[int, bytes]]]) -> Callable[[Peer], object]:
    """A host that agrees, says 'hi' and keeps what it hears until the client goes."""

    async def listen(peer: Peer) -> None:
        await peer.agree(frame(TEXT, b"hi"))
        peers.append([])
        while True:
            opcode, content = await peer.hear_frame()
            peers[-1].append((opcode, content))
            if opcode == CLOSE:
                peer.writer.write(frame(CLOSE, content))
                return

    return listen


async def test_we_say_farewell_when_the_block_ends_and_with_the_code_that_was_agreed_on(http):
    heard: list[list[tuple[int, bytes]]] = []
    async with hosting(heard_by(heard)) as url:
        async with http.websocket(url) as wire:
            assert await wire.receive() == "hi"
        async with http.websocket(url, terms=SocketTerms(farewell=4900)) as wire:
            await wire.send("ho")
        with pytest.raises(ZeroDivisionError):
            async with http.websocket(url, terms=SocketTerms(farewell=4900)) as wire:
                1 / 0  # noqa: B018
    bye = struct.pack("!H", 4900)
    assert heard == [[(CLOSE, struct.pack("!H", 1000))], [(TEXT, b"ho"), (CLOSE, bye)], [(CLOSE, bye)]]


async def ending(http: TrustedHttp, url: str, terms: SocketTerms = PLAIN_TERMS) -> tuple[list[str | bytes], str, int]:
    """What was said, why it ended and with which code; "peace" when no error tells it."""
    said: list[str | bytes] = []
    async with http.websocket(url, terms=terms) as wire:
        try:
            async for message in wire:
                said.append(message)
        except SocketClosed as closed:
            return said, closed.why, closed.code
        return said, "peace", wire.code


HI = frame(TEXT, b"hi")
ENDS = {
    "in peace": (HI + farewell(1000), "peace", 1000),
    "going away": (HI + farewell(1001, b"restart"), "peace", 1001),
    "without a code": (HI + frame(CLOSE), "peace", 1005),
    "with an error": (HI + farewell(4004, b"Authentication failed."), "closed", 4004),
    "and says more": (HI + farewell(4009) + frame(TEXT, b"late") * 10, "closed", 4009),
    "without a farewell": (HI, "cut", 1006),
    "in the middle of a frame": (HI + b"\x81\x7e\xff", "cut", 1006),
}


@pytest.mark.parametrize("form", ENDS)
@pytest.mark.parametrize("when", ["with its agreement", "later"])
async def test_what_was_said_before_the_other_side_ended_it_is_heard(http, form: str, when: str):
    data, why, code = ENDS[form]

    async def speak(peer: Peer) -> None:
        await peer.agree(data if when == "with its agreement" else b"")
        if when == "later":
            peer.writer.write(data)
        if why == "cut":
            return
        assert await peer.hear_frame() == (CLOSE, data[data.index(b"\x88") + 2 :][: data[data.index(b"\x88") + 1]])

    async with hosting(speak) as url:
        assert await ending(http, url) == (["hi"], why, code)


async def test_a_host_that_only_stops_speaking_is_gone(http):
    """A half-closed connection: it would still read."""
    after = asyncio.Event()

    async def speak(peer: Peer) -> None:
        await peer.agree(HI)
        peer.writer.write_eof()
        await peer.hear_all()
        after.set()

    async with hosting(speak) as url:
        assert await ending(http, url) == (["hi"], "cut", 1006)
        await after.wait()


async def test_a_host_that_is_killed_in_the_middle_is_gone(http):
    async def speak(peer: Peer) -> None:
        await peer.agree(HI)
        peer.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await peer.hear_frame()
        peer.writer.transport.abort()

    async with hosting(speak) as url, http.websocket(url) as wire:
        assert await wire.receive() == "hi"
        await wire.send("die")
        with pytest.raises(SocketClosed, match=r"^127\.0\.0\.1:\d+ broke off the WebSocket without a farewell\.$"):
            await wire.receive()
        with pytest.raises(SocketClosed):
            await wire.send("are you there?")


async def test_both_may_say_farewell_at_once(http):
    async def speak(peer: Peer) -> None:
        await peer.agree()
        peer.writer.write(farewell(1001))
        await peer.hear_farewell()

    async with hosting(speak) as url, http.websocket(url) as wire:
        await wire.close(4000)
        assert wire.code in (1001, 1006)
        assert [message async for message in wire] == []


async def test_a_host_that_does_not_answer_a_farewell_is_left(http):
    async def speak(peer: Peer) -> None:
        await peer.agree(HI * 3)
        await peer.hear_all()
        await asyncio.Event().wait()

    async with hosting(speak) as url:
        with pytest.raises(ZeroDivisionError):
            async with http.websocket(url) as wire:
                1 / 0  # noqa: B018
        assert wire.code == 1006
        with pytest.raises(SocketClosed, match="was closed here"):
            await wire.receive()


@pytest.mark.parametrize("code, reason", [(1005, ""), (999, ""), (1006, ""), (5000, ""), (1000, "x" * 124)])
async def test_a_farewell_that_cannot_be_said_is_an_error(http, code: int, reason: str):
    async with hosting(heard_by([])) as url, http.websocket(url) as wire:
        with pytest.raises(ValueError, match=f"cannot be closed with {code}"):
            await wire.close(code, reason)


async def test_pings_are_answered_also_between_fragments(http):
    heard = []

    async def speak(peer: Peer) -> None:
        await peer.agree(frame(TEXT, b"h", fin=False) + frame(PING, b"1") + frame(CONT, b"i") + frame(PING, b"2"))
        heard.extend([await peer.hear_frame(), await peer.hear_frame()])
        peer.writer.write(frame(PONG, b"nobody asked") + frame(BINARY, b"bye"))
        await peer.hear_farewell()

    async with hosting(speak) as url, http.websocket(url) as wire:
        assert [await wire.receive(), await wire.receive()] == ["hi", b"bye"]
    assert heard == [(PONG, b"1"), (PONG, b"2")]


async def test_a_silent_host_is_found_dead(http):
    asked: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue()

    async def speak(peer: Peer) -> None:
        await peer.agree(HI)
        await asked.put(await peer.hear_frame())
        await peer.hear_all()

    async with hosting(speak) as url:
        assert await ending(http, url, SocketTerms(silence=0.2)) == (["hi"], "silent", 1006)
        async with asyncio.timeout(30):  # it may hear that it was asked later than we leave it
            assert await asked.get() == (PING, b"")


async def test_a_host_that_answers_pings_lives(http):
    async def speak(peer: Peer) -> None:
        await peer.agree()
        for _ in range(2):  # it is asked again when it may no longer take so long to answer the first
            opcode, content = await peer.hear_frame()
            assert opcode == PING
            peer.writer.write(frame(PONG, content))
        peer.writer.write(HI + farewell(1000))
        await peer.hear_farewell()

    async with hosting(speak) as url:
        assert await ending(http, url, SocketTerms(silence=2.0)) == (["hi"], "peace", 1000)


async def test_a_host_that_reads_nothing_is_found_dead(http):
    async def speak(peer: Peer) -> None:
        peer.writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        await peer.agree()
        while True:  # alive, and deaf
            peer.writer.write(frame(PONG))
            await asyncio.sleep(0.05)

    async with hosting(speak) as url, http.websocket(url, terms=SocketTerms(silence=0.3)) as wire:
        with pytest.raises(SocketClosed, match=r"has read nothing from its WebSocket for 0\.3 s"):
            await asyncio.gather(*(wire.send(b"x" * 1_000_000) for _ in range(100)))


async def test_a_cancelled_reader_loses_nothing(http):
    async def speak(peer: Peer) -> None:
        await peer.agree()
        for number in range(20):
            await peer.hear_frame()
            peer.writer.write(frame(TEXT, b"%d" % number))

    async with hosting(speak) as url, http.websocket(url) as wire:
        got = []
        for _ in range(20):
            reading = asyncio.create_task(wire.receive())
            await wire.send("next")
            await asyncio.sleep(0)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            got.append(await wire.receive())
    assert got == [str(number) for number in range(20)]


async def test_two_tasks_cannot_read_from_one(http):
    async with hosting(heard_by([])) as url, http.websocket(url) as wire:
        assert await wire.receive() == "hi"
        reading = asyncio.create_task(wire.receive())
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError):
            await wire.receive()
        reading.cancel()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc/net/tcp tells of sockets on Linux")
async def test_nothing_is_left_of_one_however_it_ends(http):
    """Neither a task nor a socket: cancelled while it opens, while it is read, while it is closed."""
    ready = asyncio.Event()

    async def speak(peer: Peer) -> None:
        await peer.agree(HI)
        await peer.hear_all()
        await asyncio.Event().wait()

    async def deaf(peer: Peer) -> None:
        await peer.hear_request()
        ready.set()
        await asyncio.Event().wait()

    async def read(url: str, is_closed: bool) -> None:
        async with http.websocket(url) as wire:
            await wire.receive()
            ready.set()
            await (wire.close() if is_closed else wire.receive())

    async with hosting(speak) as url, hosting(deaf) as deaf_url:
        ours = {asyncio.current_task()}
        for place, is_closed in ((deaf_url, False), (url, False), (url, True)):
            ready.clear()
            reading = asyncio.create_task(read(place, is_closed))
            await ready.wait()
            await asyncio.sleep(0)
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            assert http._busy == set()
            hosts = {task for task in asyncio.all_tasks() if "note" in repr(task.get_coro())}
            assert asyncio.all_tasks() - hosts == ours
            assert not sockets_to(place)
    async with hosting(heard_by([])) as url, http.websocket(url):
        assert len(sockets_to(url)) == 1


def sockets_to(url: str) -> list[str]:
    """The open connections to that port."""
    port = f":{int(url.rsplit(':', 1)[1].strip('/')):04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[2].endswith(port) and row[3] == ESTABLISHED]


async def test_what_closes_the_client_ends_its_websockets():
    http = TrustedHttp()
    async with hosting(heard_by([])) as url, http.websocket(url) as wire:
        assert await wire.receive() == "hi"
        await http.close()
        with pytest.raises(SocketClosed, match="broke off"):
            await wire.receive()


async def test_the_address_must_be_one_of_a_websocket_and_as_safe_as_who_named_it(http):
    with pytest.raises(HostUnreachable, match="begin it with wss:// or ws://"):
        http.websocket("https://chat.example/")
    with pytest.raises(HostUnreachable, match="not encrypted"):
        http.websocket("ws://chat.example/?ticket=abcdefghijkl", named_by="https://slack.example/api")
    async with hosting(heard_by([])) as url, http.websocket(url, named_by="http://127.0.0.1/api") as wire:
        assert await wire.receive() == "hi"


@pytest.mark.parametrize("name", ["Host", "upgrade", "Connection", "Sec-WebSocket-Key", "sec-websocket-extensions"])
async def test_what_the_protocol_says_cannot_be_said_by_others(http, name: str):
    with pytest.raises(KeyRefused, match="leave it out"):
        http.websocket("wss://chat.example/", headers={name: "x"})


async def test_a_header_of_two_lines_is_refused(http):
    async with hosting(heard_by([])) as url:
        with pytest.raises(KeyRefused, match="characters that cannot be sent"):
            async with http.websocket(url, headers={"Authorization": "Bearer a\r\nX: y"}):
                pass


async def test_nobody_there_and_nobody_answering_are_told_apart(http):
    async def mute(peer: Peer) -> None:
        await peer.hear_request()
        await asyncio.Event().wait()

    async with hosting(mute) as url:
        with pytest.raises(HostTimeout, match=r"has not answered within 0\.2 s"):
            async with http.websocket(url, terms=SocketTerms(seconds=0.2)):
                pass
    with pytest.raises(HostUnreachable, match="cannot be reached: connection refused"):
        async with http.websocket(url):
            pass


TOKEN = "xoxb-s3cret-t0ken-of-the-bot"


async def read_twice(opening: AbstractAsyncContextManager[WebSocket], told: list[str]) -> None:
    async with opening as wire:
        assert await wire.receive() == TOKEN  # what is said is not touched
        try:
            await wire.receive()
        finally:
            told.append(wire.reason)


@pytest.mark.parametrize("place", ["query", "name of a query", "path", "header", "password"])
async def test_no_token_is_told_by_an_error_or_a_log(http, caplog, place: str):
    """Not even when the host repeats it in what it says."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("websockets").setLevel(logging.DEBUG)
    echoes = f"no {TOKEN} and ?ticket={TOKEN}&".encode()

    async def speak(peer: Peer) -> None:
        asked = await peer.hear_request()
        if "refuse" in peer.asked:
            peer.writer.write(b"HTTP/1.1 403 No\r\nContent-Length: %d\r\n\r\n%s" % (len(echoes), echoes))
        elif "lie" in peer.asked:
            peer.writer.write(f"HTTP/1.1 101 S\r\nUpgrade: {TOKEN}\r\nConnection: Upgrade\r\n\r\n".encode())
        else:
            peer.writer.write(agreement(asked) + frame(TEXT, TOKEN.encode()) + farewell(4004, echoes))
            await peer.hear_farewell()

    told: list[str] = []
    async with hosting(speak) as url:
        for what in ("refuse", "lie", "close"):
            aimed = {
                "query": f"{url}{what}?ticket={TOKEN}&x=1",
                "name of a query": f"{url}{what}?{TOKEN}",
                "path": f"{url}{what}/{TOKEN}/",
                "header": f"{url}{what}",
                "password": f"{url.replace('//', f'//bot:{TOKEN}@')}{what}",
            }[place]
            headers = {"Authorization": f"Bearer {TOKEN}"} if place == "header" else {}
            with pytest.raises((SocketRefused, SocketClosed)) as caught:
                await read_twice(http.websocket(aimed, headers=headers), told)
            error: BaseException | None = caught.value
            while error is not None:
                told.append(f"{error} {vars(error)}")
                error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    assert [each for each in (*told, caplog.text) if "s3cret" in each] == []
    assert any("403" in each and "no …" in each for each in told)
    assert any("4004" in each for each in told)
