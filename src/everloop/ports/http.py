"""Requests to other hosts."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from msgspec import Struct


class BoundHeaders(Struct, frozen=True):
    """Headers that are sent to these origins (`https://host[:port]`) and to no other, wherever a redirect leads."""

    headers: Mapping[str, str]
    origins: tuple[str, ...]

    def __repr__(self) -> str:
        return f"BoundHeaders(…, {self.origins!r})"


class HttpAnswer(Protocol):
    status: int
    headers: Mapping[str, str]

    def chunks(self) -> AsyncIterator[bytes]:
        """The body, piece by piece as the network gives it. Raises HostTimeout, StreamCut."""

    async def read(self, limit: int = 1_000_000) -> bytes:
        """The body as a whole, or its first `limit` bytes, however slowly they come not much longer than the seconds of
        the request. Raises as `chunks`."""


class Http(Protocol):
    """Requests to hosts that the owner has configured. Raises HostUnreachable, HostTimeout and HostFailed.

    A GET follows redirects, but not from https to http. A host may be silent for so many `seconds`; with a `deadline`,
    a time of the event loop's clock, its answer must also have ended by then, or AnswerTimeout is raised.
    """

    def request(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = {},
        seconds: float = 120.0,
        deadline: float | None = None,
    ) -> AbstractAsyncContextManager[HttpAnswer]: ...

    async def close(self) -> None: ...


class Hops(Protocol):
    """Requests that end with their first answer: a redirect is one like any other, and whoever asked decides where to
    go from there. Else as Http."""

    def hop(
        self,
        method: str,
        url: str,
        *,
        body: bytes = b"",
        headers: Mapping[str, str] = {},
        seconds: float = 120.0,
    ) -> AbstractAsyncContextManager[HttpAnswer]: ...
