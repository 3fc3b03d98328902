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
WORKSPACE = (
    "its workspace lies in a folder of its owner's choice: what it holds is copied into yours; to work in that folder "
    "itself, set `workspace` in the settings file"
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
        yield ForeignSetting(("models", str(name)), _table(preset))
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


def _account(name: str, account: dict[str, Any]) -> Iterator[ForeignSetting]:
    if key := account.pop("api_key", ""):
        yield ForeignSetting(("providers", name, "api_key"), None, {f"key:{name}": str(key)}, KEYED)
    yield from _leaves(account, ("providers", name))


def _channel(name: str, table: dict[str, Any]) -> ForeignSetting:
    secrets = {
        key: str(table[key]) for key in (*SECRETS, "webhook_secret", "app_token", "signing_secret") if table.get(key)
    }
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
