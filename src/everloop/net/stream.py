"""A connection for protocols that are not HTTP: made as those for requests are, by name, through a proxy, with TLS."""

import asyncio
import os
import re
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import cast

from yarl import URL

from ..errors import AnswerOversized, HostUnreachable, StreamCut
from .dialing import basic, connect_host, host_of, name_of, trusting
from .failures import CONNECT_SECONDS, explain_no_connection
from .proxies import find_proxy
from .resolver import Resolver

_MOST_WAITING = 2**18  # bytes that nobody has taken yet: more of it has to wait at the host
_LONGEST_HEAD = 16_384  # bytes that a proxy may say before it connects
_AGREED = re.compile(rb"HTTP/1\.[01] 200\b")


class StreamConnection(asyncio.Protocol):
    """The ByteStream port. What comes is kept here, so that a read that is cancelled loses nothing."""

    def __init__(self, name: str, server_name: str, trust: Callable[[], ssl.SSLContext]) -> None:
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._server_name = server_name
        self._trust = trust
        self._came = bytearray()
        self._ended = self._paused = False
        self._arrival: asyncio.Future[None] | None = None
        self._may_write = asyncio.Event()
        self._may_write.set()
        self._transport: asyncio.Transport

    async def read_line(self, limit: int = 65_536) -> bytes:
        looked = 0
        while (end := self._came.find(b"\n", looked)) < 0:
            looked = len(self._came)
            if looked > limit:
                raise AnswerOversized(f"{self._name} says a line of more than {limit} bytes.")
            await self._more()
        if end >= limit:
            raise AnswerOversized(f"{self._name} says a line of more than {limit} bytes.")
        return self._take(end + 1)

    async def read_exactly(self, count: int) -> bytes:
        while len(self._came) < count:
            await self._more()
        return self._take(count)

    async def write(self, data: bytes) -> None:
        if self._ended:
            raise self._cut()
        self._transport.write(data)
        await self._may_write.wait()
        if self._ended:
            raise self._cut()

    async def secure(self) -> None:
        if self._came:
            raise HostUnreachable(
                f"{self._name} says something between STARTTLS and TLS, as if somebody stood in between; nothing is "
                f"sent there."
            )
        if self._ended:
            raise self._cut()
        try:
            transport = await self._loop.start_tls(
                self._transport, self, self._trust(), server_hostname=self._server_name
            )
        except OSError as error:
            raise explain_no_connection(error, self._name, CONNECT_SECONDS) from error
        except TypeError as error:  # Python 3.11 stumbles when TLS fails within TLS; the reason stands behind it
            if not isinstance(error.__context__, OSError):
                raise
            raise explain_no_connection(error.__context__, self._name, CONNECT_SECONDS) from error
        if transport is None:
            raise self._cut()
        self._transport = transport

    def close(self) -> None:
        self._ended = True
        self._transport.abort()
        self._wake()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._came += data
        if len(self._came) > _MOST_WAITING and not self._paused and self._arrival is None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        self._ended = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self._ended = True
        self._wake()

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    async def _more(self) -> None:
        """Wait until more has come, however much waits already."""
        if self._ended:
            raise self._cut()
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        self._arrival = self._loop.create_future()
        try:
            await self._arrival
        finally:
            self._arrival = None

    def _take(self, count: int) -> bytes:
        taken = bytes(self._came[:count])
        del self._came[:count]
        return taken

    def _wake(self) -> None:
        if self._ended:
            self._may_write.set()
        if self._arrival and not self._arrival.done():
            self._arrival.set_result(None)

    def _cut(self) -> StreamCut:
        return StreamCut(f"{self._name} closed the connection.")


class StreamDialer:
    """Dials as requests do. `ca_file` and `proxy` are those of TrustedHttp."""

    def __init__(self, ca_file: str | None, proxy: str, resolver: Resolver) -> None:
        self._ca_file = ca_file
        self._proxy = proxy
        self._authorities: ssl.SSLContext | None = None
        self.resolver = resolver
        self.streams: set[StreamConnection] = set()

    def dial(self, host: str, port: int, *, tls: bool, seconds: float) -> "StreamOpening":
        """Raises HostUnreachable for what is no host."""
        try:
            url = URL.build(scheme="https" if tls else "http", host=host, port=port)
        except ValueError as error:
            raise HostUnreachable(f"{host[:100]!r} is no name of a host.") from error
        return StreamOpening(self, url, seconds)

    def proxy_for(self, url: URL) -> URL | None:
        return find_proxy(url.with_scheme("https"), self._proxy)

    def trust(self) -> ssl.SSLContext:
        """No protocol is offered (ALPN): a mail server may refuse whoever offers HTTP."""
        if self._authorities is None:
            self._authorities = trusting(self._ca_file, os.environ.get("REQUESTS_CA_BUNDLE"), protocols=())
        return self._authorities

    def close(self) -> None:
        for stream in self.streams:
            stream.close()


class StreamOpening:
    """`async with` it."""

    def __init__(self, dialer: StreamDialer, url: URL, seconds: float) -> None:
        self._dialer = dialer
        self._url = url
        self._seconds = seconds
        self._stream: StreamConnection

    async def __aenter__(self) -> StreamConnection:
        name = name_of(self._url)
        try:
            async with asyncio.timeout(min(self._seconds, CONNECT_SECONDS)):
                self._stream = await self._dial(name, self._dialer.proxy_for(self._url))
        except UnicodeError as error:  # the host has what cannot be part of a name
            raise HostUnreachable(f"{name} cannot be found: check its name and the network.") from error
        except OSError as error:
            raise explain_no_connection(error, name, self._seconds) from error
        self._dialer.streams.add(self._stream)
        return self._stream

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._dialer.streams.discard(self._stream)
        self._stream.close()

    async def _dial(self, name: str, proxy: URL | None) -> StreamConnection:
        def speak() -> StreamConnection:
            return StreamConnection(name, host_of(self._url).rstrip("."), self._dialer.trust)

        first = self._url if proxy is None else proxy
        trust = self._dialer.trust() if first.scheme == "https" else None
        if proxy is None:
            return await connect_host(self._url, trust, self._dialer.resolver, speak)
        try:
            stream = await connect_host(proxy, trust, self._dialer.resolver, speak)
        except (OSError, UnicodeError) as error:
            why = "the proxy that is named for it does not answer"
            raise HostUnreachable(f"{name} cannot be reached: {why}.") from error
        try:
            await self._tunnel(stream, name, proxy)
            if self._url.scheme == "https":
                await stream.secure()
        except BaseException:
            stream.close()
            raise
        return stream

    async def _tunnel(self, stream: StreamConnection, name: str, proxy: URL) -> None:
        """CONNECT. A host that speaks first may do so in the same packet: what follows the head stays where it is."""
        where = f"{self._url.host_subcomponent}:{self._url.port}"
        key = f"Proxy-Authorization: {basic(proxy)}\r\n" if proxy.user else ""
        try:
            await stream.write(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{key}\r\n".encode())
            first = line = await stream.read_line(_LONGEST_HEAD)
            left = _LONGEST_HEAD
            while line.strip() and left > 0:
                left -= len(line)
                line = await stream.read_line(_LONGEST_HEAD)
        except (StreamCut, AnswerOversized):
            first, left = b"", 0
        if not _AGREED.match(first) or left <= 0:
            raise HostUnreachable(f"{name} cannot be reached: the proxy refuses to connect.")
