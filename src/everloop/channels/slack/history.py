"""What was said while nobody listened: Slack tells an event again for some minutes, and then only whoever asks.

Chats are looked through for what is newer than the last message that was taken in; what is known by then is known by
its name. Of threads those are read whose first message is new itself, or whose replies Slack tells with it.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ...errors import ChannelDown
from .api import SlackApi
from .codec import seconds_of
from .refusals import SlackRefused

_log = logging.getLogger("everloop.channels.slack")

AWAY = 120.0  # seconds; after less Slack tells it all by itself
OVERLAP = 60.0  # seconds before the last message: one of another chat may not have been taken in
LONGEST = 86_400.0  # seconds back; what is older is nobody's question any more
PAGES = 5  # of 200, of each chat
CHATS = 10  # pages of 200
_KINDS = "im,mpim,public_channel,private_channel"

Fields = Mapping[str, Any]


async def missed(api: SlackApi, since: str, now: float) -> AsyncIterator[Fields]:
    """Each as an event, in order in its chat; none if nobody was away for long. Raises ChannelDown, ProviderError."""
    last = seconds_of(since)
    if not last or now - last < AWAY:
        return
    oldest = f"{max(last - OVERLAP, now - LONGEST):.6f}"
    try:
        async for chat in _pages(api, "users.conversations", "channels", CHATS, types=_KINDS, exclude_archived=True):
            async for event in _of_chat(api, str(chat.get("id", "")), oldest):
                yield {**event, "channel": chat.get("id"), "channel_type": "im" if chat.get("is_im") else "channel"}
    except SlackRefused as error:
        _log.warning("what was said in Slack while nobody listened cannot be read (%s %s)", error.word, error.needed)


async def _of_chat(api: SlackApi, chat: str, oldest: str) -> AsyncIterator[Fields]:
    told = _pages(api, "conversations.history", "messages", PAGES, channel=chat, oldest=oldest)
    found = [each async for each in told]
    for message in reversed(found):
        yield message
        if message.get("reply_count"):
            thread = {"channel": chat, "ts": message.get("ts"), "oldest": oldest}
            async for reply in _pages(api, "conversations.replies", "messages", PAGES, **thread):
                if reply.get("ts") != message.get("ts"):
                    yield reply


async def _pages(api: SlackApi, method: str, name: str, most: int, **given: Any) -> AsyncIterator[Fields]:
    cursor: str | None = None
    for _ in range(most):
        fields = await _patiently(api, method, limit=200, cursor=cursor, **given)
        listed = fields.get(name)
        for each in listed if isinstance(listed, list) else ():
            if isinstance(each, Mapping):
                yield each
        told = fields.get("response_metadata")
        cursor = told.get("next_cursor") if isinstance(told, Mapping) else None
        if not isinstance(cursor, str) or not cursor:
            return


async def _patiently(api: SlackApi, method: str, **given: Any) -> Fields:
    """Slack lets an app look through so many chats in a minute, and says how long to wait."""
    while True:
        try:
            return (await api.call(method, **given)).fields
        except ChannelDown as error:
            if error.retry_after is None:
                raise
            await asyncio.sleep(error.retry_after)
