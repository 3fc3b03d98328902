"""Secrets: as closed boxes, and opened."""

from typing import Protocol

OWN_KEY, CREDENTIAL = "own-key:", "credential:"
MCP_LOGIN = "mcp:"  # before the name of a server: what its authorization server has given us
PERSONAL = (OWN_KEY, CREDENTIAL)  # how the names begin of what is a person's alone; the rest is the house's


class Secrets(Protocol):
    """Raises StoreError."""

    async def keep_secret(self, owner: str, name: str, box: bytes) -> None:
        """Keep a closed box under a name, in place of the one that was there."""

    async def secret(self, owner: str, name: str) -> bytes | None: ...

    async def secrets(self, owner: str) -> list[str]:
        """The names of the owner's boxes, in order."""

    async def secret_times(self, owner: str) -> dict[str, float]:
        """The names of the owner's boxes, and when each was kept."""
        ...

    async def has_secrets(self) -> bool:
        """Whether there is a box of anybody."""
        ...

    async def secrets_of_people(self) -> list[tuple[str, str, float]]:
        """Whose PERSONAL boxes there are, their names, and when each was kept."""
        ...

    async def forget_secret(self, owner: str, name: str) -> bool:
        """Whether there was one to forget."""


class Vault(Protocol):
    """The keys and tokens of one owner, encrypted wherever they lie. Raises VaultLocked and StoreError."""

    async def get(self, name: str) -> str | None:
        """The value of that name, or None if there is none; only then is no key needed."""

    async def set(self, name: str, value: str) -> None: ...

    async def names(self) -> list[str]: ...

    async def kept(self) -> dict[str, float]:
        """The names of all that is in it, and when each was kept. It needs no key."""
        ...

    async def forget(self, name: str) -> bool:
        """Whether there was one to forget. It needs no key."""
