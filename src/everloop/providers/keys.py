"""Where a host's key is found: the settings, a file that they name, the environment, the vault. Never printed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from ..errors import EverloopError, ModelMissing, VaultLocked
from .catalog import HOSTS, Host
from .dialects import Name


class HostSettings(Protocol):
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
    @property
    def answer_seconds(self) -> float: ...


class FoundKey(str):
    """A key, and where it was found. As text it is the key, in a repr it is not."""

    __slots__ = ("where",)
    where: str

    def __new__(cls, key: str, where: str) -> "FoundKey":
        found = super().__new__(cls, key)
        found.where = where
        return found

    def __repr__(self) -> str:
        return f"FoundKey(…, {self.where!r})"


def key_setting(name: str, where: str) -> str:
    """The setting of a provider that gives a key found there; nothing if none does."""
    given = {"settings": "api_key", "file": "api_key_file"}.get(where)
    return f"providers.{name}.{given}" if given else ""


class Keys:
    def __init__(
        self,
        accounts: Mapping[str, HostSettings],
        environ: Mapping[str, str],
        vault: Mapping[str, str | VaultLocked],
        home: Path,
        wrong: Mapping[str, str] = {},
    ) -> None:
        """`vault` holds the keys of providers by their names, or why they cannot be read. `wrong` says of providers why
        they cannot be asked, as where a header refers to what is not there."""
        self.accounts = accounts
        self.wrong = wrong
        self._environ = environ
        self._vault = vault
        self._home = home

    def find(self, host: Host) -> FoundKey | None:
        """Raises ModelMissing when a file that should hold the key cannot be read."""
        account = self.accounts.get(host.name)
        if account and account.api_key:
            return FoundKey(account.api_key, "settings")
        if account and account.api_key_file:
            return FoundKey(self._read(host.name, account.api_key_file), "file")
        variable = next((name for name in host.key_variables if self._environ.get(name)), None)
        if variable:
            return FoundKey(self._environ[variable], variable)
        kept = self._vault.get(host.name)
        return FoundKey(kept, "vault") if isinstance(kept, str) else None

    def has(self, host: Host) -> bool:
        """Whether there is a key, also one that cannot be read now."""
        try:
            return self.find(host) is not None or bool(self.locked(host))
        except ModelMissing:
            return True

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


def unknown_provider(name: str, accounts: Mapping[str, HostSettings]) -> EverloopError:
    names = list(dict.fromkeys((*HOSTS, *accounts)))
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(name.lower(), names, 3)
    hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(names)}"
    return EverloopError(f"there is no provider {name!r}; {hint}")


def keyed_host(name: str, accounts: Mapping[str, HostSettings]) -> Host:
    """The provider whose key is to be kept. Raises EverloopError when there is none, or it has no keys."""
    host = HOSTS.get(name)
    if host is None and name not in accounts:
        raise unknown_provider(name, accounts)
    if host and host.login:
        raise EverloopError(f"{name} has no keys. Log in with: everloop models login {name}")
    return host or Host(name, "")


def checked_key(text: str) -> str:
    """Raises EverloopError for what cannot be a key."""
    key = text.strip()
    if not key:
        raise EverloopError("no key was given, and nothing was kept")
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EverloopError("that is no key: it has several lines, or characters that no key has; nothing was kept")
    return key


def notes_on(host: Host, key: str, keys: Keys) -> list[str]:
    """What whoever has just given a key should know: it looks like someone else's, or another one comes first."""
    notes = []
    owner = next((other for other in HOSTS.values() if other.key_prefix and key.startswith(other.key_prefix)), host)
    if owner.name != host.name and host.name in HOSTS:
        notes.append(f"It looks like a key of {owner.name}, though.")
    found = keys.find(host)
    if found and found.where != "vault":
        notes.append(f"It is not used as long as there is another, which comes first: {found.where}.")
    return notes
