"""What is said, brought by Telegram: it calls the gateway, with a secret in a header."""

import asyncio
import hmac
import logging
from collections.abc import Sequence
from hashlib import sha256

import msgspec

from ...errors import ChannelDown, ChannelRefused, Undeliverable
from ...ports import Deliver, Http
from ...ports.channel import Hook, HookAnswer, HookRequest
from .codec import WANTED, Press, parse, read
from .manifest import TelegramSettings
from .polling import settle
from .updates import TelegramUpdate, WebhookInfo
from .wire import Telegram

_log = logging.getLogger("everloop.channels.telegram")

HEADER = "x-telegram-bot-api-secret-token"
WATCH = 60.0  # seconds
AT_ONCE = 40  # calls that Telegram may make side by side; those of one chat come one after the other


class TelegramByHook(Telegram):
    """The Channel, which is called."""

    def __init__(self, chosen: TelegramSettings, http: Http, watch: float = WATCH) -> None:
        """`watch` are the seconds after which it is looked whether Telegram still calls us."""
        super().__init__(chosen, http)
        self._url = chosen.webhook_url
        self._secret = chosen.webhook_secret or secret_from(chosen.token)
        self._watch = watch

    async def run(self, deliver: Deliver, resume: str) -> None:
        """Say where we are to be called, and see that it stays so. Raises ChannelDown when it does not."""
        await self.me()
        await self._offer_menu()
        where = {"url": self._url, "secret_token": self._secret}
        how = {"allowed_updates": WANTED, "max_connections": AT_ONCE, "drop_pending_updates": False}
        await self._do("setWebhook", {**where, **how})
        while True:
            await asyncio.sleep(self._watch)
            found = await self._ask("getWebhookInfo", WebhookInfo)
            if found.url != self._url:
                raise ChannelDown("another program has taken our webhook away: stop it, or give each a bot of its own")
            if found.last_error_message and found.pending_update_count:
                why = self._api.without_token(found.last_error_message)
                raise ChannelDown(f"Telegram could not call us ({why}): check channels.telegram.webhook_url")

    def hooks(self, deliver: Deliver) -> Sequence[Hook]:
        async def answer(request: HookRequest) -> HookAnswer:
            return await self._take(request, deliver)

        return [Hook("POST", "", answer)]

    async def _take(self, request: HookRequest, deliver: Deliver) -> HookAnswer:
        """200 once it is committed, or nothing comes of it; with anything else Telegram calls again."""
        given = request.headers.get(HEADER, "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(given, self._secret.encode()):  # in constant time
            _log.warning("a call of /hooks/telegram was refused: it does not know the secret")
            return _told(401, error="this is not signed as Telegram signs it")
        try:
            update = read(request.body)
        except (msgspec.DecodeError, UnicodeError, RecursionError):
            return _told(400, error="the body is no update")
        try:
            me = await self.me()
        except (ChannelDown, ChannelRefused, Undeliverable) as error:
            return _told(503, error=str(error))
        heard = parse(update, me) if isinstance(update, TelegramUpdate) else None
        said = heard.incoming if isinstance(heard, Press) else heard
        if said:
            await deliver(said)
        await settle(self._api, [heard] if isinstance(heard, Press) else [])
        return _told(200)


def secret_from(token: str) -> str:
    """Always the same of the same token, which it does not tell."""
    return hmac.digest(token.encode(), b"everloop telegram webhook", sha256).hex()


def _told(status: int, **told: str) -> HookAnswer:
    return HookAnswer(status, msgspec.json.encode(told))
