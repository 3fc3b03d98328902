"""Whatever a host sends over a WebSocket, what it said before is heard, it is told why it is left, and nothing
hangs."""

import asyncio
import os
import zlib
from contextlib import AbstractAsyncContextManager
from itertools import accumulate, pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.net.socket_peers import (
    BINARY,
    CLOSE,
    CONT,
    PING,
    PONG,
    TEXT,
    Peer,
    code_in,
    farewell,
    frame,
    frames_in,
    hosting,
    wired,
)

from everloop.errors import SocketClosed
from everloop.net.socket_protocol import MOST_FRAGMENTS
from everloop.net.trusted import TrustedHttp
from everloop.ports import SocketTerms, WebSocket

MOST = 100_000
TERMS = SocketTerms(max_bytes=MOST)
PACKED = SocketTerms(max_bytes=MOST, compress=True)
DEFLATE = "permessage-deflate"


def packed(data: bytes) -> bytes:
    squeeze = zlib.compressobj(wbits=-15)
    return (squeeze.compress(data) + squeeze.flush(zlib.Z_SYNC_FLUSH))[:-4]


BROKEN: dict[str, tuple[bytes, int]] = {
    **{f"opcode {n}": (frame(n), 1002) for n in (3, 4, 5, 6, 7, 11, 12, 13, 14, 15)},
    **{f"reserved bits {n}": (frame(TEXT, b"x", rsv=n), 1002) for n in range(1, 8)},
    **{f"reserved bits {n} of a ping": (frame(PING, b"x", rsv=n), 1002) for n in (1, 2, 4)},
    "masked": (frame(TEXT, b"x", mask=b"abcd"), 1002),
    "masked with zeros": (frame(TEXT, b"x", mask=b"\0\0\0\0"), 1002),
    "masked ping": (frame(PING, b"x", mask=b"abcd"), 1002),
    "ping in fragments": (frame(PING, b"x", fin=False), 1002),
    "pong in fragments": (frame(PONG, b"x", fin=False), 1002),
    "farewell in fragments": (frame(CLOSE, b"\x03\xe8", fin=False), 1002),
    "long ping": (frame(PING, b"x" * 126), 1002),
    "long pong": (frame(PONG, b"x" * 126), 1002),
    "long farewell": (frame(CLOSE, b"\x03\xe8" + b"x" * 124), 1002),
    "farewell of one byte": (frame(CLOSE, b"\x03"), 1002),
    **{f"farewell {n}": (farewell(n), 1002) for n in (0, 999, 1004, 1005, 1006, 1015, 1016, 2000, 2999, 5000, 65535)},
    "farewell that is no text": (farewell(1000, b"\xff"), 1007),
    "continuation of nothing": (frame(CONT, b"x"), 1002),
    "continuation of nothing, going on": (frame(CONT, b"x", fin=False), 1002),
    "new text in a text": (frame(TEXT, b"x", fin=False) + frame(TEXT, b"y"), 1002),
    "bytes in a text": (frame(TEXT, b"x", fin=False) + frame(BINARY, b"y"), 1002),
    "farewell in a text": (frame(TEXT, b"x", fin=False) + farewell(1000), 1002),
    "no text": (frame(TEXT, b"\xff\xfe"), 1007),
    "half a character": (frame(TEXT, "€".encode()[:2]), 1007),
    "half a character in fragments": (frame(TEXT, b"\xe2", fin=False) + frame(CONT, b"\x82"), 1007),
    "surrogates": (frame(TEXT, b"\xed\xa0\x80"), 1007),
    "an overlong slash": (frame(TEXT, b"\xc0\xaf"), 1007),
    "no text, and a farewell behind it": (frame(TEXT, b"\xff") + farewell(1000), 1007),
    "large": (frame(BINARY, b"x" * (MOST + 1)), 1009),
    "claims to be huge": (frame(BINARY, size=2**62), 1009),
    "claims to be beyond all": (frame(BINARY, size=2**64 - 1), 1009),
    "a huge ping": (frame(PING, size=2**40), 1009),
    "large in fragments": (frame(BINARY, b"x" * MOST, fin=False) + frame(CONT, b"x"), 1009),
    "a fragment too many": (frame(TEXT, fin=False) + frame(CONT, fin=False) * MOST_FRAGMENTS, 1009),
}  # fmt: skip
BROKEN_PACKED: dict[str, tuple[bytes, int]] = {
    "a bomb": (frame(BINARY, packed(bytes(50_000_000)), rsv=4), 1009),
    "a bomb in fragments": (
        frame(BINARY, packed(bytes(50_000_000))[:20_000], rsv=4, fin=False)
        + frame(CONT, packed(bytes(50_000_000))[20_000:]),
        1009,
    ),
    "not packed at all": (frame(BINARY, b"\xff" * 50, rsv=4), 1002),
    "packed twice over": (frame(TEXT, packed(b"x"), rsv=4, fin=False) + frame(CONT, b"", rsv=4), 1002),
    "packed, and no text": (frame(TEXT, packed(b"\xff"), rsv=4), 1007),
    "packed ping": (frame(PING, packed(b"x"), rsv=4), 1002),
    "other bits": (frame(TEXT, packed(b"x"), rsv=6), 1002),
    "unpacked and large": (frame(BINARY, bytes(MOST + 1)), 1009),
}


def cut(data: bytes, seed: int) -> list[bytes]:
    """As a network may: at places that nobody knows."""
    chance = Random(seed)
    sizes = [chance.choice([1, 2, 3, 7, 100, 5000, 65536]) for _ in range(chance.choice([0, 1, 5, 40]))]
    places = [0, *(each for each in accumulate(sizes) if each < len(data)), len(data)]
    return [data[here:there] for here, there in pairwise(places)]


async def hear(
    terms: SocketTerms, pieces: list[bytes], more: str = ""
) -> tuple[list[str | bytes], SocketClosed, bytes]:
    """What is heard of these bytes, with which the host ends, how that is told, and what the host was sent."""
    wire, line = wired(terms, more)
    said: list[str | bytes] = []

    async def read() -> SocketClosed:
        while True:
            try:
                said.append(await wire.receive())
            except SocketClosed as closed:
                return closed

    reading = asyncio.create_task(read())
    for piece in pieces:
        wire.data_received(piece)
        await line.listening.wait()  # it is read meanwhile
    wire.eof_received()
    closed = await reading
    line.abort()
    await wire.close()
    return said, closed, line.written


@pytest.mark.parametrize("form", [*BROKEN, *BROKEN_PACKED])
async def test_each_breach_is_answered_with_its_code(form: str):
    terms, more = (TERMS, "") if form in BROKEN else (PACKED, DEFLATE)
    data, code = {**BROKEN, **BROKEN_PACKED}[form]
    said, closed, sent = await hear(terms, [frame(TEXT, b"before") + data + frame(TEXT, b"after")], more)
    assert (said, closed.why, closed.code) == (["before"], "broken", 1000 if form == "farewell in a text" else 1006)
    assert code_in(sent) == [code]
    assert str(closed).startswith("host ")


async def read_two(opening: AbstractAsyncContextManager[WebSocket]) -> None:
    async with opening as wire:
        assert await wire.receive() == "before"
        await wire.receive()


@pytest.mark.parametrize("form", ["masked", "no text", "claims to be huge", "opcode 3"])
async def test_a_host_is_told_by_the_wire_why_it_was_left(form: str):
    heard: list[int] = []

    async def speak(peer: Peer) -> None:
        await peer.agree(frame(TEXT, b"before") + BROKEN[form][0])
        opcode, content = await peer.hear_frame()
        heard.extend([opcode, int.from_bytes(content[:2])])

    http = TrustedHttp()
    async with hosting(speak) as url:
        with pytest.raises(SocketClosed, match=r"so the WebSocket was closed\.$"):
            await read_two(http.websocket(url, terms=TERMS))
    await http.close()
    assert heard == [CLOSE, BROKEN[form][1]]


async def test_limits_are_what_is_still_taken():
    whole = frame(BINARY, b"x" * MOST)
    many = frame(TEXT, b"x", fin=False) + frame(CONT, b"x", fin=False) * (MOST_FRAGMENTS - 2) + frame(CONT, b"x")
    said, closed, _ = await hear(TERMS, [whole + many + frame(PING, b"x" * 125) + farewell(4999, b"x" * 123)])
    assert (said, closed.code, closed.reason) == ([b"x" * MOST, "x" * MOST_FRAGMENTS], 4999, "x" * 123)
    said, closed, _ = await hear(PACKED, [frame(BINARY, packed(bytes(MOST)), rsv=4) + farewell(1000)], DEFLATE)
    assert (said, closed.code) == ([bytes(MOST)], 1000)


def messages(chance: Random, is_packed: bool) -> tuple[list[str | bytes], bytes]:
    """A few, cut into fragments, with pings and pongs in between: as they are, and as they are sent."""
    said: list[str | bytes] = []
    sent = b""
    for _ in range(chance.randrange(6)):
        text = chance.choice(["", "a", "ü€😀" * chance.randrange(300), "x" * chance.choice([125, 126, 65_536])])
        message: str | bytes = text if chance.random() < 0.5 else text.encode()
        data = message.encode() if isinstance(message, str) else message
        rsv = 4 if is_packed and chance.random() < 0.7 else 0
        data = packed(data) if rsv else data
        cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice([0, 0, 1, 5])))
        parts = [data[here:there] for here, there in pairwise([0, *cuts, len(data)])]
        for number, part in enumerate(parts):
            opcode = (TEXT if isinstance(message, str) else BINARY) if number == 0 else CONT
            sent += frame(opcode, part, fin=number == len(parts) - 1, rsv=rsv if number == 0 else 0)
            sent += chance.choice([b"", b"", frame(PING, b"ping"), frame(PONG, b"pong")])
        said.append(message)
    return said, sent


@examples(400)
@given(seed=st.integers(0, 1 << 32), is_packed=st.booleans())
async def test_however_it_is_cut_all_is_heard_up_to_the_first_breach(seed: int, is_packed: bool):
    chance = Random(seed)
    said, sent = messages(chance, is_packed)
    breaches = {**BROKEN, **BROKEN_PACKED} if is_packed else BROKEN
    if is_packed:  # with which this is nothing bad
        breaches = {name: each for name, each in breaches.items() if name != "reserved bits 4"}
    breach, code = chance.choice([*breaches.values(), (farewell(4321), 4321), (farewell(1000), 1000)])
    more = "permessage-deflate; server_no_context_takeover" if is_packed else ""
    heard, closed, answered = await hear(PACKED if is_packed else TERMS, cut(sent + breach, seed), more)
    assert heard == said
    assert (closed.why, code_in(answered)) == ("broken" if code < 4000 and code != 1000 else "closed", [code])
    assert [each for each in frames_in(answered) if each[0] == PONG] == [(PONG, b"ping")] * sent.count(b"\x89\x04ping")


@examples(400)
@given(data=st.binary(max_size=300), seed=st.integers(0, 1 << 32), is_packed=st.booleans())
async def test_of_any_bytes_there_comes_an_end(data: bytes, seed: int, is_packed: bool):
    _, closed, answered = await hear(PACKED if is_packed else TERMS, cut(data, seed), DEFLATE if is_packed else "")
    assert closed.why in ("broken", "closed", "cut")
    assert len(code_in(answered)) == (0 if closed.why == "cut" else 1)
    if closed.why != "cut":
        assert [opcode for opcode, _ in frames_in(answered)][-1] == CLOSE


@examples(40)
@given(data=st.binary(min_size=1, max_size=200), seed=st.integers(0, 1 << 32))
async def test_of_any_bytes_after_the_agreement_there_comes_an_end_over_a_network_too(data: bytes, seed: int):
    async def speak(peer: Peer) -> None:
        await peer.agree()
        for piece in cut(data, seed):
            peer.writer.write(piece)
            await peer.writer.drain()
        peer.writer.write_eof()
        await peer.hear_all()

    http = TrustedHttp()
    async with hosting(speak) as url, http.websocket(url, terms=TERMS) as wire:
        with pytest.raises(SocketClosed):  # noqa: PT012
            while True:
                await wire.receive()
    await http.close()


def weight_of(wire) -> int:
    return wire._protocol.weight


MOST_HELD = 2**18 + 2**21  # and what one slice of empty messages, or of packed ones, may become


@pytest.mark.parametrize("form", ["small", "empty", "packed", "large"])
async def test_a_host_is_not_read_while_nobody_takes_what_it_said(form: str):
    """And what is held is bounded, though one read of the network may hold a thousand times as much, packed."""
    message, terms, more = {
        "small": (frame(TEXT, b"x" * 100), TERMS, ""),
        "empty": (frame(TEXT), TERMS, ""),
        "packed": (frame(BINARY, packed(bytes(MOST)), rsv=4), PACKED, "permessage-deflate; server_no_context_takeover"),
        "large": (frame(BINARY, os.urandom(MOST)), TERMS, ""),
    }[form]
    wire, line = wired(terms, more)
    count = min(2**18 // len(message), 20_000) if form != "packed" else 300
    data = message * (2 * count)
    wire.data_received(data)
    for _ in range(1000):
        await asyncio.sleep(0)
    assert not line.listening.is_set()
    assert weight_of(wire) <= MOST_HELD
    first = await wire.receive()
    got = 1
    while got < 2 * count:
        assert await wire.receive() == first
        assert weight_of(wire) <= MOST_HELD
        got += 1
    assert line.listening.is_set()
    assert weight_of(wire) == 0
    line.abort()
    await wire.close()


async def test_of_many_frames_at_once_others_have_their_turn():
    wire, line = wired()
    wire.data_received(frame(PONG) * 100_000)
    turns = 0

    async def have_a_turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    other = asyncio.create_task(have_a_turn())
    await line.listening.wait()
    other.cancel()
    assert turns > 5
    line.abort()
    await wire.close()


async def test_a_host_that_asks_much_and_hears_nothing_does_not_fill_our_memory():
    """Only its last ping is answered when there is room again, as the protocol allows."""
    wire, line = wired()
    wire.pause_writing()
    for number in range(10_000):
        wire.data_received(frame(PING, b"%d" % number))
    assert line.written == b""
    sending = asyncio.create_task(wire.send("hello"))
    await asyncio.sleep(0)
    wire.resume_writing()
    await sending
    assert list(frames_in(line.written)) == [(PONG, b"9999"), (TEXT, b"hello")]
    wire.data_received(frame(PING, b"and now"))
    assert list(frames_in(line.written))[2:] == [(PONG, b"and now")]
    line.abort()
    await wire.close()


async def test_a_cancelled_send_has_sent_nothing():
    wire, line = wired()
    wire.pause_writing()
    sending = asyncio.create_task(wire.send("hello"))
    await asyncio.sleep(0)
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    wire.resume_writing()
    assert line.written == b""
    await wire.send("ho")
    assert list(frames_in(line.written)) == [(TEXT, b"ho")]
    line.abort()
    await wire.close()


async def test_who_waits_to_send_is_told_when_it_is_over():
    wire, line = wired()
    wire.pause_writing()
    sending = asyncio.create_task(wire.send("hello"))
    await asyncio.sleep(0)
    wire.data_received(farewell(4004))
    with pytest.raises(SocketClosed, match="4004"):
        await sending
    line.abort()
    await wire.close()
