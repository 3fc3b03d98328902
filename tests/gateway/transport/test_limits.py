"""Hostile clients: each of them is held within its bounds, and meanwhile a good one is served."""

import asyncio
import gzip
import itertools
import logging
from collections import Counter
from contextlib import suppress

import msgspec
import pytest
from aiohttp import web

from everloop.gateway.access.throttle import TRIES, TRIES_OF_ALL, Throttle
from everloop.gateway.http.errors import Refused
from everloop.gateway.transport.limits import ConnectionLimits
from everloop.settings.shape import GatewaySection
from everloop.testing import Say, ScriptedModel, Wait
from tests.strays import without_strays

PATIENCE = 60  # seconds after which a test gives up


class Stranger:
    """A connection on which bytes are sent as they are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    @classmethod
    async def at(cls, door) -> "Stranger":
        host, port = door.host.split(":")
        return cls(*await asyncio.open_connection(host, int(port)))

    def send(self, data: str | bytes) -> None:
        self.writer.write(data.encode() if isinstance(data, str) else data)

    async def status(self) -> int:
        """Of what is answered; 0 when the connection is closed without a word."""
        with suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE):
                line = await self.reader.readline()
            return int(line.split()[1]) if line else 0
        return 0

    async def is_closed(self) -> bool:
        with suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE):
                while await self.reader.read(65536):
                    pass
        return True

    def leave(self) -> None:
        self.writer.transport.abort()


async def is_served(door, token: str) -> bool:
    """The control: someone who does nothing wrong."""
    async with door.client(token) as client:
        return (await client.get("/api/me")).status == 200


async def test_whoever_takes_for_ever_over_their_headers_is_sent_away(openings):
    door = await openings(ScriptedModel([]), {"request_seconds": 1})
    token = await door.token()
    slow = [await Stranger.at(door) for _ in range(20)]
    for n, stranger in enumerate(slow):
        stranger.send("" if n % 2 else f"GET /health HTTP/1.1\r\nHost: {door.host}\r\nX: ")
    answered = [asyncio.ensure_future(stranger.status()) for stranger in slow]
    while not all(each.done() for each in answered):  # a letter now and then does not help them
        assert await is_served(door, token)
        for stranger in slow[::2]:
            stranger.send("x")
        await asyncio.wait(answered, timeout=0.1)
    assert [each.result() for each in answered] == [408] * 20
    assert all([await stranger.is_closed() for stranger in slow])


async def test_whoever_takes_for_ever_over_a_body_is_sent_away_and_a_quiet_websocket_is_not(openings):
    door = await openings(ScriptedModel([Say("hello")]), {"request_seconds": 1})
    token = await door.token()
    async with door.socket(token) as wire:
        slow = await Stranger.at(door)
        slow.send(f"POST /api/files HTTP/1.1\r\nHost: {door.host}\r\nAuthorization: Bearer {token}\r\n")
        slow.send("Content-Length: 1000\r\n\r\nonly this")
        waiting = asyncio.ensure_future(slow.status())
        while not waiting.done():
            assert await is_served(door, token)
            await asyncio.wait([waiting], timeout=0.1)
        assert waiting.result() == 408
        assert (await wire.ask("hi"))[-1]["content"] == "hello"


async def test_a_large_body_that_comes_steadily_has_the_time_it_needs():
    """Time goes by as the test says: ten seconds for each 100 kB."""
    now = 0.0
    doorstep = ConnectionLimits(GatewaySection(request_seconds=5), lambda: now)
    caller = doorstep.connect(web.Server(_nobody))()
    caller.begin(_Asking())
    late = []
    for _ in range(20):
        now += 10
        caller.received += 100_000
        late.append(caller.is_late(now, 5))
    assert late == [False] * 20
    now += 10
    assert caller.is_late(now, 5)
    caller.end()
    assert not caller.is_late(now + 1000, 5)


async def _nobody(request: web.BaseRequest) -> web.StreamResponse:
    raise NotImplementedError


class _Asking:
    """A request whose body is still on its way."""

    class content:
        @staticmethod
        def is_eof() -> bool:
            return False


async def test_an_address_has_a_number_of_connections_and_the_oldest_stranger_makes_room(openings):
    door = await openings(ScriptedModel([]), {"connections_per_address": 12})
    async with door.client(await door.token()) as good:
        assert (await good.get("/api/me")).status == 200  # and its connection is kept
        places = [await Stranger.at(door) for _ in range(11)]
        one_more = await Stranger.at(door)
        assert (await places[0].status(), await places[0].is_closed()) == (503, True)
        assert (await good.get("/api/me")).status == 200
        assert "everloop_connections 12\n" in await (await good.get("/metrics")).text()
        one_more.send(f"GET /health HTTP/1.1\r\nHost: {door.host}\r\n\r\n")
        assert await one_more.status() == 200
        for place in (*places[1:], one_more):
            place.leave()


def half_open(door) -> str:
    return f"GET /health HTTP/1.1\r\nHost: {door.host}\r\nX: "


def idle(door) -> str:
    return f"GET /health HTTP/1.1\r\nHost: {door.host}\r\n\r\n"


def slow_login(door) -> str:
    return (
        f"POST /auth/login HTTP/1.1\r\nHost: {door.host}\r\nContent-Type: application/json\r\n"
        "Content-Length: 60000\r\n\r\n{"
    )


@pytest.mark.parametrize("kind", [half_open, idle, slow_login, lambda door: ""])
@pytest.mark.parametrize("limits", [{"connections_per_address": 100}, {"connections": 100, "behind_proxy": True}])
async def test_strangers_who_hold_all_places_keep_nobody_out_who_has_a_token(openings, kind, limits):
    door = await openings(ScriptedModel([Say("hello")]), limits)
    token = await door.token()
    async with door.socket(token) as wire:
        strangers = []
        for _ in range(300):
            stranger = await Stranger.at(door)
            stranger.send(kind(door))
            strangers.append(stranger)
        if kind is idle:
            assert await strangers[-1].status() == 200
        served = [await is_served(door, token) for _ in range(5)]
        assert (await wire.ask("hi"))[-1]["content"] == "hello"  # who is known keeps their place
        for stranger in strangers:
            stranger.leave()
    assert served == [True] * 5


async def test_where_all_places_are_taken_by_those_who_are_known_a_further_one_is_told(openings):
    """The control: room is made of strangers only."""
    door = await openings(ScriptedModel([]), {"connections": 10})
    token = await door.token()
    known = [await Stranger.at(door) for _ in range(10)]
    for each in known:
        each.send(f"GET /api/me HTTP/1.1\r\nHost: {door.host}\r\nAuthorization: Bearer {token}\r\n\r\n")
        assert await each.status() == 200
    one_more = await Stranger.at(door)
    assert (await one_more.status(), await one_more.is_closed()) == (503, True)
    for each in known:
        each.leave()


async def test_a_user_has_a_number_of_websockets(openings):
    door = await openings(ScriptedModel([Say("hello")]), {"sockets_per_user": 2})
    token = await door.token()
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13"}
    upgrade["Sec-WebSocket-Key"] = "dGhlIHNhbXBsZSBub25jZQ=="
    async with door.socket(token) as first, door.client(token) as client:
        async with door.socket(token):
            refused = await client.get("/ws", headers=upgrade)
            assert (refused.status, (await refused.json())["error"]["code"]) == (429, "busy")
        async with asyncio.timeout(PATIENCE):
            while "everloop_ws_connections 1\n" not in await (await client.get("/metrics")).text():
                pass
        async with door.socket(token):
            assert (await first.ask("hi"))[-1]["content"] == "hello"


@pytest.mark.parametrize(
    "head",
    [
        "GET /health HTTP/1.1\r\nHost: {host}\r\nX: " + "x" * 100_000,
        "GET /" + "x" * 100_000,
        "GET /health HTTP/1.1\r\nHost: {host}\r\n" + "".join(f"X-{n}: y\r\n" for n in range(10_000)) + "\r\n",
        "\x00" * 1000 + "\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: {host}\r\nContent-Length: -5\r\n\r\n",
        "GET /health HTTP/1.1\r\nHost: {host}\r\nHost: evil.example\r\n\r\n",
    ],
    ids=["a long header", "a long line", "many headers", "no HTTP", "two lengths", "less than nothing", "two hosts"],
)
async def test_headers_that_are_too_much_or_wrong_are_refused_without_a_traceback(openings, caplog, head: str):
    door = await openings(ScriptedModel([]))
    bad = await Stranger.at(door)
    bad.send(head.replace("{host}", door.host))
    assert await bad.status() in (400, 421)
    bad.leave()
    assert await is_served(door, await door.token())
    told = [record for record in caplog.records if record.exc_info and record.levelno > logging.DEBUG]
    assert without_strays(told) == []


async def test_half_open_logins_are_counted_and_end(openings):
    """Each of them has begun a try, so that the sixth has to wait; the five that are open are sent away."""
    door = await openings(ScriptedModel([]), {"request_seconds": 1})
    token = await door.token()
    strangers = []
    for _ in range(50):  # one after the other, or the first would be late before the last is there
        stranger = await Stranger.at(door)
        strangers.append(stranger)
        stranger.send(f"POST /auth/login HTTP/1.1\r\nHost: {door.host}\r\nContent-Type: application/json\r\n")
        stranger.send('Content-Length: 100\r\n\r\n{"password":')
    assert await is_served(door, token)
    statuses = await asyncio.gather(*(stranger.status() for stranger in strangers))
    assert sorted(statuses) == [408] * 5 + [429] * 45
    assert await is_served(door, token)
    for stranger in strangers:
        stranger.leave()


async def test_a_login_is_a_small_request(openings):
    """Nobody is known yet, so little is read: what is too much is refused before the rest of it has come."""
    door = await openings(ScriptedModel([]))
    stranger = await Stranger.at(door)
    stranger.send(f"POST /auth/login HTTP/1.1\r\nHost: {door.host}\r\nContent-Type: application/json\r\n")
    stranger.send("Content-Length: 30000000\r\n\r\n" + " " * 100_000)
    assert await stranger.status() == 413
    stranger.leave()
    async with door.client() as client:
        small = await client.post("/auth/login", data=b" " * 60_000, headers={"Content-Type": "application/json"})
    assert small.status == 400
    assert await is_served(door, await door.token())


def masked(text: str) -> bytes:
    data = text.encode()
    assert len(data) < 126
    return bytes([0x81, 0x80 | len(data)]) + b"\x00" * 4 + data


async def frames_until_closed(reader: asyncio.StreamReader) -> tuple[int, int]:
    """How many frames there are to read, and the code that the last one closes with."""
    count = 0
    async with asyncio.timeout(PATIENCE):
        while True:
            head = await reader.readexactly(2)
            short = head[1] & 0x7F
            length = int.from_bytes(await reader.readexactly({126: 2, 127: 8}.get(short, 0))) if short > 125 else short
            data = await reader.readexactly(length)
            if head[0] & 0x0F == 8:
                return count, int.from_bytes(data[:2])
            count += 1


async def test_a_websocket_that_never_reads_is_parted_with_and_loses_nothing(openings):
    """Twenty megabytes are said to one that does not listen. It is told why, and can resume."""
    said = ["x" * 49_999 + "\n"] * 400
    door = await openings(ScriptedModel([Say(said), Say("hello")]))
    token = await door.token()
    deaf = await Stranger.at(door)
    deaf.send(f"GET /ws HTTP/1.1\r\nHost: {door.host}\r\nAuthorization: Bearer {token}\r\nUpgrade: websocket\r\n")
    deaf.send("Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    await deaf.reader.readuntil(b"\r\n\r\n")
    deaf.send(masked('{"type":"message","id":"m1","session":"api:deaf","content":"much"}'))
    async with door.client(token) as client, asyncio.timeout(PATIENCE):
        while "everloop_ws_slow_total 1\n" not in await (await client.get("/metrics")).text():
            pass
    async with door.socket(token) as good:
        assert (await good.ask("hi", session="api:good"))[-1]["content"] == "hello"
        count, code = await frames_until_closed(deaf.reader)
        assert (count > 1, code) == (True, 1013)
        deaf.leave()
        again = await good.ask("much", "m1", "api:deaf")
        await good.send("resume", session="api:deaf")
        entries = (await good.until("history_result", more=False))[-1]["entries"]
    assert (again[-1]["id"], again[-1]["content"]) == ("m1", "".join(said))
    assert entries[-1]["text"] == "".join(said)


async def test_a_long_history_comes_in_frames_of_bounded_size(openings):
    """Thirty answers of 100 kB, and summaries of them, are told in parts whose order and place are right."""
    door = await openings(ScriptedModel(lambda shown: Say("y" * 100_000)))
    async with door.socket() as wire:
        for n in range(30):
            await wire.ask("more", f"m{n}", "api:long")
        await wire.send("resume", session="api:long")
        parts = [await wire.next()]
        while parts[-1]["more"]:
            parts.append(await wire.next())
        await wire.send("history", session="api:long", limit=500)
        last = await wire.next()
    assert [entry["seq"] for part in parts for entry in part["entries"]] == list(range(1, last["seq"] + 1))
    assert [part["seq"] for part in parts] == [part["entries"][-1]["seq"] for part in parts]
    assert max(len(msgspec.json.encode(part)) for part in [*parts, last]) < 1_100_000
    assert (len(parts) > 3, last["more"], last["entries"][-1]["seq"]) == (True, True, last["seq"])


async def test_whoever_sends_a_thousand_messages_has_a_hundred_taken_and_others_are_answered(openings):
    gate = asyncio.Event()
    door = await openings(
        ScriptedModel(lambda shown: (Wait(gate), Say("late")) if "wait" in shown.asked else Say("hi"))
    )
    token = await door.token()
    async with door.socket(token) as flood, door.socket(token) as good:
        for n in range(1000):
            await flood.send("message", id=f"m{n}", session=f"api:{n % 10}", content="wait")
        told = Counter()
        while told["ack"] + told["busy"] < 1000:
            frame = await flood.next()
            told[frame.get("code", frame["type"])] += 1
        assert (await good.ask("hello", session="api:good"))[-1]["content"] == "hi"
        gate.set()
    assert (told["ack"], told["busy"]) == (100, 900)


def test_ten_thousand_guesses_in_a_minute_from_a_thousand_addresses_are_a_hundred():
    now = 0.0
    throttle = Throttle(lambda: now)
    looked_at: Counter[str] = Counter()
    for n in range(10_000):
        now = n * 59 / 10_000
        with suppress(Refused):
            throttle.begin(f"10.0.{n % 1000 // 250}.{n % 250}")
            looked_at[f"10.0.{n % 1000 // 250}.{n % 250}"] += 1
    assert (looked_at.total(), max(looked_at.values())) == (TRIES_OF_ALL, 1)
    one = Throttle(lambda: 0.0)
    tries = 0
    for _ in range(10_000):
        with suppress(Refused):
            one.begin("127.0.0.1")
            tries += 1
    assert tries == TRIES


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "nonsense", "identity, gzip", "GZIP", "x-gzip"])
async def test_a_packed_body_is_a_415_at_every_route_with_and_without_a_token(openings, routes_of, caplog, encoding):
    door = await openings(ScriptedModel([]))
    token = await door.token()
    bodies = (b"\x1f\x8bgarbage", gzip.compress(b"0" * 5_000_000), b"{}")
    found = Counter()
    with caplog.at_level(logging.INFO, "everloop"):
        for (method, path), given in itertools.product([*await routes_of(), ("POST", "/nothing")], ("", token)):
            if method not in ("POST", "PUT", "PATCH", "DELETE"):
                continue
            async with door.client(given) as client:
                sent = {"Content-Encoding": encoding, "Content-Type": "application/json"}
                body = bodies[found.total() % 3]
                async with client.request(method, path, data=body, headers=sent) as answer:
                    found[answer.status, (await answer.json())["error"]["code"]] += 1
        async with door.client(token) as client:
            plain = {"Content-Encoding": "identity", "Content-Type": "application/json"}
            control = await client.post("/auth/session", headers=plain)
    assert set(found) == {(415, "unsupported_encoding")}
    assert found.total() > 40
    assert control.status == 200
    told = [record for record in caplog.records if record.exc_info or record.levelno >= logging.WARNING]
    assert without_strays(told) == []
