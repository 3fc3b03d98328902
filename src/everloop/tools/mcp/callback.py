"""Where a browser comes back to after a login: an address of this machine that nobody else can reach (RFC 8252).

It listens for as long as somebody logs in, answers one request that brings a code or a refusal, and shows a page that
says to go back. Whether that request was ours the login finds out by its `state`.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from ...errors import McpDown

SECONDS = 300.0  # that a person has to log in
PATH = "/callback"
_LONGEST = 16_384  # bytes of a request's first line
_HEARD_SECONDS = 10.0
_HEAD = (
    "HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n"
    "Cache-Control: no-store\r\n\r\n"
)
_PAGE = "<!doctype html><title>everloop</title><p>{text}</p>"


class Redirected(Struct, frozen=True):
    """What the authorization server has sent along. Only a code that a person has copied by hand has no `state`: one
    that was left out of an address is "", and fits no login."""

    code: str = ""
    state: str | None = None
    issuer: str | None = None
    error: str = ""

    def __repr__(self) -> str:
        return f"Redirected(error={self.error!r})"


def read_redirect(text: str) -> Redirected:
    """Of the address that a browser was sent to, of its query, or of the code alone."""
    text = text.strip()
    query = urlsplit(text).query if "://" in text else text.removeprefix("?")
    found = {name: values[0] for name, values in parse_qs(query, keep_blank_values=True).items()}
    if found.keys() & {"code", "error"}:
        return Redirected(found.get("code", ""), found.get("state", ""), found.get("iss"), found.get("error", ""))
    if not text or "://" in text or not text.isascii() or not text.isprintable() or " " in text:
        raise McpDown("That is neither the address that the browser was sent to nor a code. Log in again.")
    return Redirected(text)


class LoopbackRedirect:
    """`url` is what a login names as its redirect; `wait` gives the address that the browser has asked for."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._came: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.url = ""

    async def listen(self, port: int) -> asyncio.Server:
        """Raises McpDown."""
        try:
            server = await asyncio.start_server(self._answer, "127.0.0.1", port, limit=_LONGEST)
        except OSError as error:
            raise McpDown(f"Nobody can come back from a login to port {port} of this machine: {error}.") from error
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"
        return server

    async def wait(self) -> str:
        """Raises McpDown when nobody has come in time."""
        try:
            async with asyncio.timeout(self._seconds):
                return await asyncio.shield(self._came)
        except TimeoutError as error:
            raise McpDown(f"Nobody has logged in within {self._seconds:g} s. Try again.") from error

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_HEARD_SECONDS):
                line = (await reader.readline()).decode("latin-1").split(" ")
                writer.write(self._heard(line))
                await writer.drain()
        except (OSError, TimeoutError, ValueError):
            pass  # whoever asks here and says nothing that can be understood is not waited for
        finally:
            writer.close()

    def _heard(self, line: list[str]) -> bytes:
        target = line[1] if len(line) == 3 and line[0] == "GET" else ""
        if urlsplit(target).path != PATH or not parse_qs(urlsplit(target).query).keys() & {"code", "error"}:
            return _page("404 Not Found", "Nothing is here.")
        if self._came.done():
            return _page("410 Gone", "This login has already come back.")
        self._came.set_result(target.partition("?")[2])
        return _page("200 OK", "You can close this page and go back to everloop.")


def _page(status: str, text: str) -> bytes:
    body = _PAGE.format(text=text).encode()
    return _HEAD.format(status=status, length=len(body)).encode() + body


@asynccontextmanager
async def loopback_redirect(seconds: float = SECONDS, port: int = 0) -> AsyncIterator[LoopbackRedirect]:
    """Listens on 127.0.0.1 alone. A `port` is named where the authorization server knows us by one address."""
    redirect = LoopbackRedirect(seconds)
    server = await redirect.listen(port)
    try:
        yield redirect
    finally:
        server.close()
        await server.wait_closed()
