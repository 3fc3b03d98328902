"""What is shown of an answer that is being written. In a chat of two Telegram has drafts of its own, which go by
themselves; elsewhere a message is sent and changed."""

import asyncio
from collections import OrderedDict

from ...core.mail import Address, ReplyTo
from ...ports.channel import Rendered
from ..text import TELEGRAM, draft
from .api import BotApi, BotRefusal
from .calls import chat_in, draft_id, in_reply, is_group, place
from .sending import TelegramSender

PAUSE = 3.0  # seconds between two versions in a group, which takes 20 messages and changes in a minute
REMEMBERED = 1_000  # chats
_DRAFT, _MESSAGE = "draft", "message "  # how what is shown is called


class TelegramPreviews:
    def __init__(self, api: BotApi, sender: TelegramSender, pause: float) -> None:
        self._api = api
        self._sender = sender
        self._pause = pause
        self._has_drafts = True  # until a Bot API server of somebody's own says that it has none
        self._shown: OrderedDict[int, float] = OrderedDict()  # when something was last shown, by chat

    async def show(self, address: Address, shown: str, text: str, reply_to: ReplyTo) -> str:
        """Raises ChannelDown, ChannelRefused, BotRefusal, and what may have been shown."""
        chat, message = chat_in(address), message_in(shown)
        if not text.strip():
            await self._sender.take_away(address, message)
            return ""
        rendered = draft(text, TELEGRAM)
        if not is_group(chat) and await self._drafted(address, rendered, reply_to):
            return _DRAFT
        if not self._is_due(chat):
            return shown
        if message:
            await self._sender.edit(address, message, rendered)
            return shown
        return f"{_MESSAGE}{await self._sender.say({**place(address), **in_reply(address, reply_to)}, rendered)}"

    async def _drafted(self, address: Address, rendered: Rendered, reply_to: ReplyTo) -> bool:
        if not self._has_drafts:
            return False
        params = {**place(address), "draft_id": draft_id(address, reply_to)}
        try:
            await self._api.ask("sendMessageDraft", {**params, "text": rendered.text, "parse_mode": "HTML"})
        except BotRefusal as error:
            if not error.says("method not found"):
                raise
            self._has_drafts = False
        return self._has_drafts

    def _is_due(self, chat: int) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._shown.get(chat, -self._pause) < self._pause:
            return False
        self._shown[chat] = now
        self._shown.move_to_end(chat)
        while len(self._shown) > REMEMBERED:
            self._shown.popitem(last=False)
        return True


def message_in(shown: str) -> int:
    """The message that is shown as a draft; 0 where there is none, or it is one of Telegram's own."""
    return int(shown.removeprefix(_MESSAGE)) if shown.startswith(_MESSAGE) else 0
