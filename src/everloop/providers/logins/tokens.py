"""What a login is worth: tokens in the vault, and their renewal by one at a time.

Who renews may be given a new refresh token that replaces the old one for good. So it is kept before it is used, and
whoever has begun to renew does so to the end, even when the turn that wanted it is cancelled meanwhile.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import TypeVar

import msgspec
from msgspec import Struct

from ...errors import KeyRefused
from ...ports import Vault
from . import Sleep, kept_as

Result = TypeVar("Result")
Clock = Callable[[], float]

LOOKS = (0.0, 0.2, 0.5, 1.0)  # seconds before each look for what another process may have been given
MARGIN = 60.0  # seconds before its end at which a token counts as spent


class LoginTokens(Struct, frozen=True):
    access: str
    expires: float  # seconds since 1970
    refresh: str
    account: str = ""

    def __repr__(self) -> str:
        return f"LoginTokens(expires={self.expires:g})"


def has_run_out(kept: str, now: float) -> bool:
    """Whether these tokens, as they are kept, would be renewed before they are used."""
    try:
        return msgspec.json.decode(kept, type=LoginTokens).expires - MARGIN <= now
    except msgspec.DecodeError:  # told by whoever uses them
        return False


class TokenKeeper:
    """The tokens of one login. `renew` asks the host for new ones; it raises KeyRefused when they are not given."""

    def __init__(
        self,
        name: str,
        vault: Vault,
        now: Clock,
        renew: Callable[[LoginTokens], Awaitable[LoginTokens]],
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._name = name
        self._vault = vault
        self._now = now
        self._renew = renew
        self._sleep = sleep
        self._one_at_a_time = asyncio.Lock()

    async def keep(self, tokens: LoginTokens) -> None:
        await self._vault.set(kept_as(self._name), msgspec.json.encode(tokens).decode())

    async def fresh(self) -> LoginTokens:
        """Tokens that are good for a while. Raises KeyRefused."""
        tokens = await self._read()
        if self._good(tokens):
            return tokens
        async with self._one_at_a_time:
            tokens = await self._read()
            return tokens if self._good(tokens) else await _to_the_end(self._renewed(tokens))

    async def _renewed(self, old: LoginTokens) -> LoginTokens:
        try:
            new = await self._renew(old)
        except KeyRefused:
            if theirs := await self._renewed_by_another(old):
                return theirs
            raise
        await self.keep(new)
        return new

    async def _renewed_by_another(self, old: LoginTokens) -> LoginTokens | None:
        """Another process may have been quicker with the refresh token, which is good for one time only. It may still
        be about to keep what it was given."""
        for seconds in LOOKS:
            await self._sleep(seconds)
            new = await self._read()
            if new != old and self._good(new):
                return new
        return None

    def _good(self, tokens: LoginTokens) -> bool:
        return tokens.expires - MARGIN > self._now()

    async def _read(self) -> LoginTokens:
        text = await self._vault.get(kept_as(self._name))
        if text is None:
            raise KeyRefused(f"Nobody is logged in to {self._name}. {log_in(self._name)}")
        try:
            return msgspec.json.decode(text, type=LoginTokens)
        except msgspec.DecodeError:
            raise KeyRefused(
                f"The login to {self._name} was kept in a way not known here. {again(self._name)}"
            ) from None


def log_in(name: str) -> str:
    return f"Log in with: everloop models login {name}"


def again(name: str) -> str:
    return f"Log in again with: everloop models login {name}"


async def _to_the_end(work: Coroutine[None, None, Result]) -> Result:
    task, cancelled = asyncio.create_task(work), None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # so that nobody misses it
        raise cancelled
    return task.result()
