"""What Slack can do as a channel, its settings, and how one comes by them."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ...errors import SettingsError
from ...ports.channel import Manifest, Setup, SetupField, Traits
from ..settings import check_address, check_names, read_settings
from .app_manifest import link_to_new_app

MANIFEST = Manifest(
    "slack",
    Traits(
        text_limit=4_000,
        preview=1.5,  # chat.update is for about 50 calls a minute
        typing=30.0,  # a status vanishes after two minutes
        files=50_000_000,
        edits=True,
    ),
)

# What the bot's token must allow, and what for.
SCOPES: Mapping[str, str] = {
    "chat:write": "to answer",
    "im:history": "to hear what people write to it directly",
    "channels:history": "to hear what is written in public channels that it was invited to",
    "groups:history": "to hear what is written in private channels that it was invited to",
    "mpim:history": "to hear what is written in group messages that it is part of",
    "im:read": "to find what people wrote to it while it was away",
    "channels:read": "to find the same in public channels",
    "groups:read": "to find the same in private channels",
    "mpim:read": "to find the same in group messages",
    "im:write": "to write to somebody first",
    "files:read": "to open files that people send",
    "files:write": "to send files",
    "reactions:write": "to react with an emoji",
    "users:read": "to know what people are called",
    "commands": "for the command /everloop",
}

SETUP = Setup(
    title="Slack",
    steps=(
        "Open this link, which has all that the app needs, choose your workspace and press Create: "
        f"{link_to_new_app(SCOPES)}",
        "Under Basic Information, App-Level Tokens, generate one with the scope connections:write: it begins with "
        "xapp-.",
        "Under Install App, install it to your workspace: the Bot User OAuth Token begins with xoxb-.",
        "Write to the app in Slack, or invite it to a channel with /invite and mention it there.",
    ),
    fields=(
        SetupField("bot_token", "The Bot User OAuth Token (xoxb-…)", secret=True),
        SetupField(
            "app_token", "The app-level token (xapp-…), unless Slack is to call the gateway", secret=True, optional=True
        ),
        SetupField(
            "signing_secret", "The Signing Secret, if Slack is to call the gateway instead", secret=True, optional=True
        ),
    ),
)

MODES = ("socket", "events")
_TOKEN = re.compile(r"[\x21-\x7e]+")


class SlackSettings(Struct, forbid_unknown_fields=True):
    """The settings `channels.slack`. Without a `mode` it is "socket", or "events" for an app that has a signing secret
    and no token of its own. With `reply_in_thread` what is said in a channel is answered in a thread under
    it, and each such thread is a conversation of its own."""

    bot_token: str
    app_token: str = ""
    mode: str = ""
    signing_secret: str = ""
    reply_in_thread: bool = True
    api_url: str = "https://slack.com/api/"
    files_url: str = "https://files.slack.com/"


def check_keys(values: Mapping[str, Any]) -> None:
    """Raises SettingsError for one that means nothing."""
    check_names("slack", values, SlackSettings)


def check_settings(values: Mapping[str, Any]) -> SlackSettings:
    """Raises SettingsError, with no value of a secret in it."""
    chosen = read_settings("slack", values, SlackSettings)
    if not chosen.mode:
        chosen.mode = "events" if chosen.signing_secret and not chosen.app_token else "socket"
    if chosen.mode not in MODES:
        raise SettingsError(f"channels.slack.mode is one of {', '.join(MODES)}, not {chosen.mode[:50]!r}")
    _check_token("bot_token", chosen.bot_token, "xoxb-", "the Bot User OAuth Token, under Install App")
    if chosen.mode == "socket":
        where = "an app-level token with the scope connections:write, under Basic Information"
        _check_token("app_token", chosen.app_token, "xapp-", where)
    elif len(chosen.signing_secret) < 16:
        why = "is the Signing Secret under Basic Information; without it nobody could tell Slack from a stranger"
        raise SettingsError(f"channels.slack.signing_secret {why}")
    for name in ("api_url", "files_url"):
        check_address(f"channels.slack.{name}", getattr(chosen, name))
    return chosen


def _check_token(name: str, token: str, beginning: str, where: str) -> None:
    if not token.startswith(beginning) or not _TOKEN.fullmatch(token):
        raise SettingsError(f"channels.slack.{name} begins with {beginning}: it is {where} of your app")
