"""The threads in which we take part: what is said there is said to us, also without our name in it.

Those of this run are remembered. Of a thread that is older Slack is asked, once: a restart leaves no conversation."""

import asyncio
from collections import OrderedDict
from collections.abc import Mapping

from ...errors import ChannelDown, ProviderError
from .api import SlackApi
from .codec import seconds_of
from .refusals import SlackRefused

REMEMBERED = 10_000
SECONDS = 1.5  # for Slack's answer: it wants its event acknowledged within three


class SlackThreads:
    def __init__(self, api: SlackApi, since: float) -> None:
        self._api = api
        self._since = since
        self._ours: OrderedDict[tuple[str, str], bool] = OrderedDict()

    def join(self, chat: str, thread: str) -> None:
        self._remember(chat, thread, True)

    async def are_ours(self, chat: str, thread: str, me: str) -> bool:
        """Where Slack does not say, we are not part of it."""
        if (known := self._ours.get((chat, thread))) is not None:
            return known
        if seconds_of(thread) >= self._since:
            return False
        try:
            async with asyncio.timeout(SECONDS):
                told = (await self._api.call("conversations.replies", channel=chat, ts=thread, limit=1)).fields
        except (ChannelDown, ProviderError, TimeoutError):
            return False
        except SlackRefused:
            told = {}
        self._remember(chat, thread, _has_spoken(told.get("messages"), me))
        return self._ours[chat, thread]

    def _remember(self, chat: str, thread: str, is_ours: bool) -> None:
        self._ours[chat, thread] = is_ours
        self._ours.move_to_end((chat, thread))
        while len(self._ours) > REMEMBERED:
            self._ours.popitem(last=False)


def _has_spoken(messages: object, me: str) -> bool:
    """The first message of a thread names those who have replied."""
    first = messages[0] if isinstance(messages, list) and messages else None
    repliers = first.get("reply_users") if isinstance(first, Mapping) else None
    return isinstance(repliers, list) and me in repliers
