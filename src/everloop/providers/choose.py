"""Which model answers: what the settings name, or with "auto" the best that this machine has to offer."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from ..core.errors import ModelMissing
from .catalog import HOSTS, Host


class Account(Protocol):
    """What the owner has configured for one host."""

    @property
    def api_key(self) -> str: ...
    @property
    def api_base(self) -> str: ...
    @property
    def model(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class Choice(Struct, frozen=True):
    """A model at a host; `host` is None for the embedded one."""

    host: Host | None
    model: str
    base: str = ""
    key: str = ""
    headers: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        return f"{self.host.name if self.host else 'embedded'}/{self.model}"


EMBEDDED = "embedded"


def choose(name: str, accounts: Mapping[str, Account], environ: Mapping[str, str]) -> Choice | None:
    """The choice that needs no look at the network; None when "auto" has found no key. Raises ModelMissing."""
    if name == "auto":
        return _configured(accounts, environ) or _keyed(environ)
    provider, slash, model = name.partition("/")
    if provider == EMBEDDED:
        return Choice(None, model)
    if not slash or provider not in HOSTS:
        raise ModelMissing(
            f"the model {name!r} is not known: write provider/model, for example openai/gpt-5-mini, with one of "
            f"{', '.join(HOSTS)} or embedded as the provider"
        )
    return _at(HOSTS[provider], model, accounts.get(provider), environ)


def at_local(host: Host, model: str) -> Choice:
    """A model that a server on this machine offers."""
    return Choice(host, model, host.base)


def _configured(accounts: Mapping[str, Account], environ: Mapping[str, str]) -> Choice | None:
    for name, account in accounts.items():
        model = account.model or (HOSTS[name].model if name in HOSTS else "")
        if name in HOSTS and model and (account.api_key or account.api_base):
            return _at(HOSTS[name], model, account, environ)
    return None


def _keyed(environ: Mapping[str, str]) -> Choice | None:
    for host in HOSTS.values():
        if host.model and host.key_variable and environ.get(host.key_variable):
            return _at(host, host.model, None, environ)
    return None


def _at(host: Host, model: str, account: Account | None, environ: Mapping[str, str]) -> Choice:
    base = (account.api_base if account else "") or host.base
    key = (account.api_key if account else "") or environ.get(host.key_variable, "")
    if not base:
        raise ModelMissing(
            f"{host.name}/{model} has no address: set EVERLOOP_PROVIDERS__{host.name.upper()}__API_BASE "
            f"or providers.{host.name}.api_base in the settings file"
        )
    if host.key_variable and not key and not (account and account.api_base):
        raise ModelMissing(f"{host.name}/{model} needs a key: set {host.key_variable} or providers.{host.name}.api_key")
    return Choice(host, model, base, key, account.headers if account else {})
