"""Messages as they leave: with markup or, where Telegram refuses it, without; and to where their chat is by now."""

import logging
from collections.abc import Awaitable, Callable

import msgspec

from ...core.mail import Address
from ...errors import ChannelDown, ChannelRefused, ProviderError
from ...ports.channel import OutgoingPart, Rendered
from .api import NOTHING, BotApi, BotRefusal, decoded
from .calls import CAPTION, Params, Upload, buttons, in_reply, marked_up, place, plain, uploads, words
from .updates import TelegramMessage

_log = logging.getLogger("everloop.channels.telegram")

ANSWERS = ("reply", "question")  # the kinds of messages that are about the last one of the chat

Send = Callable[[Params], Awaitable[msgspec.Raw]]


class TelegramSender:
    """All of it raises ChannelDown, ChannelRefused and BotRefusal where surely nothing was sent."""

    def __init__(self, api: BotApi) -> None:
        self._api = api
        self._moved: dict[int, int] = {}  # groups that have become supergroups

    def at(self, address: Address) -> dict[str, int]:
        """Where something is sent. Raises Undeliverable."""
        return self._now(place(address))

    def message(self, address: Address, sent: int) -> dict[str, int]:
        """Which message something is done to. Raises Undeliverable."""
        return {"chat_id": self.at(address)["chat_id"], "message_id": sent}

    async def send_text(self, part: OutgoingPart, shown: int) -> str:
        """`shown` is the message that is its draft, or 0."""
        text = words(part)
        if not text.text.strip():
            await self.take_away(part.address, shown)
            return ""
        if shown and await self._become(part, shown, text):
            return str(shown)
        about = in_reply(part.address, part.reply_to) if part.number == 0 and part.kind in ANSWERS else {}
        return str(await self.say({**place(part.address), **about, **buttons(part)}, text))

    async def _become(self, part: OutgoingPart, shown: int, text: Rendered) -> bool:
        """Whether the draft is the message now. To change it twice does no harm."""
        try:
            await self.edit(part.address, shown, text, buttons(part))
        except BotRefusal as error:
            _log.info("a draft cannot become the answer: %s", error)
            await self.take_away(part.address, shown)
            return False
        return True

    async def send_file(self, part: OutgoingPart) -> str:
        """What Telegram does not want to show is sent as a document."""
        [file] = part.files
        caption = (part.plain or part.text).strip()[:CAPTION]
        params = {**place(part.address), **({"caption": caption} if caption else {})}
        *better, document = uploads(file)
        for upload in better:
            try:
                return await self._upload(params, upload)
            except BotRefusal as error:
                if error.code != 400:
                    raise
        return await self._upload(params, document)

    async def _upload(self, params: Params, upload: Upload) -> str:
        return _id(await self._following(params, lambda there: self._api.call(upload.method, there, upload)))

    async def say(self, params: Params, text: Rendered) -> int:
        """Returns the id of the message."""
        return int(_id(await self._in_words("sendMessage", params, text)))

    async def edit(self, address: Address, sent: int, text: Rendered, more: Params = NOTHING) -> None:
        """What is so already is no error."""
        try:
            await self._in_words("editMessageText", {**self.message(address, sent), **more}, text)
        except BotRefusal as error:
            if not error.says("message is not modified"):
                raise
        except ProviderError as error:  # it may be changed by now, and can be once more
            raise ChannelDown(str(error)) from error

    async def take_away(self, address: Address, shown: int) -> None:
        """A draft, as well as it goes."""
        if shown:
            try:
                await self._api.ask("deleteMessage", self.message(address, shown))
            except (ChannelDown, ChannelRefused, BotRefusal) as error:
                _log.info("a draft stays where it is: %s", error)

    async def _in_words(self, method: str, params: Params, text: Rendered) -> msgspec.Raw:
        try:
            return await self._following(params, lambda there: self._api.call(method, {**there, **marked_up(text)}))
        except BotRefusal as error:
            if not error.says("can't parse entities", "entity_"):
                raise
            return await self._following(params, lambda there: self._api.call(method, {**there, **plain(text)}))

    async def _following(self, params: Params, send: Send) -> msgspec.Raw:
        """A group that becomes a supergroup has another number from then on, and its messages have none there."""
        try:
            return await send(self._now(params))
        except BotRefusal as error:
            if not error.moved_to:
                raise
            self._moved[params["chat_id"]] = error.moved_to
        return await send({name: value for name, value in self._now(params).items() if name != "reply_parameters"})

    def _now(self, params: Params) -> dict[str, int]:
        return {**params, "chat_id": self._moved.get(params["chat_id"], params["chat_id"])}


def _id(sent: msgspec.Raw) -> str:
    return str(decoded(sent, TelegramMessage).message_id)
