"""Logins of who only looks: one that has run out is not renewed, for that spends what is good for one time, and what
comes of it could not be kept."""

import time

from ...errors import KeyRefused
from ...ports import Vault
from ...providers.logins import NAMES, kept_as
from ...providers.logins.tokens import has_run_out


class OnlookersVault:
    """A vault that can be read alone. `run_out` names the logins that it has refused."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self.run_out: set[str] = set()
        self.set, self.forget = vault.set, vault.forget
        self.names, self.kept = vault.names, vault.kept

    async def get(self, name: str) -> str | None:
        """Raises KeyRefused for a login that has run out."""
        value = await self._vault.get(name)
        for login in NAMES:
            if value and name == kept_as(login) and has_run_out(value, time.time()):
                self.run_out.add(login)
                raise KeyRefused(f"The login to {login} has run out, and is renewed with the next message.")
        return value
