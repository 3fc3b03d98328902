"""Requests to whatever a model, a user or a page can aim: read once, resolved, checked, and sent where it was checked.

A connection is made to the very addresses that were checked, so a name that leads elsewhere a moment later (DNS
rebinding) leads nowhere. All of a name's addresses must pass; one that does not refuses the name. Each redirect
comes in by the same door as the first address. No name is kept: what was checked a while ago is not what is asked now.

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

from ..errors import AddressRefused, AnswerTooLarge, HostFailed, HostTimeout, KeyRefused, StreamCut
from ..ports import PLAIN_TERMS, BoundHeaders, SocketTerms
from .addresses import Address, Allowed, Target, check_address, read_url
from .answer_reader import AnswerReader
from .connection import HttpConnection
from .dialing import connect, trusting
from .failures import FAILURES, explain_cut, explain_no_answer, explain_no_connection
from .request import HttpRequest, write
from .resolver import resolve
from .socket_address import checked_address
from .socket_opening import websocket_opening
from .unzip import Unzip, make_room

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .websocket import WebSocketOpening

MOST_BYTES = 20_000_000
MOST_REDIRECTS = 5
_CONNECT_SECONDS = 10.0
_SILENCE_SECONDS = 3600.0  # the exchange as a whole has a limit of its own
_NO_HEADERS: Mapping[str, str] = {}
_ALWAYS = {
    "Accept": "*/*",
    "Accept-Encoding": "gzip",
    "Connection": "close",
    "User-Agent": "Mozilla/5.0 (compatible; everloop)",
}
_REDIRECTS = {301, 302, 303, 307, 308}
_MAY_TRAVEL = {"accept", "accept-language", "range", "user-agent"}

Lookup = Callable[[str, int], Awaitable[list[str]]]


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
        lookup: Lookup = resolve,
    ) -> None:
        self.allowed = Allowed(allow)
        self.max_bytes = max_bytes
        self._ca_file = ca_file
        self._lookup = lookup
        self._authorities: ssl.SSLContext | None = None

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = _NO_HEADERS,
        seconds: float = 120.0,
        deadline: float | None = None,
        bound: BoundHeaders | None = None,
    ) -> "_OpenExchange":
        """`bound` are sent at no hop but those of their origins, and the first has to be one."""
        return _OpenExchange(self, HttpRequest(method, url, body, headers, seconds, deadline), bound)

    def hop(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = _NO_HEADERS,
        seconds: float = 120.0,
    ) -> "_OpenExchange":
        """The Hops port."""
        return _OpenExchange(self, HttpRequest(method, url, body, headers, seconds, follows=False))

    def websocket(
        self,
        url: str,
        *,
        headers: Mapping[str, str] = _NO_HEADERS,
        terms: SocketTerms = PLAIN_TERMS,
        named_by: str = "",
    ) -> "WebSocketOpening":
        """The WebSockets port, with the same checks of addresses. Raises AddressRefused, too."""
        target = checked_address(url, named_by)

        async def ask(headers: Mapping[str, str], seconds: float) -> tuple[HttpConnection, AnswerReader]:
            return await self.send("GET", target, b"", headers, seconds)

        return websocket_opening()(ask, url, target.host, headers=headers, terms=terms, part=HttpConnection.close)

    async def close(self) -> None:
        """Nothing to close: a connection ends with its exchange."""

    async def send(
        self, method: str, target: Target, body: bytes, headers: Mapping[str, str], seconds: float
    ) -> tuple[HttpConnection, AnswerReader]:
        """One hop, over a connection of its own, so that each goes where its own check has said. Raises AddressRefused,
        and ProviderError when nothing answers."""
        seconds = min(seconds, _CONNECT_SECONDS)
        url, trust = target.url, self._trust() if target.scheme == "https" else None
        request = _write(method, target, headers, body)
        addresses = [_place(target, address) for address in await self._checked(target)]
        try:
            async with asyncio.timeout(seconds):
                connection = await connect(url, addresses, trust)
        except OSError as error:
            raise explain_no_connection(error, target.host, seconds) from error
        try:
            connection.send(request, _SILENCE_SECONDS, method == "HEAD")
            return connection, await connection.head()
        except FAILURES as error:
            connection.close()
            raise explain_no_answer(error, target.host, seconds) from error
        except BaseException:
            connection.close()
            raise

    async def _checked(self, target: Target) -> list[Address]:
        """The addresses that a host has, if all of them have passed."""
        try:
            found = await self._lookup(target.host, target.port) if target.address is None else [str(target.address)]
        except OSError:
            found = []
        addresses = list(dict.fromkeys(ip_address(each) for each in found))
        if not addresses:
            raise explain_no_connection(socket.gaierror(), target.host, 0)
        for address in addresses:
            check_here(target.host, target.port, address, self.allowed)
        return addresses

    def _trust(self) -> ssl.SSLContext:
        self._authorities = self._authorities or trusting(self._ca_file)
        return self._authorities


def _write(method: str, target: Target, headers: Mapping[str, str], body: bytes) -> bytes:
    url = target.url
    try:
        return write(method, url.raw_path_qs, url.host_port_subcomponent or "", headers, body, _ALWAYS)
    except ValueError as error:
        raise KeyRefused(f"A header for {target.host} has characters that cannot be sent. Copy it again.") from error


def _place(target: Target, address: Address) -> tuple[int, int, int, str, tuple[str, int]]:
    """An address as connecting wants it: nothing is looked up again."""
    family = socket.AF_INET6 if isinstance(address, IPv6Address) else socket.AF_INET
    return family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (str(address), target.port)


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


class _OpenExchange:
    """A request, the redirects it is sent through, and the last answer."""

    def __init__(self, http: OpenHttp, request: HttpRequest, bound: BoundHeaders | None = None) -> None:
        self._http = http
        self._request = request
        self._bound = bound
        self._connection: HttpConnection | None = None

    async def __aenter__(self) -> "OpenAnswer":
        asked = self._request
        target = read_url(asked.url)
        deadline = asyncio.get_running_loop().time() + asked.seconds
        if asked.deadline is not None:
            deadline = min(deadline, asked.deadline)
        try:
            async with asyncio.timeout_at(deadline):
                target, reader = await self._follow(target)
        except TimeoutError as error:
            raise HostTimeout(f"{target.host} has not answered within {asked.seconds:g} s.") from error
        assert self._connection is not None
        return OpenAnswer(self._connection, reader, target, deadline, self._http.max_bytes)

    async def _follow(self, target: Target) -> tuple[Target, AnswerReader]:
        asked, bound = self._request, self._bound
        headers = asked.headers
        origins = {read_url(each).origin for each in bound.origins} if bound else set()
        if bound and target.origin not in origins:
            raise AddressRefused(f"{target.host} is not among {', '.join(bound.origins)}, so nothing was sent there.")
        for _ in range(MOST_REDIRECTS + 1):
            sent = {**headers, **bound.headers} if bound and target.origin in origins else headers
            self._connection, reader = await self._http.send(asked.method, target, asked.body, sent, asked.seconds)
            location = reader.headers.get("Location", "")
            moved = reader.status in _REDIRECTS and location and asked.method in ("GET", "HEAD")
            if not moved or not asked.follows:
                return target, reader
            self._connection.close()
            following = read_redirect(target, location)
            if following.origin != target.origin:
                headers = {name: value for name, value in headers.items() if name.lower() in _MAY_TRAVEL}
            target = following
        raise HostFailed(f"{target.host} redirects more than {MOST_REDIRECTS} times.")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._connection is not None:
            self._connection.close()


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

    def __init__(
        self, connection: HttpConnection, reader: AnswerReader, target: Target, deadline: float, max_bytes: int
    ) -> None:
        self._chunks = _BoundedChunks(connection, reader, target.host, deadline, max_bytes)
        self.url = str(target.url)
        self.status: int = reader.status
        self.headers: Mapping[str, str] = reader.headers

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


class _BoundedChunks:
    """Counts what is sent and what it unpacks to: a little may become much, and much may become nothing."""

    def __init__(
        self, connection: HttpConnection, reader: AnswerReader, host: str, deadline: float, max_bytes: int
    ) -> None:
        self._connection = connection
        self._encoding = reader.headers.get("Content-Encoding", "").strip().lower()
        self._host = host
        self._deadline = deadline
        self._max_bytes = max_bytes
        self._sent = self._given = 0
        self._pieces: Iterator[bytes] = iter(())
        self._unpack: Unzip | None = None

    def __aiter__(self) -> "_BoundedChunks":
        return self

    async def __anext__(self) -> bytes:
        while True:
            if piece := await self._next_unpacked():
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

    async def _next_unpacked(self) -> bytes:
        """Nothing when more has to come first."""
        try:
            for piece in self._pieces:
                await make_room(piece)
                if piece:
                    return piece
        except zlib.error as error:
            raise HostFailed(f"{self._host} sends a gzip file that cannot be unpacked.") from error
        return b""

    async def _receive(self) -> bytes:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._connection.read()
        except TimeoutError as error:
            raise HostTimeout(f"{self._host} has not sent all of its answer in time.") from error
        except FAILURES as error:
            raise explain_cut(error, self._host) from error

    def _unpacked(self, data: bytes) -> Iterator[bytes]:
        if self._encoding in ("", "identity"):
            return iter((data,))
        if self._encoding not in ("gzip", "x-gzip"):
            raise HostFailed(
                f"{self._host} packs its answer in a way that was not asked for ({self._encoding[:40]!a})."
            )
        self._unpack = self._unpack or Unzip()
        return self._unpack.pieces(data)

    def _refuse_too_much(self) -> None:
        if max(self._sent, self._given) > self._max_bytes:
            raise AnswerTooLarge(f"{self._host} sends more than {self._max_bytes:,} bytes.")
