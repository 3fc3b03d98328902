"""Logins in place of keys: a person opens an address, enters a code, and the host hands out tokens.

The tokens are kept in the vault under `login:<name>` and renewed when they come to their end. What the hosts say is
undocumented; we say what their own clients say.
"""

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Protocol, cast

from msgspec import Struct

from ...ports import Http, Vault
from ..dialects import Name

Sleep = Callable[[float], Awaitable[object]]

NAMES = ("openai-codex", "github-copilot")


class DeviceCode(Struct, frozen=True):
    """What a person has to do: open `url` and enter `code` before `expires` (seconds since 1970)."""

    url: str
    code: str
    expires: float
    interval: float  # seconds between two looks whether they have
    device: str  # the host's name for this attempt; whoever has it gets the tokens, so it is not shown

    def __repr__(self) -> str:
        return f"DeviceCode(url={self.url!r}, code={self.code!r}, expires={self.expires:g}, interval={self.interval:g})"


class Login(Protocol):
    """One way to log in. There is one of each in a process, so that nobody renews what another just has.

    `base` and `dialect` say how the host is spoken to afterwards.
    """

    name: str
    base: str
    dialect: Name

    async def begin(self) -> DeviceCode:
        """Ask the host for a code. Raises ProviderError."""
        ...

    async def finish(self, asking: DeviceCode, sleep: Sleep = asyncio.sleep) -> None:
        """Wait until the person has agreed, and keep the tokens.

        Raises LoginDenied when they say no, LoginExpired when they take too long, other ProviderErrors when the host
        fails, and VaultLocked.
        """
        ...

    async def headers(self) -> dict[str, str]:
        """What to send with a request, renewed if need be.

        Raises KeyRefused when nobody is logged in or the host takes the login back, other ProviderErrors when a
        renewal fails that may succeed later, and VaultLocked.
        """
        ...


def kept_as(name: str) -> str:
    """The name of a login's tokens in the vault; to forget it is to log out."""
    return f"login:{name}"


def load(name: str, http: Http, vault: Vault) -> Login:
    """The login of that name, one of NAMES. Only what is used is ever imported."""
    module = import_module(f".{name.replace('-', '_')}", __name__)
    return cast(Login, module.make(http, vault))
