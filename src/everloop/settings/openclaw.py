"""The settings of OpenClaw, https://github.com/openclaw/openclaw, as ours: of version 2026.9.6."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .foreign import (
    CHANNELS,
    Translation,
    at,
    channel_table,
    host_named,
    left_keys,
    left_of_channel,
    lets_in_anybody,
    plain,
    put,
)
from .nanobot import ANYBODY, ENGINES

DIALECTS = {
    "openai-completions": "openai_chat",
    "openai-responses": "openai_responses",
    "anthropic-messages": "anthropic_messages",
    "google-generative-ai": "gemini",
}
# What is translated, or says nothing that its owner has chosen.
_TAKEN = {
    *("models.mode", "models.providers", "agents.defaults.model", "agents.defaults.userTimezone", "mcp.servers"),
    *("agents.defaults.heartbeat", "agents.defaults.workspace", "gateway.port", "gateway.mode", "gateway.bind"),
    *("tools.web.search", "channels", "meta", "wizard", "$schema", "agents.defaults.models"),
}
_ADVICE = {
    "gateway.auth": "who may use the gateway is set with `everloop gateway password` and `everloop tokens`",
    "agents.list": "there is one agent; who it is at some places is a persona: everloop personas add",
    "bindings": "which persona answers at which place: everloop personas use",
    "tools.exec": "commands always run in our own sandbox; what they may do is said by tools.policy",
    "session": "conversations follow their chats here; there is nothing to set",
    "skills": "skills are set up with `everloop skills`",
    "plugins": "tools of others come as packages (tools.plugins) or as MCP servers",
    "env": "variables are set where everloop is started; keys go to the vault: everloop models key set NAME",
    "auth": "keys go to the vault: everloop models key set NAME",
}
_ACCOUNT = {"base_url", "api_key", "headers", "api", "models"}  # a host is asked which models it has
_UNITS = {"m": 1, "h": 60, "d": 1440, "": 1}


def translated(values: Mapping[str, Any]) -> Translation:
    tree: dict[str, Any] = {}
    told: list[str] = []
    for name, table in _tables(at(values, "models", "providers")):
        tree.setdefault("providers", {})[host_named(name)] = _account(table)
        told += left_keys(f"models.providers.{name}", table, _ACCOUNT)
    chosen = at(values, "agents", "defaults", "model")
    if model := chosen if isinstance(chosen, str) else at(chosen, "primary"):
        put(tree, "agents.defaults.model", model)
    if fallbacks := at(chosen, "fallbacks"):
        put(tree, "agents.defaults.fallbacks", fallbacks)
    if isinstance(zone := at(values, "agents", "defaults", "userTimezone"), str):
        put(tree, "schedules.timezone", zone)
    _heartbeat(at(values, "agents", "defaults", "heartbeat", "every"), tree)
    if isinstance(port := at(values, "gateway", "port"), int):
        put(tree, "gateway.port", port)
    _channels(values.get("channels"), tree, told)
    if servers := dict(_tables(at(values, "mcp", "servers"))):
        put(tree, "tools.mcp_servers", servers)
    _search(plain(at(values, "tools", "web", "search")), tree, told)
    told += _left_out(values, ())
    return Translation(tree, tuple(told))


def _account(table: Mapping[str, Any]) -> dict[str, Any]:
    said = plain(table)
    account = {ours: said[key] for key, ours in (("base_url", "api_base"), ("api_key", "api_key")) if key in said}
    if not isinstance(account.get("api_key", ""), str):  # a reference to its own secrets
        account.pop("api_key")
    if isinstance(headers := said.get("headers"), Mapping):
        account["headers"] = {str(name): value for name, value in headers.items() if isinstance(value, str)}
    if dialect := DIALECTS.get(str(said.get("api"))):
        account["dialect"] = dialect
    return account


def _heartbeat(every: Any, tree: dict[str, Any]) -> None:
    found = re.fullmatch(r"(\d{1,6})\s*([mhd]?)", str(every or ""))
    if found and int(found[1]) == 0:
        put(tree, "heartbeat.enabled", False)
    elif found:
        put(tree, "heartbeat.every", min(10_080, int(found[1]) * _UNITS[found[2]]))


def _channels(given: Any, tree: dict[str, Any], told: list[str]) -> None:
    for name, table in _tables(given):
        if name in CHANNELS and (own := channel_table(name, table)):
            put(tree, f"channels.{name}", own)
            told += [ANYBODY.format(name=name)] if lets_in_anybody(table) else []
            told += left_of_channel(name, table)
        elif name == "defaults":
            told.append("channels.defaults has no place here: each channel has rules of its own")
        else:
            told.append(f"channels.{name[:50]} has no place here, or no token stands in it: everloop channels list")


def _search(said: dict[str, Any], tree: dict[str, Any], told: list[str]) -> None:
    provider = str(said.get("provider") or "")
    if provider in ("brave", "tavily") and isinstance(said.get("api_key"), str):
        put(tree, "tools.web.search.engine", provider)
        put(tree, "tools.web.search.api_key", said["api_key"])
    elif provider and provider not in ENGINES:
        told.append(f"tools.web.search.provider is none that web_search knows: {', '.join(ENGINES)}")


def _left_out(values: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[str]:
    """What has no place, named by the table that it stands in."""
    for name, value in values.items():
        where = (*path, str(name))
        key = ".".join(where)
        if key in _TAKEN or value in (None, "", [], {}):
            continue
        if any(taken.startswith(f"{key}.") for taken in _TAKEN) and isinstance(value, Mapping):
            yield from _left_out(value, where)
        else:
            advice = _ADVICE.get(key) or _ADVICE.get(where[0], "")
            yield f"{key} has no place here{f': {advice}' if advice else ''}"


def _tables(given: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, table in given.items() if isinstance(given, Mapping) else ():
        if isinstance(table, Mapping):
            yield str(name), table
