"""Connections for protocols that are not HTTP: lines and bytes, with TLS from the start or later (STARTTLS)."""

from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable


class ByteStream(Protocol):
    """An open one. One task reads at a time; to cancel a read loses nothing. No read and no write ends by itself while
    the host is silent: give it a time limit. All raise StreamCut when the host is gone."""

    async def read_line(self, limit: int = 65_536) -> bytes:
        """The next line with its end. Raises AnswerOversized for one of more bytes than the limit."""

    async def read_exactly(self, count: int) -> bytes: ...

    async def write(self, data: bytes) -> None:
        """Hand it to the network, as soon as the host has read most of what was written before."""

    async def secure(self) -> None:
        """From here on TLS is spoken, with the host that was dialled. Raises HostUnreachable for a certificate that is
        not its own or is not trusted, and when the host has said more than it should have before (STARTTLS
        injection)."""


@runtime_checkable
class Dials(Protocol):
    """Connections to hosts that the owner has set; our `Http` makes them, one of somebody else's may not."""

    def dial(
        self, host: str, port: int, *, tls: bool = True, seconds: float = 30.0
    ) -> AbstractAsyncContextManager[ByteStream]:
        """Open within the block: through the proxy that is set for https, with the host's certificate checked. Without
        `tls` nothing is encrypted until `secure`. Raises HostUnreachable."""
