"""Where a channel is, and which role is ours: asked of the API when it is needed, and remembered."""

from collections import OrderedDict

import msgspec
from msgspec import Struct

from .codec import DiscordPlace
from .rest import DiscordRefused, DiscordRest

REMEMBERED = 10_000
THREADS = frozenset({10, 11, 12})  # types of channels


class DiscordRoom(Struct, frozen=True):
    id: str
    type: int = 0
    guild_id: str | None = None
    parent_id: str | None = None

    @property
    def place(self) -> DiscordPlace:
        server = self.guild_id or ""
        if self.type in THREADS and self.parent_id:
            return DiscordPlace(self.parent_id, self.id, server)
        return DiscordPlace(self.id, server=server)


class _RoleTags(Struct, frozen=True):
    bot_id: str | None = None


class _ServerRole(Struct, frozen=True):
    id: str
    tags: _RoleTags | None = None


class DiscordPlaces:
    def __init__(self, rest: DiscordRest) -> None:
        self._rest = rest
        self._places: OrderedDict[str, DiscordPlace] = OrderedDict()
        self._roles: OrderedDict[str, frozenset[str]] = OrderedDict()

    async def of(self, channel: str, server: str | None) -> DiscordPlace:
        """Of something that was said in a channel of this server. A chat of two need not be asked for."""
        if not server:
            return DiscordPlace(channel)
        try:
            place = await self.find(channel)
        except DiscordRefused:  # it may be heard and not looked at
            return self._keep(channel, DiscordPlace(channel, server=server))
        return DiscordPlace(place.chat, place.thread, server)  # never a chat of two, whatever the room says of itself

    async def find(self, channel: str) -> DiscordPlace:
        """Raises DiscordRefused when we are not there, ChannelDown, ChannelRefused."""
        if place := self._places.get(channel):
            return place
        room = msgspec.convert(await self._rest.call("GET", f"channels/{channel}"), DiscordRoom)
        return self._keep(channel, room.place)

    async def roles(self, server: str, me: str) -> frozenset[str]:
        """Those that nobody but the bot has."""
        if server not in self._roles:
            try:
                told = msgspec.convert(await self._rest.call("GET", f"guilds/{server}/roles"), list[_ServerRole])
            except DiscordRefused:
                told = []
            self._roles[server] = frozenset(role.id for role in told if role.tags and role.tags.bot_id == me)
            while len(self._roles) > REMEMBERED:
                self._roles.popitem(last=False)
        return self._roles[server]

    def _keep(self, channel: str, place: DiscordPlace) -> DiscordPlace:
        self._places[channel] = place
        while len(self._places) > REMEMBERED:
            self._places.popitem(last=False)
        return place
