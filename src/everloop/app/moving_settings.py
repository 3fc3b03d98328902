"""Settings of another agent, one after the other: what is secret in them is parted from them, for the vault."""

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from ..errors import EverloopError
from ..readings.secret_parts import SecretPart, is_secret, replaced, text_parts, value_parts
from ..settings.foreign import SECRETS
from .mcp_servers import looks_secret
from .mcp_tables import new_server
from .provider_headers import own_header
from .secrets import SECRET_NAME, VAULT, checked_secret

KEYED = "its key goes into the vault"
SWITCHED_OFF = (
    "switched off, so that two do not answer: stop the other agent, then set channels.{name}.enabled to true, and see "
    "`everloop users link owner {name}:YOUR_ID`"
)
WORKSPACE = (
    "its workspace lies in a folder of its owner's choice: what it holds is copied into yours; to work in that folder "
    "itself, set `workspace` in the settings file"
)
LOOK_AT = "nothing of it is allowed yet: everloop mcp show {name}, then everloop mcp allow {name}"
SEARCH = (
    "the key of the search engine stays where it is, for the vault has no place for it: set {variable} where everloop "
    "is started, or tools.web.search in its settings file"
)

NO_VAULT = (
    "{key} holds a secret or a login, and stays where it is: here it cannot refer to the vault; if you need it, write "
    "it into the settings file by hand"
)
_TABLES = ("providers", "channels", "mcp_servers", "models")
_CHANNEL_SECRETS = (*SECRETS, "webhook_secret", "app_token", "signing_secret")


class ForeignSetting(Struct, frozen=True):
    """A path of the settings file and what stands there; `secrets` are for the vault, by their names there. `address`
    is that of the provider to which they go there; None where they go to none."""

    path: tuple[str, ...]
    value: Any
    secrets: Mapping[str, str] = {}
    note: str = ""
    address: str | None = None

    @property
    def key(self) -> str:
        return ".".join(self.path)

    def __repr__(self) -> str:
        return f"ForeignSetting({self.key})"


def settings_of(tree: Mapping[str, Any]) -> Iterator[ForeignSetting | str]:
    """A sentence stands for one that has no place."""
    rest = {key: value for key, value in tree.items() if key not in _TABLES}
    if rest.pop("workspace", ""):
        yield WORKSPACE
    tools = _table(rest.pop("tools", None))
    servers = {**_table(tree.get("mcp_servers")), **_table(tools.pop("mcp_servers", None))}
    web = _table(tools.pop("web", None))
    search = _table(web.pop("search", None))
    if search.get("api_key"):
        yield SEARCH.format(variable=f"{str(search.get('engine') or 'brave').upper()}_API_KEY")
    elif search:
        yield from _leaves(search, ("tools", "web", "search"))
    for name, account in _table(tree.get("providers")).items():
        yield from _account(str(name), _table(account))
    for name, preset in _table(tree.get("models")).items():
        path = ("models", str(name))
        secret = _holds_secret(_table(preset))
        yield NO_VAULT.format(key=".".join(path)[:100]) if secret else ForeignSetting(path, _table(preset))
    yield from _leaves(rest, ())
    yield from _leaves(tools, ("tools",))
    yield from _leaves(web, ("tools", "web"))
    for name, table in _table(tree.get("channels")).items():
        yield (
            _channel(str(name), _table(table))
            if any(_table(table).get(key) for key in SECRETS)
            else (f"channels.{str(name)[:50]} has no place here: everloop channels list tells which there are")
        )
    for name, table in servers.items():
        yield _server(str(name), table if isinstance(table, Mapping) else {})


def _table(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, Mapping) else {}


def _account(name: str, account: dict[str, Any]) -> Iterator[ForeignSetting | str]:
    place, key = ("providers", name), account.pop("api_key", "")
    headers = {str(header): str(value) for header, value in _table(account.pop("headers", None)).items()}
    if not key and "authorization" not in map(str.lower, headers) and (login := _login(account.get("api_base"))):
        account["api_base"], headers["Authorization"] = login
    address = str(account.get("api_base") or "")
    if key:
        yield ForeignSetting((*place, "api_key"), None, {f"key:{name}": str(key)}, KEYED, address)
    for header, value in headers.items():
        made = _parted(
            (*place, "headers", header), value, own_header(name, header), every=looks_secret(header), note=KEYED
        )
        yield made if isinstance(made, str) else replace(made, address=address)
    yield from _leaves(account, place)


def _login(address: Any) -> tuple[str, str] | None:
    """An address without its login, and the header that says the same."""
    found = re.fullmatch(r"(https?://)([^/?#@]+)@([^@]+)", address) if isinstance(address, str) else None
    if not found:
        return None
    return found[1] + found[3], f"Basic {b64encode(unquote(found[2]).encode()).decode()}"


def _channel(name: str, table: dict[str, Any]) -> ForeignSetting | str:
    """All that it says; what is secret in it by its name or its shape is referred to."""
    shown, kept = dict[str, Any](), dict[str, str]()
    for key, value in table.items():
        if not isinstance(value, str):
            if not _holds_secret(value):
                shown[key] = value
            continue
        found = _parted(("channels", name, key), value, f"{name}.{key}", every=key in _CHANNEL_SECRETS)
        if isinstance(found, str):
            return found
        shown[key] = found.value
        kept |= found.secrets
    return ForeignSetting(("channels", name), {**shown, "enabled": False}, kept, SWITCHED_OFF.format(name=name))


def _parted(
    path: tuple[str, ...], value: str, name: str, *, every: bool = False, note: str = ""
) -> ForeignSetting | str:
    """A setting with references in the place of its secrets, which are kept under this name; `every`: it is one as a
    whole, whatever it looks like."""
    parts = value_parts(value, path[-1])
    if every and not is_secret(parts) and value.strip():
        parts = (SecretPart(value, path[-1]),)
    if not is_secret(parts):
        return ForeignSetting(path, value)
    plain, secrets = re.sub(r"[^A-Za-z0-9_.-]", "_", name)[:90], dict[str, str]()

    def kept(part: SecretPart) -> str:
        own = plain if not secrets else f"{plain}.{len(secrets) + 1}"
        secrets[f"secret:{own}"] = checked_secret(part.text)
        return f"${{{VAULT}{own}}}"

    try:
        shown = replaced(parts, kept)
    except EverloopError as error:
        return f"{'.'.join(path)[:100]} is left: {error}"
    fits = all(re.fullmatch(SECRET_NAME, each.removeprefix("secret:")) for each in secrets)
    return ForeignSetting(path, shown, secrets, note) if fits else NO_VAULT.format(key=".".join(path)[:100])


def _holds_secret(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_secret_named(str(name), each) for name, each in value.items())
    if isinstance(value, list | tuple):
        return any(map(_holds_secret, value))
    return isinstance(value, str) and is_secret(text_parts(value))


def _holds_secret_named(name: str, value: Any) -> bool:
    return is_secret(value_parts(value, name)) if isinstance(value, str) else _holds_secret(value)


def _server(name: str, table: Mapping[str, Any]) -> ForeignSetting | str:
    try:
        new = new_server(name, table)
    except EverloopError as error:
        return f"the MCP server {name[:50]} is left: {error}"
    kept = {f"secret:{each}": secret for each, secret in new.secrets.items()}
    return ForeignSetting(("tools", "mcp_servers", name), new.table, kept, LOOK_AT.format(name=name))


def _leaves(tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[ForeignSetting | str]:
    """What of it is a secret is left: only some settings can refer to the vault, and the file is no place for it."""
    for name, value in tree.items():
        where = (*path, str(name))
        if isinstance(value, Mapping):
            yield from _leaves(value, where)
        elif _holds_secret_named(str(name), value):
            yield NO_VAULT.format(key=".".join(where)[:100])
        else:
            yield ForeignSetting(where, value)
