"""The values of the Bot API, as far as we read them: what is not named here is passed over."""

from msgspec import Struct, field


class TelegramUser(Struct):
    id: int
    is_bot: bool = False
    first_name: str = ""
    last_name: str = ""
    username: str = ""

    @property
    def called(self) -> str:
        return " ".join(part for part in (self.first_name, self.last_name) if part) or self.username


class TelegramBot(TelegramUser):
    """Who we are (`getMe`)."""

    can_join_groups: bool = True
    can_read_all_group_messages: bool = True


class TelegramChat(Struct):
    id: int
    type: str = "private"
    title: str = ""
    username: str = ""
    first_name: str = ""

    @property
    def called(self) -> str:
        return self.title or self.first_name or self.username


class MessageEntity(Struct):
    """A stretch of a text; `offset` and `length` are in UTF-16 code units."""

    type: str
    offset: int
    length: int
    url: str = ""
    user: TelegramUser | None = None


class TelegramFile(Struct):
    file_id: str
    file_size: int | None = None
    file_name: str | None = None
    file_path: str | None = None


class Sticker(TelegramFile):
    emoji: str = ""
    is_animated: bool = False
    is_video: bool = False


class ForwardOrigin(Struct):
    sender_user: TelegramUser | None = None
    sender_user_name: str = ""
    sender_chat: TelegramChat | None = None
    chat: TelegramChat | None = None

    @property
    def called(self) -> str:
        where = self.sender_chat or self.chat
        return self.sender_user_name or (self.sender_user or where or TelegramUser(0, first_name="somebody")).called


class Location(Struct):
    latitude: float
    longitude: float


class Venue(Struct):
    title: str = ""
    address: str = ""


class TelegramContact(Struct):
    phone_number: str = ""
    first_name: str = ""
    last_name: str = ""


class PollOption(Struct):
    text: str = ""


class TelegramPoll(Struct):
    question: str = ""
    options: list[PollOption] = []


class Dice(Struct):
    emoji: str = ""
    value: int = 0


class TextQuote(Struct):
    text: str = ""


class TelegramMessage(Struct, kw_only=True):
    message_id: int
    chat: TelegramChat
    sender: TelegramUser | None = field(default=None, name="from")
    sender_chat: TelegramChat | None = None
    message_thread_id: int | None = None
    is_topic_message: bool = False
    is_automatic_forward: bool = False
    forward_origin: ForwardOrigin | None = None
    via_bot: TelegramUser | None = None
    reply_to_message: "TelegramMessage | None" = None
    quote: TextQuote | None = None
    forum_topic_created: dict[str, object] | None = None
    media_group_id: str = ""
    text: str = ""
    entities: list[MessageEntity] = []
    caption: str = ""
    caption_entities: list[MessageEntity] = []
    photo: list[TelegramFile] = []
    document: TelegramFile | None = None
    animation: TelegramFile | None = None
    audio: TelegramFile | None = None
    voice: TelegramFile | None = None
    video: TelegramFile | None = None
    video_note: TelegramFile | None = None
    sticker: Sticker | None = None
    location: Location | None = None
    venue: Venue | None = None
    contact: TelegramContact | None = None
    poll: TelegramPoll | None = None
    dice: Dice | None = None

    @property
    def said(self) -> tuple[str, list[MessageEntity]]:
        return (self.text, self.entities) if self.text else (self.caption, self.caption_entities)

    @property
    def topic(self) -> str:
        """Of a group that has topics; the id of a thread of replies, in any other group, is none."""
        return str(self.message_thread_id) if self.is_topic_message and self.message_thread_id else ""


class CallbackQuery(Struct, kw_only=True):
    """Somebody has pressed a button."""

    id: str
    sender: TelegramUser = field(name="from")
    message: TelegramMessage | None = None
    data: str = ""


class TelegramUpdate(Struct):
    update_id: int
    message: TelegramMessage | None = None
    edited_message: TelegramMessage | None = None
    callback_query: CallbackQuery | None = None


class UpdateNumber(Struct):
    """All that has to be known of an update which cannot be read."""

    update_id: int


class WebhookInfo(Struct):
    url: str = ""
    pending_update_count: int = 0
    last_error_message: str = ""
