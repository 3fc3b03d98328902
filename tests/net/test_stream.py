"""Connections for protocols that are not HTTP: dialled as requests are, read without loss, ended with the rest."""

import asyncio
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from everloop.errors import AnswerOversized, HostUnreachable, StreamCut
from everloop.net.trusted import TrustedHttp
from everloop.ports import Dials

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def http() -> AsyncIterator[TrustedHttp]:
    http = TrustedHttp()
    yield http
    await http.close()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("certificate")
    made = [
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=x",
        "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:mail.example",
    ]
    out = ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(["openssl", "req", *made, *out], check=True, capture_output=True)
    return folder


def shown(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    return context


@asynccontextmanager
async def hosting(serve: Serve, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    async def contained(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has gone
        finally:
            writer.close()

    server = await asyncio.start_server(contained, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Says a line first, then each line again."""
    writer.write(b"hello\r\n")
    while line := await reader.readline():
        writer.write(line)


def test_our_client_dials():
    assert isinstance(TrustedHttp(), Dials)


async def test_a_host_that_speaks_first_is_heard(http: TrustedHttp):
    async with hosting(greet) as port, http.dial("127.0.0.1", port, tls=False) as stream:
        assert await stream.read_line() == b"hello\r\n"
        await stream.write(b"one\r\ntwo\r\n")
        assert (await stream.read_exactly(4), await stream.read_line()) == (b"one\r", b"\n")
        assert await stream.read_line() == b"two\r\n"


async def test_tls_is_spoken_with_who_shows_a_certificate_that_is_trusted(certificate: Path):
    http, stranger = TrustedHttp(str(certificate / "cert.pem")), TrustedHttp()
    async with hosting(greet, shown(certificate)) as port:
        async with http.dial("127.0.0.1", port) as stream:
            assert await stream.read_line() == b"hello\r\n"
        with pytest.raises(HostUnreachable, match="certificate that is not trusted"):
            async with stranger.dial("127.0.0.1", port):
                pass
        with pytest.raises(HostUnreachable, match="certificate that is not trusted"):  # it is not localhost's
            async with http.dial("localhost", port):
                pass
    await http.close()
    await stranger.close()


def upgrading(certificate: Path, extra: bytes = b"") -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readline() == b"STARTTLS\r\n"
        writer.write(b"go on\r\n" + extra)
        await writer.start_tls(shown(certificate))
        await greet(reader, writer)

    return serve


async def test_a_connection_is_secured_in_the_middle(certificate: Path):
    http = TrustedHttp(str(certificate / "cert.pem"))
    async with hosting(upgrading(certificate)) as port, http.dial("127.0.0.1", port, tls=False) as stream:
        await stream.write(b"STARTTLS\r\n")
        assert await stream.read_line() == b"go on\r\n"
        await stream.secure()
        await stream.write(b"secret\r\n")
        assert (await stream.read_line(), await stream.read_line()) == (b"hello\r\n", b"secret\r\n")
    await http.close()


async def test_what_was_said_before_tls_is_never_taken_for_what_is_said_after(certificate: Path):
    http = TrustedHttp(str(certificate / "cert.pem"))
    serve = upgrading(certificate, b"injected\r\n")
    async with hosting(serve) as port, http.dial("127.0.0.1", port, tls=False) as stream:
        await stream.write(b"STARTTLS\r\n")
        assert await stream.read_line() == b"go on\r\n"
        with pytest.raises(HostUnreachable, match="between STARTTLS and TLS"):
            await stream.secure()
    await http.close()


async def test_a_stranger_in_the_middle_is_not_believed(http: TrustedHttp, certificate: Path):
    async with hosting(upgrading(certificate)) as port, http.dial("127.0.0.1", port, tls=False) as stream:
        await stream.write(b"STARTTLS\r\n")
        await stream.read_line()
        with pytest.raises(HostUnreachable, match="certificate that is not trusted"):
            await stream.secure()


def proxying(to: int, said: bytes, asked: list[bytes]) -> Serve:
    """A proxy that agrees, and has the host's first words already."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        above, below = await asyncio.open_connection("127.0.0.1", to)
        writer.write(said + (await above.readline() if said.startswith(b"HTTP/1.1 200") else b""))
        while line := await reader.readline():
            below.write(line)
            writer.write(await above.readline())

    return serve


async def test_a_proxy_passes_everything_on_and_loses_no_first_word():
    asked: list[bytes] = []
    async with (
        hosting(greet) as host,
        hosting(proxying(host, b"HTTP/1.1 200 ok\r\nVia: x\r\n\r\n", asked)) as proxy,
    ):
        http = TrustedHttp(proxy=f"http://me:word@127.0.0.1:{proxy}")
        async with http.dial("mail.example", 143, tls=False) as stream:
            assert await stream.read_line() == b"hello\r\n"
            await stream.write(b"one\r\n")
            assert await stream.read_line() == b"one\r\n"
        await http.close()
    key = b"Proxy-Authorization: Basic bWU6d29yZA==\r\n"
    assert asked == [b"CONNECT mail.example:143 HTTP/1.1\r\nHost: mail.example:143\r\n" + key + b"\r\n"]


@pytest.mark.parametrize(
    "said", [b"HTTP/1.1 403 no\r\n\r\n", b"", b"220 smtp\r\n\r\n", b"HTTP/1.1 200 ok\r\n" + b"X: y\r\n" * 5000]
)
async def test_a_proxy_that_does_not_connect_is_named(said: bytes):
    asked: list[bytes] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(said)

    async with hosting(refuse) as proxy:
        http = TrustedHttp(proxy=f"http://127.0.0.1:{proxy}")
        with pytest.raises(HostUnreachable, match="the proxy refuses to connect"):
            async with http.dial("mail.example", 993):
                pass
        await http.close()


@pytest.mark.parametrize(
    "host, why", [("", "is no name"), ("a b", "is no name|cannot be found"), ("127.0.0.1", "cannot be reached")]
)
async def test_who_is_not_there_is_told(http: TrustedHttp, host: str, why: str):
    with pytest.raises(HostUnreachable, match=why):
        async with http.dial(host, 1, tls=False):
            pass


async def test_a_line_without_an_end_is_refused(http: TrustedHttp):
    async def babble(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"x" * 10_000)
        await reader.read()

    async with hosting(babble) as port, http.dial("127.0.0.1", port, tls=False) as stream:
        with pytest.raises(AnswerOversized):
            await stream.read_line(1000)


async def test_a_read_that_is_cancelled_loses_nothing(http: TrustedHttp):
    gate = asyncio.Event()

    async def halting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"one ")
        await gate.wait()
        writer.write(b"line\r\n")
        await reader.read()

    async with hosting(halting) as port, http.dial("127.0.0.1", port, tls=False) as stream:
        assert await stream.read_exactly(1) == b"o"
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await stream.read_line()
        gate.set()
        assert await stream.read_line() == b"ne line\r\n"


async def test_much_is_read_and_written_as_the_other_side_can(http: TrustedHttp):
    async def mirror(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(3_000_000))
        await writer.drain()

    data = bytes(range(250)) * 12_000
    async with hosting(mirror) as port, http.dial("127.0.0.1", port, tls=False) as stream:
        await stream.write(data)
        assert await stream.read_exactly(len(data)) == data
        with pytest.raises(StreamCut):
            await stream.read_line()


async def test_whoever_closes_the_client_ends_what_is_open(http: TrustedHttp):
    async with hosting(greet) as port, http.dial("127.0.0.1", port, tls=False) as stream:
        assert await stream.read_line() == b"hello\r\n"
        waiting = asyncio.ensure_future(stream.read_line())
        await asyncio.sleep(0)
        await http.close()
        with pytest.raises(StreamCut):
            await waiting
        with pytest.raises(StreamCut):
            await stream.write(b"x")
