import asyncio
import gzip
import shutil
import socket
import ssl
import struct
import subprocess
import zlib
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web
from tests.ports import free_port
from tests.providers.hosts import cut, never, stream

from everloop.errors import HostFailed, HostHungUp, HostTimeout, HostUnreachable, KeyRefused, ProviderError, StreamCut
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


@pytest.mark.parametrize("name, pack", [("gzip", gzip.compress), ("x-gzip", gzip.compress), ("Deflate", zlib.compress)])
async def test_a_compressed_answer_is_read_although_we_never_ask_for_one(serve, http, name, pack):
    packed = pack(b"hello")

    async def handler(request):
        response = web.StreamResponse(headers={"Content-Encoding": name})
        await response.prepare(request)
        for byte in packed if request.path == "/" else packed[:-1]:
            await response.write(bytes([byte]))
        return response

    url = await serve(handler)
    async with http.request("GET", url) as answer:
        chunks = [chunk async for chunk in answer.chunks()]
    assert b"" not in chunks  # which would be taken for the end
    assert b"".join(chunks) == b"hello"
    assert type(await fail(http, f"{url}/cut")) is StreamCut


async def test_a_body_of_nothing_is_not_cut_although_it_is_called_packed(serve, http):
    async def handler(request):
        return web.Response(headers={"Content-Encoding": "gzip"})

    assert await fetch(http, await serve(handler)) == (200, b"")


async def test_what_cannot_be_unpacked_is_cut(serve, http):
    async def handler(request):
        return web.Response(body=b"hello", headers={"Content-Encoding": "gzip"})

    assert type(await fail(http, await serve(handler))) is StreamCut


async def test_what_unpacks_to_much_comes_in_pieces(serve, http):
    """Or a host could fill the memory with one packet."""
    packed = gzip.compress(b"\0" * 50_000_000)

    async def handler(request):
        return web.Response(body=packed, headers={"Content-Encoding": "gzip"})

    async with http.request("GET", await serve(handler)) as answer:
        sizes = [len(chunk) async for chunk in answer.chunks()]
    assert (sum(sizes), max(sizes)) == (50_000_000, 2**18)


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
    async with asyncio.timeout(60):
        await closed.wait()


async def test_a_host_that_is_read_slowly_has_to_wait(serve, http):
    """Or a body would fill the memory of whoever does not take it."""
    sent = 0

    async def handler(request):
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1000):
            await response.write(b"a" * 100_000)
            sent += 100_000
        return response

    async with http.request("GET", await serve(handler)) as answer:
        chunks = answer.chunks()
        taken, seen = len(await anext(chunks)), -1
        while seen != sent:  # until it stands still, which takes no more than the system's own buffers
            seen = sent
            await asyncio.sleep(0.2)
        assert sent < 50_000_000
        taken += sum([len(chunk) async for chunk in chunks])
    assert taken == 100_000_000


async def test_a_connection_that_was_closed_meanwhile_is_made_anew(serve, http):
    connections = []

    async def handler(request):
        connections.append(request.transport)
        return web.Response(body=b"ok")

    url = await serve(handler)
    await fetch(http, url)
    connections[0].abort()
    assert await fetch(http, url) == (200, b"ok")
    assert len(connections) == 2


async def test_a_connection_that_nobody_needs_is_let_go():
    gone = asyncio.Event()

    async def speak(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK)
        assert await reader.read() == b""
        writer.close()
        gone.set()

    http = TrustedHttp(kept=0.05)
    async with await asyncio.start_server(speak, "127.0.0.1", 0) as server:
        assert await fetch(http, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/") == (200, b"ok")
        async with asyncio.timeout(30):
            await gone.wait()
    await http.close()


def answering(*answers: bytes):
    """A server that says these, one for each request, whatever it is asked, over one connection after the other."""
    left = list(answers)

    async def speak(reader, writer):
        while left and await reader.readuntil(b"\r\n\r\n"):
            if not left[0]:
                left.pop(0)
                break
            writer.write(left.pop(0))
            await writer.drain()
        writer.close()

    return asyncio.start_server(speak, "127.0.0.1", 0)


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


@pytest.mark.parametrize(
    "method, then",
    [("GET", (200, b"ok")), ("POST", HostHungUp)],
    ids=["a question is asked again", "what may have been done is not done again"],
)
async def test_a_kept_connection_that_is_closed_instead_of_an_answer(http, method, then):
    async with await answering(OK, b"", OK) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert await fetch(http, url) == (200, b"ok")
        try:
            async with http.request(method, url) as answer:
                got = (answer.status, await answer.read())
        except HostHungUp as error:
            got = type(error)
    assert got == then


async def test_who_says_more_than_was_asked_is_not_asked_again(http):
    async with await answering(OK + b"HTTP/1.1 200 OK\r\n\r\nnot yours", OK) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        assert [await fetch(http, url) for _ in range(2)] == [(200, b"ok"), (200, b"ok")]


@pytest.mark.parametrize("securely", [False, True])
async def test_who_has_not_read_the_question_is_asked_the_next_one_over_another_connection(certificate, securely):
    http, context = TrustedHttp(ca_file=str(certificate[0])), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)

    async def refuse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
        await asyncio.Event().wait()

    async with refusing(refuse, context if securely else None) as url:
        for body in (b"x" * 20_000_000, b"x"):
            async with http.request("POST", url, body=body, seconds=30) as answer:
                assert (answer.status, await answer.read()) == (413, b"no")
        await http.close()


async def test_a_body_without_a_length_is_cut_when_the_connection_is_torn_down(http):
    told = asyncio.Event()

    async def tear(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await told.wait()
        linger_not_at_all = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger_not_at_all)
        writer.transport.abort()

    async with refusing(tear) as url, http.request("GET", url, seconds=30) as answer:
        chunks = answer.chunks()
        assert await anext(chunks) == b"half"
        told.set()
        with pytest.raises(StreamCut):
            await anext(chunks)


async def test_a_body_without_a_length_is_cut_when_we_hang_up_ourselves(http):
    async def speak(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nhalf")
        await asyncio.Event().wait()

    async with refusing(speak) as url, http.request("GET", url, seconds=30) as answer:
        chunks = answer.chunks()
        assert await anext(chunks) == b"half"
        await http.close()
        with pytest.raises(StreamCut):
            await anext(chunks)


@asynccontextmanager
async def refusing(speak, context=None):
    """A server whose connections are ended with it, whatever they wait for."""
    talks = set()

    async def note(reader, writer):
        talks.add(asyncio.current_task())
        with suppress(asyncio.CancelledError, ConnectionError):
            await speak(reader, writer)
        writer.transport.abort()

    async with await asyncio.start_server(note, "127.0.0.1", 0, ssl=context) as server:
        try:
            yield f"http{'s' if context else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        finally:
            for talk in talks:
                talk.cancel()
            await asyncio.gather(*talks)


async def test_a_header_that_would_be_two_is_not_sent(serve, http):
    error = await fail(http, await serve(stream(b"a")), headers={"X-Key": "a\r\nX-Other: b"})
    assert type(error) is KeyRefused
    assert "cannot be sent" in str(error)


async def test_the_name_of_a_host_can_be_another_than_its_address_says(serve, http):
    async def handler(request):
        return web.Response(text=f"{request.headers.getall('Host')}")

    assert await fetch(http, await serve(handler), headers={"host": "model.example"}) == (200, b"['model.example']")


async def test_a_password_in_an_address_is_sent(serve, http):
    async def handler(request):
        if request.path == "/moved":
            raise web.HTTPFound(f"http://{request.host}/")
        return web.Response(text=request.headers["Authorization"])

    url = (await serve(handler)).replace("http://", "http://me:p%40ss@")
    assert await fetch(http, url) == (200, b"Basic bWU6cEBzcw==")
    assert await fetch(http, f"{url}/moved") == (200, b"Basic bWU6cEBzcw==")
    assert type(await fail(http, url, headers={"Authorization": "Bearer k"})) is KeyRefused


async def test_an_address_is_asked_for_as_it_is_written(serve, http):
    async def handler(request):
        return web.Response(text=f"{request.method} {request.raw_path} {request.headers['Host']}")

    url = await serve(handler)
    asked = f"GET /a%20b/%C3%BC?q=1%26+2&x {url.removeprefix('http://')}"
    assert await fetch(http, f"{url}/a b/ü?q=1%26 2&x#here") == (200, asked.encode())


async def test_a_question_is_redirected_and_its_key_stays_with_its_host(serve, http):
    async def end(request):
        return web.Response(text=f"{request.path} {request.headers.get('Authorization')}")

    elsewhere = await serve(end)

    async def handler(request):
        match request.path:
            case "/here":
                raise web.HTTPFound("there?x=1")
            case "/away":
                raise web.HTTPTemporaryRedirect(f"{elsewhere}/end")
            case "/nowhere" | "/files" as path:
                nowhere = {"/nowhere": "http://[nowhere/", "/files": "ftp://files.example/"}
                return web.Response(status=302, headers={"Location": nowhere[path]})
            case "/round":
                raise web.HTTPFound("/round")
        return await end(request)

    url, key = await serve(handler), {"Authorization": "Bearer k"}
    assert await fetch(http, f"{url}/here", headers=key) == (200, b"/there Bearer k")
    assert await fetch(http, f"{url}/away", headers=key) == (200, b"/end None")
    assert str(await fail(http, f"{url}/round")).endswith("redirects more than 10 times.")
    for path in ("/nowhere", "/files"):
        assert str(await fail(http, url + path)).endswith("redirects to what is not a web address.")
    assert http._busy == set()
    async with http.request("GET", f"{url}/here", headers={"X-Key": "k"}) as answer:
        assert answer.status == 302


async def test_a_redirect_to_what_is_not_encrypted_is_not_followed(certificate, serve):
    asked: list[str] = []

    async def end(request):
        asked.append(request.path)
        return web.Response(text="open")

    plain = await serve(end)

    async def handler(request):
        match request.path:
            case "/open":
                raise web.HTTPFound(f"{plain}/end")
            case "/twice":
                raise web.HTTPFound("/open")
            case "/safe":
                raise web.HTTPFound("/end")
        return web.Response(text="safe")

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    runner = web.ServerRunner(web.Server(handler), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    secure, http = f"127.0.0.1:{runner.addresses[0][1]}", TrustedHttp(ca_file=str(certificate[0]))
    for path in ("/open", "/twice"):
        error = await fail(http, f"https://{secure}{path}", headers={"Authorization": "Bearer k"})
        assert (type(error), str(error)) == (
            HostFailed,
            f"{secure} redirects to {plain}, which is not encrypted, so it is not followed. Ask for that address "
            "itself if it is wanted.",
        )
    assert (asked, http._busy) == ([], set())
    assert await fetch(http, f"https://{secure}/safe") == (200, b"safe")
    assert await fetch(http, f"{plain}/end") == (200, b"open")  # who wants it can have it
    await http.close()
    await runner.cleanup()


async def test_a_hop_ends_with_its_first_answer(serve, http):
    async def handler(request):
        raise web.HTTPFound("/elsewhere")

    url = await serve(handler)
    for method in ("GET", "POST"):
        async with http.hop(method, url) as answer:
            assert (answer.status, answer.headers["Location"]) == (302, "/elsewhere")


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
    error = await fail(http, await serve(never) + "/v1?key=secret", seconds=0.5)
    assert type(error) is HostTimeout
    assert str(error).endswith("has not answered within 0.5 s.")
    assert "secret" not in str(error)


async def test_a_host_that_falls_silent_is_too_slow(serve, http):
    error = await fail(http, await serve(stream(b"a", then=never)), seconds=0.5)  # in which its head has come
    assert type(error) is HostTimeout
    assert str(error).endswith("fell silent in the middle of its answer.")


async def test_a_host_that_hangs_up_before_answering_is_unreachable(serve, http):
    error = await fail(http, await serve(cut))
    assert type(error) is HostHungUp
    assert str(error).endswith("closed the connection before it answered.")


async def test_a_closed_port_is_unreachable(http):
    port = free_port()
    error = await fail(http, f"http://127.0.0.1:{port}/v1?key=secret")
    assert type(error) is HostUnreachable
    assert str(error) == f"127.0.0.1:{port} cannot be reached: connection refused."


@pytest.mark.parametrize("name", ["no-such-host.invalid", "two..dots.invalid", f"{'a' * 64}.invalid"])
async def test_a_name_that_does_not_exist_cannot_be_found(http, name):
    error = await fail(http, f"http://{name}/")
    assert (type(error), str(error)) == (HostUnreachable, f"{name} cannot be found: check its name and the network.")


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


def passing(asked, context=None):
    """A proxy that passes connections on, and notes what it was asked."""

    async def speak(reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        asked.append(head)
        host, _, port = head.split()[1].rpartition(":")
        if host == "refused.example":
            writer.write(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
            writer.close()
            return
        there, to = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")

        async def pass_on(source, target):
            while data := await source.read(2**16):
                target.write(data)
            target.close()

        await asyncio.gather(pass_on(reader, to), pass_on(there, writer), return_exceptions=True)

    return asyncio.start_server(speak, "127.0.0.1", 0, ssl=context)


@pytest.fixture
async def tunnel():
    asked = []
    async with await passing(asked) as server:
        yield f"http://me:pw@127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_a_proxy_can_be_spoken_to_securely_itself(certificate, secure_url):
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    async with await passing([], context) as server:
        address = f"https://me:pw@127.0.0.1:{server.sockets[0].getsockname()[1]}"
        http = TrustedHttp(ca_file=str(certificate[0]), proxy=address)
        url = secure_url.replace("127.0.0.1", "model.example")
        assert [await fetch(http, url) for _ in range(2)] == [(200, b"safe")] * 2
        error = await fail(http, url.replace("model", "other"))
        assert type(error) is HostUnreachable
        assert "certificate" in str(error)
        await http.close()


async def test_a_proxy_passes_on_what_it_cannot_read(tunnel, certificate, secure_url):
    address, asked = tunnel
    url = secure_url.replace("127.0.0.1", "model.example")
    where = url.removeprefix("https://").removesuffix("/")
    http = TrustedHttp(ca_file=str(certificate[0]), proxy=address)
    assert [await fetch(http, url) for _ in range(2)] == [(200, b"safe")] * 2
    assert asked == [f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\nProxy-Authorization: Basic bWU6cHc=\r\n\r\n"]
    await http.close()


@pytest.mark.parametrize("leave", ["cancelled", "too slow"])
@pytest.mark.parametrize("says", [b"", b"HTTP/1.1 200 Connection established\r\n\r\n"], ids=["no word", "no TLS"])
async def test_a_tunnel_that_is_not_waited_for_is_left(says, leave):
    heard, left = asyncio.Event(), asyncio.Event()

    async def speak(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(says)
        heard.set()
        with suppress(ConnectionError):
            while await reader.read(1000):
                pass
        left.set()

    async with refusing(speak) as address:
        http = TrustedHttp(proxy=address)
        seconds = 30 if leave == "cancelled" else 0.5  # in which it is connected, and has asked
        task = asyncio.create_task(fetch(http, "https://model.example/", seconds=seconds))
        async with asyncio.timeout(30):
            await heard.wait()
            if leave == "cancelled":
                task.cancel()
            assert await asyncio.gather(task, return_exceptions=True) != [(200, b"safe")]
            await left.wait()


async def test_a_proxy_is_told_an_ipv6_address_in_brackets(tunnel, certificate, secure_url):
    address, asked = tunnel
    http = TrustedHttp(ca_file=str(certificate[0]), proxy=address)
    url = secure_url.replace("127.0.0.1", "[2606:4700::1]")
    assert "certificate" in str(await fail(http, url))  # it is for another name
    assert asked[0].startswith(f"CONNECT {url.removeprefix('https://').removesuffix('/')} HTTP/1.1\r\n")
    await http.close()


async def test_a_host_is_called_by_the_name_that_its_letters_stand_for(tunnel, certificate, secure_url):
    """Not by that of strasse.example, which is somebody else's."""
    address, asked = tunnel
    http = TrustedHttp(ca_file=str(certificate[0]), proxy=address)
    assert await fetch(http, secure_url.replace("127.0.0.1", "straße.example")) == (200, b"safe")
    assert asked[0].startswith("CONNECT xn--strae-oqa.example:")
    await http.close()


async def test_what_a_proxy_refuses_is_unreachable(tunnel):
    http = TrustedHttp(proxy=tunnel[0])
    error = await fail(http, "https://refused.example/")
    assert (type(error), str(error)) == (
        HostUnreachable,
        "refused.example cannot be reached: the proxy refuses to connect (403).",
    )
    await http.close()


async def test_an_address_of_a_proxy_that_cannot_be_understood_is_the_reason():
    error = await fail(TrustedHttp(proxy="http://me:pw@proxy:port"), "https://model.example/")
    assert (type(error), str(error)) == (
        HostUnreachable,
        "model.example cannot be reached: the address of its proxy cannot be understood.",
    )


async def test_a_proxy_that_is_not_there_is_named_as_the_reason():
    http = TrustedHttp(proxy=f"http://me:pw@127.0.0.1:{free_port()}")
    for url in ("https://model.example/", "http://model.example/"):
        assert str(await fail(http, url)) == (
            "model.example cannot be reached: the proxy that is named for it does not answer."
        )


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """A company's own authority, which is also the certificate of its server on loopback."""
    if not shutil.which("openssl"):
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("certificate")
    files = folder / "ca.pem", folder / "key.pem"
    made = [
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-subj",
        "/CN=127.0.0.1",
        "-addext",
        "subjectAltName=IP:127.0.0.1,DNS:model.example,DNS:xn--strae-oqa.example",
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


async def test_a_secure_connection_is_used_again(certificate, secure_url):
    http = TrustedHttp(ca_file=str(certificate[0]))
    for _ in range(3):
        async with http.request("GET", secure_url) as answer:
            assert [chunk async for chunk in answer.chunks()] == [b"safe"]
    assert len([each for kept in http._idle.values() for each in kept]) == 1
    await http.close()


async def test_a_certificate_of_another_name_is_not_trusted(certificate, secure_url):
    http = TrustedHttp(ca_file=str(certificate[0]))
    error = await fail(http, secure_url.replace("127.0.0.1", "localhost"))
    assert "certificate" in str(error)
    await http.close()


async def test_a_host_that_does_not_speak_tls_is_told_apart(serve, http):
    error = await fail(http, (await serve(stream(b"plain"))).replace("http://", "https://"))
    assert str(error).endswith("cannot be reached securely (TLS). Check whether the address wants http or https.")


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
