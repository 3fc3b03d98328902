"""Real calls to a model, written down once and played again in tests: no network, no key, no cost.

To record, say where in the settings and use everloop as always; what passes between it and the models' hosts is
written down without the secrets:

    EVERLOOP_NET__RECORD=$PWD/hello.cassette everloop agent -m "What is in notes.md?"

To play it, put the cassette in the place of the network. The key may be any word: it is not compared.

    async def test_it_reads_the_notes(tmp_path):
        model = {"model": "gpt-5.4-mini", "api_key": "any"}
        async with everloop.open(tmp_path, {"providers": {"openai": model}}, http=Cassette("hello.cassette")) as agent:
            assert (await agent.ask("What is in notes.md?", "cli:direct")).content == "Three wishes."

The file has one call a line, as JSON: what was asked, the pieces of the answer as they came, how it ended. It holds
the whole conversation, so look at it before you give it away.
"""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ..errors import AnswerTimeout, BadRequest, HostFailed, HostHungUp, HostTimeout, HostUnreachable, StreamCut
from .differences import Comparison

VERSION = 1
SHOWN = 5  # differences that a mismatch tells

ERRORS = {
    error.__name__: error for error in (StreamCut, HostTimeout, AnswerTimeout, HostUnreachable, HostHungUp, HostFailed)
}

_NO_HEADERS: Mapping[str, str] = {}


class CassetteMismatch(BadRequest, AssertionError):
    """Something is asked that was not recorded. A turn that runs into it ends, and its TurnFailed says the same."""


class Base64(Struct, frozen=True):
    """Bytes that are no text."""

    base64: str


class Recorded(Struct, frozen=True):
    """What a host answered, in the pieces in which it came."""

    status: int
    headers: dict[str, str]
    chunks: list[str | Base64]


class Exchange(Struct, frozen=True):
    """A line of a cassette. `end` is `ok`, `abandoned` (who asked went away), or the name of the error in `why`."""

    version: int
    method: str
    url: str
    headers: dict[str, str]
    body: Any  # a JSON value, or text, or {"base64": …}
    answer: Recorded | None
    end: str
    why: str


def exchanges_in(path: str | Path) -> list[Exchange]:
    """Raises ValueError, which names the line, when the file is no cassette or of a newer everloop."""
    lines = enumerate(Path(path).read_bytes().split(b"\n"), 1)
    return [_parse(line, f"{path}, line {number}") for number, line in lines if line]


def _parse(line: bytes, place: str) -> Exchange:
    try:
        version = msgspec.json.decode(line, type=_Versioned).version
        if version == VERSION:
            return msgspec.json.decode(line, type=Exchange)
    except ValueError as error:  # msgspec's errors are
        raise ValueError(f"{place}: this is no recorded call ({error})") from error
    raise ValueError(f"{place}: this call was recorded in version {version}, and only {VERSION} is known here")


class _Versioned(Struct):
    version: int


class Cassette:
    """The Http port, answering as was recorded: `everloop.open(…, http=Cassette("hello.cassette"))`.

    Each recorded call is played once. It is found by its method, the path of its address and its body, compared as
    JSON, or, if it has no body, by its whole address; what a host was asked without one is found wherever that host is
    now, if it was also asked with one, as a model's is for its list. Equal ones are played in their order. Not compared
    are what a mask hides, the time and the workspace that everloop tells its models, the name of the conversation, and
    whatever else the regular expressions in `volatile` find in a text. With `match="order"` the body is not looked at:
    calls of the same method and path are played in their order.

    Time is not played: the pieces of an answer come one after the other without pauses. One that was abandoned goes
    silent where it was left. Raises CassetteMismatch, which says what differs, ValueError as `exchanges_in` does, and
    OSError when there is no such file.
    """

    def __init__(
        self, path: str | Path, *, match: Literal["body", "order"] = "body", volatile: Sequence[str] = ()
    ) -> None:
        self._path = Path(path)
        self._match = match
        self._comparison = Comparison(volatile)
        self._exchanges = exchanges_in(path)
        self._rest = list(self._exchanges)

    @property
    def rest(self) -> list[Exchange]:
        """What has been recorded and not yet been asked for."""
        return list(self._rest)

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = _NO_HEADERS,
        seconds: float = 120.0,
        deadline: float | None = None,
    ) -> "_Playing":
        return _Playing(lambda: self._take(method, url, body), seconds)

    async def close(self) -> None:
        """Nothing to close."""

    def _take(self, method: str, url: str, body: bytes) -> Exchange:
        found = self._find(method, url, body)
        self._rest.remove(found)
        return found

    def _find(self, method: str, url: str, body: bytes) -> Exchange:
        likely = [each for each in self._rest if self._is_likely(each, method, url, whole=not body)]
        if not body and not likely:
            likely = [each for each in self._rest if self._is_elsewhere(each, method, url)]
        asked = value_of(body)
        for exchange in likely:
            if self._match == "order" or self._comparison.same(exchange.body, asked):
                return exchange
        raise self._mismatch(f"{method} {urlsplit(url).path if body else url}", likely, asked)

    def _is_likely(self, exchange: Exchange, method: str, url: str, whole: bool) -> bool:
        if exchange.method != method:
            return False
        return self._comparison.same(exchange.url, url) if whole else urlsplit(exchange.url).path == urlsplit(url).path

    def _is_elsewhere(self, exchange: Exchange, method: str, url: str) -> bool:
        """Whether a model's host was asked this, which has another address now. What was looked for at many addresses,
        as servers of this machine are, stays where it was."""
        answering = {urlsplit(each.url).netloc for each in self._exchanges if each.method == "POST"}
        same = exchange.method == method and _place(exchange.url) == _place(url)
        return same and urlsplit(exchange.url).netloc in answering

    def _mismatch(self, call: str, likely: Sequence[Exchange], asked: Any) -> CassetteMismatch:
        if not likely:
            calls = sorted({f"{each.method} {urlsplit(each.url).path}" for each in self._rest})
            return CassetteMismatch(
                f"{self._path.name} has no {call} that was not played. Left in it: {', '.join(calls) or 'nothing'}."
            )
        every = [(self._comparison.differences(each.body, asked), each) for each in likely]
        nearest, exchange = min(every, key=lambda pair: len(pair[0]))
        line = next(number for number, each in enumerate(self._exchanges, 1) if each is exchange)
        more = [f"and {len(nearest) - SHOWN} more"] if len(nearest) > SHOWN else []
        told = "\n  ".join([*map(str, nearest[:SHOWN]), *more])
        return CassetteMismatch(f"{self._path.name} has no such {call}. The nearest, call {line}, differs in\n  {told}")


class _Playing:
    def __init__(self, take: Callable[[], Exchange], seconds: float) -> None:
        self._take = take
        self._seconds = seconds

    async def __aenter__(self) -> "_Played":
        exchange = self._take()
        await asyncio.sleep(0)  # as after a network read, others get their turn
        if exchange.answer is None:
            await _finish(exchange, self._seconds)
        return _Played(exchange, self._seconds)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass


class _Played:
    """The HttpAnswer port over what was recorded."""

    def __init__(self, exchange: Exchange, seconds: float) -> None:
        assert exchange.answer is not None
        self.status: int = exchange.answer.status
        self.headers: Mapping[str, str] = exchange.answer.headers
        self._exchange = exchange
        self._pieces = iter([_read_back(chunk) for chunk in exchange.answer.chunks])
        self._seconds = seconds

    def chunks(self) -> AsyncIterator[bytes]:
        return self

    async def read(self, limit: int = 1_000_000) -> bytes:
        return await read(self, limit)

    def __aiter__(self) -> "_Played":
        return self

    async def __anext__(self) -> bytes:
        await asyncio.sleep(0)
        for piece in self._pieces:
            return piece
        await _finish(self._exchange, self._seconds)
        raise StopAsyncIteration


def _place(url: str) -> tuple[str, str]:
    """Where something is at its host, whichever that is."""
    parts = urlsplit(url)
    return parts.path, parts.query


async def _finish(exchange: Exchange, seconds: float) -> None:
    """End as it ended then."""
    if exchange.end in ERRORS:
        raise ERRORS[exchange.end](exchange.why)
    if exchange.end == "abandoned":
        await asyncio.sleep(seconds)
        raise HostTimeout(f"This call was abandoned when it was recorded, and nobody did so within {seconds:g} s.")


async def read(chunks: AsyncIterator[bytes], limit: int) -> bytes:
    body = bytearray()
    async for piece in chunks:
        body += piece
        if len(body) >= limit:
            break
    return bytes(body[:limit])


def value_of(body: bytes) -> Any:
    """A body as it can best be read and compared."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        value = None
    return value if isinstance(value, dict | list) else msgspec.to_builtins(written(body))


def written(data: bytes) -> str | Base64:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return Base64(b64encode(data).decode())


def _read_back(chunk: str | Base64) -> bytes:
    return chunk.encode() if isinstance(chunk, str) else b64decode(chunk.base64)
