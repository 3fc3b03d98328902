"""The settings file of nanobot, https://github.com/HKUDS/nanobot, as one of ours.

Most of its keys are ours, in capitals. The others are translated here, from version 0.3.5 and those before it; what has
no place here is told, and keeps nothing from being opened. A value that nanobot itself writes into every file says
nothing of what its owner wants, so that it is neither taken over nor told.
"""

from collections.abc import Iterator, Mapping
from typing import Any, get_args, get_origin

from msgspec import Struct
from msgspec.structs import fields

from .foreign import (
    ADVICE,
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
from .nanobot_channels import BESIDE, USUAL
from .shape import Effort, Providers, Settings, snake
from .unused import is_off

WORKSPACE = "~/.nanobot/workspace"
OUTSIDE = (
    "tools.restrictToWorkspace is false: here file tools and commands reach the workspace alone; a folder that the "
    "agent shall work in is put there, or is the setting `workspace`"
)
ANYBODY = (
    "channels.{name}.allowFrom lets in anybody: here strangers have to pair first; "
    '`strangers = "guest"` in channels.{name} lets them speak as guests'
)
ENGINES = {"brave": "brave", "tavily": "tavily", "searxng": "searxng", "duckduckgo": "ddgs"}
# What nanobot writes by itself; a key with this value is left out in silence.
_THEIRS: Mapping[str, Any] = {
    "agents.defaults.bot_name": "nanobot",
    "agents.defaults.bot_icon": "🐈",
    "agents.defaults.provider_retry_mode": "standard",
    "agents.defaults.tool_hint_max_length": 40,
    "agents.defaults.unified_session": False,
    "agents.defaults.idle_compact_after_minutes": 15,
    "agents.defaults.idle_compact_check_interval_seconds": 60,
    "agents.defaults.dream": {"enabled": True, "intervalH": 2, "modelOverride": None},
    "agents.defaults.timezone_mode": "auto",
    "api": {"host": "127.0.0.1", "port": 8900, "timeout": 120.0, "apiKey": ""},
    "gateway.restart_mode": "auto",
    "tools.my": {"enable": True, "allowSet": False},
    "tools.file": {"enable": True},
    "tools.cli_apps": {"enable": True, "installTimeout": 300, "runTimeout": 60, "catalogTtlSeconds": 3600},
    "tools.max_session_messages_per_minute": 6,
    "tools.webui_allow_local_service_access": True,
    "tools.webui_allow_remote_package_install": False,
    "tools.web.fetch": {"useJinaReader": True},
    "tools.web.search.max_results": 5,
    "tools.web.search.timeout": 30,
    "transcription": {
        "enabled": True,
        "provider": None,
        "model": None,
        "language": None,
        "maxDurationSec": 120,
        "maxUploadMb": 25,
    },
}
# Where we have another way to say it, or to do it.
_ADVICE: Mapping[str, str] = {
    "agents.defaults.bot_name": "who the agent is stands in IDENTITY.md of the workspace, or in a persona",
    "agents.defaults.bot_icon": "who the agent is stands in IDENTITY.md of the workspace, or in a persona",
    "agents.defaults.disabled_skills": "a skill is left out by removing it: everloop skills remove NAME",
    "agents.defaults.dream": "what conversations become part of the memory is set under [memory]",
    "agents.defaults.idle_compact_after_minutes": "conversations are compacted when their window is full",
    "api": "the gateway serves /v1 itself, at its own port: everloop tokens create makes a token for it",
    "tools.exec.sandbox": "commands always run in our own sandbox",
    "tools.exec.allow_patterns": "what commands may do is said by tools.policy",
    "tools.exec.deny_patterns": "what commands may do is said by tools.policy",
    "tools.image_generation": "there is no tool that draws; an MCP server may bring one",
    "tools.ssrf_whitelist": "addresses that web_fetch may read stand in tools.web.allow",
    "transcription": "voice messages: set voice.model, as groq/whisper-large-v3-turbo",
}


def is_nanobots(values: Mapping[str, Any]) -> bool:
    """Whether a settings file was written by nanobot: it has keys that no version of ours had."""
    defaults = at(values, "agents", "defaults")
    marks = {"workspace", "botName", "modelPreset", "contextWindowTokens", "maxConcurrentSubagents"}
    return bool(isinstance(defaults, Mapping) and marks & defaults.keys()) or "modelPresets" in values


def translated(values: Mapping[str, Any]) -> Translation:
    tree = _ours(values, Settings)
    told: list[str] = []
    tree["providers"] = _providers(at(values, "providers"))
    _agents(plain(at(values, "agents", "defaults")), tree)
    _presets(at(values, "modelPresets") or at(values, "model_presets"), tree)
    _gateway(plain(values.get("gateway")), tree)
    _tools(plain(values.get("tools")), tree, told)
    _channels(values.get("channels"), tree, told)
    if isinstance(servers := values.get("mcpServers"), Mapping):
        tree["mcp_servers"] = servers
    for name, table in plain(values.get("providers")).items():
        told += left_keys(f"providers.{name}", table, {*_ACCOUNT, "extra_headers", *_auto(table)})
    for name, table in plain(at(values, "modelPresets") or at(values, "model_presets")).items():
        told += left_keys(f"model_presets.{name}", table, _PRESET)
    told += _left_out(values)
    return Translation(tree, tuple(told))


def _ours(values: Mapping[str, Any], shape: type[Struct]) -> dict[str, Any]:
    """What stands in it under a name of ours. What is null is as if it were not there."""
    known = {field.name: field.type for field in fields(shape)}
    tree: dict[str, Any] = {}
    for written, value in values.items():
        name = snake(str(written))
        if name not in known or value is None or name in ("providers", "channels", "restrict_to_workspace"):
            continue
        if not _is_section(known[name]):
            tree[name] = value
        elif isinstance(value, Mapping):
            tree[name] = _ours(value, known[name])
    return tree


def _is_section(hint: Any) -> bool:
    return isinstance(hint, type) and issubclass(hint, Struct)


def _agents(said: dict[str, Any], tree: dict[str, Any]) -> None:
    defaults = tree.setdefault("agents", {}).setdefault("defaults", {})
    if model := said.get("model_preset") or _model(said.get("model"), said.get("provider")):
        defaults["model"] = model
    if defaults.get("reasoning_effort") not in get_args(Effort):
        defaults.pop("reasoning_effort", None)
    if said.get("context_window_tokens") not in (None, 200_000, 65_536):
        put(tree, "agents.defaults.context_window", said["context_window_tokens"])
    if said.get("max_tool_result_chars") not in (None, 16_000):
        put(tree, "agents.defaults.tool_result_max_chars", said["max_tool_result_chars"])
    if said.get("max_concurrent_subagents") not in (None, 4):
        put(tree, "agents.tasks.per_person", said["max_concurrent_subagents"])
    models = said.get("fallback_models")
    if fallbacks := [_fallback(each) for each in models] if isinstance(models, list) else []:
        put(tree, "agents.defaults.fallbacks", fallbacks)
    if said.get("timezone_mode") not in (None, "auto") or ("timezone_mode" not in said and "timezone" in said):
        put(tree, "schedules.timezone", said.get("timezone", ""))
    if said.get("workspace") not in (None, WORKSPACE):
        put(tree, "workspace", said["workspace"])


def _model(model: Any, provider: Any) -> Any:
    """With its provider before it, unless that is found by the name."""
    if not isinstance(model, str) or provider in (None, "", "auto"):
        return model
    host = host_named(str(provider))
    return model if model.startswith(f"{host}/") else f"{host}/{model}"


def _fallback(given: Any) -> Any:
    table = plain(given)
    return _model(table.get("model"), table.get("provider")) if table else given


def _presets(given: Any, tree: dict[str, Any]) -> None:
    for name, table in given.items() if isinstance(given, Mapping) else ():
        said = plain(table)
        made: dict[str, Any] = {key: said[key] for key in ("max_tokens", "temperature") if key in said}
        made["model"] = _model(said.get("model"), said.get("provider"))
        if said.get("reasoning_effort") in get_args(Effort):
            made["reasoning_effort"] = said["reasoning_effort"]
        if "context_window_tokens" in said:
            made["context_window"] = said["context_window_tokens"]
        tree.setdefault("models", {})[str(name)] = made


_ACCOUNT = {"api_key", "api_base", "model", "headers", "dialect", "api_key_file", "path", "threads"}
_PRESET = {"model", "provider", "max_tokens", "temperature", "reasoning_effort", "context_window_tokens"}


def _auto(table: Any) -> set[str]:
    """What is left to nanobot to find out."""
    return {key for key, value in plain(table).items() if value == "auto"}


def _providers(given: Any) -> dict[str, Any]:
    """Of its forty tables those in which something stands."""
    made: dict[str, Any] = {}
    for name, table in given.items() if isinstance(given, Mapping) else ():
        said = plain(table)
        if headers := said.get("extra_headers"):
            said["headers"] = headers
        account = {key: value for key, value in said.items() if key in _ACCOUNT}
        if account:
            made[host_named(str(name))] = account
    return made


def _gateway(said: dict[str, Any], tree: dict[str, Any]) -> None:
    heart = plain(said.get("heartbeat"))
    if heart.get("enabled") is False:
        put(tree, "heartbeat.enabled", False)
    if isinstance(seconds := heart.get("interval_s"), int | float) and 0 < seconds <= 604_800 and seconds != 1800:
        put(tree, "heartbeat.every", max(1, round(seconds / 60)))


def _tools(said: dict[str, Any], tree: dict[str, Any], told: list[str]) -> None:
    if said.get("restrict_to_workspace") is False:
        told.append(OUTSIDE)
    web, run = plain(said.get("web")), plain(said.get("exec"))
    off = [*(["web_*"] if web.get("enable") is False else []), *(["exec"] if run.get("enable") is False else [])]
    if off:
        put(tree, "tools.disabled", off)
    if run.get("timeout") == 60:
        tree.get("tools", {}).get("exec", {}).pop("timeout", None)
    if names := run.get("allowed_env_keys"):
        put(tree, "tools.exec.env", names)
    _search(plain(web.get("search")), tree, told)


def _search(said: dict[str, Any], tree: dict[str, Any], told: list[str]) -> None:
    provider, key, url = said.get("provider", "brave"), said.get("api_key"), said.get("base_url")
    if provider not in ENGINES:
        told.append(f"tools.web.search.provider is none that web_search knows: {', '.join(ENGINES)}")
    elif provider == "searxng" and url:
        put(tree, "tools.web.search.url", url)
    elif key and provider in ("brave", "tavily"):
        put(tree, "tools.web.search.engine", provider)
        put(tree, "tools.web.search.api_key", key)


def _channels(given: Any, tree: dict[str, Any], told: list[str]) -> None:
    """Its own tables are channels, what stands beside them is not. One that we have not stays if it is switched on, so
    that it is told as any other."""
    made: dict[str, Any] = {}
    for name, table in given.items() if isinstance(given, Mapping) else ():
        if not isinstance(table, Mapping):
            told += _beside_channels(str(name), table)
            continue
        if name == "websocket":
            continue
        if name in CHANNELS:
            if own := channel_table(name, table):
                made[name] = {**own, "enabled": not is_off(dict(table))}
                told += [ANYBODY.format(name=name)] if lets_in_anybody(table) else []
                told += left_of_channel(name, table, USUAL[name])
        elif not is_off(dict(table)):
            made[str(name)] = {"enabled": True}
    if made:
        tree["channels"] = made


def _beside_channels(written: str, value: Any) -> list[str]:
    """What is said of all channels at once."""
    key = snake(written)
    if value is None or value in BESIDE.get(key, ("", False, [])):
        return []
    advice = ADVICE.get(key, _ADVICE["transcription"] if key.startswith("transcription") else "")
    return [f"channels.{key} has no place here{f': {advice}' if advice else ''}"]


# What is translated above; all else that stands in a file is told, or is as nanobot writes it.
_TAKEN = {
    *(f"agents.defaults.{key}" for key in ("workspace", "model_preset", "model", "provider", "fallback_models")),
    *(f"agents.defaults.{key}" for key in ("context_window_tokens", "max_tool_result_chars", "timezone")),
    *("agents.defaults.max_concurrent_subagents", "agents.defaults.reasoning_effort", "model_presets", "providers"),
    *("channels", "mcp_servers", "gateway.heartbeat", "tools.restrict_to_workspace", "tools.mcp_servers"),
    *("tools.web.enable", "tools.exec.enable", "tools.exec.timeout", "tools.exec.allowed_env_keys"),
    *("tools.web.search.provider", "tools.web.search.api_key", "tools.web.search.base_url"),
}


def _left_out(values: Mapping[str, Any]) -> Iterator[str]:
    for path, value in _leaves(values, Settings, ()):
        key = ".".join(path)
        if key in _TAKEN or value in (None, "", [], {}, False) or _THEIRS.get(key) == value or _is_off(value):
            continue
        advice = _ADVICE.get(key, "")
        yield f"{key} has no place here{f': {advice}' if advice else ''}"


def _is_off(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.get("enabled") is False or value.get("enable") is False)


def _leaves(
    tree: Mapping[str, Any], shape: type[Struct], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """What stands in a tree where ours has nothing of that name."""
    known = {field.name: field.type for field in fields(shape)}
    for written, value in tree.items():
        where = (*path, snake(str(written)))
        hint: Any = known.get(where[-1])
        if ".".join(where) in _TAKEN or hint is Providers or get_origin(hint) is dict:
            continue
        if _is_section(hint) and isinstance(value, Mapping):
            yield from _leaves(value, hint, where)
        elif hint is None:
            yield where, value
