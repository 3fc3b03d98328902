"""What Discord tells of messages, as values."""

import re

from msgspec import Struct

from ...core.mail import ReplyTo
from ...ports.channel import FileRef, Incoming
from .files import file_ref

SPOKEN = frozenset({0, 19})  # the types of messages that somebody has written: one, and a reply; the rest tell events
VOICE = 1 << 13
_MENTION = re.compile(r"<@!?(\d+)>")
_CUSTOM_EMOJI = re.compile(r"<a?(:\w+:)\d+>")


class DiscordUser(Struct, frozen=True):
    id: str
    username: str = ""
    global_name: str | None = None
    bot: bool = False


class DiscordMember(Struct, frozen=True):
    nick: str | None = None
    user: DiscordUser | None = None


class DiscordFile(Struct, frozen=True):
    filename: str
    url: str
    size: int = 0


class DiscordSticker(Struct, frozen=True):
    name: str = ""


class ForwardedText(Struct, frozen=True):
    content: str = ""
    attachments: tuple[DiscordFile, ...] = ()


class Forwarded(Struct, frozen=True):
    message: ForwardedText


class DiscordMessage(Struct, frozen=True):
    id: str
    channel_id: str
    author: DiscordUser
    content: str = ""
    type: int = 0
    flags: int = 0
    edited_timestamp: str | None = None
    guild_id: str | None = None
    member: DiscordMember | None = None
    webhook_id: str | None = None
    mentions: tuple[DiscordUser, ...] = ()
    mention_roles: tuple[str, ...] = ()
    attachments: tuple[DiscordFile, ...] = ()
    sticker_items: tuple[DiscordSticker, ...] = ()
    message_snapshots: tuple[Forwarded, ...] = ()
    referenced_message: "DiscordMessage | None" = None


class DiscordRemoval(Struct, frozen=True):
    """A message that is gone, or several of one channel."""

    channel_id: str
    id: str = ""
    ids: tuple[str, ...] = ()
    guild_id: str | None = None


class DiscordPlace(Struct, frozen=True):
    """Where something was said: in a thread, `chat` is the channel that it belongs to. Without a `server` it is a chat
    of two."""

    chat: str
    thread: str = ""
    server: str = ""

    @property
    def channel(self) -> str:
        return self.thread or self.chat


def reply_to(place: DiscordPlace, message: str) -> ReplyTo:
    """In a chat of two an answer need not say what it answers."""
    return ReplyTo(f"{place.channel}/{message}" + ("" if place.server else "/direct"))


def incoming_of(
    message: DiscordMessage, place: DiscordPlace, me: str, roles: frozenset[str] = frozenset()
) -> Incoming | None:
    """None for what nobody has said, and for what we have said ourselves. `roles` are those that are ours alone."""
    if message.author.id == me or message.type not in SPOKEN:
        return None
    text, files = _text(message, me, roles), _files(message)
    if not text and not files:
        return None
    named = any(user.id == me for user in message.mentions) and bool(re.search(rf"<@!?{me}>", message.content))
    answered = message.referenced_message
    return Incoming(
        event=message.id,
        chat=place.chat,
        thread=place.thread,
        server=place.server,
        account=message.author.id,
        name=_name(message),
        text=text,
        direct=not place.server,
        mentioned=named or not roles.isdisjoint(message.mention_roles),
        replies=bool(answered and answered.author.id == me),
        quoted=answered.content if answered else "",
        bot=message.author.bot or bool(message.webhook_id),
        files=files,
        voice=files if message.flags & VOICE else (),
        reply_to=reply_to(place, message.id),
    )


def _name(message: DiscordMessage) -> str:
    nick = message.member.nick if message.member else None
    return nick or message.author.global_name or message.author.username


def _files(message: DiscordMessage) -> tuple[FileRef, ...]:
    forwarded = [file for each in message.message_snapshots for file in each.message.attachments]
    return tuple(file_ref(file.filename, file.url, file.size) for file in (*message.attachments, *forwarded))


def _text(message: DiscordMessage, me: str, roles: frozenset[str]) -> str:
    """As people read it: with names in place of numbers, and without our own at the beginning, if more is said."""
    ours = rf"\A\s*<@(?:!?{me}|&(?:{'|'.join(roles) or '-'}))>[\s,:]*"
    text = re.sub(ours, "", message.content) or message.content
    names = {user.id: f"@{user.global_name or user.username}" for user in message.mentions}
    text = _MENTION.sub(lambda found: names.get(found[1], found[0]), text)
    text = _CUSTOM_EMOJI.sub(r"\1", text)
    forwarded = [f"[forwarded] {each.message.content}" for each in message.message_snapshots if each.message.content]
    stickers = [f"[sticker: {each.name}]" for each in message.sticker_items]
    return "\n".join(filter(None, (text.strip(), *forwarded, *stickers)))
