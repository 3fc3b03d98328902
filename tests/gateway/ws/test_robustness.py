"""What strangers and slow clients can do to a gateway: nothing that others notice, and nothing that stays."""

import asyncio
import gc
import itertools
import random
import socket
import statistics
from collections.abc import Callable, Sequence
from contextlib import suppress

import msgspec
import pytest

from everloop.gateway.metrics import resident
from everloop.gateway.ws.send_queue import FRAMES, LIMIT, SendQueue
from everloop.testing import Say, ScriptedModel
from tests.strays import without_strays

MANY = 10_000
FLAT = 8_000_000  # bytes that an allocator may keep for itself


class Kept:
    """What the process keeps, looked at on the way. What stays of each of many grows from look to look; an allocator,
    or a test before, makes it grow or shrink at one of them."""

    def __init__(self, size: Callable[[], int] = resident) -> None:
        self._size = size
        self._seen: list[int] = []

    def look(self) -> None:
        gc.collect()
        self._seen.append(self._size())

    def grown(self) -> float:
        steps = [later - earlier for earlier, later in itertools.pairwise(self._seen)]
        return statistics.median(steps) * len(steps)


@pytest.mark.parametrize(
    ("sizes", "grows"), [([10, 13, 16, 19, 22, 25], True), ([10, 10, 25, 25, 25, 25], False), ([30, 10, 10, 10], False)]
)
def test_what_stays_of_each_of_many_is_told_from_one_jump(sizes: list[int], grows: bool):
    kept = Kept(iter(size * 1_000_000 for size in sizes).__next__)
    for _ in sizes:
        kept.look()
    assert (kept.grown() > FLAT) == grows


def nonsense(count: int) -> list[str]:
    """Frames that are no frames: broken JSON, wrong shapes, wrong types, too deep, too long, other tongues."""
    chosen = random.Random(6)
    good = {"type": "message", "id": "m", "session": "api:default", "content": "x", "files": []}
    junk = [None, True, -1, 1e400, "", "x" * 5000, [], {}, [[]], "\x00", "\ud7ff", "🦊", 2**70, {"a": {}}]
    makers = [
        lambda: "".join(chr(chosen.randrange(1, 0xD000)) for _ in range(chosen.randrange(40))),
        lambda: "[" * chosen.randrange(1, 3000),
        lambda: msgspec.json.encode({"type": chosen.choice(["", "nope", "Message", "close"])}).decode(),
        lambda: msgspec.json.encode({**good, "id": chosen.choice([None, 1, "", "x" * 300, []])}).decode(),
        lambda: msgspec.json.encode({**good, "session": chosen.choice(["", "x", ":", "a:\x00", 7])}).decode(),
        lambda: msgspec.json.encode({**good, "files": chosen.choice(["x", [1], [{"data": "!"}], {"a": 1}])}).decode(),
        lambda: msgspec.json.encode(
            {"type": "resume", "session": "a:b", "after": chosen.choice([-1, "1", 2**80])}
        ).decode(),
        lambda: msgspec.json.encode({"type": "approve", "approval": chosen.choice(junk), "allow": "yes"}).decode(),
        lambda: msgspec.json.encode({"type": "history", "session": chosen.choice(junk), "limit": 0}).decode(),
        lambda: msgspec.json.encode(chosen.choice(junk)).decode(),
    ]
    return [chosen.choice(makers)() for _ in range(count)]


async def test_ten_thousand_malformed_frames_are_ten_thousand_errors_and_others_do_not_notice(openings):
    door = await openings(ScriptedModel([Say("hello")] * 2))
    async with door.socket() as wire, door.socket() as other:
        frames = nonsense(MANY)
        for warm in frames[:1000]:
            await wire.raw.send_str(warm)
            assert (await wire.next())["code"] == "malformed"
        kept = Kept()
        for number, text in enumerate(frames):
            if number % (MANY // 5) == 0:
                kept.look()
            await wire.raw.send_str(text)
            told = await wire.next()
            assert (told["type"], told["code"], told["session"], told["thread"], told["seq"]) == (
                *("error", "malformed", None, None),
                None,
            )
        kept.look()
        assert (await wire.ask("hi"))[-1]["content"] == "hello"
        assert (await other.ask("hi", session="api:other"))[-1]["content"] == "hello"
    assert kept.grown() < FLAT


async def test_frames_before_anyone_is_let_in_reach_nothing(openings):
    """The upgrade is refused, so whatever follows it is thrown away with the connection."""
    door = await openings(ScriptedModel([Say("hello")]))
    host, port = door.host.split(":")
    chosen = random.Random(7)
    upgrade = f"GET /ws HTTP/1.1\r\nHost: {door.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n".encode()
    upgrade += b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    kept = Kept()
    for round in range(MANY // 50):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(upgrade + b"".join(b"\x81\xfe" + chosen.randbytes(60) for _ in range(50)))
        answer = await reader.readline()
        writer.close()
        assert answer == b"HTTP/1.1 401 Unauthorized\r\n"
        if round % 40 == 20:
            kept.look()
    kept.look()
    assert kept.grown() < FLAT
    async with door.socket() as wire:
        assert (await wire.ask("hi"))[-1]["content"] == "hello"


def framed(chosen: random.Random) -> bytes:
    """A frame of the protocol in which something is wrong: its bits, its kind, its length, its mask or its text."""
    payload = b'{"type":"status"}' + chosen.randbytes(chosen.randrange(20))
    mask = chosen.randbytes(4)
    masked = bytes(byte ^ mask[n % 4] for n, byte in enumerate(payload))
    good = bytearray(bytes([0x81, 0x80 | len(payload)]) + mask + masked)
    kind = chosen.randrange(6)
    if kind == 0:  # bits turned anywhere
        for _ in range(chosen.randrange(1, 9)):
            good[chosen.randrange(len(good))] ^= 1 << chosen.randrange(8)
    elif kind == 1:  # kinds and reserved bits that nobody has
        good[0] = chosen.randrange(256)
    elif kind == 2:  # lengths that lie
        good[1:2] = bytes([0x80 | chosen.choice([126, 127])]) + chosen.randbytes(8)
    elif kind == 3:  # no mask
        good[1] &= 0x7F
    elif kind == 4:  # half a frame
        del good[chosen.randrange(1, len(good)) :]
    else:
        good = bytearray(chosen.randbytes(chosen.randrange(2, 80)))
    return bytes(good)


async def test_ten_thousand_broken_frames_of_the_protocol_after_auth_leave_nothing_behind(openings, caplog):
    """Ten of them a connection, of which the first ones end it: the next is taken in, and so is a good client."""
    door = await openings(ScriptedModel([Say("hello")] * 2))
    host, port = door.host.split(":")
    chosen, token = random.Random(8), await door.token()
    upgrade = f"GET /ws HTTP/1.1\r\nHost: {door.host}\r\nAuthorization: Bearer {token}\r\n".encode()
    upgrade += b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    upgrade += b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    kept = Kept()
    async with door.socket() as good:
        for round in range(MANY // 10):
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(upgrade)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 Switching Protocols\r\n")
            writer.write(b"".join(framed(chosen) for _ in range(10)))
            with suppress(ConnectionError):
                writer.write_eof()
                await reader.read()
            writer.close()
            if round == 200:
                assert (await good.ask("hi", "m1"))[-1]["content"] == "hello"
            if round % 160 == 40 and round >= 200:
                kept.look()
        kept.look()
        assert kept.grown() < FLAT
        assert (await good.ask("hi", "m2"))[-1]["content"] == "hello"
        await good.send("status")
        assert (await good.next())["connections"] == 1
    errors = [record for record in without_strays(caplog.records) if record.levelname == "ERROR"]
    assert [record.getMessage() for record in errors] == []


@pytest.mark.parametrize("bytes_", [b"\xff\xff\xff\xff", b"\x88\x80", b"\x89\x7f" + b"\xff" * 8, b"\x00" * 64])
async def test_broken_frames_of_the_protocol_close_one_connection_alone(openings, bytes_):
    door = await openings(ScriptedModel([Say("hello")]))
    async with door.socket() as good:
        async with door.socket() as bad:
            transport = bad.raw.get_extra_info("socket")
            sock = socket.socket(fileno=socket.dup(transport.fileno()))
            with sock:
                sock.setblocking(False)
                sock.send(bytes_)
        assert (await good.ask("hi"))[-1]["content"] == "hello"


async def test_a_frame_that_is_too_large_is_refused(openings):
    door = await openings(ScriptedModel([]))
    async with door.socket() as wire:
        with suppress(ConnectionError):  # it is closed while we still send
            await wire.raw.send_str("x" * 9_000_000)
        await wire.raw.receive(timeout=60)
        assert wire.raw.closed


async def test_bytes_are_answered_with_an_error(openings):
    door = await openings(ScriptedModel([]))
    async with door.socket() as wire:
        await wire.raw.send_bytes(b"{}")
        assert (await wire.next())["code"] == "malformed"


class Slow:
    """A client that reads nothing until it is let."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.read: list[dict] = []
        self.lost = 0
        self.last = asyncio.Event()

    async def send(self, frames: Sequence[bytes]) -> None:
        await self.gate.wait()
        self.read += [msgspec.json.decode(frame[frame.index(b"{") :]) for frame in frames]
        if self.read[-1]["n"] == 49_999:
            self.last.set()

    def lose(self) -> None:
        self.lost += 1


def piece(n: int, delta: str) -> dict:
    return {"type": "stream_chunk", "msg": "a", "n": n, "seq": 1, "delta": delta, "reasoning": ""}


async def test_a_slow_client_gets_pieces_joined_and_every_letter_once():
    client = Slow()
    sending = SendQueue(client.send, client.lose)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(sending.run())
        for n in range(50_000):
            sending.put(piece(n, f"{n},"))
        client.gate.set()
        await sending.room()
        await client.last.wait()
        task.cancel()
    assert "".join(frame["delta"] for frame in client.read) == "".join(f"{n}," for n in range(50_000))
    assert (len(client.read) < 20, client.read[-1]["n"], client.lost) == (True, 49_999, 0)


@pytest.mark.parametrize(
    "frames", [[piece(n, "x" * 1000) for n in range(LIMIT // 900)], [{"type": "ack", "id": ""}] * (FRAMES + 1)]
)
async def test_a_client_that_reads_nothing_is_cut_off_and_forgotten(frames):
    client = Slow()
    sending = SendQueue(client.send, client.lose)
    for frame in frames:
        sending.put(dict(frame))
    assert client.lost == 1
    await sending.room()


async def test_a_client_that_never_reads_does_not_hold_up_the_answer_of_another(openings):
    door = await openings(ScriptedModel([Say(["x" * 50_000] * 400), Say("hello")]))
    token = await door.token()
    async with door.socket(token) as deaf, door.socket(token) as good:
        deaf.raw.get_extra_info("socket")
        await deaf.send("message", id="m1", session="api:deaf", content="much")
        assert (await good.ask("hi", session="api:good"))[-1]["type"] == "response"


async def test_a_large_body_of_nobody_is_refused_before_it_is_read(openings):
    door = await openings(ScriptedModel([]))
    host, port = door.host.split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"POST /auth/session HTTP/1.1\r\nHost: {door.host}\r\nContent-Length: 1000000000\r\n\r\n".encode())
    assert await reader.readline() == b"HTTP/1.1 401 Unauthorized\r\n"
    writer.close()


async def test_metrics_are_text_that_prometheus_reads(openings):
    door = await openings(ScriptedModel([Say("hello")]))
    async with door.socket() as wire:
        await wire.ask("hi")
        async with door.client(await door.token("read")) as client:
            answer = await client.get("/metrics")
            text = await answer.text()
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert 'everloop_turns_total{outcome="answered"} 1\n' in text
    assert "everloop_ws_connections 1\n" in text
    assert [line for line in text.splitlines() if not line.startswith("#") and len(line.rsplit(" ", 1)) != 2] == []
