"""Connecting a model in one go: see what a provider has, choose one, and have key, address and model kept together.

Looking keeps nothing. A key that is kept already goes only where it goes now: to an address that somebody has just
written it is not sent, and neither are the headers of that provider.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ..errors import EverloopError, HostFailed, HostUnreachable, KeyRefused, ModelMissing, ProviderError
from ..providers.catalog import HOSTS, Host
from ..providers.choose import EMBEDDED, Choice, host_of
from ..providers.discovery import Discovery, ListedModel, talks
from ..providers.keys import Keys, checked_key, unknown_provider
from ..providers.offered import OWN, OfferedProvider, offered
from ..providers.prices import find_price, find_window
from ..settings import AccountSection, Settings
from ..settings.edit import key_of
from .destinations import destination_of
from .live import LiveHouse
from .models import ModelLibrary
from .reconfigure import LiveSettings

if TYPE_CHECKING:
    from ..providers.embedded import Download

ONE_MODEL = "this program has one model, which was handed over to it"
USUAL = "agents.defaults.model"
_TYPE_IT = "If the address is right, write the name of the model yourself."


class ModelFound(Struct, frozen=True):
    """A model that a provider has: what it can read, and US dollars for a million tokens; None is not known."""

    name: str
    window: int | None
    input: float | None
    output: float | None


class LookedAt(Struct, frozen=True):
    """`address` is where the models were listed, `usual` the one to begin with."""

    address: str
    models: Sequence[Any]
    usual: str = ""


class Connected(Struct, frozen=True):
    model: str
    notes: list[str]


class ProviderProbe:
    """Looks at providers by what a library of models has, and keeps nothing."""

    def __init__(self, library: ModelLibrary) -> None:
        self._library = library

    def changes(self, provider: str, address: str, model: str) -> dict[str, Any]:
        """The settings that connecting changes. Raises EverloopError for what is no address or no provider."""
        name = self._name_for(provider, address)
        account, row = self._library.settings.providers.accounts.get(name), HOSTS.get(name)
        known = (account.api_base if account else "") or (row.base if row else "")
        changed = {USUAL: f"{name}/{model}"}
        if address and address.rstrip("/") != known.rstrip("/"):
            changed[key_of(("providers", name, "api_base"))] = address
        return changed

    async def look(self, provider: str, address: str, key: str) -> LookedAt:
        """The models that it tells of. Nothing is kept. Raises ProviderError and EverloopError, with a way out."""
        choice = self._choice(provider, address, key)
        try:
            found = await self._ask(choice)
        except KeyRefused as error:
            raise KeyRefused(f"{_sentence(error)} {_about_key(choice, key)}") from error
        except HostUnreachable as error:
            raise HostUnreachable(f"{_sentence(error)} Is the server running, and the address right?") from error
        except ProviderError as error:
            raise HostFailed(f"{_sentence(error)} {_TYPE_IT}") from error
        assert choice.host is not None
        talking = [each for each in found.models if talks(each.name)]
        models = [_found(each, choice.host) for each in talking or found.models]
        names = [each.name for each in models]
        usual = choice.host.model if choice.host.model in names else names[0] if names else ""
        return replace(found, models=models, usual=usual)

    async def _ask(self, choice: Choice) -> LookedAt:
        """Of a server that is named by its host alone, the usual place is tried, too."""
        library = self._library
        try:
            models = await Discovery(library.http, logins=library.logins).models(choice)
        except (KeyRefused, HostUnreachable):
            raise
        except ProviderError:
            if urlsplit(choice.base).path.strip("/"):
                raise
            choice = replace(choice, base=f"{choice.base.rstrip('/')}/v1")
            models = await Discovery(library.http, logins=library.logins).models(choice)
        return LookedAt(choice.base, models)

    def _choice(self, provider: str, address: str, key: str) -> Choice:
        name, now = self._name_for(provider, address), self._library.settings
        wanted = _with_address(now, name, address) if address else now
        same = destination_of(name, wanted) == destination_of(name, now)
        account = wanted.providers.accounts.get(name, AccountSection())
        known = self._library.keys.accounts.get(name, account)  # with what its headers refer to
        given = replace(account, api_key=checked_key(key) if key else "", headers=dict(known.headers) if same else {})
        host = host_of(name, Keys({name: given}, {}, {}, Path())) or HOSTS.get(name)
        base = given.api_base or (host.base if host else "")
        if host is None or not base:
            raise EverloopError(f"{name} has no address of its own: write that of your server")
        if host.login and not same:
            raise EverloopError(f"{name} is logged in to, and has no other address")
        kept = self._library.keys.find(host) if same and not key else None
        return Choice(host, "", base, given.api_key or kept or "", given.headers)

    def _name_for(self, provider: str, address: str) -> str:
        """Under which name it is configured. An address of one's own that another has already gets a name by itself:
        what is kept for the one is never sent to the other."""
        now = self._library.settings
        if address:
            check_address(address)
        if provider not in HOSTS and provider not in now.providers.accounts:
            raise unknown_provider(provider, now.providers.accounts)
        if provider != OWN or not address:
            return provider
        names = [OWN, slug := _slug(address), *(f"{slug}-{n}" for n in range(2, 100))]
        for name in names:
            wanted = _with_address(now, name, address)
            if destination_of(name, now) == destination_of(name, wanted) or self._is_free(name):
                return name
        raise EverloopError(f"there are too many providers called {slug}: remove some in the settings")

    def _is_free(self, name: str) -> bool:
        """Nothing is configured under it, and no key is kept for it."""
        accounts, keys = self._library.settings.providers.accounts, self._library.keys
        host = HOSTS.get(name)
        if accounts.get(name, AccountSection()) != AccountSection() or (host and name != OWN):
            return False
        return not (host and keys.has(host)) and f"key:{name}" not in self._library.kept


class ModelConnector:
    def __init__(self, live: LiveHouse, settings: LiveSettings) -> None:
        self._live = live
        self._settings = settings

    @property
    def is_embedded(self) -> bool:
        return self._live.now.model.download is not None

    @property
    def download(self) -> "Download | None":
        """Of the model of this machine, whether or not it answers now."""
        if download := self._live.now.model.download:
            return download
        try:
            return self._library.models.find(EMBEDDED).download
        except ModelMissing:
            return None

    async def providers(self) -> list[OfferedProvider]:
        """None where one model was handed over: there is nothing to choose."""
        library = self._live.now.library
        return offered(library.keys, frozenset(library.logins)) if library else []

    async def look(self, provider: str, address: str, key: str) -> LookedAt:
        """The models that it tells of. Nothing is kept. Raises ProviderError and EverloopError, with a way out."""
        return await self._probe.look(provider, address, key)

    def changes(self, provider: str, address: str, model: str) -> dict[str, Any]:
        """The settings that connecting changes. Raises EverloopError for what is no address or no provider."""
        return self._probe.changes(provider, address, model)

    async def connect(self, provider: str, address: str, key: str, model: str) -> Connected:
        """Keep the address and the usual model in the settings, and the key in the vault. Raises EverloopError; then
        all is as before."""
        checked = checked_key(key) if key else ""
        changes = self.changes(provider, address, model)
        before = await self._values(changes)
        await self._settings.change(changes)
        name = changes[USUAL].partition("/")[0]
        try:
            notes = await self._settings.keep_key(name, checked) if checked else []
        except EverloopError:
            await self._settings.change(before)
            raise
        return Connected(changes[USUAL], notes)

    @property
    def _library(self) -> ModelLibrary:
        if self._live.now.library is None:
            raise ModelMissing(ONE_MODEL)
        return self._live.now.library

    @property
    def _probe(self) -> ProviderProbe:
        return ProviderProbe(self._library)

    async def _values(self, changes: Mapping[str, Any]) -> dict[str, Any]:
        """What the file says of these now; None is nothing."""
        rows = {row.key: row for row in (await self._settings.look()).rows}
        return {key: rows[key].value if key in rows and rows[key].source == "file" else None for key in changes}


def _with_address(settings: Settings, name: str, address: str) -> Settings:
    accounts = settings.providers.accounts
    account = replace(accounts.get(name, AccountSection()), api_base=address)
    return replace(settings, providers=replace(settings.providers, accounts={**accounts, name: account}))


def check_address(address: str) -> None:
    """Raises EverloopError for what is none."""
    try:
        parts = urlsplit(address)
        fine = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1)
    except ValueError:
        fine = False
    if not fine or "\\" in address or "@" in address or " " in address or not address.isprintable():
        raise EverloopError(f"{address!r} is no address: write one such as http://127.0.0.1:8080/v1")


def _slug(address: str) -> str:
    """A name by the host of an address, such as models-example-org."""
    parts = urlsplit(address)
    port = f"-{parts.port}" if parts.port else ""
    return re.sub(r"[^a-z0-9]+", "-", f"{parts.hostname}{port}".lower()).strip("-")[:50] or "own"


def _about_key(choice: Choice, key: str) -> str:
    if not choice.key:
        return "Paste your key."
    return "Paste the key again, all of it, or make a new one there." if key else "Paste another key."


def _found(model: ListedModel, host: Host) -> ModelFound:
    provider = host.family or host.name
    price = find_price(provider, model.name)
    window = model.window or find_window(provider, model.name)
    return ModelFound(model.name, window, price.input if price else None, price.output if price else None)


def _sentence(error: EverloopError) -> str:
    return f"{str(error).rstrip('.')}."
