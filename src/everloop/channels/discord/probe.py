"""A trial: who the bot is, what it may not do yet and what to do about that, and the link that invites it."""

from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from ...errors import ChannelDown, ProviderError
from ...ports.channel import Probed
from .codec import DiscordUser
from .rest import DiscordRefused, DiscordRest

ADMINISTRATOR = 1 << 3
PERMISSIONS = {
    "View Channels": 1 << 10,
    "Send Messages": 1 << 11,
    "Send Messages in Threads": 1 << 38,
    "Read Message History": 1 << 16,
    "Attach Files": 1 << 15,
    "Add Reactions": 1 << 6,
}
READS_MESSAGES = (1 << 18) | (1 << 19)  # flags of an application whose MESSAGE CONTENT INTENT is on
MOST = 10  # servers that are named


class DiscordApplication(Struct, frozen=True):
    id: str
    name: str = ""
    flags: int = 0


class BotServer(Struct, frozen=True):
    name: str
    permissions: str = "0"


async def probe(rest: DiscordRest) -> Probed:
    """Raises ChannelDown, ChannelRefused."""
    try:
        me = msgspec.convert(await rest.call("GET", "users/@me"), DiscordUser)
        application = msgspec.convert(await rest.call("GET", "applications/@me"), DiscordApplication)
        servers = msgspec.convert(await rest.call("GET", "users/@me/guilds"), list[BotServer])
    except (DiscordRefused, ProviderError, msgspec.ValidationError) as error:
        raise ChannelDown(f"Discord does not say who the bot is: {error}") from error
    link = _invitation(application.id)
    missing = [*_intents(application), *_servers(servers, link)]
    return Probed(account=f"{me.username} ({me.id})", missing=tuple(missing), link=link)


def _invitation(application: str) -> str:
    asked = {"client_id": application, "scope": "bot applications.commands", "permissions": sum(PERMISSIONS.values())}
    return f"https://discord.com/oauth2/authorize?{urlencode(asked)}"


def _intents(application: DiscordApplication) -> list[str]:
    if application.flags & READS_MESSAGES:
        return []
    return [
        "It may not read messages: switch on MESSAGE CONTENT INTENT at "
        f"https://discord.com/developers/applications/{application.id}/bot and save."
    ]


def _servers(servers: list[BotServer], link: str) -> list[str]:
    if not servers:
        return [f"It is in no server yet, so that nobody can write to it: open {link} and let it into one."]
    lacking = [(server.name, names) for server in servers if (names := _lacking(int(server.permissions)))]
    return [
        f"In the server {name[:100]} it lacks: {', '.join(names)}. Give them to its role (Server Settings, Roles), or "
        "invite it again with the link."
        for name, names in lacking[:MOST]
    ]


def _lacking(granted: int) -> list[str]:
    if granted & ADMINISTRATOR:
        return []
    return [name for name, bit in PERMISSIONS.items() if not granted & bit]
