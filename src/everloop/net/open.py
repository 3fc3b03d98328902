"""Requests to whatever a model, a user or a page can aim: read once, resolved, checked, and sent where it was checked.

The check stands in the resolver, whose answer is what the connection is made to, so a name that leads elsewhere a
moment later leads nowhere. All of a name's addresses must pass; one that does not refuses the name. Each redirect
comes in by the same door as the first address.

No proxy is used, whatever the environment names: a proxy resolves names itself, and nobody would check that.
"""

import asyncio
import socket
import ssl
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from ipaddress import IPv6Address, ip_address
from types import TracebackType
from urllib.parse import urljoin

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from everloop.core.errors import (
    AddressRefused,
    AnswerTooLarge,
    HostFailed,
    HostTimeout,
    HostUnreachable,
    ProviderError,
    StreamCut,
)

from .addresses import Address, Allowed, Target, check_address, read_url
from .failures import explain_cut, explain_no_answer, explain_no_connection

MOST_BYTES = 20_000_000
MOST_REDIRECTS = 5
_CONNECT_SECONDS = 10.0
_PIECE = 2**18
_GZIP = 31  # how zlib calls a gzip header with the largest window
_MAGIC = b"\x1f"
_NO_HEADERS: Mapping[str, str] = {}
_ALWAYS = {"Accept-Encoding": "gzip", "User-Agent": "Mozilla/5.0 (compatible; everloop)"}
_REDIRECTS = {301, 302, 303, 307, 308}
_MAY_TRAVEL = {"accept", "accept-language", "range", "user-agent"}
_FAILURES = (aiohttp.ClientError, OSError)

Lookup = Callable[[str, int], Awaitable[list[str]]]


async def look_up(host: str, port: int) -> list[str]:
    """All addresses of a name, as the system knows them. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(each[4][0]) for each in found]


class OpenHttp:
    """The Http port, for addresses that are not the owner's. `allow` is what they permit beside the public web.

    `seconds` of a request is for all of it: names, redirects and the body. No more than `max_bytes` of a body are
    taken, as sent or as unpacked. A redirect from https to http is refused: whoever wants that page can ask for it.
    Raises AddressRefused and AnswerTooLarge beside what the port raises.
    """

    def __init__(
        self,
        allow: Iterable[str] = (),
        *,
        max_bytes: int = MOST_BYTES,
        ca_file: str | None = None,
        lookup: Lookup = look_up,
    ) -> None:
        self.allowed = Allowed(allow)
        self.max_bytes = max_bytes
        self._ca_file = ca_file
        self._lookup = lookup
        self._session: aiohttp.ClientSession | None = None

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = _NO_HEADERS,
        seconds: float = 120.0,
    ) -> "_Exchange":
        return _Exchange(self, method, url, body, headers, seconds)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def send(
        self, method: str, target: Target, body: bytes, headers: Mapping[str, str], seconds: float
    ) -> aiohttp.ClientResponse:
        """One hop. Raises AddressRefused, and ProviderError when nothing answers."""
        if target.address:
            check_here(target.host, target.port, target.address, self.allowed)
        try:
            return await self._opened().request(
                method, target.url, data=body or None, headers=headers, allow_redirects=False
            )
        except _FAILURES as error:
            raise _explain(error, target.host, min(seconds, _CONNECT_SECONDS)) from error

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # A connection is used once, so that each request goes where its own check has said.
                connector=aiohttp.TCPConnector(
                    resolver=_CheckedResolver(self._lookup, self.allowed),
                    use_dns_cache=False,
                    force_close=True,
                    ssl=_trust(self._ca_file),
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                headers=_ALWAYS,
                auto_decompress=False,
                trust_env=False,
            )
        return self._session


def _explain(error: Exception, host: str, seconds: float) -> ProviderError:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return explain_no_connection(TimeoutError(), host, seconds)
        case aiohttp.ClientConnectorCertificateError():
            return explain_no_connection(ssl.SSLCertVerificationError(), host, seconds)
        case aiohttp.ClientConnectorDNSError():
            return explain_no_connection(socket.gaierror(), host, seconds)
        case aiohttp.ClientConnectorError():
            return explain_no_connection(error.os_error, host, seconds)
        case aiohttp.ClientConnectionError():
            return explain_no_answer(EOFError(), host, seconds)
        case _:
            return explain_no_answer(error, host, seconds)


class _CheckedResolver(AbstractResolver):
    """Gives addresses only if all have passed."""

    def __init__(self, lookup: Lookup, allowed: Allowed) -> None:
        self._lookup = lookup
        self._allowed = allowed

    async def resolve(self, host: str, port: int = 0, family: int = socket.AF_UNSPEC) -> list[ResolveResult]:
        found = dict.fromkeys(ip_address(each) for each in await self._lookup(host, port))
        if not found:
            raise OSError(None, "no addresses")
        for address in found:
            check_here(host, port, address, self._allowed)
        return [_resolved(host, port, address) for address in found]

    async def close(self) -> None:
        pass


def _resolved(host: str, port: int, address: Address) -> ResolveResult:
    return ResolveResult(
        hostname=host,
        host=str(address),
        port=port,
        family=socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET,
        proto=0,
        flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
    )


def check_here(host: str, port: int, address: Address, allowed: Allowed) -> None:
    """Raises AddressRefused unless the owner permits it, or it is public and neither this machine nor a neighbour."""
    if allowed.permits(host, port, address):
        return
    check_address(host, port, address)
    source = _source_towards(address)
    if source == address or (source and _are_neighbours(source, address)):
        raise AddressRefused(f"{host} leads into this machine's own network. Only the owner can permit it.")


def _source_towards(address: Address) -> Address | None:
    """The address from which this machine would speak to that one; no packet is sent to learn it."""
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ip_address(probe.getsockname()[0])
    except OSError:
        return None  # there is no way there, as connecting will say


def _are_neighbours(one: Address, other: Address) -> bool:
    """IPv6 gives machines at home public addresses, and a router's wall stands before them, not between them."""
    return isinstance(one, IPv6Address) and isinstance(other, IPv6Address) and int(one) >> 64 == int(other) >> 64


def _trust(ca_file: str | None) -> ssl.SSLContext | bool:
    if ca_file is None:
        return True
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except (OSError, ssl.SSLError) as error:
        raise HostUnreachable(f"The certificate file {ca_file} cannot be used: {error}.") from error
    return context


class _Exchange:
    """A request, the redirects it is sent through, and the last answer."""

    def __init__(
        self, http: OpenHttp, method: str, url: str, body: bytes, headers: Mapping[str, str], seconds: float
    ) -> None:
        self._http = http
        self._method = method
        self._url = url
        self._body = body
        self._headers = headers
        self._seconds = seconds
        self._response: aiohttp.ClientResponse | None = None

    async def __aenter__(self) -> "OpenAnswer":
        target = read_url(self._url)
        deadline = asyncio.get_running_loop().time() + self._seconds
        try:
            async with asyncio.timeout_at(deadline):
                target, self._response = await self._follow(target)
        except TimeoutError as error:
            raise HostTimeout(f"{target.host} has not answered within {self._seconds:g} s.") from error
        return OpenAnswer(self._response, target, deadline, self._http.max_bytes)

    async def _follow(self, target: Target) -> tuple[Target, aiohttp.ClientResponse]:
        headers = self._headers
        for _ in range(MOST_REDIRECTS + 1):
            response = await self._http.send(self._method, target, self._body, headers, self._seconds)
            location = response.headers.get("Location", "")
            if response.status not in _REDIRECTS or not location or self._method not in ("GET", "HEAD"):
                return target, response
            response.close()
            following = read_redirect(target, location)
            if following.origin != target.origin:
                headers = {name: value for name, value in headers.items() if name.lower() in _MAY_TRAVEL}
            target = following
        raise HostFailed(f"{target.host} redirects more than {MOST_REDIRECTS} times.")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._response is not None:
            self._response.close()


def read_redirect(target: Target, location: str) -> Target:
    """Where a redirect leads. Raises AddressRefused."""
    try:
        absolute = urljoin(str(target.url), location.strip(" \t"))
    except ValueError as error:
        raise AddressRefused(f"{target.host} redirects to what is not a web address.") from error
    following = read_url(absolute)
    if (target.scheme, following.scheme) == ("https", "http"):
        raise AddressRefused(
            f"{target.host} redirects to http://{following.host}, which is not encrypted. Ask for that address itself "
            f"if it is wanted."
        )
    return following


class OpenAnswer:
    """The HttpAnswer port, and `url`: where the answer came from after all redirects."""

    def __init__(self, response: aiohttp.ClientResponse, target: Target, deadline: float, max_bytes: int) -> None:
        self._chunks = _Chunks(response, target.host, deadline, max_bytes)
        self.url = str(target.url)
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers

    def chunks(self) -> AsyncIterator[bytes]:
        """The body, unpacked. Raises AnswerTooLarge, HostTimeout, HostFailed, StreamCut."""
        return self._chunks

    async def read(self, limit: int = 1_000_000) -> bytes:
        """The body as a whole, or its first `limit` bytes."""
        body = bytearray()
        async for piece in self._chunks:
            body += piece
            if len(body) >= limit:
                break
        return bytes(body[:limit])


class _Chunks:
    """Counts what is sent and what it unpacks to: a little may become much, and much may become nothing."""

    def __init__(self, response: aiohttp.ClientResponse, host: str, deadline: float, max_bytes: int) -> None:
        self._response = response
        self._host = host
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._sent = self._given = 0
        self._pieces: Iterator[bytes] = iter(())
        self._unpack: _Unzip | None = None

    def __aiter__(self) -> "_Chunks":
        return self

    async def __anext__(self) -> bytes:
        while True:
            for piece in self._pieces:
                self._given += len(piece)
                self._refuse_too_much()
                return piece
            data = await self._receive()
            if not data:
                if self._unpack and not self._unpack.is_whole:
                    raise StreamCut(f"{self._host} broke off in the middle of its answer.")
                raise StopAsyncIteration
            self._sent += len(data)
            self._refuse_too_much()
            self._pieces = self._unpacked(data)

    async def _receive(self) -> bytes:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._response.content.readany()
        except TimeoutError as error:
            raise HostTimeout(f"{self._host} has not sent all of its answer in time.") from error
        except _FAILURES as error:
            raise explain_cut(error, self._host) from error

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        encoding = self._response.headers.get("Content-Encoding", "").strip().lower()
        if encoding in ("", "identity"):
            return iter((data,))
        if encoding not in ("gzip", "x-gzip"):
            raise HostFailed(f"{self._host} packs its answer in a way that was not asked for ({encoding[:40]!a}).")
        self._unpack = self._unpack or _Unzip(self._host)
        return self._unpack.pieces(data)

    def _refuse_too_much(self) -> None:
        if max(self._sent, self._given) > self._max_bytes:
            raise AnswerTooLarge(f"{self._host} sends more than {self._max_bytes:,} bytes.")


class _Unzip:
    """gzip, in pieces of limited size. A file may be several, one after another."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._member = zlib.decompressobj(_GZIP)

    @property
    def is_whole(self) -> bool:
        return self._member.eof

    def pieces(self, data: bytes) -> Iterator[bytes]:
        piece = b""
        while data or len(piece) == _PIECE:
            if self._member.eof:
                if not data.startswith(_MAGIC):
                    return  # some servers fill up what follows
                self._member = zlib.decompressobj(_GZIP)
            try:
                piece = self._member.decompress(data, _PIECE)
            except zlib.error as error:
                raise HostFailed(f"{self._host} sends a gzip file that cannot be unpacked.") from error
            if piece:
                yield piece
            data = self._member.unconsumed_tail or self._member.unused_data
