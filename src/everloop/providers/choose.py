"""Which model answers: what is named, or with "auto" the best that this machine has to offer.

A name is looked up in this order: `provider/model` as it stands, or a provider alone, which is its usual model; a
gateway, if one is configured; a word in a bare model's name that tells its vendor; a server on this machine.
"""

from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from ..errors import ModelMissing
from .catalog import HOSTS, Host
from .keys import HostSettings, Keys

EMBEDDED = "embedded"
_STRANGER = Host("", "")


class Choice(Struct, frozen=True):
    """A model at a host; `host` is None for the embedded one."""

    host: Host | None
    model: str
    base: str = ""
    key: str = ""
    headers: Mapping[str, str] = {}

    @property
    def name(self) -> str:
        return f"{self.host.name if self.host else EMBEDDED}/{self.model}".removesuffix("/")

    def __repr__(self) -> str:
        return f"Choice({self.name!r}, {self.base!r})"


class LookNeeded(Struct, frozen=True):
    """Nothing more can be said without a look at the servers on this machine. "" is any of their models."""

    model: str


def choose(name: str, keys: Keys) -> Choice | LookNeeded:
    """Raises ModelMissing, which says what to do."""
    if name == "auto":
        return _configured(keys) or _keyed(keys) or _unnamed(keys)
    provider, slash, model = name.partition("/")
    if provider == EMBEDDED:
        return Choice(None, model)
    host = host_of(provider, keys)
    if host is not None and not slash and (_is_reachable(host, keys) or _gateway(keys)):
        model = _usual_model(host, keys)  # a provider alone
    if host is not None and model:
        gateway = None if host.gateway or _is_reachable(host, keys) else _gateway(keys)
        return _at(gateway, _through(gateway, host, model), keys) if gateway else _at(host, model, keys)
    vendors = [] if slash else vendors_of(name, _rows(keys))
    if gateway := _gateway(keys):
        return _at(gateway, _through(gateway, vendors[0] if vendors else None, name), keys)
    for vendor in vendors:
        if _is_reachable(vendor, keys):
            return _at(vendor, name, keys)
    return LookNeeded(name)


def vendors_of(name: str, hosts: Iterable[Host] = HOSTS.values()) -> list[Host]:
    """Whose a bare model may be, by the words in its name; the short ones mean something only at its beginning."""
    name = name.lower()
    return [
        host for host in hosts if any(name.startswith(word) or (len(word) > 3 and word in name) for word in host.words)
    ]


def local_hosts(keys: Keys) -> list[Host]:
    """The servers that may run on this machine, or wherever the owner has them."""
    moved = {name: account.api_base for name, account in keys.accounts.items() if account.api_base}
    return [replace(host, base=moved.get(host.name, host.base)) for host in HOSTS.values() if host.port]


def host_of(name: str, keys: Keys) -> Host | None:
    """The row of a provider. One of the owner's own naming is the row that its address or key belongs to."""
    row, account = HOSTS.get(name), keys.accounts.get(name)
    if account is None:
        return row
    if row is None and not (account.api_base or account.api_key or account.api_key_file):
        return None
    if row is None or name == "custom":
        kin = _recognised(account) or row or _STRANGER
        row = replace(kin, name=name, port=0, family=kin.name if kin.name != name else "")
    if account.dialect:
        return replace(row, dialect=account.dialect)
    if row.dialect == "openai_responses" and account.api_base and not row.login:
        return replace(row, dialect="openai_chat")  # what is compatible with OpenAI speaks its older dialect
    return row


def has_gateway(keys: Keys) -> bool:
    """Whether there is one that takes names which nobody here knows."""
    return _gateway(keys) is not None


def at_local(host: Host, model: str) -> Choice:
    """A model that a server on this machine offers."""
    return Choice(host, model, host.base)


def explain_missing(name: str, keys: Keys) -> ModelMissing:
    """For a model that nobody seems to have."""
    vendors = vendors_of(name)
    if vendors and "/" not in name:
        return _explain_no_key(vendors[0], name, keys)
    provider, slash, _ = name.partition("/")
    if provider in HOSTS and HOSTS[provider].model and not slash:
        return _explain_no_key(HOSTS[provider], name, keys)
    if provider in HOSTS and not slash:
        return ModelMissing(
            f"{name} is a provider: write {name}/MODEL, and see its models with: everloop models {name}"
        )
    from difflib import get_close_matches  # only a mistake needs it

    near = get_close_matches(provider, [*HOSTS, *keys.accounts, EMBEDDED], 3) if slash else []
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    return ModelMissing(
        f"the model {name!r} is not known: write provider/model, for example openai/gpt-5.4-mini.{hint} "
        "All providers are listed by: everloop models --all"
    )


def _rows(keys: Keys) -> list[Host]:
    """Every row as the owner has configured it, then those of the owner's own naming."""
    return [host for name in dict.fromkeys((*HOSTS, *keys.accounts)) if (host := host_of(name, keys))]


def _recognised(account: HostSettings) -> Host | None:
    """The row whose host the address names, or whose keys begin like this one."""
    address = _host_in(account.api_base)
    for host in HOSTS.values():
        known = _host_in(host.base)
        if address and not host.port and not host.login and address == known:
            return host
        if not account.api_base and host.key_prefix and account.api_key.startswith(host.key_prefix):
            return host
    return None


def _host_in(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:  # whoever asks there says what is wrong with it
        return ""


def _gateway(keys: Keys) -> Host | None:
    """A gateway that the owner has configured: its key or address says that everything is to go through it."""
    return next((host for host in _rows(keys) if host.gateway and _is_reachable(host, keys)), None)


def _through(gateway: Host, vendor: Host | None, model: str) -> str:
    """A vendor's model as a gateway calls it."""
    return f"{vendor.vendor or vendor.name}/{model}" if vendor and gateway.names_vendors else model


def _is_reachable(host: Host, keys: Keys) -> bool:
    account = keys.accounts.get(host.name)
    return bool(not host.key_variables or keys.find(host) or (account and account.api_base))


def _usual_model(host: Host, keys: Keys) -> str:
    account = keys.accounts.get(host.name)
    return (account.model if account else "") or host.model


def _configured(keys: Keys) -> Choice | None:
    for name, account in keys.accounts.items():
        host = host_of(name, keys)
        if host and (model := _usual_model(host, keys)) and (account.api_base or keys.find(host)):
            return _at(host, model, keys)
    return None


def _unnamed(keys: Keys) -> LookNeeded:
    """Raises ModelMissing when there is an address at which a model could be had, if it were named."""
    for name, account in keys.accounts.items():
        host = host_of(name, keys)
        if host and account.api_base and not host.port:  # a server like those of this machine is asked what it has
            raise ModelMissing(
                f"{name} has an address and no model: set providers.{name}.model, or name it as "
                f'agents.defaults.model = "{name}/MODEL"'
            )
    return LookNeeded("")


def _keyed(keys: Keys) -> Choice | None:
    for host in sorted(HOSTS.values(), key=lambda host: host.gateway):
        if host.model and keys.find(host):
            return _at(host, host.model, keys)
    return None


def _at(host: Host, model: str, keys: Keys) -> Choice:
    account = keys.accounts.get(host.name)
    if why := keys.wrong.get(host.name):
        raise ModelMissing(f"{host.name}/{model} cannot be asked. {why}")
    base = (account.api_base if account else "") or host.base
    if base and not _is_reachable(host, keys):
        raise _explain_no_key(host, f"{host.name}/{model}", keys)
    if not base:
        raise ModelMissing(f"{host.name}/{model} has no address: set providers.{host.name}.api_base in the settings")
    return Choice(host, model, base, keys.find(host) or "", account.headers if account else {})


def _explain_no_key(host: Host, name: str, keys: Keys) -> ModelMissing:
    if locked := keys.locked(host):
        return ModelMissing(f"{name} needs its key. {locked}")
    return ModelMissing(
        f"{name} needs a key: set {host.key_variable} or providers.{host.name}.api_key, "
        f"or keep it in the vault with: everloop models key set {host.name}"
    )
