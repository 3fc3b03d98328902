"""What the settings of other agents and ours have in common: reading their trees, the names of hosts, channels' tables.

A translation makes two things of a foreign tree: settings of ours, and sentences about what has no place here. It never
quotes a value, for any may be a secret.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from .shape import snake


class Translation(NamedTuple):
    """Our settings, and a sentence for each thing that is not among them, with what to do about it."""

    values: dict[str, Any]
    told: tuple[str, ...]


# What others call a host that we know by another name.
HOSTS = {
    "azure_openai": "azure",
    "lm_studio": "lmstudio",
    "google": "gemini",
    "z_ai": "zai",
    "github_copilot": "github-copilot",
    "openai_codex": "openai-codex",
}
# Their keys of the channels that both have, as snake has them, and ours.
CHANNELS: Mapping[str, Mapping[str, str]] = {
    "telegram": {
        "token": "token",
        "bot_token": "token",
        "mode": "mode",
        "webhook_url": "webhook_url",
        "webhook_secret": "webhook_secret",
        "webhook_secret_token": "webhook_secret",
    },
    "discord": {"token": "token"},
    "slack": {
        "bot_token": "bot_token",
        "app_token": "app_token",
        "mode": "mode",
        "reply_in_thread": "reply_in_thread",
        "signing_secret": "signing_secret",
    },
    "email": {
        "from_address": "address",
        "imap_username": "username",
        "imap_password": "password",
        "imap_host": "imap_host",
        "imap_port": "imap_port",
        "smtp_host": "smtp_host",
        "smtp_port": "smtp_port",
        "imap_mailbox": "folder",
        "poll_interval_seconds": "poll_seconds",
    },
    "matrix": {
        "homeserver": "homeserver",
        "access_token": "access_token",
        "user_id": "user_id",
        "device_id": "device_id",
    },
}
# What ours say of every channel, and of which others have nothing.
POLICY = ("bots", "chats", "gather", "groups", "per_minute", "per_minute_all", "progress", "reasoning", "strangers")
GROUPS = {"mention": "mention", "open": "always", "always": "always", "allowlist": "mention", "disabled": "never"}
# Which of them makes a channel one that somebody has set up.
SECRETS = ("token", "bot_token", "password", "access_token")


def host_named(name: str) -> str:
    """Our name of a host."""
    plain = snake(name)
    return HOSTS.get(plain, plain.replace("_", "-") if "-" in name else plain)


def at(tree: Any, *path: str) -> Any:
    """What stands at a path of a tree, whatever the tree is; None if nothing does."""
    for part in path:
        tree = tree.get(part) if isinstance(tree, Mapping) else None
    return tree


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set a value under a path with dots, unless something stands there."""
    *tables, last = path.split(".")
    for part in tables:
        tree = tree.setdefault(part, {})
    tree.setdefault(last, value)


def plain(value: Any) -> dict[str, Any]:
    """A table with our spelling of its keys, without those that say nothing; {} for what is no table."""
    if not isinstance(value, Mapping):
        return {}
    return {snake(str(key)): each for key, each in value.items() if each not in (None, "", [], {})}


def channel_table(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    """Our settings of a channel that both have; {} where nobody has set it up."""
    said, own = plain(table), CHANNELS[name]
    made: dict[str, Any] = {
        own[key]: value for key, value in said.items() if key in own and isinstance(value, str | int | bool)
    }
    if not any(made.get(key) for key in SECRETS):
        return {}
    if name == "email" and made.get("username") == made.setdefault("address", made.get("username", "")):
        made.pop("username", None)
    if name == "telegram" and made.get("mode") not in ("polling", "webhook"):
        made.pop("mode", None)
    if name == "slack" and made.get("mode") not in ("socket", "events"):
        made.pop("mode", None)
    if people := allowed_people(said.get("allow_from")):
        made["allow_from"] = people
    if (policy := GROUPS.get(str(said.get("group_policy", "")))) is not None:
        made["groups"] = policy
    return made | {key: said[key] for key in (*POLICY, *own.values()) if key in said and key not in made}


def allowed_people(given: Any) -> list[str]:
    """The accounts of an allow-list; the id of `id|name`. What lets in anybody names nobody."""
    listed = given if isinstance(given, list | tuple) else []
    accounts = [str(each).partition("|")[0].strip() for each in listed if isinstance(each, str | int)]
    return [each[:200] for each in accounts if each and each != "*"]


def lets_in_anybody(table: Mapping[str, Any]) -> bool:
    given = plain(table).get("allow_from")
    return isinstance(given, list | tuple) and "*" in given
