"""What the channel is, how it is set up, and the settings `channels.discord`."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ...errors import SettingsError
from ...ports.channel import Manifest, Setup, SetupField, Traits
from ..settings import check_address, check_names, read_settings

# `once` is not said: Discord remembers a nonce for some minutes only. What is sent again within them is dropped there,
# with its mark; what comes through later has it.
MANIFEST = Manifest(
    "discord",
    Traits(
        text_limit=2_000,
        text_unit="utf16",
        preview=1.5,
        typing=8.0,
        files=10_000_000,
        enclosed=True,
        edits=True,
    ),
)
SETUP = Setup(
    title="Discord",
    steps=(
        "Open https://discord.com/developers/applications and create an application.",
        "Under Bot, switch on MESSAGE CONTENT INTENT (Privileged Gateway Intents) and save.",
        "Under Bot, press Reset Token and copy the token: it is shown once.",
        "Open the invite link that the trial shows, and let the bot into a server; whoever is in one with it can also "
        "write to it in private.",
    ),
    fields=(SetupField("token", "The bot's token", secret=True),),
)
_TOKEN = re.compile(r"[!-~]{1,500}")


class DiscordSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`gateway_url` is asked of the API if it is not set. `commands`: the house's slash commands are registered."""

    token: str
    api_url: str = "https://discord.com/api/v10"
    gateway_url: str = ""
    cdn_url: str = "https://cdn.discordapp.com"
    commands: bool = True

    def __repr__(self) -> str:
        return f"DiscordSettings(…, {self.api_url!r})"


def check_keys(values: Mapping[str, Any]) -> None:
    """Raises SettingsError for one that means nothing."""
    check_names("discord", values, DiscordSettings)


def check_settings(values: Mapping[str, Any]) -> DiscordSettings:
    """What they say. Raises SettingsError, which never holds the token."""
    chosen = read_settings("discord", values, DiscordSettings)
    token = chosen.token.strip().removeprefix("Bot ").strip()
    if not _TOKEN.fullmatch(token):
        raise SettingsError("channels.discord.token must be the bot's token, as the developer portal shows it")
    for name, schemes in (("api_url", "https http"), ("cdn_url", "https http"), ("gateway_url", "wss ws")):
        if getattr(chosen, name) or name != "gateway_url":
            check_address(f"channels.discord.{name}", getattr(chosen, name), *schemes.split())
    return msgspec.structs.replace(
        chosen, token=token, api_url=chosen.api_url.rstrip("/"), cdn_url=chosen.cdn_url.rstrip("/")
    )
