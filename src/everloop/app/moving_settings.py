"""Settings of another agent, one after the other: what is secret in them is parted from them, for the vault."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ..errors import EverloopError
from ..settings.foreign import SECRETS
from .mcp_tables import new_server
from .secrets import VAULT

KEYED = "its key goes into the vault"
SWITCHED_OFF = (
    "switched off, so that two do not answer: stop the other agent, then set channels.{name}.enabled to true, and see "
    "`everloop users link owner {name}:YOUR_ID`"
)
LOOK_AT = "nothing of it is allowed yet: everloop mcp show {name}, then everloop mcp allow {name}"
SEARCH = (
    "the key of the search engine stays where it is, for the vault has no place for it: set {variable} where everloop "
    "is started, or tools.web.search in its settings file"
)


_TABLES = ("providers", "channels", "mcp_servers", "models")


class ForeignSetting(Struct, frozen=True):
    """A path of the settings file and what stands there; `secrets` are for the vault, by their names there."""

    path: tuple[str, ...]
    value: Any
    secrets: Mapping[str, str] = {}
    note: str = ""

    @property
    def key(self) -> str:
        return ".".join(self.path)

    def __repr__(self) -> str:
        return f"ForeignSetting({self.key})"


def settings_of(tree: Mapping[str, Any]) -> Iterator[ForeignSetting | str]:
    """A sentence stands for one that has no place."""
    rest = {key: value for key, value in tree.items() if key not in _TABLES}
    tools = dict(rest.pop("tools", {}))
    servers = {**dict(tree.get("mcp_servers") or {}), **dict(tools.pop("mcp_servers", {}))}
    web = dict(tools.pop("web", {}))
    search = dict(web.pop("search", {}))
    if search.get("api_key"):
        yield SEARCH.format(variable=f"{str(search.get('engine') or 'brave').upper()}_API_KEY")
    elif search:
        yield from _leaves(search, ("tools", "web", "search"))
    for name, account in dict(tree.get("providers") or {}).items():
        yield from _account(str(name), dict(account))
    for name, preset in dict(tree.get("models") or {}).items():
        yield ForeignSetting(("models", str(name)), dict(preset))
    yield from _leaves(rest, ())
    yield from _leaves(tools, ("tools",))
    yield from _leaves(web, ("tools", "web"))
    for name, table in dict(tree.get("channels") or {}).items():
        yield (
            _channel(str(name), dict(table))
            if any(table.get(key) for key in SECRETS)
            else (f"channels.{str(name)[:50]} has no place here: everloop channels list tells which there are")
        )
    for name, table in servers.items():
        yield _server(str(name), table if isinstance(table, Mapping) else {})


def _account(name: str, account: dict[str, Any]) -> Iterator[ForeignSetting]:
    if key := account.pop("api_key", ""):
        yield ForeignSetting(("providers", name, "api_key"), None, {f"key:{name}": str(key)}, KEYED)
    yield from _leaves(account, ("providers", name))


def _channel(name: str, table: dict[str, Any]) -> ForeignSetting:
    secrets = {key: str(table[key]) for key in (*SECRETS, "webhook_secret", "app_token") if table.get(key)}
    shown = {**table, **{key: f"${{{VAULT}{name}.{key}}}" for key in secrets}, "enabled": False}
    kept = {f"secret:{name}.{key}": value for key, value in secrets.items()}
    return ForeignSetting(("channels", name), shown, kept, SWITCHED_OFF.format(name=name))


def _server(name: str, table: Mapping[str, Any]) -> ForeignSetting | str:
    try:
        new = new_server(name, table)
    except EverloopError as error:
        return f"the MCP server {name[:50]} is left: {error}"
    kept = {f"secret:{each}": secret for each, secret in new.secrets.items()}
    return ForeignSetting(("tools", "mcp_servers", name), new.table, kept, LOOK_AT.format(name=name))


def _leaves(tree: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[ForeignSetting]:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, str(name)))
        else:
            yield ForeignSetting((*path, str(name)), value)
