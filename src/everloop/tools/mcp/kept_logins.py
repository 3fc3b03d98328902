"""What a login to a server is worth: tokens, and who we are to its authorization server, in one box of the vault.

A refresh token may be good for one time only, and two processes may find at once that they need it. So whoever is
refused looks whether another has been given new tokens meanwhile, and what was given is kept before it is used, even
when the turn that wanted it is cancelled.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, structs

from ...ports import Vault
from ...ports.vault import MCP_LOGIN

Result = TypeVar("Result")
Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[object]]

_MARGIN = 30.0  # seconds before its end at which a token counts as spent
_LOOKS = (0.0, 0.2, 0.5, 1.0)  # seconds before each look for what another process may have been given


class Challenge(Struct, frozen=True):
    """With what words a server has last asked for a login, so that logging in asks for the rights that it wants."""

    status: int = 401
    header: str = ""  # WWW-Authenticate


class KeptLogin(Struct, frozen=True, kw_only=True):
    """`url` is the server that it is for: under the same name there may be another one by now, which must not have it.
    `client` is our registration, `metadata` and `resource` what the login was made with, as they came."""

    url: str
    access: str = ""
    refresh: str = ""
    expires: float = 0.0  # seconds since 1970; 0: nobody has said
    scope: str = ""
    client: Mapping[str, Any] = {}
    metadata: Mapping[str, Any] = {}
    resource: Mapping[str, Any] = {}
    challenge: Challenge = Challenge()

    def __repr__(self) -> str:
        return f"KeptLogin({self.url!r}, expires={self.expires:g})"


Renew = Callable[[KeptLogin], Awaitable[KeptLogin | None]]


class LoginKeeper:
    """The login to one server. `renew` asks its authorization server for new tokens; None: it refuses."""

    def __init__(self, name: str, url: str, vault: Vault, now: Clock, sleep: Sleep = asyncio.sleep) -> None:
        self._name = MCP_LOGIN + name
        self._url = url
        self._vault = vault
        self._now = now
        self._sleep = sleep
        self._one_at_a_time = asyncio.Lock()

    async def read(self) -> KeptLogin | None:
        """None: there is none for this server. One that cannot be understood is none."""
        text = await self._vault.get(self._name)
        try:
            login = msgspec.json.decode(text, type=KeptLogin) if text else None
        except msgspec.DecodeError:
            return None
        return login if login and login.url == self._url else None

    async def keep(self, login: KeptLogin) -> None:
        await self._vault.set(self._name, msgspec.json.encode(login).decode())

    async def note(self, challenge: Challenge) -> None:
        login = await self.read() or KeptLogin(url=self._url)
        if login.challenge != challenge:
            await self.keep(structs.replace(login, challenge=challenge))

    async def fresh(self, renew: Renew) -> KeptLogin | None:
        """A login that is good for a while; one that cannot be renewed is given as it is. None: nobody has logged
        in."""
        login = await self.read()
        if login is None or not login.access:
            return None
        return login if self._is_good(login) else await self.renewed(login, renew) or login

    async def renewed(self, old: KeptLogin, renew: Renew) -> KeptLogin | None:
        """In place of one that is spent, or was refused; None where somebody has to log in again."""
        async with self._one_at_a_time:
            now = await self.read()
            if now and now.access and now.access != old.access:
                return now
            return await _to_the_end(self._renewed(old, renew)) if old.refresh else None

    async def _renewed(self, old: KeptLogin, renew: Renew) -> KeptLogin | None:
        new = await renew(old)
        if new is None:
            return await self._renewed_by_another(old)
        await self.keep(new)
        return new

    async def _renewed_by_another(self, old: KeptLogin) -> KeptLogin | None:
        for seconds in _LOOKS:
            await self._sleep(seconds)
            new = await self.read()
            if new and new.access and new.access != old.access:
                return new
        return None

    def _is_good(self, login: KeptLogin) -> bool:
        return not login.expires or login.expires - _MARGIN > self._now()


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
