"""Writes down what passes between everloop and the hosts of its models, for `cassette` to play it again."""

import logging
import os
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from pathlib import Path
from types import TracebackType

from msgspec import Struct

from ..errors import ProviderError
from ..ports import Http, HttpAnswer
from . import outside
from .cassette import ERRORS, VERSION, Exchange, Recorded, read, value_of, written
from .masking import Masking

_NO_HEADERS: Mapping[str, str] = {}
_KEPT_HEADERS = {"content-type", "retry-after", "retry-after-ms"}  # of an answer: those that change what we do

_log = logging.getLogger("everloop.recorder")


class Recorder:
    """The Http port around another one: everything passes as it is, and each exchange is written down when it ends.

    `path` is the file, or a folder in which there will be a file for this process; a name without a suffix is that of
    a folder. What exists is added to. `secrets` are kept out beside those that the requests themselves show.
    """

    def __init__(self, http: Http, path: str | Path, secrets: Iterable[str] = ()) -> None:
        self._http = http
        self.path = _file_at(Path(path))
        self._masking = Masking(secrets)

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = _NO_HEADERS,
        seconds: float = 120.0,
        deadline: float | None = None,
    ) -> "_Recording":
        asked = _Asked(method, url, body, headers)
        exchange = self._http.request(method, url, body=body, headers=headers, seconds=seconds, deadline=deadline)
        return _Recording(exchange, lambda heard, end: self._keep(asked, heard, end))

    async def close(self) -> None:
        await self._http.close()

    def _keep(self, asked: "_Asked", heard: "_Heard | None", end: "_End") -> None:
        self._masking.see(asked.url, asked.headers)
        try:
            _write(self.path, _exchange_of(asked, heard, end, self._masking))
        except OSError as error:  # the answer is worth more than its recording
            _log.warning("a call could not be recorded in %s: %s", self.path, error.strerror)


class _Asked(Struct, frozen=True):
    method: str
    url: str
    body: bytes
    headers: Mapping[str, str]


class _End(Struct, frozen=True):
    word: str = "ok"
    why: str = ""


def _exchange_of(asked: _Asked, heard: "_Heard | None", end: _End, masking: Masking) -> Exchange:
    return Exchange(
        version=VERSION,
        method=asked.method,
        url=masking.url(asked.url),
        headers=masking.headers(asked.headers),
        body=value_of(masking.data(asked.body)),
        answer=_recorded(heard, masking) if heard else None,
        end=end.word,
        why=masking.text(end.why),
    )


def _recorded(heard: "_Heard", masking: Masking) -> Recorded:
    headers = {name.lower(): masking.text(value) for name, value in heard.headers.items()}
    kept = {name: headers[name] for name in sorted(_KEPT_HEADERS & headers.keys())}
    return Recorded(heard.status, kept, [written(piece) for piece in masking.pieces(heard.pieces)])


def _write(path: Path, exchange: Exchange) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    outside.append(path, exchange)


def _file_at(path: Path) -> Path:
    if path.suffix and not path.is_dir():
        return path
    return path / f"{datetime.now():%Y-%m-%d-%H%M%S}-{os.getpid()}.cassette"


class _Recording:
    """One exchange. `keep` is told what was heard of the answer, if there was one, and how it ended."""

    def __init__(
        self, exchange: AbstractAsyncContextManager[HttpAnswer], keep: Callable[["_Heard | None", _End], None]
    ) -> None:
        self._exchange = exchange
        self._keep = keep

    async def __aenter__(self) -> "_Heard":
        try:
            answer = await self._exchange.__aenter__()
        except BaseException as error:  # however it ends, it is written down
            self._keep(None, _end_with(error))
            raise
        self._heard = _Heard(answer)
        return self._heard

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        try:
            return await self._exchange.__aexit__(kind, error, trace)
        finally:
            self._keep(self._heard, self._end(error))

    def _end(self, error: BaseException | None) -> _End:
        """An error that the reader raises about what it has read is none of the exchange's."""
        if self._heard.error is not None:
            return _end_with(self._heard.error)
        return _End() if error is None or isinstance(error, Exception) else _end_with(error)


def _end_with(error: BaseException) -> _End:
    if not isinstance(error, ProviderError):
        return _End("abandoned")
    name = type(error).__name__
    return _End(name if name in ERRORS else "HostFailed", str(error))


class _Heard:
    """The HttpAnswer port, which remembers what was read."""

    def __init__(self, answer: HttpAnswer) -> None:
        self._answer = answer
        self.status = answer.status
        self.headers = answer.headers
        self.pieces: list[bytes] = []
        self.error: ProviderError | None = None

    def chunks(self) -> "_Listening":
        return _Listening(self._answer.chunks(), self)

    async def read(self, limit: int = 1_000_000) -> bytes:
        return await read(self.chunks(), limit)


class _Listening:
    """Not a generator, for the reason that net.trusted gives."""

    def __init__(self, chunks: AsyncIterator[bytes], heard: _Heard) -> None:
        self._chunks = chunks
        self._heard = heard

    def __aiter__(self) -> "_Listening":
        return self

    async def __anext__(self) -> bytes:
        try:
            piece = await anext(self._chunks)
        except ProviderError as error:
            self._heard.error = error
            raise
        self._heard.pieces.append(piece)
        return piece
