"""What the settings of other agents and ours have in common: reading their trees, the names of hosts, channels' tables.

A translation makes two things of a foreign tree: settings of ours, and sentences about what has no place here. It never
quotes a value, for any may be a secret.
"""

from collections.abc import Collection, Mapping
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
# Where we have another way to say it, by their keys of a channel.
ADVICE: Mapping[str, str] = {
    "proxy": "set HTTPS_PROXY where everloop is started, which then holds for all that it asks",
    "accounts": "a channel has one account; set up the one that you need with everloop channels add",
    "dm_policy": "who may speak is set by users.strangers, and by allow_from of the channel",
    "group_policy": "when it answers in groups is set by `groups` of the channel",
    "group_allow_from": "who is answered in one group is set by chats.<id>.allow_from of the channel",
    "groups": "each group can have a rule of its own: chats.<id> of the channel",
    "guilds": "each chat can have a rule of its own: chats.<id> of the channel",
    "channels": "each chat can have a rule of its own: chats.<id> of the channel",
    "send_progress": "set `progress` of the channel",
    "send_tool_hints": "set `progress` of the channel",
    "show_reasoning": "set `reasoning` of the channel",
    "password": "Matrix wants an access_token here: everloop channels add matrix",
    "verify_dkim": "which mail is believed is set by `senders` of the channel",
    "verify_spf": "which mail is believed is set by `senders` of the channel",
    "imap_use_ssl": "how it is encrypted is set by imap_security",
    "smtp_use_ssl": "how it is encrypted is set by smtp_security",
    "smtp_use_tls": "how it is encrypted is set by smtp_security",
    "smtp_username": "one name and password is for both servers here: `username` and `password`",
    "smtp_password": "one name and password is for both servers here: `username` and `password`",
}
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
    more = {key: said[key] for key in (*POLICY, *own.values()) if key in said and key not in made}
    return made | {key: value for key, value in more.items() if _is_ours(key, value)}


def _is_ours(key: str, value: Any) -> bool:
    """Others call something else `groups`."""
    return key != "groups" or isinstance(value, str)


def left_of_channel(name: str, table: Mapping[str, Any], usual: Mapping[str, Any] = {}) -> list[str]:
    """A sentence for each key of a channel that its table of ours does not have; `usual` is what stands in every file
    of theirs, and what is off says nothing."""
    made, left = channel_table(name, table), list[str]()
    for written, value in table.items():
        key = snake(str(written))
        is_taken = made.get(CHANNELS[name].get(key, key)) == value or _is_meant(key, value, made)
        if not is_taken and value not in (None, "", [], {}, usual.get(key, False)):
            advice = ADVICE.get(key, "")
            left.append(f"channels.{name}.{str(written)[:50]} has no place here{f': {advice}' if advice else ''}")
    return left


def left_keys(place: str, table: Any, taken: Collection[str]) -> list[str]:
    """A sentence for each key of another table that is none of these."""
    keys = {str(key): value for key, value in table.items()} if isinstance(table, Mapping) else {}
    left = [key for key, value in keys.items() if snake(key) not in taken and value not in (None, "", [], {}, False)]
    advice = {key: f": {ADVICE[snake(key)]}" if snake(key) in ADVICE else "" for key in left}
    return [f"{place[:80]}.{key[:50]} has no place here{advice[key]}" for key in left]


def _is_meant(key: str, value: Any, made: Mapping[str, Any]) -> bool:
    """Whether it is said by another of ours, or by none: strangers have to pair here, where nothing is set."""
    match key:
        case "enabled" | "disabled" | "allow_from":
            return True
        case "group_policy":
            return str(value) in GROUPS
        case "dm_policy":
            return value == "pairing" or (value == "allowlist" and "allow_from" in made)
        case "imap_username" | "smtp_username":
            return bool(value == made.get("username", made.get("address")))
        case "smtp_password":
            return bool(value == made.get("password"))
    return False


def allowed_people(given: Any) -> list[str]:
    """The accounts of an allow-list; the id of `id|name`. What lets in anybody names nobody."""
    listed = given if isinstance(given, list | tuple) else []
    accounts = [str(each).partition("|")[0].strip() for each in listed if isinstance(each, str | int)]
    return [each[:200] for each in accounts if each and each != "*"]


def lets_in_anybody(table: Mapping[str, Any]) -> bool:
    given = plain(table).get("allow_from")
    return isinstance(given, list | tuple) and "*" in given
