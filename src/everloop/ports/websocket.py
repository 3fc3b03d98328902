"""Connections over which both sides speak when they like."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from msgspec import Struct


class SocketTerms(Struct, frozen=True, kw_only=True):
    """On which a WebSocket is opened, kept and left.

    A message may have `max_bytes`, also unpacked (`compress` offers permessage-deflate), and 4,096 fragments. A host
    from which nothing is heard is asked for a sign of life, and found dead after so many seconds (`silence`). `seconds`
    is for all that opening takes. `farewell` is the code with which the block is left: Discord forgets a session after
    1000 and 1001, and keeps it after others.
    """

    subprotocols: tuple[str, ...] = ()
    compress: bool = False
    max_bytes: int = 16_000_000
    silence: float = 40.0
    seconds: float = 30.0
    farewell: int = 1000


PLAIN_TERMS = SocketTerms()


class WebSocket(Protocol):
    """An open one. One task reads, any may send; to cancel either loses no message and sends no half of one."""

    @property
    def subprotocol(self) -> str:
        """The one that the host has chosen."""

    def __aiter__(self) -> AsyncIterator[str | bytes]:
        """What the other side says, until it says farewell in peace (1000, 1001 or without a code) or we do. Raises
        SocketClosed when it ends in any other way."""

    async def receive(self) -> str | bytes:
        """The next message. Raises SocketClosed when there is none, however it has ended."""

    async def send(self, message: str | bytes) -> None:
        """Hand a message to the network, as soon as the other side has read most of what was sent before. Raises
        SocketClosed: then this one was not sent."""

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say farewell and wait a few seconds for the other side's. After it, as after the block, nothing is left."""

    @property
    def code(self) -> int:
        """With which the other side has closed it: 1005 when it gave none, 1006 without a farewell; 0 while open."""

    @property
    def reason(self) -> str:
        """What the other side said with its code, in one line."""


@runtime_checkable
class WebSockets(Protocol):
    """WebSockets to other hosts; our `Http` has them, one of somebody else's may not. Raises SettingsError where the
    package for them is missing."""

    def websocket(
        self, url: str, *, headers: Mapping[str, str] = {}, terms: SocketTerms = PLAIN_TERMS, named_by: str = ""
    ) -> AbstractAsyncContextManager[WebSocket]:
        """Open within the block. `named_by` is the address whose answer has named this one: what https has named must
        be wss.

        Raises HostUnreachable, HostTimeout and SocketRefused when it does not open, and KeyRefused for a header that
        cannot be sent.
        """
