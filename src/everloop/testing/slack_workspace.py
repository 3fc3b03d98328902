"""What is in a Slack workspace, as far as a bot can tell: people, chats, messages, files; whom a message notifies."""

import re
from itertools import count
from typing import Any

from msgspec import Struct

TEAM, APP, BOT_USER, BOT = "T0TEAM", "A0APP", "U0BOT", "B0BOT"
_NOTIFIES = re.compile(r"<(?:@([UW]\w+)|!(channel|here|everyone)|!subteam\^(\w+))[^<>]*>")

Fields = dict[str, Any]


class SlackFile(Struct):
    id: str
    name: str
    mime: str = "application/octet-stream"
    data: bytes = b""
    subtype: str = ""


class SlackRefusal(Exception):
    """What Slack answers in place of a result: `ok: false`, and this word."""


class SlackWorkspace:
    """One team. `people` are names by user id; D… chats are of two, C… and G… of many."""

    def __init__(self) -> None:
        self.people = {"U0ANNA": "Anna", "U0BEN": "Ben", BOT_USER: "everloop"}
        self.chats: dict[str, dict[str, Fields]] = {"D0ANNA": {}, "C0GENERAL": {}, "G0PRIVATE": {}}
        self.archived: set[str] = set()
        self.left: set[str] = set()  # chats that the bot is not in
        self.files: dict[str, SlackFile] = {}
        self.statuses: list[tuple[str, str, str]] = []  # chat, thread, what the bot is said to do
        self.notified: list[str] = []  # who was mentioned by what the bot has written
        self._numbers = count(1)

    def stamp(self) -> str:
        number = next(self._numbers)
        return f"{1_790_000_000 + number}.{number:06d}"

    def number(self) -> int:
        return next(self._numbers)

    def chat(self, id: str) -> dict[str, Fields]:
        """To write in. Raises SlackRefusal."""
        if id in self.people and id != BOT_USER:
            id = self.direct_chat(id)
        if id not in self.chats:
            raise SlackRefusal("channel_not_found")
        if id in self.archived:
            raise SlackRefusal("is_archived")
        if id in self.left:
            raise SlackRefusal("not_in_channel")
        return self.chats[id]

    def direct_chat(self, user: str) -> str:
        if user not in self.people:
            raise SlackRefusal("user_not_found")
        id = f"D{user[1:]}"
        self.chats.setdefault(id, {})
        return id

    def message(self, chat: str, stamp: str) -> Fields:
        """That can be changed. Raises SlackRefusal."""
        found = self.chat(chat).get(stamp)
        if found is None:
            raise SlackRefusal("message_not_found")
        return found

    def post(self, chat: str, fields: Fields) -> Fields:
        stamp = self.stamp()
        message = {
            "type": "message",
            "ts": stamp,
            "user": BOT_USER,
            "bot_id": BOT,
            "app_id": APP,
            "team": TEAM,
            **fields,
        }
        self.chat(chat)[stamp] = message
        self.notify(message)
        return message

    def notify(self, message: Fields) -> None:
        """Slack reads mentions in the text, in blocks and in markdown alike."""
        for text in (message.get("text") or "", *_texts_in(message.get("blocks") or [])):
            self.notified += [user or group or team for user, group, team in _NOTIFIES.findall(text)]

    def shown(self, chat: str) -> list[str]:
        """What people read there of what the bot has written, in order."""
        return [each["text"] for each in self.chats[chat].values() if each.get("bot_id") == BOT]

    def file_fields(self, file: SlackFile, base: str) -> Fields:
        url = f"{base}/files-pri/{TEAM}-{file.id}/{file.name}"
        told = {"id": file.id, "name": file.name, "title": file.name, "mimetype": file.mime, "size": len(file.data)}
        more = {"subtype": file.subtype} if file.subtype else {}
        return {**told, **more, "mode": "hosted", "url_private": url, "url_private_download": url}

    def keep(self, name: str, data: bytes, mime: str = "application/octet-stream", subtype: str = "") -> SlackFile:
        file = SlackFile(f"F{self.number():08d}", name, mime, data, subtype)
        self.files[file.id] = file
        return file


def _texts_in(blocks: list[Fields]) -> list[str]:
    texts = [block.get("text") for block in blocks]
    return [text["text"] for text in texts if isinstance(text, dict) and text.get("type") == "mrkdwn"]
