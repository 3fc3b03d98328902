"""Making a connection: names and addresses, TLS, and a proxy in between."""

import asyncio
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from aiohappyeyeballs import start_connection
from yarl import URL

from ..errors import HostUnreachable
from .answer_reader import NotHttp
from .connection import HttpConnection
from .failures import CONNECT_SECONDS, explain_no_connection
from .resolver import Resolver

_Speaks = TypeVar("_Speaks", bound=asyncio.Protocol)
_NEXT_ADDRESS_AFTER = 0.25  # seconds, when a name has several: the first may lead nowhere


async def dial(
    url: URL,
    proxy: URL | None,
    trust: ssl.SSLContext | None,
    seconds: float,
    resolver: Resolver,
    *,
    always_tunnel: bool = False,
) -> HttpConnection:
    """A connection that requests for this address can be sent over. `trust` is needed where https is spoken.
    `always_tunnel`: the proxy is to pass on everything, also where it could read it. Raises HostUnreachable."""
    name = name_of(url)
    try:
        async with asyncio.timeout(min(seconds, CONNECT_SECONDS)):
            if proxy is None:
                return await connect_host(url, trust, resolver, HttpConnection)
            connection = await _reach(proxy, trust, name, resolver)
            if always_tunnel or url.scheme == "https":
                try:
                    await _tunnel(connection, url, proxy, trust, seconds)
                except BaseException:
                    connection.close()
                    raise
            return connection
    except UnicodeError as error:  # the host has what cannot be part of a name
        raise explain_no_connection(socket.gaierror(), name, seconds) from error
    except OSError as error:
        raise explain_no_connection(error, name, seconds) from error


def name_of(url: URL) -> str:
    return url.host or "the host" if url.is_default_port() else f"{url.host}:{url.port}"


def basic(url: URL) -> str:
    """The password in an address, as a header says it."""
    return "Basic " + b64encode(f"{url.user or ''}:{url.password or ''}".encode()).decode()


async def connect(url: URL, addresses: Sequence[Any], trust: ssl.SSLContext | None) -> HttpConnection:
    """A connection to one of a host's addresses, as getaddrinfo gives them. Raises OSError."""
    return await _connect_to(url, addresses, trust, HttpConnection)


async def connect_host(
    url: URL, trust: ssl.SSLContext | None, resolver: Resolver, speak: Callable[[], _Speaks]
) -> _Speaks:
    """A connection to a host on which `speak` is spoken. What is a number is not looked up, which would take a thread.
    Raises OSError and UnicodeError."""
    where: tuple[str, int] = host_of(url), url.port or 0
    try:
        found: list[Any] = socket.getaddrinfo(*where, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except socket.gaierror:
        found = await resolver.find(*where)
    try:
        return await _connect_to(url, found, trust, speak)
    except BaseException:
        resolver.forget(*where)  # it may have moved
        raise


async def _connect_to(
    url: URL, addresses: Sequence[Any], trust: ssl.SSLContext | None, speak: Callable[[], _Speaks]
) -> _Speaks:
    loop, secure = asyncio.get_running_loop(), url.scheme == "https"
    options: dict[str, Any] = {"ssl": trust, "server_hostname": host_of(url).rstrip(".")} if secure else {}
    found = await start_connection(addresses, happy_eyeballs_delay=_NEXT_ADDRESS_AFTER)
    try:
        _, connection = await loop.create_connection(speak, sock=found, **options)
    except BaseException:
        found.close()
        raise
    return connection


def trusting(*files: str | None, protocols: Sequence[str] = ("http/1.1",)) -> ssl.SSLContext:
    """Trusts the authorities that the system trusts, and those of these files. Raises HostUnreachable."""
    context = ssl.create_default_context()
    if protocols:
        context.set_alpn_protocols([*protocols])
    for file in filter(None, files):
        try:
            context.load_verify_locations(file)
        except (OSError, ssl.SSLError) as error:
            raise HostUnreachable(f"The certificate file {file} cannot be used: {error}.") from error
    return context


def host_of(url: URL) -> str:
    """In the letters that name servers and certificates use. To leave it to Python, which knows an older rule for other
    letters, would lead to another host: from straße.example to strasse.example."""
    return (url.raw_host or "").replace("%25", "%")  # before the link of a link-local address


async def _reach(proxy: URL, trust: ssl.SSLContext | None, name: str, resolver: Resolver) -> HttpConnection:
    try:
        return await connect_host(proxy, trust, resolver, HttpConnection)
    except (OSError, UnicodeError) as error:
        raise HostUnreachable(f"{name} cannot be reached: the proxy that is named for it does not answer.") from error


async def _tunnel(
    connection: HttpConnection, url: URL, proxy: URL, trust: ssl.SSLContext | None, seconds: float
) -> None:
    """Have a proxy pass everything on to a host, with which we speak in a way that the proxy does not understand."""
    where, key = f"{url.host_subcomponent}:{url.port}", f"Proxy-Authorization: {basic(proxy)}\r\n" if proxy.user else ""
    connection.send(f"CONNECT {where} HTTP/1.1\r\nHost: {where}\r\n{key}\r\n".encode(), seconds, bodiless=True)
    try:
        status = (await connection.head()).status
    except (EOFError, NotHttp):
        status = 0
    if status != 200:
        said = f" ({status})" if status else ""
        raise HostUnreachable(f"{name_of(url)} cannot be reached: the proxy refuses to connect{said}.")
    if url.scheme == "https" and trust:
        await connection.secure(trust, host_of(url).rstrip("."))
