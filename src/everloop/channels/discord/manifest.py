"""What the channel is, how it is set up, and the settings `channels.discord`."""

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ...errors import SettingsError
from ...ports.channel import Manifest, Setup, SetupField, Traits

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
_HERE = ("127.0.0.1", "::1", "localhost")
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
    known = DiscordSettings.__struct_fields__
    if unknown := [name for name in values if name not in known]:
        raise SettingsError(
            f"there is no setting channels.discord.{unknown[0][:50]}; the keys here are {', '.join(known)}"
        )


def check_settings(values: Mapping[str, Any]) -> DiscordSettings:
    """What they say. Raises SettingsError, which never holds the token."""
    check_keys(values)
    try:
        chosen = msgspec.convert(values, DiscordSettings, strict=False)  # a switch of the environment is text
    except msgspec.ValidationError as error:
        what, _, place = str(error).partition(" - at `$.")
        raise SettingsError(f"channels.discord{'.' if place else ''}{place.rstrip('`')}: {what}") from error
    token = chosen.token.strip().removeprefix("Bot ").strip()
    if not _TOKEN.fullmatch(token):
        raise SettingsError("channels.discord.token must be the bot's token, as the developer portal shows it")
    for name, schemes in (("api_url", "https http"), ("cdn_url", "https http"), ("gateway_url", "wss ws")):
        _check_address(name, getattr(chosen, name), *schemes.split())
    return msgspec.structs.replace(
        chosen, token=token, api_url=chosen.api_url.rstrip("/"), cdn_url=chosen.cdn_url.rstrip("/")
    )


def _check_address(name: str, url: str, safe: str, bare: str) -> None:
    if not url and name == "gateway_url":
        return
    try:
        parts = urlsplit(url)
        is_good = bool(parts.hostname) and (parts.scheme == safe or (parts.scheme == bare and parts.hostname in _HERE))
    except ValueError:
        is_good = False
    if not is_good:
        raise SettingsError(
            f"channels.discord.{name} must begin with {safe}:// ({bare}:// only for this machine itself)"
        )
