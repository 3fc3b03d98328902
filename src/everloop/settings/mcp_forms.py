"""The forms in which settings of MCP servers are written: ours, that of earlier agents, and the common `mcpServers` of
other clients, with a key or two of each."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from ..errors import SettingsError
from .mcp import TABLE
from .shape import snake
from .unused import is_off

MINE = "wrong"  # which is ours to write
_ALIASES = {
    "type": "transport",
    "transport_type": "transport",
    "http_url": "url",
    "server_url": "url",
    "tool_timeout": "timeout",
    "enabled_tools": "tools",
    "include_tools": "tools",
    "timeout_seconds": "timeout",
}
_TRANSPORTS = {"streamable-http": "http", "streamable_http": "http", "streamablehttp": "http", "": "auto"}
FOREIGN = frozenset(  # what other clients keep there for themselves, and what is asked about here in another way
    {"description", "always_allow", "auto_approve", "trust", "gallery", "icon", "provider", "tags", "title", "$schema"}
)
_VARIABLE = re.compile(r"\$\{env:([A-Za-z_]\w*)\}")


def normal_form(values: Any) -> dict[str, Any]:
    """The table of a server with our keys. Raises SettingsError, which quotes no value."""
    if values is None or values is False:
        return {"enabled": False}
    if not isinstance(values, Mapping):
        raise SettingsError("must be a table of settings")
    table = {_ALIASES.get(key, key): value for key, value in _ours(values).items()}
    if MINE in table:
        raise SettingsError(f"there is no setting {MINE}")
    if isinstance(transport := table.get("transport"), str):
        table["transport"] = _TRANSPORTS.get(transport.lower(), transport.lower())
    if "command" in table:
        table |= _command(table["command"], table.get("args"))
    for key in ("env", "headers"):
        if isinstance(table.get(key), Mapping):
            table[key] = {str(name): _written(value) for name, value in table[key].items()}
    if "oauth" in table:
        table["oauth"] = _oauth(table["oauth"])
    return {key: _plain_references(value) for key, value in table.items()}


def _ours(values: Mapping[str, Any]) -> dict[str, Any]:
    table = {snake(str(key)): value for key, value in values.items()}
    off = is_off(dict(values))
    table.pop("disabled", None)
    if off or "enabled" in table:
        table["enabled"] = False if off else table.get("enabled", True)
    return {key: value for key, value in table.items() if key not in FOREIGN}


def _command(command: Any, args: Any) -> dict[str, Any]:
    """One word and what follows it, as it is also written as a list, or as one line."""
    if isinstance(command, list | tuple):
        first, more = (command[0] if command else ""), list(command[1:])
    elif isinstance(command, str) and args is None and " " in command.strip():
        try:
            first, *more = shlex.split(command)
        except ValueError as error:
            raise SettingsError("command is no line of a shell (a quotation mark is missing)") from error
    else:
        first, more = command, []
    return {"command": first, "args": [*more, *(args or ())] if isinstance(args, list | tuple | None) else args}


def _oauth(given: Any) -> Any:
    if isinstance(given, bool):
        return {}
    if not isinstance(given, Mapping):
        return given
    table = {snake(str(key)): value for key, value in given.items()}
    table.pop("callback_port", None)
    if isinstance(scope := table.pop("scope", None), str):
        table.setdefault("scopes", scope.split())
    return table


def _written(value: Any) -> Any:
    """A number or a switch, as JSON has it, in the words that a program is given."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else value


def _plain_references(value: Any) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(r"${\1}", value)
    if isinstance(value, Mapping):
        return {key: _plain_references(each) for key, each in value.items()}
    return [_plain_references(each) for each in value] if isinstance(value, list | tuple) else value


def servers_in(document: Any) -> dict[str, Any]:
    """The tables of the servers in a JSON document of another client: under `mcpServers`, `servers` or `mcp.servers`,
    or the document itself. Raises SettingsError."""
    for keys in (
        ("mcpServers",),
        ("mcp_servers",),
        ("tools", "mcpServers"),
        ("tools", TABLE),
        ("mcp", "servers"),
        ("servers",),
    ):
        found: Any = document
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, Mapping):
            return {str(name): table for name, table in found.items()}
    if isinstance(document, Mapping) and document and all(_is_server(each) for each in document.values()):
        return {str(name): table for name, table in document.items()}
    raise SettingsError('there are no MCP servers in it; they stand under "mcpServers"')


def _is_server(table: Any) -> bool:
    return isinstance(table, Mapping) and bool({snake(str(key)) for key in table} & {"command", "url", *_ALIASES})
