"""Requests to the hosts that the owner has configured: one aiohttp session for the life of the process."""

import os
import ssl
from asyncio import timeout
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from functools import lru_cache
from ipaddress import ip_address
from types import TracebackType
from urllib.request import getproxies, proxy_bypass

import aiohttp
from yarl import URL

from everloop.core.errors import HostUnreachable, KeyRefused

from .failures import CONNECT_SECONDS, FAILURES, explain_cut, explain_no_answer

_FAREWELL_SECONDS = 0.2
_NO_HEADERS: Mapping[str, str] = {}
# A compressed stream of small events arrives in lumps; we never ask for one, and still read it when it comes.
_ALWAYS = {"Accept-Encoding": "identity", "User-Agent": "everloop"}
_MAY_TRAVEL = {"accept", "authorization", "range", "user-agent"}


class TrustedHttp:
    """The Http port. `ca_file` is trusted beside the system's authorities, as is REQUESTS_CA_BUNDLE.

    OpenSSL reads SSL_CERT_FILE by itself. `proxy` takes the place of those that the environment names. The session is
    made at the first request, so that a process that never asks a host never pays for it.
    """

    def __init__(self, ca_file: str | None = None, proxy: str = "") -> None:
        self._ca_file = ca_file
        self._proxy = proxy
        self._session: aiohttp.ClientSession | None = None
        self._proxies: dict[str, str | None] = {}
        self._trusted: ssl.SSLContext | bool | None = None

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

    def session(self) -> aiohttp.ClientSession:
        return self._session or self._open()

    def _open(self) -> aiohttp.ClientSession:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            headers=_ALWAYS,
            read_bufsize=2**18,
        )
        return self._session

    def trust(self, url: URL) -> ssl.SSLContext | bool:
        """Whom to believe there. To read the authorities takes longer than many an answer, and a model of this machine
        needs none."""
        if url.scheme == "http" and _is_here(url.host or ""):
            return True
        if self._trusted is None:
            self._trusted = self._authorities()
        return self._trusted

    def _authorities(self) -> ssl.SSLContext | bool:
        """A context of our own, if there is something to add to the default one."""
        files = [file for file in (self._ca_file, os.environ.get("REQUESTS_CA_BUNDLE")) if file]
        if not files:
            return True
        context = ssl.create_default_context()
        for file in files:
            _add_authority(context, file)
        return context

    def proxy_for(self, url: URL) -> str | None:
        """aiohttp's own trust_env would search the environment and ~/.netrc at every request; we ask once per host."""
        origin = f"{url.scheme}://{url.authority}"
        if origin not in self._proxies:
            self._proxies[origin] = _find_proxy(url, self._proxy)
        return self._proxies[origin]


class _Exchange:
    """A request and its answer. Not a generator, for the same reason as _Chunks."""

    __slots__ = ("_body", "_headers", "_http", "_method", "_response", "_seconds", "_url")

    def __init__(
        self, http: TrustedHttp, method: str, url: str, body: bytes, headers: Mapping[str, str], seconds: float
    ) -> None:
        self._http = http
        self._method = method
        self._url = url
        self._body = body
        self._headers = headers
        self._seconds = seconds

    async def __aenter__(self) -> "Answer":
        url, http = _parse(self._url), self._http
        if url.user is not None and any(name.lower() == "authorization" for name in self._headers):
            raise KeyRefused(f"{_name(url)} has both a key and a password in its address. Keep one of them.")
        try:
            self._response = await http.session().request(
                self._method,
                url,
                data=self._body or None,
                headers=self._headers,
                proxy=http.proxy_for(url),
                ssl=http.trust(url),
                timeout=_patience(self._seconds),
                allow_redirects=self._may_be_redirected(),
            )
        except FAILURES as error:
            raise explain_no_answer(error, _name(url), self._seconds) from error
        return Answer(self._response)

    def _may_be_redirected(self) -> bool:
        """A POST would arrive as a GET without its body, which no one could explain. Of the headers aiohttp takes only
        Authorization away from another host, and so a key in one that we don't know would be told to a stranger."""
        return self._method in ("GET", "HEAD") and {name.lower() for name in self._headers} <= _MAY_TRAVEL

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                await _take_leave(self._response)
        finally:
            self._response.release()


@lru_cache(maxsize=16)
def _patience(seconds: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(sock_connect=min(seconds, CONNECT_SECONDS), sock_read=seconds)


class Answer:
    """The HttpAnswer port: what a host answers, its body still on the way."""

    __slots__ = ("_response", "headers", "status")

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers

    def chunks(self) -> AsyncIterator[bytes]:
        return _Chunks(self._response)

    async def read(self, limit: int = 1_000_000) -> bytes:
        """The body as a whole, or its first `limit` bytes."""
        body = bytearray()
        async for data in self.chunks():
            body += data
            if len(body) >= limit:
                break
        return bytes(body[:limit])


class _Chunks:
    """Not a generator: to leave one in the middle costs a task and a wake-up of the loop for its clean-up."""

    __slots__ = ("_response",)

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    def __aiter__(self) -> "_Chunks":
        return self

    async def __anext__(self) -> bytes:
        try:
            data = await self._response.content.readany()
        except FAILURES as error:
            raise explain_cut(error, _name(self._response.url)) from error
        if not data:
            raise StopAsyncIteration
        return data


async def _take_leave(response: aiohttp.ClientResponse) -> None:
    """Wait a moment for the end of a body of which we have seen all that we want.

    A connection is kept for the next request only if its body has ended, and the end may come a packet later.
    """
    if not response.content.at_eof():
        with suppress(*FAILURES):
            async with timeout(_FAREWELL_SECONDS):
                await response.content.readany()


def _parse(url: str) -> URL:
    try:
        parsed = URL(url)
    except ValueError as error:
        raise HostUnreachable(
            "The host's address cannot be understood; it should look like https://host/v1."
        ) from error
    if parsed.scheme not in ("http", "https") or not parsed.host:
        raise HostUnreachable(
            f"{parsed.host or 'The address'} is not a web address; begin it with https:// or http://."
        )
    return parsed


def _name(url: URL) -> str:
    return url.host or "the host" if url.is_default_port() else f"{url.host}:{url.port}"


def _add_authority(context: ssl.SSLContext, file: str) -> None:
    try:
        context.load_verify_locations(file)
    except (OSError, ssl.SSLError) as error:
        raise HostUnreachable(f"The certificate file {file} cannot be used: {error}.") from error


def _find_proxy(url: URL, wanted: str) -> str | None:
    host = url.host or ""
    # This machine is never behind its own proxy, whatever NO_PROXY forgot to say: a local model must be found.
    if _is_here(host) or proxy_bypass(host):
        return None
    named = getproxies()
    proxy = wanted or named.get(url.scheme) or named.get("all")
    if proxy and not proxy.startswith(("http://", "https://")):
        raise HostUnreachable(
            f"{host} cannot be reached: its proxy is not an HTTP proxy, and only those are supported. "
            f"Give an address that begins with http://, or put {host} into NO_PROXY."
        )
    return proxy


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
