"""OpenHttp against servers on loopback, which its owner permits here: redirects, limits, names and certificates."""

import asyncio
import gzip
import shutil
import ssl
import subprocess
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from aiohttp import web

from everloop.errors import (
    AddressRefused,
    AnswerTooLarge,
    EverloopError,
    HostFailed,
    HostTimeout,
    HostUnreachable,
    KeyRefused,
    StreamCut,
)
from everloop.net.open import OpenHttp

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@pytest.fixture
async def serve() -> AsyncIterator[Callable[..., Awaitable[str]]]:
    async with AsyncExitStack() as stack:

        async def start(handler: Handler, context: ssl.SSLContext | None = None) -> str:
            runner = web.ServerRunner(web.Server(handler, handler_cancellation=True), shutdown_timeout=0.01)
            await runner.setup()
            stack.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
            return f"{'https' if context else 'http'}://127.0.0.1:{runner.addresses[0][1]}"

        yield start


@pytest.fixture
async def http() -> AsyncIterator[OpenHttp]:
    http = OpenHttp(["127.0.0.1"], max_bytes=1_000_000)
    yield http
    await http.close()


async def fetch(http: OpenHttp, url: str, **asked) -> tuple[int, str, bytes]:
    async with http.request("GET", url, **asked) as answer:
        return answer.status, answer.url, b"".join([chunk async for chunk in answer.chunks()])


async def fail(http: OpenHttp, url: str, **asked) -> EverloopError:
    with pytest.raises(EverloopError) as raised:
        await fetch(http, url, **asked)
    return raised.value


def says(body: bytes, **headers: str) -> Handler:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=body, headers={name.replace("_", "-"): value for name, value in headers.items()})

    return handler


def streams(piece: bytes, times: int, encoding: str = "") -> Handler:
    async def handler(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Encoding": encoding} if encoding else {})
        await response.prepare(request)
        for _ in range(times):
            await response.write(piece)
        return response

    return handler


class TestAsking:
    async def test_an_answer_has_status_headers_body_and_where_it_came_from(self, serve, http):
        url = await serve(says(b"hello", X_Said="yes"))
        async with http.request("GET", f"{url}/a?b=ü#c") as answer:
            assert (answer.status, answer.headers["x-said"], await answer.read()) == (200, "yes", b"hello")
            assert answer.url == f"{url}/a?b=%C3%BC"

    async def test_a_request_carries_body_and_headers(self, serve, http):
        seen = {}

        async def handler(request):
            seen.update(body=await request.read(), key=request.headers["X-Key"], path=request.raw_path)
            seen.update(encoding=request.headers["Accept-Encoding"])
            return web.Response()

        url = await serve(handler)
        async with http.request("POST", f"{url}/a%2Fb", body=b"x", headers={"X-Key": "k"}) as answer:
            assert answer.status == 200
        assert seen == {"body": b"x", "key": "k", "path": "/a%2Fb", "encoding": "gzip"}

    async def test_loopback_is_refused_unless_it_is_permitted(self, serve):
        async def handler(request):
            raise AssertionError("nobody may come here")

        error = await fail(OpenHttp(), await serve(handler))
        assert type(error) is AddressRefused
        assert str(error) == "127.0.0.1 means this machine. Only the owner can permit it."

    async def test_cookies_are_not_kept(self, serve, http):
        seen = []

        async def handler(request):
            seen.append(request.headers.get("Cookie"))
            return web.Response(headers={"Set-Cookie": "a=b"})

        url = await serve(handler)
        await fetch(http, url)
        await fetch(http, url)
        assert seen == [None, None]

    async def test_the_environments_proxy_is_not_used(self, serve, http, monkeypatch):
        async def proxy(request):
            raise AssertionError("nobody may come here")

        address = await serve(proxy)
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, address)
        monkeypatch.setenv("no_proxy", "")
        assert (await fetch(http, await serve(says(b"direct"))))[2] == b"direct"

    async def test_a_name_that_does_not_exist_cannot_be_found(self):
        async def lookup(host, port):
            raise OSError(-2, "Name or service not known")

        error = await fail(OpenHttp(lookup=lookup), "http://nowhere.example/")
        assert (type(error), str(error)) == (
            HostUnreachable,
            "nowhere.example cannot be found: check its name and the network.",
        )

    async def test_a_name_without_addresses_cannot_be_found(self):
        async def lookup(host, port):
            return []

        assert type(await fail(OpenHttp(lookup=lookup), "http://nowhere.example/")) is HostUnreachable

    async def test_a_permitted_name_is_asked_as_what_it_is_called(self, serve):
        async def lookup(host, port):
            return ["127.0.0.1"]

        async def handler(request):
            return web.Response(text=request.headers["Host"])

        port = (await serve(handler)).rpartition(":")[2]
        http = OpenHttp([f"nas.example:{port}"], lookup=lookup)
        assert (await fetch(http, f"http://NAS.example.:{port}/"))[2] == f"nas.example:{port}".encode()
        error = await fail(http, f"http://other.example:{port}/")
        assert str(error) == (
            "other.example leads to 127.0.0.1, which means this machine. Only the owner can permit it."
        )
        await http.close()

    async def test_a_header_that_would_be_two_is_not_sent(self, serve, http):
        error = await fail(http, await serve(says(b"")), headers={"X-Key": "a\r\nX-Other: b"})
        assert (type(error), str(error)) == (
            KeyRefused,
            "A header for 127.0.0.1 has characters that cannot be sent. Copy it again.",
        )

    async def test_a_closed_http_can_be_closed_again(self, serve, http):
        await fetch(http, await serve(says(b"")))
        await http.close()
        await http.close()


class TestRedirects:
    async def test_they_are_followed_and_the_last_address_is_told(self, serve, http):
        async def handler(request):
            if request.path == "/end":
                return web.Response(text="there")
            raise web.HTTPFound({"/": "a/b?c", "/a/b": f"//127.0.0.1:{request.url.port}/end"}[request.path])

        url = await serve(handler)
        assert await fetch(http, url) == (200, f"{url}/end", b"there")

    async def test_five_are_followed_and_no_more(self, serve, http):
        async def handler(request):
            left = int(request.path[1:])
            if left:
                raise web.HTTPFound(f"/{left - 1}")
            return web.Response(text="there")

        url = await serve(handler)
        assert (await fetch(http, f"{url}/5"))[2] == b"there"
        error = await fail(http, f"{url}/6")
        assert (type(error), str(error)) == (HostFailed, "127.0.0.1 redirects more than 5 times.")

    async def test_only_harmless_headers_travel_to_another_host(self, serve, http):
        seen = []

        async def end(request):
            seen.append({"Authorization", "X-Key", "Accept"} & request.headers.keys())
            return web.Response()

        url = await serve(end)

        async def begin(request):
            seen.append({"Authorization", "X-Key", "Accept"} & request.headers.keys())
            raise web.HTTPFound(url)

        asked = {"Authorization": "Bearer k", "X-Key": "k", "Accept": "text/html"}
        await fetch(http, await serve(begin), headers=asked)
        assert seen == [set(asked), {"Accept"}]

    async def test_a_post_is_not_redirected(self, serve, http):
        async def handler(request):
            raise web.HTTPFound("/elsewhere")

        async with http.request("POST", await serve(handler), body=b"x") as answer:
            assert answer.status == 302

    async def test_a_hop_ends_with_its_first_answer(self, serve, http):
        async def handler(request):
            raise web.HTTPFound("/elsewhere")

        for method in ("GET", "POST"):
            async with http.hop(method, await serve(handler)) as answer:
                assert (answer.status, answer.headers["Location"]) == (302, "/elsewhere")

    async def test_a_redirect_that_leads_nowhere_is_an_answer(self, serve, http):
        async def handler(request):
            return web.Response(status=302, text="lost")

        assert (await fetch(http, await serve(handler)))[::2] == (302, b"lost")

    @pytest.mark.parametrize("location", ["file:///etc/hostname", "http://[", "http://10.0.0.1/", "\\\\10.0.0.1"])
    async def test_one_that_leads_elsewhere_is_refused(self, serve, http, location):
        async def handler(request):
            return web.Response(status=301, headers={"Location": location})

        assert type(await fail(http, await serve(handler))) is AddressRefused


class TestLimits:
    async def test_an_endless_body_is_cut_off(self, serve, http):
        error = await fail(http, await serve(streams(b"x" * 65536, 10**9)))
        assert (type(error), str(error)) == (AnswerTooLarge, "127.0.0.1 sends more than 1,000,000 bytes.")

    async def test_the_first_bytes_of_an_endless_body_can_be_read(self, serve, http):
        async with http.request("GET", await serve(streams(b"x" * 65536, 10**9))) as answer:
            assert await answer.read(1000) == b"x" * 1000

    async def test_what_is_packed_is_unpacked(self, serve, http):
        packed = gzip.compress(b"hello " * 50_000) + gzip.compress(b"world")
        body = (await fetch(http, await serve(says(packed, Content_Encoding="gzip"))))[2]
        assert body == b"hello " * 50_000 + b"world"

    async def test_a_bomb_is_counted_as_what_it_unpacks_to(self, serve, http):
        packer = zlib.compressobj(9, wbits=31)
        bomb = b"".join(packer.compress(b"\0" * 2**20) for _ in range(200)) + packer.flush()
        assert len(bomb) < 300_000  # for 200 MB
        error = await fail(http, await serve(says(bomb, Content_Encoding="gzip")))
        assert type(error) is AnswerTooLarge

    async def test_what_unpacks_to_nothing_is_counted_as_it_is_sent(self, serve, http):
        nothing = zlib.compressobj(wbits=31)
        begin = nothing.flush(zlib.Z_SYNC_FLUSH)
        block = nothing.flush(zlib.Z_FULL_FLUSH) or b"\0\0\0\xff\xff"

        async def handler(request):
            response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
            await response.prepare(request)
            await response.write(begin)
            while True:
                await response.write(block * 10_000)

        assert type(await fail(http, await serve(handler))) is AnswerTooLarge

    async def test_of_many_small_files_each_is_unpacked_once_and_what_follows_them_is_not_read(self, serve, http):
        packed = gzip.compress(b"a") * 40_000 + b"\0" * 20_000 + b"\x1f" * 20_000
        body = (await fetch(http, await serve(says(packed, Content_Encoding="gzip"))))[2]
        assert body == b"a" * 40_000

    async def test_a_packed_body_that_breaks_off_is_cut(self, serve, http):
        half = gzip.compress(bytes(range(256)) * 100)[:200]
        assert type(await fail(http, await serve(says(half, Content_Encoding="gzip")))) is StreamCut

    async def test_what_is_not_gzip_has_failed(self, serve, http):
        assert type(await fail(http, await serve(says(b"hello", Content_Encoding="gzip")))) is HostFailed

    @pytest.mark.parametrize("encoding", ["br", "zstd", "deflate", "gzip, gzip"])
    async def test_packing_that_was_not_asked_for_has_failed(self, serve, http, encoding):
        error = await fail(http, await serve(says(b"hello", Content_Encoding=encoding)))
        assert type(error) is HostFailed
        assert encoding in str(error)

    async def test_a_host_that_says_nothing_is_too_slow(self, serve, http):
        async def handler(request):
            await asyncio.Event().wait()

        error = await fail(http, await serve(handler), seconds=0.1)
        assert (type(error), str(error)) == (HostTimeout, "127.0.0.1 has not answered within 0.1 s.")

    async def test_a_body_that_trickles_is_too_slow(self, serve, http):
        """Each byte comes soon after the last, so only the time for all of it can end this."""

        async def handler(request):
            response = web.StreamResponse()
            await response.prepare(request)
            while True:
                await response.write(b"x")
                await asyncio.sleep(0.005)

        error = await fail(http, await serve(handler), seconds=1)
        assert (type(error), str(error)) == (HostTimeout, "127.0.0.1 has not sent all of its answer in time.")

    async def test_redirects_share_one_time(self, serve, http):
        async def handler(request):
            await asyncio.sleep(0.06)
            raise web.HTTPFound("/")

        assert type(await fail(http, await serve(handler), seconds=0.15)) is HostTimeout

    async def test_a_name_that_nobody_answers_for_is_too_slow(self):
        async def lookup(host, port):
            await asyncio.Event().wait()

        assert type(await fail(OpenHttp(lookup=lookup), "http://slow.example/", seconds=0.1)) is HostTimeout

    @pytest.mark.parametrize("header", [b"X: " + b"x" * 100_000, b"\r\n".join(b"X: y" for _ in range(5000))])
    async def test_headers_without_end_have_failed(self, http, header):
        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\n")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            assert type(await fail(http, f"http://127.0.0.1:{port}/")) is HostFailed

    async def test_a_length_that_lies_is_a_cut(self, http):
        async def answer(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort")
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            assert type(await fail(http, f"http://127.0.0.1:{port}/")) is StreamCut


class TestSecurely:
    @pytest.fixture
    def certificate(self, tmp_path):
        if not shutil.which("openssl"):
            pytest.skip("openssl is not installed")
        files = tmp_path / "ca.pem", tmp_path / "key.pem"
        made = [
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-subj",
            "/CN=shop",
            "-addext",
            "subjectAltName=DNS:shop.example",
        ]
        subprocess.run(
            ["openssl", "req", *made, "-out", files[0], "-keyout", files[1]], check=True, capture_output=True
        )
        return files

    @pytest.fixture
    async def shop(self, serve, certificate):
        """A server that has a certificate for its name, the names that clients have called it by, and its port."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*certificate)
        called = []
        context.sni_callback = lambda connection, name, _: called.append(name)

        async def handler(request):
            if request.path == "/down":
                raise web.HTTPFound("http://shop.example/")
            return web.Response(text=request.headers["Host"])

        return called, (await serve(handler, context)).rpartition(":")[2]

    async def lookup(self, host, port):
        return ["127.0.0.1"]

    async def test_the_checked_address_is_asked_by_its_name_and_shows_the_names_certificate(self, shop, certificate):
        called, port = shop
        http = OpenHttp(["127.0.0.1"], ca_file=str(certificate[0]), lookup=self.lookup)
        assert (await fetch(http, f"https://shop.example:{port}/"))[2] == f"shop.example:{port}".encode()
        assert called == ["shop.example"]
        error = await fail(http, f"https://other.example:{port}/")
        assert type(error) is HostUnreachable
        assert "certificate" in str(error)
        await http.close()

    async def test_a_redirect_to_what_is_not_encrypted_is_refused(self, shop, certificate):
        http = OpenHttp(["127.0.0.1"], ca_file=str(certificate[0]), lookup=self.lookup)
        error = await fail(http, f"https://shop.example:{shop[1]}/down")
        assert (type(error), str(error)) == (
            AddressRefused,
            "shop.example redirects to http://shop.example, which is not encrypted. Ask for that address itself if it "
            "is wanted.",
        )
        await http.close()

    async def test_an_authority_that_cannot_be_read_is_named(self):
        error = await fail(OpenHttp(ca_file="/nowhere/ca.pem"), "https://shop.example/")
        assert type(error) is HostUnreachable
        assert "/nowhere/ca.pem" in str(error)
