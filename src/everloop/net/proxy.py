"""The way out for commands in a sandbox: an HTTP proxy that leads to the hosts of a list, and nowhere else.

A sandbox has no network, only a socket, and behind it stands this. A name that is not on the list is not even looked
up, for a question to a name server can carry a secret out. What a name leads to is checked as every address is that
is not the owner's, and the connection is made to the address that was checked.

In a tunnel nobody sees what is said: whoever shares an address with a permitted host can be spoken to through it.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from ipaddress import ip_address

from msgspec import Struct

from ..errors import AddressRefused, SettingsError
from .addresses import WEB_PORTS, Allowed, Target, read_url
from .open import Lookup, check_here
from .resolver import resolve

_HEAD_SECONDS = 30.0
_CONNECT_SECONDS = 20.0
_IDLE_SECONDS = 300.0
_LONGEST_HEAD = 1 << 16
_MOST_BYTES = 4 << 30  # of one connection, in either direction
_MOST_CONNECTIONS = 128
_CHUNK = 1 << 16
_REQUEST = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/1\.[01]")
_FIELD = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\0\r\n]*)")
_AUTHORITY = re.compile(r"(?:[0-9A-Za-z._-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5}")
_NAME = re.compile(r"(\*|(?:\*\.)?[^\s/:\[\]*]+)(?::([0-9]{1,5}))?")
_OF_ONE_HOP = {
    *("connection", "keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate"),
    *("te", "trailer", "upgrade", "host"),
}  # fmt: skip
_NONE = Allowed()

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[str, int], Awaitable[Streams]]


async def dial(address: str, port: int) -> Streams:
    """A connection to an address, which is never a name. Raises OSError."""
    return await asyncio.open_connection(address, port)


class Hosts:
    """Where commands may go: `pypi.org`, `*.example.com`, `*`; each with a port, or with those of the web.

    A name leads only to public addresses, and to those that are on the list themselves, as `192.168.1.7`, `[fd00::7]`
    or `10.0.0.0/8`. Raises SettingsError.
    """

    def __init__(self, entries: Iterable[str]) -> None:
        self._entries = tuple(entries)
        try:
            names = {entry: _read_name(entry) for entry in self._entries}
            self._addresses = Allowed(entry for entry, name in names.items() if not name)
        except (AddressRefused, SettingsError) as error:
            raise SettingsError(f"tools.exec.network: {error}") from error
        self._names = {name for name in names.values() if name}

    def check_name(self, target: Target) -> None:
        """Raises AddressRefused unless the host is on the list with this port."""
        if target.address and self._addresses.permits(target.host, target.port, target.address):
            return
        ports = {target.port, None} if target.port in WEB_PORTS else {target.port}
        if not any((name, port) in self._names for name in _names_of(target) for port in ports):
            raise AddressRefused(
                f"{target.host}:{target.port} is not among the hosts that commands may reach "
                f"({', '.join(self._entries)}). Only the owner can add it, to tools.exec.network."
            )

    def check_address(self, target: Target, text: str) -> None:
        """Raises AddressRefused unless this address, to which a permitted host has led, is public or on the list."""
        address = ip_address(text)
        if not self._addresses.permits(target.host, target.port, address):
            check_here(target.host, _port_of_the_web(target.port), address, _NONE)


def _read_name(entry: str) -> tuple[str, int | None] | None:
    """A name or a pattern, and its port; None for what is to be an address or a network."""
    parts = _NAME.fullmatch(entry)
    if not parts:
        return None
    pattern, port = parts.groups(default="")
    name = pattern.removeprefix("*.")
    target = read_url(f"http://{name.replace('*', 'any')}:{port}/")
    if target.address:
        return None
    host = "*" if name == "*" else pattern.removesuffix(name) + target.host
    return host, target.port if port else None


def _names_of(target: Target) -> list[str]:
    """All the ways in which the list may name a host."""
    if target.address:
        return ["*"]
    labels = target.host.split(".")
    return [target.host, "*", *(f"*.{'.'.join(labels[count:])}" for count in range(1, len(labels)))]


def _port_of_the_web(port: int) -> int:
    """Which ports a host may be asked at stands on the list; so none is refused for being unusual."""
    return port if port in WEB_PORTS else min(WEB_PORTS)


class _ProxyRefusal(Exception):
    """What the command is told instead of what it asked for."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence


class _Request(Struct, frozen=True):
    """Where a connection is to lead; what is said there first, and what to the command."""

    target: Target
    onward: bytes
    back: bytes


class Proxy:
    """Answers connections from sandboxes. `lookup` and `dial` are the network."""

    def __init__(self, hosts: Iterable[str], lookup: Lookup = resolve, dial: Dial = dial) -> None:
        self._hosts = Hosts(hosts)
        self._lookup = lookup
        self._dial = dial
        self._open = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection, whatever is sent on it, and close it."""
        self._open += 1
        try:
            with suppress(OSError):
                await self._serve(reader, writer)
        finally:
            self._open -= 1
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await self._hear(reader)
            there = await self._connected(request.target)
        except _ProxyRefusal as answer:
            writer.write(_said(answer))
            await writer.drain()
            return
        try:
            there[1].write(request.onward)
            writer.write(request.back)
            with suppress(TimeoutError):
                await _relay((reader, writer), there)
        finally:
            there[1].close()

    async def _hear(self, reader: asyncio.StreamReader) -> _Request:
        if self._open > _MOST_CONNECTIONS:
            raise _ProxyRefusal(503, f"there are {_MOST_CONNECTIONS} connections already")
        try:
            async with asyncio.timeout(_HEAD_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError) as error:
            raise _ProxyRefusal(400, "that is not a request to an HTTP proxy") from error
        try:
            request = read_request(head)
            self._hosts.check_name(request.target)
        except AddressRefused as error:
            raise _ProxyRefusal(403, str(error)) from error
        return request

    async def _connected(self, target: Target) -> Streams:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                return await self._dialled(target, await self._checked(target))
        except AddressRefused as error:
            raise _ProxyRefusal(403, str(error)) from error
        except TimeoutError as error:
            raise _ProxyRefusal(504, f"{target.host} has not answered within {_CONNECT_SECONDS:g} s") from error
        except OSError as error:
            raise _ProxyRefusal(502, f"{target.host} cannot be reached ({error.strerror or error})") from error

    async def _checked(self, target: Target) -> list[str]:
        """The addresses of a host, all of which have passed."""
        found = [str(target.address)] if target.address else await self._lookup(target.host, target.port)
        for address in found:
            self._hosts.check_address(target, address)
        return list(dict.fromkeys(found))

    async def _dialled(self, target: Target, addresses: list[str]) -> Streams:
        failed = OSError(None, "no addresses")
        for address in addresses:
            try:
                return await self._dial(address, target.port)
            except OSError as error:
                failed = error
        raise failed


def read_request(head: bytes) -> _Request:
    """What a request to a proxy asks for. Raises AddressRefused when its address is not one."""
    first, *lines = head[:_LONGEST_HEAD].decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    words = _REQUEST.fullmatch(first)
    fields = [_FIELD.fullmatch(line) for line in lines]
    if not words or not all(fields):
        raise _ProxyRefusal(400, "that is not a request to an HTTP proxy")
    method, address = words.groups()
    if method == "CONNECT":
        if not _AUTHORITY.fullmatch(address):
            raise _ProxyRefusal(400, "CONNECT wants a host and a port")
        return _Request(read_url(f"https://{address}/"), b"", b"HTTP/1.1 200 Connection established\r\n\r\n")
    target = read_url(address)
    if target.scheme != "http":
        raise _ProxyRefusal(400, "https goes through CONNECT")
    pairs = [field.groups() for field in fields if field]
    return _Request(target, _onward(method, target, pairs), b"")


def _onward(method: str, target: Target, fields: "list[tuple[str, ...]]") -> bytes:
    """The request as the host is sent it: once, on a connection of its own."""
    listed = ",".join(value for name, value in fields if name.lower() == "connection")
    left = _OF_ONE_HOP | {word.strip().lower() for word in listed.split(",")}
    kept = [f"{name}: {value}" for name, value in fields if name.lower() not in left]
    host = target.url.raw_authority
    line = f"{method} {target.url.raw_path_qs} HTTP/1.1"
    return "\r\n".join([line, f"Host: {host}", *kept, "Connection: close", "", ""]).encode("latin-1")


def _said(answer: _ProxyRefusal) -> bytes:
    """The sentence stands in the first line too, which is all of an answer to CONNECT that most programs show."""
    sentence = answer.sentence.encode("ascii", "replace").decode()
    body = f"{sentence}\n"
    return (
        f"HTTP/1.1 {answer.status} {sentence}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        f"Connection: close\r\n\r\n{body}"
    ).encode()


async def _relay(here: Streams, there: Streams) -> None:
    """Carry bytes both ways until the host ends. Raises TimeoutError when nothing moves any more."""
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(_IDLE_SECONDS) as idle, asyncio.TaskGroup() as group:

        def moved() -> None:
            idle.reschedule(loop.time() + _IDLE_SECONDS)

        outward = group.create_task(_pour(here[0], there[1], moved))
        await _pour(there[0], here[1], moved)
        outward.cancel()


async def _pour(source: asyncio.StreamReader, target: asyncio.StreamWriter, moved: Callable[[], None]) -> None:
    left = _MOST_BYTES
    with suppress(OSError):
        while left > 0 and (data := await source.read(min(_CHUNK, left))):
            moved()
            left -= len(data)
            target.write(data)
            await target.drain()
        if left > 0 and target.can_write_eof():
            target.write_eof()
