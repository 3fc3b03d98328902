"""No answer lasts for ever, whatever its host sends to prolong it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from everloop.net.connection import HttpConnection
from everloop.net.failures import TookTooLong

Serve = Callable[[asyncio.StreamWriter], Awaitable[None]]
ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@asynccontextmanager
async def connected(serve: Serve) -> AsyncIterator[HttpConnection]:
    """A connection to a host that reads a request and then does as it is told."""

    async def host(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            await serve(writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    async with await asyncio.start_server(host, "127.0.0.1", 0) as server:
        where = server.sockets[0].getsockname()
        _, connection = await asyncio.get_running_loop().create_connection(HttpConnection, *where)
        try:
            yield connection
        finally:
            connection.close()


async def drip(writer: asyncio.StreamWriter, *again: bytes) -> None:
    """The first once, and the last for as long as anyone listens."""
    *first, last = again
    writer.write(b"".join(first))
    while True:
        writer.write(last)
        await writer.drain()
        await asyncio.sleep(0.01)


def let_pass(seconds: float) -> None:
    """The loop's clock goes on by so much at once."""
    loop = asyncio.get_running_loop()
    now = loop.time
    loop.time = lambda: now() + seconds  # type: ignore[method-assign]


async def read_all(connection: HttpConnection) -> None:
    while await connection.read():
        pass


@pytest.mark.parametrize(
    "said",
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", b"more "),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n", b"more " * 50_000),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"2\r\n: \r\n"),
    ],
)
async def test_a_body_that_does_not_end_is_cut_off_at_its_deadline(said: tuple[bytes, ...]):
    async with connected(lambda writer: drip(writer, *said)) as connection:
        connection.send(ASK, 90, deadline=asyncio.get_running_loop().time() + 60)
        await connection.head()
        let_pass(59.8)
        with pytest.raises(TookTooLong):
            await read_all(connection)


async def test_a_host_that_says_nothing_is_left_at_the_deadline():
    async with connected(lambda writer: asyncio.sleep(3600)) as connection:
        connection.send(ASK, 60, deadline=asyncio.get_running_loop().time() + 0.1)
        with pytest.raises(TookTooLong):
            await connection.head()


async def test_an_answer_that_has_ended_before_its_deadline_is_read_whenever_one_likes():
    async def serve(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()

    async with connected(serve) as connection:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 60
        connection.send(ASK, 90, deadline=deadline)
        await connection.head()
        let_pass(60)
        passed = loop.create_future()
        loop.call_at(deadline + 0.01, passed.set_result, None)
        await passed
        assert (await connection.read(), await connection.read()) == (b"hello", b"")


async def test_a_silent_host_is_left_when_patience_ends_before_the_deadline():
    async with connected(lambda writer: asyncio.sleep(3600)) as connection:
        connection.send(ASK, 0.1, deadline=asyncio.get_running_loop().time() + 60)
        with pytest.raises(TimeoutError) as raised:
            await connection.head()
        assert raised.type is TimeoutError


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "said",
    [
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"HTTP/1.1 200 OK\r\n", b"X: x\r\n"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n"),
        (b"", b"\r\n"),
        (CHUNKED + b"3;x=", b"y"),
        (CHUNKED, b"0"),
        (CHUNKED + b"0\r\n", b"X: x\r\n"),
        (CHUNKED + b"0\r\nX: ", b"x"),
    ],
    ids=[
        *("a field of the head", "fields of the head", "hints", "line breaks"),
        *("an extension", "a size", "trailers", "a trailer"),
    ],
)
async def test_what_is_no_part_of_a_body_does_not_prolong_it(said: tuple[bytes, ...]):
    """And not the time until the deadline either, which is there to tell the two apart."""
    async with connected(lambda writer: drip(writer, *said)) as connection:
        connection.send(ASK, 0.2, deadline=asyncio.get_running_loop().time() + 30)
        with pytest.raises(TimeoutError) as raised:
            await read_answer(connection)
        assert raised.type is TimeoutError


async def read_answer(connection: HttpConnection) -> None:
    await connection.head()
    await read_all(connection)


async def test_a_body_may_take_longer_than_anyone_is_patient():
    turns = asyncio.Semaphore(0)

    async def serve(writer: asyncio.StreamWriter) -> None:
        writer.write(CHUNKED)
        for _ in range(4):
            await turns.acquire()
            writer.write(b"4\r\nmore\r\n")
        writer.write(b"0\r\n\r\n")
        await asyncio.sleep(3600)

    async with connected(serve) as connection:
        connection.send(ASK, 60)
        await connection.head()
        for _ in range(4):
            reading = asyncio.create_task(connection.read())
            await asyncio.sleep(0)
            let_pass(40)  # four of them are longer than the patience for one
            turns.release()
            assert await reading == b"more"
        assert await connection.read() == b""
        assert connection.is_usable
