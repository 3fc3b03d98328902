"""What is said, fetched from Telegram: what has come is committed, and acknowledged by asking for what follows it."""

import asyncio
import logging
from collections.abc import Sequence

import msgspec

from ...errors import ChannelDown, ChannelRefused
from ...ports import Deliver
from ...ports.channel import Incoming
from ..batch import deliver_all
from .api import MANY, BotApi, BotRefusal, decoded
from .codec import WANTED, Press, offset_in, parse, read, resume_at
from .updates import TelegramBot, TelegramUpdate

_log = logging.getLogger("everloop.channels.telegram")

WAITING = 50  # seconds that Telegram waits for something to tell
AT_ONCE = 100  # updates
SETTLING = 5.0  # seconds to acknowledge a press


async def poll(api: BotApi, me: TelegramBot, deliver: Deliver, resume: str) -> None:
    """Raises ChannelDown, ChannelRefused, and what `deliver` raises: then nothing of the last batch is acknowledged.

    What comes next is what follows the last update, also when its number is a lower one: after a week of silence
    Telegram begins to count anew."""
    offset = offset_in(resume, me)
    while True:
        found = [read(raw) for raw in await _updates(api, offset)]
        if not found:
            continue
        offset = found[-1].update_id + 1
        heard = [parse(update, me) for update in found if isinstance(update, TelegramUpdate)]
        if strange := len(found) - len(heard):
            _log.warning("%d of Telegram's updates cannot be read, and are passed over", strange)
        said = [each.incoming if isinstance(each, Press) else each for each in heard]
        await deliver_all(deliver, [each for each in said if each], resume_at(me, offset))
        await settle(api, [each for each in heard if isinstance(each, Press)])


async def _updates(api: BotApi, offset: int) -> Sequence[msgspec.Raw]:
    params = {"offset": offset, "timeout": WAITING, "limit": AT_ONCE, "allowed_updates": WANTED}
    try:
        return decoded(await api.ask("getUpdates", params, WAITING + 15.0, MANY), list[msgspec.Raw])
    except BotRefusal as error:
        raise ChannelDown(_why(error)) from error
    except ChannelDown as error:
        if error.retry_after is None:
            raise
        await asyncio.sleep(error.retry_after)
        return ()


def _why(error: BotRefusal) -> str:
    if error.code != 409:
        return str(error)
    if error.says("webhook"):
        return "another program has set a webhook for this bot (409 Conflict): stop it, or give each a bot of its own"
    return (
        "another program fetches what this bot is told, with the same token (409 Conflict): stop it, or give each "
        "a bot of its own"
    )


async def settle(api: BotApi, presses: Sequence[Press]) -> None:
    """Say that they were heard, once they are committed. In a group the buttons stay: who pressed one may not be the
    one who may answer."""
    await asyncio.gather(*(_settle(api, press) for press in presses))


async def _settle(api: BotApi, press: Press) -> None:
    said: Incoming | None = press.incoming
    pressed = "" if said is None else f"You pressed {'Approve' if said.text.startswith('/approve') else 'Deny'}."
    told = {"callback_query_id": press.id, **({"text": pressed} if pressed else {})}
    try:
        await api.ask("answerCallbackQuery", told, SETTLING)
        if said and said.direct:
            where = {"chat_id": press.chat, "message_id": press.message}
            await api.ask("editMessageReplyMarkup", {**where, "reply_markup": {"inline_keyboard": []}}, SETTLING)
    except (ChannelDown, ChannelRefused, BotRefusal) as error:
        _log.info("a press of a button is not acknowledged: %s", error)
