"""A bot's account as Telegram keeps it: what is in its chats, and what each method of the Bot API does to that."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from .telegram_markup import CannotParse, parse_html, units

TEXT, CAPTION, DATA = 4_096, 1_024, 64
LARGEST_SENT, LARGEST_PHOTO, LARGEST_FETCHED = 50_000_000, 10_000_000, 20_000_000
REACTIONS = frozenset(["❤", *"👍👎🔥🥰👏😁🤔🤯😱🤬😢🎉🤩🤮💩🙏👌🤡🥱💯🤣⚡🏆💔🤨😐😴😭🤓👀🙈😇🤝✍🤗🫡😎"])
ACTIONS = frozenset(["typing", "upload_photo", "record_voice", "upload_voice", "upload_document", "choose_sticker"])
_PICTURES = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF8", b"RIFF")

_GIFTS = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription", "gifts_from_channels")
_FULL = {  # what is told of a chat that is asked for, beside who it is
    "accent_color_id": 0,
    "max_reaction_count": 11,
    "accepted_gift_types": dict.fromkeys(_GIFTS, False),
}

Params = dict[str, Any]


class BotError(Exception):
    """What the Bot API answers in place of a result."""

    def __init__(self, code: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.code = code
        self.description = description
        self.parameters = parameters


class UploadedFile(Struct, frozen=True):
    name: str
    mime: str
    data: bytes


class DraftShown(Struct, frozen=True):
    chat: int
    id: int
    text: str


class TelegramAccount:
    """Of one bot. `messages` are those of each chat by their id, in order; what was deleted is gone."""

    def __init__(self, id: int, username: str) -> None:
        self.user = {"id": id, "is_bot": True, "first_name": "Everloop", "username": username}
        self.abilities = {
            "can_join_groups": True,
            "can_read_all_group_messages": True,
            "supports_inline_queries": False,
        }
        self.chats: dict[int, dict[str, Any]] = {}
        self.messages: dict[int, dict[int, dict[str, Any]]] = {}
        self.files: dict[str, tuple[str, bytes]] = {}  # by file_id: where it is, and what it holds
        self.drafts: list[DraftShown] = []
        self.actions: list[tuple[int, str]] = []
        self.reactions: dict[tuple[int, int], list[str]] = {}
        self.answered: dict[str, str] = {}  # presses that were acknowledged, with what was said
        self.commands: list[dict[str, str]] = []
        self.blocked: set[int] = set()
        self.moved: dict[int, int] = {}
        self.without: set[str] = set()  # methods that it does not know, as an old server
        self._numbers: dict[int, int] = {}
        self._methods: Mapping[str, Callable[[Params, Mapping[str, UploadedFile]], Any]] = {
            "getMe": lambda params, files: {**self.user, **self.abilities},
            "getChat": lambda params, files: {**self._chat(params), **_FULL},
            "sendMessage": self._send_message,
            "sendMessageDraft": self._send_draft,
            "editMessageText": self._edit_text,
            "editMessageReplyMarkup": self._edit_markup,
            "deleteMessage": self._delete,
            "sendChatAction": self._act,
            "setMessageReaction": self._react,
            "answerCallbackQuery": self._answer_press,
            "setMyCommands": self._set_commands,
            "getMyCommands": lambda params, files: self.commands,
            "getFile": self._get_file,
            **{f"send{kind.title()}": self._sender_of(kind)
               for kind in ("photo", "document", "voice", "audio", "video", "animation")},
        }  # fmt: skip

    def do(self, method: str, params: Params, files: Mapping[str, UploadedFile]) -> Any:
        """Raises BotError."""
        if method not in self._methods or method in self.without:
            raise BotError(404, "Not Found: method not found")
        return self._methods[method](params, files)

    def write(self, chat: Mapping[str, Any], **message: Any) -> dict[str, Any]:
        """A message in a chat, whoever writes it; returns it."""
        self.chats[chat["id"]] = {**chat}
        number = self._numbers[chat["id"]] = self._numbers.get(chat["id"], 0) + 1
        made = {"message_id": number, "date": int(time.time()), "chat": {**chat}, **message}
        self.messages.setdefault(chat["id"], {})[number] = made
        return made

    def keep(self, data: bytes, name: str) -> dict[str, Any]:
        """A file that can be fetched; returns what is told of it."""
        number = len(self.files) + 1
        self.files[f"file-{number}"] = f"documents/file_{number}.{name.rpartition('.')[2]}", data
        return {"file_id": f"file-{number}", "file_unique_id": f"unique-{number}", "file_size": len(data)}

    def seen(self, chat: int | None = None) -> list[str]:
        """The texts of ours that people see, in order."""
        chats = self.messages if chat is None else [chat]
        ours = [each for one in chats for each in self.messages[one].values() if each.get("from") == self.user]
        return [each.get("text", each.get("caption", "")) for each in ours]

    def _chat(self, params: Params) -> dict[str, Any]:
        try:
            number = int(params["chat_id"])
        except (KeyError, ValueError) as error:
            raise BotError(400, "Bad Request: chat_id is empty") from error
        if number in self.moved:
            raise BotError(
                400,
                "Bad Request: group chat was upgraded to a supergroup chat",
                migrate_to_chat_id=self.moved[number],
            )
        if number not in self.chats:
            raise BotError(400, "Bad Request: chat not found")
        if number in self.blocked:
            raise BotError(403, "Forbidden: bot was blocked by the user")
        return self.chats[number]

    def _message(self, params: Params, what: str) -> dict[str, Any]:
        found = self.messages.get(self._chat(params)["id"], {}).get(int(params.get("message_id", 0)))
        if not found:
            raise BotError(400, f"Bad Request: message to {what} not found")
        return found

    def _send_message(self, params: Params, files: Mapping[str, UploadedFile]) -> dict[str, Any]:
        return self.write(
            self._chat(params), **self._sender(params), **_text(params, "text", TEXT), **self._more(params)
        )

    def _sender(self, params: Params) -> dict[str, Any]:
        thread = params.get("message_thread_id")
        return {"from": self.user, **({"message_thread_id": int(thread), "is_topic_message": True} if thread else {})}

    def _more(self, params: Params) -> dict[str, Any]:
        more: Params = {name: params[name] for name in ("reply_markup", "link_preview_options") if name in params}
        for row in more.get("reply_markup", {}).get("inline_keyboard", []):
            if any(not 1 <= len(each.get("callback_data", "x").encode()) <= DATA for each in row):
                raise BotError(400, "Bad Request: BUTTON_DATA_INVALID")
        asked = params.get("reply_parameters")
        replied = asked and self.messages.get(int(params["chat_id"]), {}).get(asked["message_id"])
        if asked and not replied and not asked.get("allow_sending_without_reply"):
            raise BotError(400, "Bad Request: message to be replied not found")
        return {**more, **({"reply_to_message": _alone(replied)} if replied else {})}

    def _sender_of(self, kind: str) -> Callable[[Params, Mapping[str, UploadedFile]], dict[str, Any]]:
        def send(params: Params, files: Mapping[str, UploadedFile]) -> dict[str, Any]:
            chat = self._chat(params)
            if kind not in files:
                raise BotError(400, f"Bad Request: there is no {kind} in the request")
            file = files[kind]
            if len(file.data) > LARGEST_SENT:
                raise BotError(413, "Request Entity Too Large")
            if kind == "photo" and (len(file.data) > LARGEST_PHOTO or not file.data.startswith(_PICTURES)):
                raise BotError(400, "Bad Request: IMAGE_PROCESS_FAILED")
            kept = {**self.keep(file.data, file.name), "file_name": file.name, "mime_type": file.mime}
            caption = _text(params, "caption", CAPTION) if params.get("caption") else {}
            return self.write(chat, **self._sender(params), **{kind: _media(kind, kept)}, **caption)

        return send

    def _send_draft(self, params: Params, files: Mapping[str, UploadedFile]) -> bool:
        chat = self._chat(params)
        if chat["type"] != "private":
            raise BotError(400, "Bad Request: TEXTDRAFT_PEER_INVALID")
        if not int(params.get("draft_id", 0)):
            raise BotError(400, "Bad Request: TEXTDRAFT_ID_INVALID")
        text = _text(params, "text", TEXT)["text"] if params.get("text") else ""
        self.drafts.append(DraftShown(chat["id"], int(params["draft_id"]), text))
        return True

    def _edit_text(self, params: Params, files: Mapping[str, UploadedFile]) -> dict[str, Any]:
        message = self._message(params, "edit")
        if message.get("from") != self.user:
            raise BotError(400, "Bad Request: message can't be edited")
        if "text" not in message:
            raise BotError(400, "Bad Request: there is no text in the message to edit")
        changed = {**_text(params, "text", TEXT), **self._more(params)}
        markup = params.get("reply_markup")
        if (
            all(message.get(name) == changed[name] for name in ("text", "entities"))
            and message.get("reply_markup") == markup
        ):
            raise BotError(
                400,
                "Bad Request: message is not modified: specified new message content and reply markup are exactly the "
                "same as a current content and reply markup of the message",
            )
        message.pop("reply_markup", None)
        message.update(changed, edit_date=int(time.time()))
        return message

    def _edit_markup(self, params: Params, files: Mapping[str, UploadedFile]) -> dict[str, Any]:
        message = self._message(params, "edit")
        message.pop("reply_markup", None)
        if params.get("reply_markup", {}).get("inline_keyboard"):
            message["reply_markup"] = params["reply_markup"]
        return message

    def _delete(self, params: Params, files: Mapping[str, UploadedFile]) -> bool:
        message = self._message(params, "delete")
        del self.messages[message["chat"]["id"]][message["message_id"]]
        return True

    def _act(self, params: Params, files: Mapping[str, UploadedFile]) -> bool:
        if params.get("action") not in ACTIONS:
            raise BotError(400, "Bad Request: wrong parameter action in request")
        self.actions.append((self._chat(params)["id"], params["action"]))
        return True

    def _react(self, params: Params, files: Mapping[str, UploadedFile]) -> bool:
        message = self._message(params, "react")
        wanted = [each.get("emoji", "") for each in params.get("reaction", [])]
        if not REACTIONS.issuperset(wanted):
            raise BotError(400, "Bad Request: REACTION_INVALID")
        self.reactions[message["chat"]["id"], message["message_id"]] = wanted
        return True

    def _answer_press(self, params: Params, files: Mapping[str, UploadedFile]) -> bool:
        self.answered[params["callback_query_id"]] = params.get("text", "")
        return True

    def _set_commands(self, params: Params, files: Mapping[str, UploadedFile]) -> bool:
        for each in params["commands"]:
            if not each["command"].replace("_", "a").isalnum() or not 1 <= len(each["description"]) <= 256:
                raise BotError(400, "Bad Request: BOT_COMMAND_INVALID")
        self.commands = params["commands"]
        return True

    def _get_file(self, params: Params, files: Mapping[str, UploadedFile]) -> dict[str, Any]:
        id = params.get("file_id", "")
        if id not in self.files:
            raise BotError(400, "Bad Request: wrong file_id or the file is temporarily unavailable")
        path, data = self.files[id]
        if len(data) > LARGEST_FETCHED:
            raise BotError(400, "Bad Request: file is too big")
        return {"file_id": id, "file_unique_id": f"unique-{id}", "file_size": len(data), "file_path": path}


def _text(params: Params, name: str, limit: int) -> dict[str, Any]:
    """Raises BotError for what Telegram would not show."""
    text: str = params.get(name, "")
    entities: list[dict[str, Any]] = []
    if params.get("parse_mode") == "HTML":
        try:
            text, entities = parse_html(text)
        except CannotParse as error:
            raise BotError(400, f"Bad Request: can't parse entities: {error}") from error
    elif params.get("parse_mode"):
        raise BotError(400, "Bad Request: unsupported parse_mode")
    if not text.strip():
        raise BotError(400, f"Bad Request: message {name} is empty")
    if units(text) > limit:
        raise BotError(400, f"Bad Request: message {'caption ' if name == 'caption' else ''}is too long")
    return {name: text, "entities" if name == "text" else "caption_entities": entities[:100]}


def _media(kind: str, kept: dict[str, Any]) -> Any:
    if kind == "photo":
        return [{**{name: kept[name] for name in ("file_id", "file_unique_id", "file_size")}, "width": 1, "height": 1}]
    sized = {"width": 1, "height": 1} if kind in ("video", "animation") else {}
    return {**kept, **sized, **({"duration": 1} if kind != "document" else {})}


def _alone(message: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name != "reply_to_message"}
