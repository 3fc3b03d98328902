"""Where secrets are sent, and that no change of settings from outside has one sent elsewhere.

A key is given for a host. Whoever changes the address of that host, or the Host header that tells a shared server for
whom it answers, would be given the key with the next call: so the key has to go first, and is given anew afterwards.
"""

from collections.abc import Collection, Mapping
from urllib.parse import urlsplit

from msgspec import Struct

from ..errors import ModelMissing, SettingsError
from ..providers.catalog import HOSTS, Host
from ..providers.choose import host_of
from ..providers.keys import Keys
from ..settings import Settings
from ..telemetry.target import target_of

_PORTS = {"http": 80, "https": 443}
_SAID = {
    "login": "its login is kept",
    "headers": "its headers are set already",
    "vault": "its key is in the vault",
    "file": "its key is in a file",
    "settings": "its key is in the settings file",
}


class Destination(Struct, frozen=True):
    """Whom bytes are sent to."""

    scheme: str = ""
    host: str = ""
    port: int | None = None
    called: str = ""  # the Host header, where it is another


def check_destinations(now: Settings, wanted: Settings, keys: Keys, environ: Mapping[str, str]) -> None:
    """Raises SettingsError when a secret that is kept already would go to another address than now.

    `keys` are those of the wanted settings."""
    for name in wanted.providers.accounts:
        before, after = (destination_of(name, settings) for settings in (now, wanted))
        where = _secret_of(name, now, wanted, keys) if after != before else ""
        if where and not _is_meant(name, after, where, keys):
            raise SettingsError(
                f"providers.{name}: {_SAID.get(where, f'its key comes from {where}')}, and would be sent to the new "
                "address. Forget the key first and give it again afterwards, or edit config.toml"
            )
    _check_collector(now, wanted, environ)


def _check_collector(now: Settings, wanted: Settings, environ: Mapping[str, str]) -> None:
    before, after = (
        target_of(each.telemetry.otlp_endpoint, each.telemetry.otlp_headers, environ, "") for each in (now, wanted)
    )
    if after is None or (before and _destination(before.url, before.headers) == _destination(after.url, after.headers)):
        return
    known = before.headers if before else now.telemetry.otlp_headers
    if _shared(known.values(), after.headers.values()):
        raise SettingsError(
            "telemetry.otlp_endpoint: the headers that are set for the collector would be sent to the new address. "
            "Give telemetry.otlp_headers anew with it, or edit config.toml"
        )


def _secret_of(name: str, now: Settings, wanted: Settings, keys: Keys) -> str:
    """Where a secret of this provider is that would be sent; "" if there is none."""
    row = host_of(name, keys) or HOSTS.get(name) or Host(name, "")
    old, new = now.providers.accounts.get(name), wanted.providers.accounts[name]
    if row.login:
        return "login"
    if old and _shared(old.headers.values(), new.headers.values()):
        return "headers"
    try:
        found = keys.find(row)
    except ModelMissing:  # its file cannot be read now
        return "file"
    return found.where if found else "vault" if keys.locked(row) else ""


def _is_meant(name: str, after: Destination, where: str, keys: Keys) -> bool:
    """Whether it is the host's own address, and its own key or the one that a variable holds for it."""
    row = host_of(name, keys)
    usual = HOSTS.get((row.family or row.name) if row else name)
    if usual is None or where == "headers" or after != _destination(usual.base, {}):
        return False
    return usual.name == name or where in usual.key_variables


def _shared(old: Collection[str], new: Collection[str]) -> bool:
    return bool(set(filter(None, old)) & set(filter(None, new)))


def destination_of(name: str, settings: Settings) -> Destination:
    """Whom the secrets of a provider are sent to."""
    account, row = settings.providers.accounts.get(name), HOSTS.get(name)
    base = (account.api_base if account else "") or (row.base if row else "")
    return _destination(base, account.headers if account else {})


def _destination(base: str, headers: Mapping[str, str]) -> Destination:
    called = next((value for header, value in headers.items() if header.strip().lower() == "host"), "")
    try:
        if "\\" in base or "@" in base or not base.isprintable():  # programs read such an address in different ways
            return Destination(base, base, None, called)
        parts = urlsplit(base.strip())
        return Destination(parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme), called)
    except ValueError:  # no address: whoever asks there says so
        return Destination(base, base, None, called)
