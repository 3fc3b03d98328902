"""Credentials that people keep for their tools, sealed in the vault together with where each may go."""

import re
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import structs

from ..errors import AddressRefused, MailRefused, ToolError, VaultLocked
from ..ports import Vault
from ..ports.credential import AUTHORIZATION, LONGEST, SHORTEST, CredentialRow, KeptCredential, variable_of
from ..ports.tools import Shown
from ..ports.vault import CREDENTIAL
from ..runtime.calls import Kit
from ..tools.credentials import personal
from ..tools.redaction import holds, redacted
from .personal import LOCKED, PersonalSecrets
from .secrets import checked_name

PEOPLE = 1000  # whose credentials are kept ready
HOSTS = 20  # of one credential
HIDDEN = "[what was to be shown here holds a credential, and is left out]"
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,60}")
_OURS = {"host", "content-length", "transfer-encoding", "connection", "accept", "accept-encoding", "user-agent"}
Stamp = tuple[tuple[str, float], ...]


class PersonalCredentials:
    """The CredentialBox of tools, what the model is told of it, and what people do with theirs."""

    def __init__(self, personal: PersonalSecrets, vault_of: Callable[[str], Vault]) -> None:
        self.has = personal.has
        self._personal = personal
        self._vault_of = vault_of
        self._opened: dict[str, tuple[Stamp, dict[str, KeptCredential]]] = {}
        self._kits: dict[str, tuple[Kit, tuple[str, ...], Kit]] = {}

    def tidy(self) -> None:
        """Remember nothing of whoever keeps nothing any more."""
        self._opened = {person: opened for person, opened in self._opened.items() if self._personal.has(person)}

    async def take_out(self, person: str, name: str) -> KeptCredential:
        try:
            kept = (await self._all(person)).get(name)
        except VaultLocked as error:
            raise ToolError(f"the credential {name[:100]!r} cannot be read now") from error
        if kept is None:
            raise ToolError(f"the user keeps no credential {name[:100]!r}")
        return kept

    async def hide(self, person: str, told: Shown) -> Shown:
        """A result as a model may read it. One that cannot be looked through is not shown at all."""
        try:
            kept = await self._all(person)
        except VaultLocked:
            kept = self._opened.get(person, ((), {}))[1]  # of others none was taken out
        values = {name: each.value for name, each in kept.items()}
        if not values:
            return told
        pictures = tuple(each for each in told.pictures if not holds(each.data, values))
        text = redacted(told.text, values) + (f"\n{HIDDEN}" if len(pictures) < len(told.pictures) else "")
        return structs.replace(told, text=text, pictures=pictures, origin=redacted(told.origin, values))

    async def _all(self, person: str) -> Mapping[str, KeptCredential]:
        """Raises VaultLocked, StoreError."""
        stamp = tuple(self._personal.of(person, CREDENTIAL).items())
        opened = self._opened.get(person)
        if opened is None or opened[0] != stamp:
            if len(self._opened) >= PEOPLE:
                self._opened.clear()
            vault = self._vault_of(person)
            found = {name: await opened_credential(vault, name) for name, _ in stamp}
            opened = self._opened[person] = stamp, {name: kept for name, kept in found.items() if kept}
        return opened[1]

    def kit(self, principal: str, kit: Kit) -> Kit:
        """The tools of somebody, with those for credentials where they keep any."""
        if not self._personal.has(principal):
            return kit
        names = tuple(self._personal.of(principal, CREDENTIAL))
        if not names:
            return kit
        made = self._kits.get(principal)
        if made is None or made[0] is not kit or made[1] != names:
            if len(self._kits) >= PEOPLE:
                self._kits.clear()
            whole = structs.replace(kit, tools={**kit.tools, **personal(kit.personal, names)})
            made = self._kits[principal] = kit, names, whole
        return made[2]

    async def rows(self, person: str) -> list[CredentialRow]:
        """Raises StoreError."""
        return await kept_credentials(self._vault_of(person))

    async def keep(self, person: str, name: str, kept: KeptCredential) -> CredentialRow:
        """Raises EverloopError."""
        row = await keep_credential(self._vault_of(person), name, kept)
        await self._personal.look()
        return row

    async def forget(self, person: str, name: str) -> None:
        """Raises MailRefused when there is none."""
        if not await self._vault_of(person).forget(CREDENTIAL + name):
            raise MailRefused(f"you keep no credential {name[:100]!r}")
        self._opened.pop(person, None)
        await self._personal.look()


async def opened_credential(vault: Vault, name: str) -> KeptCredential | None:
    """Raises VaultLocked, StoreError."""
    kept = await vault.get(CREDENTIAL + name)
    return None if kept is None else msgspec.json.decode(kept, type=KeptCredential)


async def kept_credentials(vault: Vault) -> list[CredentialRow]:
    names = {name: at for name, at in (await vault.kept()).items() if name.startswith(CREDENTIAL)}
    return [await _row(vault, name.removeprefix(CREDENTIAL), at) for name, at in names.items()]


async def _row(vault: Vault, name: str, at: float) -> CredentialRow:
    try:
        kept = await opened_credential(vault, name)
    except VaultLocked:
        return CredentialRow(name, at, problem=f"It {LOCKED}")
    return told_of(name, at, kept) if kept else CredentialRow(name, at, problem="it was removed a moment ago")


def told_of(name: str, at: float, kept: KeptCredential) -> CredentialRow:
    return CredentialRow(name, at, kept.origins, kept.header, variable_of(name) if kept.commands else "")


async def keep_credential(vault: Vault, name: str, kept: KeptCredential) -> CredentialRow:
    """What is told of it. Raises EverloopError; its value is never quoted."""
    checked = checked_credential(name, kept)
    await vault.set(CREDENTIAL + name, msgspec.json.encode(checked).decode())
    return told_of(name, (await vault.kept())[CREDENTIAL + name], checked)


def checked_credential(name: str, kept: KeptCredential) -> KeptCredential:
    """As it is kept: its hosts as origins. Raises EverloopError."""
    checked_name(name)
    value = kept.value.strip()
    if not SHORTEST <= len(value) <= LONGEST or not (value.isascii() and value.isprintable()):
        raise MailRefused(
            f"a credential is one line of {SHORTEST} to {LONGEST:,} plain characters (ASCII); nothing was kept"
        )
    if not _TOKEN.fullmatch(kept.header) or kept.header.lower() in _OURS:
        raise MailRefused("a credential goes in a header such as Authorization or X-Api-Key; nothing was kept")
    origins = tuple(dict.fromkeys(map(origin_of, kept.origins)))
    if len(origins) > HOSTS:
        raise MailRefused(f"a credential is bound to at most {HOSTS} hosts; nothing was kept")
    if not origins and not kept.commands:
        raise MailRefused("say for which hosts it is, or that commands may have it: it goes nowhere else")
    return KeptCredential(value, origins, kept.header or AUTHORIZATION, kept.commands)


def origin_of(host: str) -> str:
    """`https://host[:port]` of what a person writes: a host, or an address. Raises MailRefused."""
    from ..net.addresses import read_url  # takes its time, and few keep credentials

    text = host.strip()
    try:
        target = read_url(text if "://" in text else f"https://{text}")
        rest = urlsplit(str(target.url))
    except (AddressRefused, ValueError) as error:
        raise MailRefused(f"{text[:100]!r} is no host: write one such as api.example.com") from error
    if rest.path not in ("", "/") or rest.query or "*" in text:
        raise MailRefused(f"{text[:100]!r} is more than a host: write it without a path, such as api.example.com")
    return f"{rest.scheme}://{rest.netloc}"
