"""Keys of model providers that people have of their own, sealed in the vault with the address that each is for.

Which calls are made with one stands in runtime/own_keys.py. A key is sent to the address at which its provider was when
the key was given, and nowhere else: who may change settings could else have all keys sent to them. What asks with a key
is made for one person, and is handed to nobody else.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec
from msgspec import Struct

from ..core.people import OWNER
from ..core.prompt import Prompt
from ..errors import EverloopError, KeyRefused, MailRefused, ModelMissing, OutOfCredit, OwnKeyRefused, VaultLocked
from ..ports import Provider, Vault
from ..ports.provider import Delta, Reply
from ..ports.vault import OWN_KEY
from ..providers.catalog import HOSTS
from ..providers.choose import Choice
from ..providers.keys import checked_key, keyed_host
from ..providers.offered import rank, takes_key
from ..providers.router import Router
from ..runtime.own_keys import AskedProvider
from ..settings import Settings
from .build import Built
from .personal import LOCKED, PersonalSecrets
from .waiting_models import Absent

_log = logging.getLogger("everloop.keys")

PEOPLE = 1000  # whose providers are kept ready
MEND = "Give another or remove it in the page, under Manage, Access."
UNUSED = "This everloop was given a model of its own, so nobody is asked with it."
THE_HOUSES = (
    "the owner's keys are the house's, which everyone is answered with: keep them under Models, or with: everloop "
    "models key set"
)


class KeptKey(Struct, frozen=True):
    """What the box of a key holds: it, and the address that it is for."""

    key: str
    address: str


class OwnKeyRow(Struct, frozen=True):
    """A key that somebody keeps for a provider; `problem` says why it is of no use now."""

    provider: str
    at: float
    problem: str = ""


class OwnProviderKeys:
    """The OwnKeys port, and what people do with their keys."""

    def __init__(self, personal: PersonalSecrets, vault_of: Callable[[str], Vault], built: Callable[[], Built]) -> None:
        self.has = personal.has
        self._personal = personal
        self._vault_of = vault_of
        self._built = built
        self._made: dict[tuple[str, str], tuple[object, float, Provider]] = {}  # by person and model

    async def asked(self, person: str, model: str, usual: Provider) -> AskedProvider:
        now, own = self._built(), self._personal.of(person, OWN_KEY)
        if not own or now.library is None or now.presets is None:
            return AskedProvider(usual)
        asked, models = now.presets.asked(model), now.library.models
        with suppress(ModelMissing):
            choice = models.choice(asked.model)
            if choice.host and choice.host.name in own:
                return AskedProvider(await self._provider(person, choice, own[choice.host.name]), own=True)
            if isinstance(usual, Router):  # nobody else pays for what they would be asked with their own key
                names = [now.presets.asked(spare).model for spare in asked.fallbacks or ()]
                left = [name for name in names if _provider_in(models.choice, name) not in own]
                return AskedProvider(models.find(asked.model, left).provider)
        return AskedProvider(usual)

    async def _provider(self, person: str, choice: Choice, at: float) -> Provider:
        library = self._built().library
        assert library is not None
        assert choice.host is not None
        made = self._made.get((person, choice.name))
        if made and made[0] is library and made[1] == at:
            return made[2]
        refused = partial(Absent, choice.host.name, refusal=OwnKeyRefused)
        try:
            kept = await opened_key(self._vault_of(person), choice.host.name)
        except VaultLocked as error:
            _log.warning("a key of somebody's own cannot be read: %s", error)
            return refused(f"Your own key for {choice.host.name} {LOCKED}")
        if kept is None:
            return refused(f"Your own key for {choice.host.name} was removed a moment ago. Ask again.")
        if kept.address != choice.base:
            return refused(said_moved(choice.host.name))
        if len(self._made) >= PEOPLE:
            self._made.clear()
        provider = OwnKeyProvider(choice.host.name, library.models.with_key(choice, kept.key))
        self._made[person, choice.name] = library, at, provider
        return provider

    async def look(self) -> None:
        """See what another process has kept or forgotten; that is done every two seconds. Raises StoreError."""
        await self._personal.look()
        self._made = {place: made for place, made in self._made.items() if self._personal.has(place[0])}

    async def keys(self, person: str) -> list[OwnKeyRow]:
        """What somebody keeps. Raises StoreError."""
        vault, settings = self._vault_of(person), self._built().settings
        return await kept_keys(vault, settings)

    def providers(self) -> list[str]:
        """For whom a key may be given, the well-known first."""
        settings = self._built().settings
        names = {*HOSTS, *settings.providers.accounts}
        return sorted((name for name in names if takes_key(name) and address_of(name, settings)), key=rank)

    async def keep(self, person: str, provider: str, key: str) -> list[str]:
        """What is to be known about it. Raises EverloopError."""
        notes = await keep_own_key(self._vault_of(person), person, provider, key, self._built().settings)
        await self._personal.look()
        return notes if self._built().library else [*notes, UNUSED]

    async def forget(self, person: str, provider: str) -> None:
        """Raises MailRefused when there is none."""
        if not await self._vault_of(person).forget(OWN_KEY + provider):
            raise MailRefused(f"no key of yours is kept for {provider}")
        self._made = {place: made for place, made in self._made.items() if place[0] != person}
        await self._personal.look()


class OwnKeyProvider:
    """The Provider port with somebody's own key. What is wrong with the key is said to be theirs."""

    def __init__(self, host: str, provider: Provider) -> None:
        self.name = provider.name
        self._host = host
        self._provider = provider

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        try:
            return await self._provider.reply(prompt, show)
        except KeyRefused as error:
            raise OwnKeyRefused(f"{self._host} refuses your own key, and nobody else was asked. {MEND}") from error
        except OutOfCredit as error:
            raise OwnKeyRefused(
                f"Your own account at {self._host} has nothing left, and nobody else was asked. {MEND}"
            ) from error

    async def close(self) -> None:
        await self._provider.close()


def said_moved(provider: str) -> str:
    return (
        f"{provider} is asked at another address than when you gave your own key, so that it was not sent there. "
        "Give it again in the page, under Manage, Access, if that is right."
    )


async def opened_key(vault: Vault, provider: str) -> KeptKey | None:
    """Raises VaultLocked, StoreError."""
    kept = await vault.get(OWN_KEY + provider)
    return None if kept is None else msgspec.json.decode(kept, type=KeptKey)


async def kept_keys(vault: Vault, settings: Settings) -> list[OwnKeyRow]:
    kept = {name.removeprefix(OWN_KEY): at for name, at in (await vault.kept()).items() if name.startswith(OWN_KEY)}
    return [OwnKeyRow(name, at, await _problem(vault, name, settings)) for name, at in kept.items()]


async def _problem(vault: Vault, provider: str, settings: Settings) -> str:
    try:
        kept = await opened_key(vault, provider)
    except VaultLocked:
        return f"It {LOCKED}"
    return said_moved(provider) if kept and kept.address != address_of(provider, settings) else ""


async def keep_own_key(vault: Vault, person: str, provider: str, key: str, settings: Settings) -> list[str]:
    """What is to be known about it. Raises EverloopError; the key is never quoted."""
    if person == OWNER:
        raise MailRefused(THE_HOUSES)
    host, key = keyed_host(provider, settings.providers.accounts), checked_key(key)
    address = address_of(provider, settings)
    if not takes_key(provider) or not address:
        raise EverloopError(f"{provider} takes no key of one's own here")
    await vault.set(OWN_KEY + provider, msgspec.json.encode(KeptKey(key, address)).decode())
    owner = next((other for other in HOSTS.values() if other.key_prefix and key.startswith(other.key_prefix)), host)
    return [f"It looks like a key of {owner.name}, though."] if owner.name != host.name and host.name in HOSTS else []


def address_of(provider: str, settings: Settings) -> str:
    """Where a provider is asked; "" where nobody has said."""
    account, row = settings.providers.accounts.get(provider), HOSTS.get(provider)
    return (account.api_base if account else "") or (row.base if row else "")


def _provider_in(choice: Callable[[str], Choice], model: str) -> str:
    try:
        found = choice(model)
    except ModelMissing:
        return ""
    return found.host.name if found.host else ""
