"""A large request is sent as a whole, and who refuses it before it has read it is heard."""

import asyncio
import shutil
import socket
import ssl
import struct
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from everloop.errors import HostTimeout, StreamCut
from everloop.net.connection import HttpConnection
from everloop.net.request import write
from everloop.net.trusted import TrustedHttp

Speak = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
MUCH = b"x" * 8_000_000
REFUSALS = {
    "with a length": b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno",
    "until it closes": b"HTTP/1.1 413 Too Large\r\nConnection: close\r\n\r\nno",
    "in pieces": b"HTTP/1.1 413 Too Large\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nno\r\n0\r\n\r\n",
    "not all of it": b"HTTP/1.1 413 Too Large\r\nContent-Length: 9\r\n\r\nno",
}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    files = str(folder / "ca.pem"), str(folder / "key.pem")
    made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", *made, "-out", files[0], "-keyout", files[1]]
    subprocess.run(command, check=True, capture_output=True)
    return files


@pytest.fixture(params=["plainly", "securely"])
def context(request: pytest.FixtureRequest) -> ssl.SSLContext | None:
    if request.param == "plainly":
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*request.getfixturevalue("certificate"))
    return context


@pytest.fixture
async def http(context: ssl.SSLContext | None, request: pytest.FixtureRequest) -> AsyncIterator[TrustedHttp]:
    http = TrustedHttp(ca_file=request.getfixturevalue("certificate")[0] if context else None)
    yield http
    await http.close()


@asynccontextmanager
async def serving(speak: Speak, context: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """A server whose connections are ended with it, whatever they wait for."""
    talks: set[asyncio.Task[None]] = set()

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        talks.add(task)
        with suppress(asyncio.CancelledError, ConnectionError, asyncio.IncompleteReadError):
            await speak(reader, writer)
        writer.transport.abort()

    async with await asyncio.start_server(note, "127.0.0.1", 0, ssl=context) as server:
        try:
            yield f"http{'s' if context else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        finally:
            for talk in talks:
                talk.cancel()
            await asyncio.gather(*talks)


async def ask(http: TrustedHttp, url: str, body: bytes = MUCH) -> tuple[int, bytes]:
    async with http.request("POST", url, body=body, seconds=60) as answer:
        return answer.status, await answer.read()


@pytest.mark.parametrize("form", REFUSALS)
async def test_a_refusal_is_heard_although_its_host_has_read_little_and_closes(context, http, form):
    """Twenty times, for it was a matter of luck."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(REFUSALS[form])
        await writer.drain()

    async with serving(refuse, context) as url:
        assert [await ask(http, url) for _ in range(20)] == [(413, b"no")] * 20


async def test_what_is_no_refusal_is_cut_when_its_host_tears_the_connection_down(context, http):
    async def answer_and_go(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhalf")
        await writer.drain()

    async with serving(answer_and_go, context) as url:
        with pytest.raises(StreamCut):
            await ask(http, url)


@pytest.mark.parametrize(
    "status, size, connections",
    [(413, 8_000_000, 2), (429, 100_000, 2), (429, 100, 1), (200, 100_000, 1)],
    ids=["refused", "refused although it was read", "refused but small", "answered"],
)
async def test_who_refuses_a_large_request_is_asked_the_next_one_over_another_connection(
    context, http, status: int, size: int, connections: int
):
    """With TLS nobody knows whether it was read, so it makes no difference."""
    met = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(writer)
        while True:
            await reader.readuntil(b"\r\n\r\n")
            if size < 1_000_000:
                await reader.readexactly(size)
            writer.write(OK.replace(b"200", b"%d" % status))
            if size >= 1_000_000:
                await asyncio.Event().wait()

    async with serving(answer, context) as url:
        assert [await ask(http, url, b"x" * size) for _ in range(2)] == [(status, b"ok")] * 2
    assert len(met) == connections


async def test_who_answers_before_it_has_read_all_is_asked_the_next_one_over_another_connection():
    met = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        met.append(writer)
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        await asyncio.Event().wait()

    http = TrustedHttp()
    async with serving(answer) as url:
        assert [await ask(http, url) for _ in range(2)] == [(200, b"ok")] * 2
        await http.close()
    assert len(met) == 2


async def test_a_large_request_may_take_its_time():
    """Nobody is told how far it is, so it has an allowance: 64 KiB in a second."""

    async def read_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.3)  # longer than anyone is patient with a small one
        await reader.readexactly(200_000)
        writer.write(OK)
        await asyncio.Event().wait()

    http = TrustedHttp()
    async with serving(read_late) as url:
        async with http.request("POST", url, body=b"x" * 200_000, seconds=0.1) as answer:
            assert answer.status == 200
        with pytest.raises(HostTimeout):
            async with http.request("POST", url, body=b"x", seconds=0.1):
                pass
        await http.close()


class Line(asyncio.Transport):
    """Remembers how it was written to."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:  # type: ignore[override]
        self.written.append(data)


async def test_a_request_is_written_at_one_go():
    """The loop reads before it writes on; whoever writes piece by piece meets the closed door before the answer."""
    connection, line = HttpConnection(), Line()
    connection.connection_made(line)
    connection.send(MUCH, 1)
    assert line.written == [MUCH]


async def test_a_host_that_never_reads_is_left_when_its_allowance_is_over():
    connection, line = HttpConnection(), Line()
    connection.connection_made(line)
    connection.send(b"x" * 2**14, 0.05)
    with pytest.raises(TimeoutError):
        await connection.head()


@pytest.mark.parametrize("name", ["X Y", "X:Y", "", "X\n", "É", "X-\u212aey", "(X)", "X\0"])
def test_the_name_of_a_header_is_a_name(name: str):
    with pytest.raises(ValueError):
        write("GET", "/", "host", {name: "a"}, b"", {})


@pytest.mark.parametrize("method, where", [("GET /x HTTP/1.1\r\nX:", "/"), ("GET ", "/"), ("", "/"), ("GET", "/a b")])
def test_the_first_line_of_a_request_is_one_of_three_words(method: str, where: str):
    with pytest.raises(ValueError):
        write(method, where, "host", {}, b"", {})


@pytest.mark.parametrize(
    "headers", [{"content-length": "5"}, {"Content-Length": "2"}, {"Transfer-Encoding": "chunked"}]
)
def test_how_long_a_body_is_is_said_once(headers: dict[str, str]):
    asked = write("POST", "/", "host", {**headers, "X-Key": "a"}, b"ab", {})
    assert asked == b"POST / HTTP/1.1\r\nHost: host\r\nX-Key: a\r\nContent-Length: 2\r\n\r\nab"


async def test_a_refusal_that_was_torn_down_before_it_came_is_none(context, http):
    """The other side of the first: no refusal is made up."""

    async def tear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        linger_not_at_all = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not_at_all)

    async with serving(tear, context) as url:
        with pytest.raises(Exception, match="closed the connection before it answered"):
            await ask(http, url)
