"""Opening a WebSocket: the request that asks for one, the host's answer, and the end of the block."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from types import TracebackType

from websockets.exceptions import InvalidHandshake

from ..errors import HostTimeout, KeyRefused, SocketRefused
from ..ports import SocketTerms
from ..readings.secrets import without_secrets
from .answer_reader import AnswerReader
from .connection import HttpConnection
from .failures import FAILURES
from .socket_address import tokens_in
from .socket_connection import WebSocketConnection
from .socket_protocol import SocketProtocol

_MOST_OF_A_REFUSAL = 2000  # bytes that are kept of its body
_REFUSAL_SECONDS = 2.0  # that are waited for them
_LONGEST_QUOTE = 200
_LONGEST_WAIT = 86_400.0
_OURS = {"connection", "content-length", "host", "transfer-encoding", "upgrade"}

Ask = Callable[[Mapping[str, str], float], Awaitable[tuple[HttpConnection, AnswerReader]]]


class WebSocketOpening:
    """`async with` it. `ask` sends the request with these headers, within so many seconds, and gives the head of the
    answer; `part` lets the connection go."""

    def __init__(
        self,
        ask: Ask,
        url: str,
        host: str,
        *,
        headers: Mapping[str, str],
        terms: SocketTerms,
        part: Callable[[HttpConnection], None],
    ) -> None:
        if mine := [name for name in headers if name.lower() in _OURS or name.lower().startswith("sec-websocket-")]:
            raise KeyRefused(f"The header {mine[0]!r} is set by the WebSocket itself; leave it out.")
        self._ask = ask
        self._host = host
        self._headers = headers
        self._terms = terms
        self._part = part
        self._secrets = tokens_in(url, headers)
        self._connection: HttpConnection
        self._wire: WebSocketConnection

    async def __aenter__(self) -> WebSocketConnection:
        seconds = self._terms.seconds
        protocol = SocketProtocol(self._terms)
        try:
            async with asyncio.timeout(seconds):
                self._connection, reader = await self._ask({**self._headers, **protocol.asking()}, seconds)
        except TimeoutError as error:
            raise HostTimeout(f"{self._host} has not answered within {seconds:g} s.") from error
        try:
            if reader.status != 101:
                raise await self._refused(reader)
            return self._agreed(protocol, reader)
        except BaseException:
            self._part(self._connection)
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await self._wire.leave(self._terms.farewell, in_haste=kind is not None)
        finally:
            self._part(self._connection)

    def _agreed(self, protocol: SocketProtocol, reader: AnswerReader) -> WebSocketConnection:
        try:
            protocol.agree(reader.headers)
        except InvalidHandshake as error:
            raise SocketRefused(
                f"{self._host} agrees to a WebSocket and does not open one ({self._clean(str(error))}). Check the "
                f"address, and what stands in between.",
                101,
            ) from None  # which would tell the header again
        self._wire = WebSocketConnection(protocol, self._host, self._terms, self._clean)
        self._wire.start(self._connection)
        return self._wire

    async def _refused(self, reader: AnswerReader) -> SocketRefused:
        body = without_secrets((await self._body()).decode(errors="replace"), self._secrets)
        status, quoted = reader.status, self._clean(body)
        said = f": {quoted}" if quoted else "."
        if status < 300:
            sentence = f"{self._host} answers with a page ({status}) and opens no WebSocket; check the address."
        elif status < 400:
            sentence = f"{self._host} redirects the WebSocket ({status}), which is not followed; check the address."
        else:
            sentence = f"{self._host} refuses the WebSocket ({status}){said}"
        return SocketRefused(sentence, status, body, _seconds_in(reader.headers.get("Retry-After", "")))

    async def _body(self) -> bytes:
        """Its beginning, as far as it comes in time: the status says more."""
        body = b""
        with suppress(TimeoutError, *FAILURES):
            async with asyncio.timeout(_REFUSAL_SECONDS):
                while len(body) < _MOST_OF_A_REFUSAL and (data := await self._connection.read()):
                    body += data
        return body[:_MOST_OF_A_REFUSAL]

    def _clean(self, text: str) -> str:
        """A line of limited length, without what was said in confidence."""
        text = without_secrets(text, self._secrets)
        text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
        return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 1]}…"


def _seconds_in(text: str) -> float | None:
    """What Retry-After asks for, as a number or as a date."""
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST_WAIT)
    try:
        return min(max(0.0, parsedate_to_datetime(text).timestamp() - time.time()), _LONGEST_WAIT)
    except (ValueError, TypeError, OverflowError):  # which a year of many digits raises
        return None
