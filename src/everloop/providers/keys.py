"""Where a host's key is found: the settings, a file that they name, the environment, the vault. Never printed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ..core.errors import ModelMissing, VaultLocked
from .catalog import Host
from .dialects import Name


class Account(Protocol):
    """What the owner has configured for one host."""

    @property
    def api_key(self) -> str: ...
    @property
    def api_key_file(self) -> str: ...
    @property
    def api_base(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def dialect(self) -> Name | None: ...


class Found(str):
    """A key, and where it was found. As text it is the key, in a repr it is not."""

    __slots__ = ("where",)
    where: str

    def __new__(cls, key: str, where: str) -> "Found":
        found = super().__new__(cls, key)
        found.where = where
        return found

    def __repr__(self) -> str:
        return f"Found(…, {self.where!r})"


class Keys:
    def __init__(
        self,
        accounts: Mapping[str, Account],
        environ: Mapping[str, str],
        vault: Mapping[str, str | VaultLocked],
        home: Path,
    ) -> None:
        """`vault` holds the keys of providers by their names, or why they cannot be read."""
        self.accounts = accounts
        self._environ = environ
        self._vault = vault
        self._home = home

    def find(self, host: Host) -> Found | None:
        """Raises ModelMissing when a file that should hold the key cannot be read."""
        account = self.accounts.get(host.name)
        if account and account.api_key:
            return Found(account.api_key, "settings")
        if account and account.api_key_file:
            return Found(self._read(host.name, account.api_key_file), "file")
        variable = next((name for name in host.key_variables if self._environ.get(name)), None)
        if variable:
            return Found(self._environ[variable], variable)
        kept = self._vault.get(host.name)
        return Found(kept, "vault") if isinstance(kept, str) else None

    def locked(self, host: Host) -> str:
        """Why the vault does not give this host's key away, if it has one."""
        kept = self._vault.get(host.name)
        return str(kept) if isinstance(kept, VaultLocked) else ""

    def _read(self, name: str, file: str) -> str:
        path = Path(file).expanduser()
        path = path if path.is_absolute() else self._home / path
        try:
            key = path.read_text().strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ModelMissing(f"the key file of {name}, {path}, cannot be read ({reason})") from error
        if not key:
            raise ModelMissing(f"the key file of {name}, {path}, is empty")
        return key
