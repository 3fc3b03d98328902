"""What an update of Telegram's means to us. No clock, no network.

Message ids are counted by each bot on its own, and chats of two have the same id for every bot: so an event names the
bot as well, or the first messages to a new bot would be taken for those that the last one has had.
"""

import re
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from ...core.mail import ReplyTo
from ...ports.channel import FileRef, Incoming
from ..wellformed import read_json
from .updates import (
    CallbackQuery,
    MessageEntity,
    TelegramBot,
    TelegramFile,
    TelegramMessage,
    TelegramUpdate,
    UpdateNumber,
)

WANTED = ("message", "edited_message", "callback_query")  # the kinds of updates that we ask for
_DECISION = re.compile(r"(approve|deny) ([0-9A-Za-z_-]{1,50})", re.ASCII)
_QUOTED = 4_096


class Press(Struct, frozen=True):
    """A button that somebody has pressed, which Telegram wants to hear of. `incoming` is what they say with it."""

    id: str
    chat: int = 0
    message: int = 0
    incoming: Incoming | None = None


class TelegramFileRef(Struct, frozen=True):
    id: str
    name: str
    size: int = 0


class TelegramReply(Struct, frozen=True):
    """What a ReplyTo holds."""

    chat: str
    message: int


def read(raw: bytes | msgspec.Raw) -> TelegramUpdate | UpdateNumber:
    """An update; only its number where it is not one of those that we know. Raises msgspec.DecodeError without one."""
    try:
        return read_json(raw, TelegramUpdate)
    except msgspec.ValidationError:
        return read_json(raw, UpdateNumber)


def parse(update: TelegramUpdate, me: TelegramBot) -> Incoming | Press | None:
    """What was said or pressed; None when it is not for us."""
    if update.callback_query:
        return _pressed(update.callback_query, me)
    if update.edited_message and not update.edited_message.location:  # one that moves is changed every few seconds
        found = _said(update.edited_message, me)
        original = _event(update.edited_message, me)
        changed = f"{original}:{update.update_id}"
        return found and msgspec.structs.replace(found, event=changed, replaces=original)
    return _said(update.message, me) if update.message else None


def _event(message: TelegramMessage, me: TelegramBot) -> str:
    return f"{me.id}:{message.chat.id}:{message.message_id}"


def _said(message: TelegramMessage, me: TelegramBot) -> Incoming | None:
    account, name, bot = _author(message)
    if not account or account == str(me.id):
        return None
    words, entities = message.said
    spoken = _Spoken(words, entities, me)
    direct = message.chat.type == "private"
    if spoken.for_another and not direct:
        return None
    files, voice = _files(message)
    text = _with_origin(message, "\n".join(part for part in (spoken.text, _described(message)) if part))
    if not text.strip() and not files:
        return None  # somebody has joined, a title was changed
    answered = _answered(message)
    return Incoming(
        event=_event(message, me),
        chat=str(message.chat.id),
        thread=message.topic,
        account=account,
        name=name,
        text="/help" if direct and text == "/start" else text,
        direct=direct,
        mentioned=spoken.mentioned,
        replies=bool(answered and answered.sender and answered.sender.id == me.id),
        quoted=_quoted(message, answered),
        bot=bot,
        files=files,
        voice=voice,
        album=message.media_group_id,
        reply_to=_reply_to(message),
    )


def _author(message: TelegramMessage) -> tuple[str, str, bool]:
    """Account, name and whether it is no person. What a group or a channel says itself (an anonymous administrator)
    comes in the name of a bot of Telegram's, which is the same for all of them."""
    if message.sender_chat:
        return str(message.sender_chat.id), message.sender_chat.called, message.is_automatic_forward
    if message.sender:
        return str(message.sender.id), message.sender.called, message.sender.is_bot
    return "", "", False


class _Spoken:
    """A text with its entities: whether we are named in it, or another bot is, and what remains to be read."""

    def __init__(self, text: str, entities: Sequence[MessageEntity], me: TelegramBot) -> None:
        self._units = text.encode("utf-16-le", "surrogatepass")
        self._name = me.username.lower()
        self.for_another = False
        self.mentioned = False
        for entity in sorted(
            entities, key=lambda each: -each.offset
        ):  # from its end: what stands before stays in place
            self._look_at(entity, me)
        self.text = self._units.decode("utf-16-le", "replace").strip() or text.strip()

    def _look_at(self, entity: MessageEntity, me: TelegramBot) -> None:
        start, end = 2 * entity.offset, 2 * (entity.offset + entity.length)
        shown = self._units[start:end].decode("utf-16-le", "replace")
        match entity.type:
            case "mention" if shown[1:].lower() == self._name:
                self._name_us(start, end, "")
            case "text_mention" if entity.user and entity.user.id == me.id:
                self._name_us(start, end, "")
            case "bot_command" if "@" in shown:
                command, _, whose = shown.partition("@")
                if whose.lower() == self._name:
                    self._name_us(start, end, command)
                elif entity.offset == 0:
                    self.for_another = True
            case "text_link" if entity.url and entity.url.rstrip("/") != shown.rstrip("/"):
                self._units = self._units[:end] + f" ({entity.url})".encode("utf-16-le") + self._units[end:]

    def _name_us(self, start: int, end: int, instead: str) -> None:
        """Our name at its beginning only says to whom the rest is said."""
        self.mentioned = True
        if instead or not self._units[:start].decode("utf-16-le", "replace").strip():
            self._units = self._units[:start] + instead.encode("utf-16-le") + self._units[end:]


def _answered(message: TelegramMessage) -> TelegramMessage | None:
    """What it is a reply to. In a topic everything is one to the message that has opened it."""
    answered = message.reply_to_message
    return answered if answered and answered.forum_topic_created is None else None


def _quoted(message: TelegramMessage, answered: TelegramMessage | None) -> str:
    if message.quote and message.quote.text:
        return message.quote.text[:_QUOTED]
    return (answered.said[0] or _described(answered))[:_QUOTED] if answered else ""


def _with_origin(message: TelegramMessage, text: str) -> str:
    """What was written by somebody else is told as such, and is no command of whoever passes it on. So is what another
    bot has offered them to say."""
    if message.forward_origin:
        return f"[forwarded from {' '.join(message.forward_origin.called.split())}]\n{text}".rstrip()
    if message.via_bot and message.via_bot.is_bot:
        return f"[written by the bot @{message.via_bot.username}]\n{text}".rstrip()
    return text


def _described(message: TelegramMessage) -> str:
    """What is neither text nor a file."""
    if message.venue and message.location:
        return f"[place: {message.venue.title}, {message.venue.address}, {_position(message)}]"
    if message.location:
        return f"[place: {_position(message)}]"
    if message.contact:
        who = f"{message.contact.first_name} {message.contact.last_name}".strip()
        return f"[contact: {who}, {message.contact.phone_number}]"
    if message.poll:
        return f"[poll: {message.poll.question} ({' / '.join(option.text for option in message.poll.options)})]"
    if message.dice:
        return f"[{message.dice.emoji} shows {message.dice.value}]"
    return f"[sticker: {message.sticker.emoji}]" if message.sticker else ""


def _position(message: TelegramMessage) -> str:
    assert message.location
    return f"{message.location.latitude:g}, {message.location.longitude:g}"


def _files(message: TelegramMessage) -> tuple[tuple[FileRef, ...], tuple[FileRef, ...]]:
    """Those that came along, and which of them are spoken. What moves is told as a document a second time."""
    still = message.sticker and not (message.sticker.is_animated or message.sticker.is_video)
    spoken = [_ref(message.voice, "voice.ogg"), _ref(message.video_note, "video_note.mp4")]
    found = [
        _ref(message.photo[-1] if message.photo else None, "photo.jpg"),
        _ref(message.animation or message.document, "animation.mp4" if message.animation else "document"),
        _ref(message.audio, "audio.mp3"),
        _ref(message.video, "video.mp4"),
        _ref(message.sticker if still else None, "sticker.webp"),
        *spoken,
    ]
    return tuple(ref for ref in found if ref), tuple(ref for ref in spoken if ref)


def _ref(file: TelegramFile | None, name: str) -> FileRef | None:
    if not file:
        return None
    ref = TelegramFileRef(file.file_id, file.file_name or name, file.file_size or 0)
    return FileRef(msgspec.json.encode(ref).decode())


def _reply_to(message: TelegramMessage) -> ReplyTo:
    return ReplyTo(msgspec.json.encode(TelegramReply(str(message.chat.id), message.message_id)).decode())


def _pressed(query: CallbackQuery, me: TelegramBot) -> Press:
    """A press says what its button stands for: no more than whoever pressed it could type. Telegram does not check that
    a button with this text was ever shown."""
    decision, message = _DECISION.fullmatch(query.data), query.message
    if not decision or not message or query.sender.id == me.id:
        return Press(query.id)
    incoming = Incoming(
        event=f"{me.id}:press:{query.id}",
        chat=str(message.chat.id),
        thread=message.topic,
        account=str(query.sender.id),
        name=query.sender.called,
        bot=query.sender.is_bot,
        text=f"/{decision[1]} {decision[2]}",
        direct=message.chat.type == "private",
        mentioned=True,
        replies=True,
        reply_to=_reply_to(message),
    )
    return Press(query.id, message.chat.id, message.message_id, incoming)


def resume_at(me: TelegramBot, offset: int) -> str:
    return f"{me.id}:{offset}"


def offset_in(resume: str, me: TelegramBot) -> int:
    """0 where nothing is known, or another bot was listened to."""
    bot, _, offset = resume.partition(":")
    return int(offset) if bot == str(me.id) and offset.isascii() and offset.isdigit() else 0
