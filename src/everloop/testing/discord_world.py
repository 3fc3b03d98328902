"""What there is on a Discord of one's own: people, servers, channels, threads and messages, as its API tells them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from itertools import count
from typing import Any

FIRST = 1_400_000_000_000_000_000  # the first id; each further one is a millisecond later
DM, TEXT, THREAD = 1, 0, 11
ALL_PERMISSIONS = str((1 << 50) - 1)

Json = dict[str, Any]


def moment(id: str) -> str:
    """When something with this id was made."""
    return datetime.fromtimestamp(((int(id) >> 22) + 1_420_070_400_000) / 1000, UTC).isoformat()


class DiscordWorld:
    """`bot` is the user that the token belongs to, `application` what it is the bot of."""

    def __init__(self) -> None:
        self._ids = count(FIRST, 1 << 22)
        self.bot = self.user("everbot", bot=True)
        self.application: Json = {
            "id": self.bot["id"],
            "name": "everbot",
            "description": "",
            "icon": None,
            "flags": 1 << 19,
            "bot_public": True,
            "bot_require_code_grant": False,
            "verify_key": "0" * 64,
            "bot": self.bot,
            "owner": self.user("owner"),
            "team": None,
            "summary": "",
        }
        self.guilds: dict[str, Json] = {}
        self.channels: dict[str, Json] = {}
        self.messages: dict[str, dict[str, Json]] = {}  # by channel, then by id, in order
        self.files: dict[str, bytes] = {}  # by the path at which the CDN has them

    def new_id(self) -> str:
        return str(next(self._ids))

    def user(self, name: str, *, bot: bool = False) -> Json:
        told = {"id": self.new_id(), "username": name, "discriminator": "0", "avatar": None, "bot": bot}
        return {**told, "global_name": name.title(), "public_flags": 0}

    def guild(self, name: str, permissions: str = ALL_PERMISSIONS) -> str:
        """A server that the bot is in, with the role that it has there."""
        id = self.new_id()
        everyone = {"id": id, "name": "@everyone", "permissions": permissions, "position": 0, "color": 0}
        ours = {**everyone, "id": self.new_id(), "name": "everbot", "tags": {"bot_id": self.bot["id"]}, "position": 1}
        flags = {"hoist": False, "managed": False, "mentionable": True, "flags": 0}
        roles = [{**role, **flags} for role in (everyone, ours)]
        self.guilds[id] = {
            "id": id,
            "name": name,
            "owner_id": self.bot["id"],
            "permissions": permissions,
            "roles": roles,
        }
        return id

    def channel(self, guild: str, name: str) -> str:
        return self._add({"type": TEXT, "guild_id": guild, "name": name, "position": 0, "permission_overwrites": []})

    def thread(self, parent: str, name: str) -> str:
        metadata = {
            "archived": False,
            "auto_archive_duration": 60,
            "archive_timestamp": moment(str(FIRST)),
            "locked": False,
        }
        told = {"type": THREAD, "guild_id": self.channels[parent]["guild_id"], "parent_id": parent, "name": name}
        more = {"owner_id": self.bot["id"], "message_count": 0, "member_count": 1, "thread_metadata": metadata}
        return self._add({**told, **more})

    def dm(self, user: Json) -> str:
        for id, channel in self.channels.items():
            if channel["type"] == DM and channel["recipients"][0]["id"] == user["id"]:
                return id
        return self._add({"type": DM, "recipients": [user], "last_message_id": None})

    def _add(self, channel: Json) -> str:
        id = self.new_id()
        self.channels[id] = {"id": id, "last_message_id": None, **channel}
        self.messages[id] = {}
        return id

    def guild_event(self, guild: str) -> Json:
        """As it is told to whoever has just come."""
        of = [each for each in self.channels.values() if each.get("guild_id") == guild]
        member = {"user": self.bot, "roles": [], "joined_at": moment(str(FIRST)), "deaf": False, "mute": False}
        told = {"channels": [each for each in of if each["type"] == TEXT], "members": [{**member, "flags": 0}]}
        lists = ("emojis", "features", "stickers", "presences", "voice_states", "stage_instances")
        empty: Json = {key: [] for key in lists}
        threads = [each for each in of if each["type"] == THREAD]
        return {**self.guilds[guild], **told, **empty, "threads": threads, "member_count": 1, "unavailable": False}

    def message(self, channel: str, author: Json, text: str, more: Mapping[str, Any] = {}) -> Json:
        """A new one. A reply has a `message_reference`; then it also says what it refers to."""
        id = more.get("id") or self.new_id()
        named = [user for user in self._users() if f"<@{user['id']}>" in text]
        roles = [role["id"] for guild in self.guilds.values() for role in guild["roles"] if f"<@&{role['id']}>" in text]
        told: Json = {
            "id": id,
            "channel_id": channel,
            "author": author,
            "content": text,
            "timestamp": moment(id),
            "edited_timestamp": None,
            "tts": False,
            "mention_everyone": "@everyone" in text,
            "mentions": named,
            "mention_roles": roles,
            "attachments": [],
            "embeds": [],
            "pinned": False,
            "type": 0,
            "flags": 0,
            **more,
        }
        if reference := told.get("message_reference"):
            there = self.messages.get(str(reference.get("channel_id", channel)), {})
            told |= {"type": 19, "referenced_message": there.get(str(reference["message_id"]))}
        self.messages[channel][id] = told
        return told

    def event(self, message: Json) -> Json:
        """A message as the gateway tells it: there it says in which server it was written."""
        guild = self.channels[message["channel_id"]].get("guild_id")
        member = {"roles": [], "joined_at": moment(str(FIRST)), "deaf": False, "mute": False, "nick": None, "flags": 0}
        return {**message, "guild_id": guild, "member": member | message.get("member", {})} if guild else message

    def _users(self) -> list[Json]:
        authors = [message["author"] for channel in self.messages.values() for message in channel.values()]
        return list({user["id"]: user for user in (self.bot, *authors)}.values())
