import asyncio
import gzip
import shutil
import socket
import ssl
import subprocess

import pytest
from aiohttp import web
from tests.providers.hosts import cut, never, stream

from everloop.core.errors import HostFailed, HostHungUp, HostTimeout, HostUnreachable, ProviderError, StreamCut
from everloop.net.trusted import TrustedHttp


async def fetch(http: TrustedHttp, url: str, **asked) -> tuple[int, bytes]:
    async with http.request("GET", url, **asked) as answer:
        return answer.status, await answer.read()


async def fail(http: TrustedHttp, url: str, **asked) -> ProviderError:
    with pytest.raises(ProviderError) as raised:
        await fetch(http, url, **asked)
    return raised.value


async def test_a_request_carries_body_and_headers_and_asks_for_no_compression(serve, http):
    seen = {}

    async def handler(request):
        seen.update(method=request.method, body=await request.read(), key=request.headers["Authorization"])
        seen.update(encoding=request.headers["Accept-Encoding"])
        return web.Response(status=201, body=b"ok", headers={"X-Said": "yes"})

    url = await serve(handler)
    async with http.request("POST", url, body=b"hello", headers={"Authorization": "Bearer k"}) as answer:
        assert (answer.status, answer.headers["x-said"], await answer.read()) == (201, "yes", b"ok")
    assert seen == {"method": "POST", "body": b"hello", "key": "Bearer k", "encoding": "identity"}


async def test_a_body_comes_piece_by_piece(serve, http):
    told = asyncio.Event()

    async def wait(request):
        await told.wait()

    url = await serve(stream(b"first", then=wait))
    async with http.request("GET", url) as answer:
        chunks = answer.chunks()
        assert await anext(chunks) == b"first"
        told.set()
        assert [chunk async for chunk in chunks] == []


async def test_a_compressed_answer_is_read_although_we_never_ask_for_one(serve, http):
    async def handler(request):
        return web.Response(body=gzip.compress(b"hello"), headers={"Content-Encoding": "gzip"})

    assert await fetch(http, await serve(handler)) == (200, b"hello")


async def test_a_large_body_is_read_up_to_the_limit(serve, http):
    url = await serve(stream(b"a" * 1000, b"b" * 1000))
    async with http.request("GET", url) as answer:
        assert await answer.read(1500) == b"a" * 1000 + b"b" * 500


async def test_a_connection_is_used_again(serve, http):
    peers = set()

    async def handler(request):
        peers.add(request.transport.get_extra_info("peername"))
        return web.Response(body=b"ok")

    url = await serve(handler)
    for _ in range(3):
        await fetch(http, url)
    assert len(peers) == 1


async def test_a_connection_is_used_again_when_only_the_end_of_the_body_was_not_read(serve, http):
    peers = set()

    async def remember(request):
        peers.add(request.transport.get_extra_info("peername"))

    url = await serve(stream(b"enough", then=remember))
    for _ in range(3):
        async with http.request("GET", url) as answer:
            assert await anext(answer.chunks()) == b"enough"
    assert len(peers) == 1


async def test_leaving_in_the_middle_closes_the_connection(serve, http):
    closed = asyncio.Event()

    async def wait(request):
        try:
            await asyncio.Event().wait()
        finally:
            closed.set()

    url = await serve(stream(b"first", then=wait))

    async def listen(heard: asyncio.Event):
        async with http.request("GET", url) as answer:
            async for _ in answer.chunks():
                heard.set()

    heard = asyncio.Event()
    task = asyncio.create_task(listen(heard))
    await heard.wait()
    task.cancel()
    async with asyncio.timeout(5):
        await closed.wait()


async def test_a_post_is_not_redirected(serve, http):
    async def handler(request):
        raise web.HTTPMovedPermanently("/elsewhere")

    async with http.request("POST", await serve(handler), body=b"x") as answer:
        assert answer.status == 301


async def test_an_answer_that_breaks_off_is_cut(serve, http):
    error = await fail(http, await serve(stream(b"a", then=cut)))
    assert type(error) is StreamCut
    assert "127.0.0.1:" in str(error)


async def test_a_host_that_says_nothing_is_too_slow(serve, http):
    error = await fail(http, await serve(never) + "/v1?key=secret", seconds=0.05)
    assert type(error) is HostTimeout
    assert str(error).endswith("has not answered within 0.05 s.")
    assert "secret" not in str(error)


async def test_a_host_that_falls_silent_is_too_slow(serve, http):
    error = await fail(http, await serve(stream(b"a", then=never)), seconds=0.05)
    assert type(error) is HostTimeout
    assert str(error).endswith("fell silent in the middle of its answer.")


async def test_a_host_that_hangs_up_before_answering_is_unreachable(serve, http):
    error = await fail(http, await serve(cut))
    assert type(error) is HostHungUp
    assert str(error).endswith("closed the connection before it answered.")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


async def test_a_closed_port_is_unreachable(http):
    port = free_port()
    error = await fail(http, f"http://127.0.0.1:{port}/v1?key=secret")
    assert type(error) is HostUnreachable
    assert str(error) == f"127.0.0.1:{port} cannot be reached: connection refused."


async def test_a_name_that_does_not_exist_cannot_be_found(http):
    error = await fail(http, "http://no-such-host.invalid/")
    assert (type(error), str(error)) == (
        HostUnreachable,
        "no-such-host.invalid cannot be found: check its name and the network.",
    )


@pytest.mark.parametrize("url", ["", "api.openai.com/v1", "ftp://host/x", "http://", "http://[", "http://host:99999/"])
async def test_what_is_no_address_is_unreachable(http, url):
    assert type(await fail(http, url)) is HostUnreachable


async def test_a_host_that_does_not_speak_http_has_failed(http):
    async def greet(reader, writer):
        writer.write(b"220 mail.example ESMTP\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(greet, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await fail(http, f"http://127.0.0.1:{port}/")
    assert type(error) is HostFailed


async def test_the_environments_proxy_is_used(serve, http, monkeypatch):
    async def proxy(request):
        return web.Response(text=f"{request.raw_path} {request.headers['Proxy-Authorization']}")

    address = await serve(proxy)
    monkeypatch.setenv("http_proxy", address.replace("http://", "http://me:pw@"))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert await fetch(http, "http://model.example/v1") == (200, b"http://model.example/v1 Basic bWU6cHc=")


async def test_this_machine_is_never_behind_a_proxy(serve, http, monkeypatch):
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    assert await fetch(http, await serve(stream(b"here"))) == (200, b"here")


async def test_a_proxy_can_be_given(serve):
    async def proxy(request):
        return web.Response(text=request.raw_path)

    http = TrustedHttp(proxy=await serve(proxy))
    assert await fetch(http, "http://model.example/v1") == (200, b"http://model.example/v1")
    await http.close()


async def test_a_proxy_of_another_kind_is_refused_without_telling_its_password():
    error = await fail(TrustedHttp(proxy="socks5://me:pw@proxy:1080"), "https://model.example/")
    assert type(error) is HostUnreachable
    assert "only those are supported" in str(error)
    assert "pw" not in str(error)


@pytest.fixture
def certificate(tmp_path):
    """A company's own authority, which is also the certificate of its server on loopback."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    files = tmp_path / "ca.pem", tmp_path / "key.pem"
    made = [
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        "subjectAltName=IP:127.0.0.1",
    ]
    subprocess.run(["openssl", "req", *made, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True)
    return files


@pytest.fixture
async def secure_url(certificate):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    runner = web.ServerRunner(web.Server(stream(b"safe")), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    yield f"https://127.0.0.1:{runner.addresses[0][1]}/"
    await runner.cleanup()


async def test_a_certificate_of_an_unknown_authority_is_not_trusted(http, secure_url):
    error = await fail(http, secure_url)
    assert type(error) is HostUnreachable
    assert "certificate" in str(error)


async def test_a_companys_authority_can_be_trusted(certificate, secure_url):
    http = TrustedHttp(ca_file=str(certificate[0]))
    assert await fetch(http, secure_url) == (200, b"safe")
    await http.close()


async def test_the_environments_authority_is_trusted(certificate, secure_url, http, monkeypatch):
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate[0]))
    assert await fetch(http, secure_url) == (200, b"safe")


async def test_an_authority_that_cannot_be_read_is_named():
    error = await fail(TrustedHttp(ca_file="/nowhere/ca.pem"), "https://model.example/")
    assert type(error) is HostUnreachable
    assert "/nowhere/ca.pem" in str(error)


async def test_a_closed_http_can_be_closed_again(serve):
    http = TrustedHttp()
    await fetch(http, await serve(stream(b"a")))
    await http.close()
    await http.close()
