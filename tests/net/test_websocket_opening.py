"""How a WebSocket is opened, and how it is not: answers of all kinds, proxies, TLS, addresses, and the package."""

import asyncio
import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.net.socket_peers import TEXT, Line, Peer, agreement, frame, hosting

from everloop.errors import (
    AddressRefused,
    EverloopError,
    HostFailed,
    HostHungUp,
    HostTimeout,
    HostUnreachable,
    ProviderError,
    SocketClosed,
    SocketRefused,
)
from everloop.net.connection import HttpConnection
from everloop.net.open import OpenHttp
from everloop.net.socket_connection import WebSocketConnection
from everloop.net.socket_protocol import SocketProtocol
from everloop.net.trusted import TrustedHttp
from everloop.ports import PLAIN_TERMS, SocketTerms, WebSockets
from everloop.testing.cassette import Cassette

HI = frame(TEXT, b"hi")


@pytest.fixture
async def http() -> AsyncIterator[TrustedHttp]:
    http = TrustedHttp()
    yield http
    await http.close()


async def open_one(http: TrustedHttp | OpenHttp, url: str, seconds: float = 30.0) -> str | bytes:
    """The first message."""
    async with http.websocket(url, terms=SocketTerms(seconds=seconds)) as wire:
        return await wire.receive()


async def refusal(http: TrustedHttp | OpenHttp, url: str, seconds: float = 30.0) -> EverloopError:
    with pytest.raises(EverloopError) as caught:
        await open_one(http, url, seconds)
    return caught.value


def answering(answer: str) -> AsyncIterator[str]:
    """A host that answers so, with the right key in the place of KEY."""

    async def speak(peer: Peer) -> None:
        accept = await peer.hear_request()
        peer.writer.write(answer.replace("\n", "\r\n").replace("KEY", accept).encode())
        await peer.writer.drain()

    return hosting(speak)


_FAR = "Fri, 01 Jan {} 00:00:00 GMT"
REFUSALS = [
    ("HTTP/1.1 401 No\nContent-Length: 9\n\nbad token", 401, "refuses the WebSocket (401): bad token", False, None),
    ("HTTP/1.1 403 No\nContent-Length: 0\n\n", 403, "refuses the WebSocket (403).", False, None),
    ("HTTP/1.1 404 No\n\n<h1>\x01no\nsuch</h1>", 404, "refuses the WebSocket (404): <h1> no such</h1>", False, None),
    ("HTTP/1.1 429 Slow\nRetry-After: 7\nContent-Length: 0\n\n", 429, "refuses the WebSocket (429).", True, 7.0),
    ("HTTP/1.1 429 Slow\nRetry-After: soon\nContent-Length: 0\n\n", 429, "refuses the WebSocket (429).", True, None),
    (f"HTTP/1.1 429 Slow\nRetry-After: {'9' * 500}\n\n", 429, "refuses the WebSocket (429).", True, 86_400.0),
    (f"HTTP/1.1 429 Slow\nRetry-After: {_FAR.format(9999)}\n\n", 429, "refuses the WebSocket (429).", True, 86_400.0),
    (f"HTTP/1.1 429 Slow\nRetry-After: {_FAR.format('9' * 20)}\n\n", 429, "refuses the WebSocket (429).", True, None),
    ("HTTP/1.1 503 No\nTransfer-Encoding: chunked\n\n3\nout\n0\n\n", 503, "(503): out", True, None),
    (
        "HTTP/1.1 200 OK\nContent-Length: 4\n\npage",
        200,
        "answers with a page (200) and opens no WebSocket",
        False,
        None,
    ),
    ("HTTP/1.1 302 F\nLocation: /x?t=1\nContent-Length: 0\n\n", 302, "redirects the WebSocket (302)", False, None),
    ("HTTP/1.1 500 No\nContent-Length: 99\n\ncut", 500, "(500): cut", True, None),
]


@pytest.mark.parametrize("answer, status, sentence, retryable, wait", REFUSALS)
async def test_a_refusal_is_told_with_its_status_and_what_was_said(http, answer, status, sentence, retryable, wait):
    async with answering(answer) as url:
        error = await refusal(http, url)
    assert isinstance(error, SocketRefused)
    assert (error.status, error.retryable, error.retry_after) == (status, retryable, wait)
    assert sentence in str(error)
    assert str(error).startswith("127.0.0.1:")


async def test_no_more_of_a_refusal_is_kept_than_its_beginning(http):
    sent = 0

    async def speak(peer: Peer) -> None:
        nonlocal sent
        await peer.hear_request()
        peer.writer.write(b"HTTP/1.1 403 No\r\n\r\n")
        while True:
            peer.writer.write(b"no " * 10_000)
            await peer.writer.drain()
            sent += 30_000

    async with hosting(speak) as url:
        error = await refusal(http, url)
    assert sent < 20_000_000  # what the system holds in between, and no more
    assert isinstance(error, SocketRefused)
    assert (len(error.body), len(str(error))) == (2000, len(f"{url[5:-1]} refuses the WebSocket (403): ") + 200)


AGREE = "HTTP/1.1 101 S\nUpgrade: websocket\nConnection: Upgrade\nSec-WebSocket-Accept: KEY\n"
LIES = {
    "another key": AGREE.replace("KEY", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="),
    "no key": AGREE.replace("Sec-WebSocket-Accept: KEY\n", ""),
    "two keys": AGREE + "Sec-WebSocket-Accept: KEY\n",
    "no upgrade": AGREE.replace("Upgrade: websocket\n", ""),
    "upgrade to another": AGREE.replace("Upgrade: websocket", "Upgrade: h2c"),
    "two upgrades": AGREE.replace("Upgrade: websocket", "Upgrade: websocket, h2c"),
    "no connection": AGREE.replace("Connection: Upgrade\n", ""),
    "connection that closes": AGREE.replace("Connection: Upgrade", "Connection: close"),
    "packed, though nobody offered it": AGREE + "Sec-WebSocket-Extensions: permessage-deflate\n",
    "an extension that nobody knows": AGREE + "Sec-WebSocket-Extensions: x-turbo\n",
    "an extension that is no word": AGREE + 'Sec-WebSocket-Extensions: ;=";\n',
    "a subprotocol that nobody offered": AGREE + "Sec-WebSocket-Protocol: wamp\n",
    "a header that is no text": AGREE.replace("Upgrade: websocket", "Upgrade: web\u00fcsocket"),
}


@pytest.mark.parametrize("form", LIES)
async def test_who_agrees_and_does_not_mean_it_is_told_so(http, form: str):
    async with answering(LIES[form] + "\n") as url:
        error = await refusal(http, url)
    assert isinstance(error, SocketRefused)
    assert (error.status, error.retryable) == (101, False)
    assert "agrees to a WebSocket and does not open one (" in str(error)
    assert http._busy == set()


async def test_the_same_answer_with_all_that_belongs_to_it_opens_one(http):
    async with answering(
        "HTTP/1.1 103 Hint\nLink: x\n\n" + AGREE.replace("websocket", "WebSocket") + "X: y\n\n"
    ) as url:
        with pytest.raises(ProviderError, match="broke off the WebSocket"):
            await open_one(http, url)


@pytest.mark.parametrize("comes", ["with it", "after it", "in pieces, and then it ends", "and then it ends"])
async def test_what_comes_behind_the_agreement_before_anybody_looks_is_heard(comes: str):
    line, connection = Line(), HttpConnection()
    connection.connection_made(line)  # type: ignore[arg-type]
    connection.send(b"GET / HTTP/1.1\r\n\r\n", 30.0)
    head = agreement("key")
    pieces = {
        "with it": [head + HI],
        "after it": [head, HI],
        "in pieces, and then it ends": [head + HI[:1], *(bytes([each]) for each in HI[1:])],
        "and then it ends": [head + HI],
    }[comes]
    for piece in pieces:
        connection.data_received(piece)
    if comes.endswith("ends"):
        connection.eof_received()
        connection.connection_lost(None)
    assert (await connection.head()).status == 101
    wire = WebSocketConnection(SocketProtocol(PLAIN_TERMS), "host", PLAIN_TERMS, str)
    wire.start(connection)
    assert await wire.receive() == "hi"
    if comes.endswith("ends"):
        with pytest.raises(SocketClosed, match="broke off"):
            await wire.receive()
    line.abort()
    await wire.close()


NOT_HTTP = {
    "silence": (b"", HostHungUp),
    "half a head": (b"HTTP/1.1 101 S\r\nUpgr", HostHungUp),
    "another protocol": (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", HostFailed),
    "a frame": (HI * 100, HostFailed),
    "lines without end": (b"HTTP/1.1 101 S\r\n" + b"X: y\r\n" * 100_000, HostFailed),
    "a line without end": (b"HTTP/1.1 101 S\r\nX: " + b"y" * 400_000, HostFailed),
    "hints without end": (b"HTTP/1.1 103 Hint\r\n\r\n" * 2000, HostFailed),
}


@pytest.mark.parametrize("form", NOT_HTTP)
async def test_what_is_no_answer_opens_nothing(http, form: str):
    data, kind = NOT_HTTP[form]

    async def speak(peer: Peer) -> None:
        await peer.hear_request()
        peer.writer.write(data)
        await peer.writer.drain()

    async with hosting(speak) as url:
        assert type(await refusal(http, url)) is kind
    assert http._busy == set()


async def test_a_head_that_trickles_is_not_waited_for(http):
    """A slow loris: each byte comes in time, and the head does not."""

    async def speak(peer: Peer) -> None:
        accept = await peer.hear_request()
        for byte in agreement(accept, "X: y\r\n" * 1000):
            peer.writer.write(bytes([byte]))
            await asyncio.sleep(0.01)

    async with hosting(speak) as url:
        assert type(await refusal(http, url, seconds=0.3)) is HostTimeout
    assert http._busy == set()


async def test_a_subprotocol_is_chosen_and_a_request_says_what_it_should(http):
    asked = []

    async def speak(peer: Peer) -> None:
        await peer.agree(HI, "Sec-WebSocket-Protocol: v2\r\n")
        asked.append(peer.asked)
        await peer.hear_farewell()

    terms = SocketTerms(subprotocols=("v1", "v2"), compress=True)
    headers = {"Authorization": "Bearer x"}
    async with hosting(speak) as url, http.websocket(f"{url}a%20b?c=d", headers=headers, terms=terms) as wire:
        assert (wire.subprotocol, await wire.receive()) == ("v2", "hi")
    lines = dict(line.split(": ", 1) for line in asked[0].splitlines()[1:] if line)
    assert asked[0].splitlines()[0] == "GET /a%20b?c=d HTTP/1.1"
    assert len(lines.pop("Sec-WebSocket-Key")) == 24
    assert lines == {
        "Host": url[5:-1],
        "Accept": "*/*",
        "Accept-Encoding": "identity",
        "User-Agent": "everloop",
        "Authorization": "Bearer x",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits",
        "Sec-WebSocket-Protocol": "v1, v2",
    }


async def greet(peer: Peer) -> None:
    await peer.agree(HI)
    await peer.hear_farewell()


@asynccontextmanager
async def proxying(host: str, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that leads everybody to one host, and what it was asked."""
    asked: list[str] = []
    port = int(host.rstrip("/").rsplit(":", 1)[1])

    async def pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(1 << 16):
            sink.write(data)
        sink.close()

    async def speak(peer: Peer) -> None:
        asked.append((await peer.reader.readuntil(b"\r\n\r\n")).decode())
        peer.writer.write(answer)
        if b" 200 " in answer:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.TaskGroup() as group:
                group.create_task(pass_on(peer.reader, writer))
                group.create_task(pass_on(reader, peer.writer))

    async with hosting(speak) as url:
        yield url.replace("ws://", "http://"), asked


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    made = ["-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x"]
    names = "subjectAltName=IP:127.0.0.1,DNS:chat.example"
    files = ["-out", str(folder / "ca.pem"), "-keyout", str(folder / "key.pem")]
    subprocess.run(["openssl", "req", *made, "-addext", names, *files], check=True, capture_output=True)
    return folder / "ca.pem"


def serving(certificate: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    return context


async def test_a_proxy_passes_on_what_it_does_not_read(certificate):
    """Also what is not encrypted: a proxy that reads requests would not know what to do with a WebSocket."""
    for context, where in ((None, "ws://chat.example/"), (serving(certificate), "wss://chat.example/")):
        async with hosting(greet, context) as url, proxying(url) as (proxy, asked):
            http = TrustedHttp(str(certificate), proxy.replace("//", "//me:pw@"))
            assert await open_one(http, where) == "hi"
            await http.close()
        port = 443 if context else 80
        key = "Proxy-Authorization: Basic bWU6cHc=\r\n"
        assert asked == [f"CONNECT chat.example:{port} HTTP/1.1\r\nHost: chat.example:{port}\r\n{key}\r\n"]


async def test_a_proxy_that_refuses_is_named_as_the_reason():
    async with hosting(greet) as url, proxying(url, b"HTTP/1.1 407 Who\r\n\r\n") as (proxy, _):
        http = TrustedHttp(proxy=proxy)
        error = await refusal(http, "wss://chat.example/?ticket=xoxb-secret")
        await http.close()
    assert str(error) == "chat.example cannot be reached: the proxy refuses to connect (407)."


async def test_tls_is_checked(certificate):
    async with hosting(greet, serving(certificate)) as url:
        trusting, strange = TrustedHttp(str(certificate)), TrustedHttp()
        assert await open_one(trusting, url) == "hi"
        error = await refusal(trusting, url.replace("127.0.0.1", "localhost"))
        assert "shows a certificate that is not trusted here" in str(error)
        error = await refusal(strange, url)
        assert "shows a certificate that is not trusted here" in str(error)
        assert type(await refusal(strange, url.replace("wss", "ws"))) in (HostHungUp, HostFailed)
        await trusting.close()
        await strange.close()


async def test_what_others_aim_goes_only_where_they_may():
    async with hosting(greet) as url:
        host = url[5:-1]
        with pytest.raises(AddressRefused, match="means this machine"):
            await open_one(OpenHttp(), url)
        assert await open_one(OpenHttp([host]), url) == "hi"
        with pytest.raises(HostUnreachable, match="begin it with wss:// or ws://"):
            await open_one(OpenHttp([host]), url.replace("ws", "http"))


async def test_a_refused_address_does_not_tell_its_token():
    for url in (
        "wss://u@h/?ticket=xoxb-secret-ticket",
        "wss://h:0/xoxb-secret-ticket-in-path",
        "wss://h\\/?xoxb-secret-1234",
    ):
        with pytest.raises(AddressRefused) as caught:
            OpenHttp().websocket(url)
        assert "secret" not in f"{caught.value!r} {caught.value.__cause__!r}"


def test_a_channel_can_ask_whether_it_was_given_one_that_has_websockets():
    assert isinstance(TrustedHttp(), WebSockets)
    assert isinstance(OpenHttp(), WebSockets)
    assert not issubclass(Cassette, WebSockets)


def loaded(*code: str) -> str:
    ran = subprocess.run([sys.executable, "-c", "\n".join(["import sys", *code])], capture_output=True, text=True)
    return ran.stdout + ran.stderr


USED = "everloop.net.trusted.TrustedHttp().websocket('wss://chat.example/')"


def test_the_package_is_loaded_by_who_uses_it():
    tell = "print([name for name in sys.modules if name.startswith('websockets')] != [])"
    assert loaded("import everloop.net.trusted, everloop.net.open, everloop.app.open_house", tell) == "False\n"
    assert loaded("import everloop.net.trusted", USED, tell) == "True\n"


def test_without_the_package_there_is_a_sentence_that_says_how_to_get_it():
    said = loaded("sys.modules['websockets'] = None", "import everloop.net.trusted", USED)
    assert said.splitlines()[-1] == (
        "everloop.errors.SettingsError: WebSockets need the extra [channels]: pip install 'everloop[channels]'"
    )
