"""How Telegram is spoken to: what is sent, shown, changed and fetched. `polling` and `hook` are how it is heard."""

import logging
from collections.abc import Awaitable
from typing import Literal, TypeVar

import msgspec

from ...core.mail import Address, Outbound, ReplyTo
from ...errors import ChannelDown, ChannelRefused, ProviderError, Undeliverable
from ...ports import Deliver, Http
from ...ports.channel import FileRef, OutgoingPart, Probed, Rendered
from ...readings.commands import COMMANDS
from ..text import TELEGRAM, render
from .api import NOTHING, BotApi, BotRefusal, decoded
from .calls import NOTE, Params, chat_in, is_group, letter_of, menu
from .downloads import fetch
from .manifest import MANIFEST, TelegramSettings
from .polling import poll
from .previews import PAUSE, TelegramPreviews, message_in
from .sending import TelegramSender
from .updates import TelegramBot, WebhookInfo

_log = logging.getLogger("everloop.channels.telegram")

SHORTEST = 1_000  # units that a part has at least, however many files go with it

Result = TypeVar("Result")


class Telegram:
    """The Channel, which fetches what is said."""

    manifest = MANIFEST

    def __init__(self, chosen: TelegramSettings, http: Http, pause: float = PAUSE) -> None:
        """`pause` are the seconds between two versions of a draft in a group."""
        self._chosen = chosen
        self._api = BotApi(chosen.api_url, chosen.token, http)
        self._sender = TelegramSender(self._api)
        self._previews = TelegramPreviews(self._api, self._sender, pause)
        self._bot: TelegramBot | None = None
        self._is_menu_offered = False
        self._is_shaken = False  # the last send has failed, and may have arrived

    async def me(self) -> TelegramBot:
        """Raises ChannelDown, ChannelRefused."""
        if self._bot is None:
            self._bot = await self._ask("getMe", TelegramBot)
        return self._bot

    async def run(self, deliver: Deliver, resume: str) -> None:
        me = await self.me()
        await self._offer_menu()
        await self._leave_webhook()
        await poll(self._api, me, deliver, resume)

    async def _offer_menu(self) -> None:
        if not self._chosen.menu or self._is_menu_offered:
            return
        try:
            await self._api.ask("setMyCommands", {"commands": menu(COMMANDS.values())})
            self._is_menu_offered = True
        except (ChannelDown, BotRefusal) as error:  # people can type them all the same
            _log.info("the menu of commands could not be set: %s", error)

    async def _leave_webhook(self) -> None:
        """Telegram hands nothing to whoever asks as long as it calls somebody."""
        if (await self._ask("getWebhookInfo", WebhookInfo)).url:
            _log.warning(
                "Telegram called a webhook with what this bot is told; it is taken away, we fetch it from now on"
            )
            await self._do("deleteWebhook", {"drop_pending_updates": False})

    async def probe(self) -> Probed:
        self._bot = None
        me, hook = await self.me(), await self._ask("getWebhookInfo", WebhookInfo)
        missing = tuple(self._api.without_token(each) for each in _missing(me, hook, self._chosen.mode))
        return Probed(account=f"@{me.username} ({me.called})", missing=missing, link=f"https://t.me/{me.username}")

    def render(self, outbound: Outbound) -> tuple[Rendered, ...]:
        """With room for the names of files that are too large to be sent."""
        limit = max(SHORTEST, TELEGRAM.limit - NOTE * len(outbound.files))
        return render(outbound.text, TELEGRAM, limit)

    async def send(self, part: OutgoingPart) -> str:
        try:
            await self._look_before_repeating()
            if any(file.data for file in part.files):
                return await _told(self._sender.send_file(part))
            return await _told(self._sender.send_text(part, message_in(part.draft)))
        except ChannelRefused as error:  # nothing is lost while somebody sets another token
            raise ChannelDown(str(error)) from error
        except ProviderError:
            self._is_shaken = True
            raise

    async def _look_before_repeating(self) -> None:
        """A platform that fails is asked something harmless first: each message that is sent to it may arrive, and
        after a few that may have it would be given up."""
        if self._is_shaken:
            await self._do("getMe")
            self._is_shaken = False

    async def preview(self, address: Address, shown: str, text: str, reply_to: ReplyTo) -> str:
        return await _told(self._previews.show(address, shown, text, reply_to))

    async def signal(self, address: Address, what: Literal["typing", "done"], reply_to: ReplyTo) -> None:
        if what == "typing":
            await self._do("sendChatAction", {**self._sender.at(address), "action": "typing"})

    async def react(self, address: Address, to: ReplyTo, emoji: str) -> None:
        letter = letter_of(to)
        if not letter:
            raise Undeliverable("it is not known which message of Telegram's this is about")
        bare = emoji.replace("\ufe0f", "")  # Telegram's own have no variation selector
        reaction = [{"type": "emoji", "emoji": bare}] if bare else []
        await self._do("setMessageReaction", {**self._sender.message(address, letter.message), "reaction": reaction})

    async def replace(self, address: Address, sent: str, text: Rendered) -> None:
        await _told(self._sender.edit(address, _number(sent), text))

    async def withdraw(self, address: Address, sent: str) -> None:
        try:
            await self._api.ask("deleteMessage", self._sender.message(address, _number(sent)))
        except BotRefusal as error:
            if not error.says("message to delete not found"):
                raise Undeliverable(_why(error)) from error

    async def chat_with(self, account: str) -> str:
        """The number of a chat of two is that of the other; it is there once they have written to us."""
        chat = chat_in(Address(MANIFEST.name, account))
        if is_group(chat):
            raise Undeliverable("this is the number of a group, and not of a person")
        await self._do("getChat", {"chat_id": chat})
        return account

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        return await _told(fetch(self._api, ref, limit))

    async def _ask(self, method: str, type: type[Result]) -> Result:
        try:
            return decoded(await self._do(method), type)
        except ProviderError as error:
            raise ChannelDown(str(error)) from error

    async def _do(self, method: str, params: Params = NOTHING) -> msgspec.Raw:
        """A call that may be made twice. Raises ChannelDown, ChannelRefused, Undeliverable."""
        return await _told(self._api.ask(method, params))


async def _told(asking: Awaitable[Result]) -> Result:
    try:
        return await asking
    except BotRefusal as error:
        raise Undeliverable(_why(error)) from error


def _why(error: BotRefusal) -> str:
    if error.says("bot was blocked by the user"):
        return "they have blocked the bot in Telegram"
    if error.says("can't initiate conversation", "chat not found"):
        return "Telegram does not know this chat: they have to write to the bot first"
    return str(error)


def _missing(me: TelegramBot, hook: WebhookInfo, mode: str) -> list[str]:
    found = []
    if not me.can_join_groups:
        found.append("It cannot be added to groups: send /setjoingroups to @BotFather, choose it and then Enable.")
    if not me.can_read_all_group_messages:
        found.append(
            "In groups it only hears commands and replies to what it said (privacy mode): send /setprivacy to "
            "@BotFather, choose it and then Disable, and add it to its groups once more."
        )
    if hook.url and mode == "polling":
        found.append(
            "A webhook is set for it, by another program or from earlier, which is taken away when this channel is "
            "opened."
        )
    if hook.last_error_message and mode == "webhook":
        found.append(
            f"Telegram could not call us ({hook.last_error_message[:200]}): check channels.telegram.webhook_url."
        )
    return found


def _number(sent: str) -> int:
    if not (sent.isascii() and sent.isdigit()):
        raise Undeliverable("nothing was sent that could be changed")
    return int(sent)
