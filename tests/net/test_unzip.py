"""What is unpacked is the same however it came, and while it is done others have their turn."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everloop.net.open import OpenHttp
from everloop.net.trusted import TrustedHttp
from everloop.net.unzip import Unzip, make_room

HTTPS = [TrustedHttp, lambda: OpenHttp(["127.0.0.1"], max_bytes=10**9)]
EMPTY = gzip.compress(b"")


@given(
    files=st.lists(st.binary(max_size=50), min_size=1, max_size=4),
    pack=st.sampled_from([gzip.compress, zlib.compress]),
    places=st.lists(st.integers(0, 400)),
)
def test_what_is_unpacked_is_the_same_wherever_it_was_cut(files: list[bytes], pack: Callable[[bytes], bytes], places):
    files = files if pack is gzip.compress else files[:1]
    data = b"".join(map(pack, files))
    edges = sorted({0, len(data), *(place % (len(data) + 1) for place in places)})
    unzip = Unzip()
    got = b"".join(piece for here, there in pairwise(edges) for piece in unzip.pieces(data[here:there]))
    assert (got, unzip.is_whole) == (b"".join(files), True)


@asynccontextmanager
async def sending(packed: bytes) -> AsyncIterator[str]:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)

    async def host(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(head + packed)
        await writer.drain()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(host, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"


class Turns:
    """Counts how often someone else was let work."""

    def __init__(self) -> None:
        self.count = 0

    async def __aenter__(self) -> "Turns":
        self._task = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _work(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


@pytest.mark.parametrize("make", HTTPS, ids=["trusted", "open"])
async def test_between_two_large_pieces_others_have_their_turn(make):
    http, seen = make(), []
    async with sending(gzip.compress(b"\0" * 20_000_000, 1)) as url, Turns() as others:
        async with http.request("GET", url) as answer:
            async for piece in answer.chunks():
                seen.append((len(piece), others.count))
        await http.close()
    assert sum(length for length, _ in seen) == 20_000_000
    assert all(before < after for (_, before), (length, after) in pairwise(seen) if length == 2**18)


@pytest.mark.parametrize("make", HTTPS, ids=["trusted", "open"])
async def test_while_much_unpacks_to_nothing_others_have_their_turn(make):
    http, packed = make(), EMPTY * 50_000
    async with sending(packed) as url, Turns() as others:
        async with http.request("GET", url) as answer:
            before = others.count
            assert await answer.read() == b""
        assert others.count - before >= len(packed) // 2**14
        await http.close()


async def test_nobody_has_a_turn_where_no_room_is_made():
    """Or the two above would hold for anything."""
    async with Turns() as others:
        before = others.count
        for piece in Unzip().pieces(EMPTY * 1000):
            assert piece == b""
        assert others.count == before
        for piece in Unzip().pieces(EMPTY * 1000):
            await make_room(piece)
        assert others.count > before
