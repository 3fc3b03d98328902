"""Drafts that a process which was killed has left in a channel, and answers that it may have made of them.

A draft says that it is one, in a last line, so that people and the next process can tell it from an answer.
"""

import logging
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ...errors import ChannelDown, ChannelRefused
from ...ports.channel import OutgoingPart
from .codec import DiscordMessage, DiscordUser
from .outgoing import message_in
from .rest import DiscordRefused, DiscordRest

_log = logging.getLogger("everloop.channels.discord")

WRITING = "\n-# ✎ …"  # in small letters
LOOKED = 50  # messages of a channel, the last ones
REMEMBERED = 10_000  # channels
RECENT = timedelta(minutes=10)  # for which an answer that was made of a draft is known as the same
_REPEATED = re.compile(r"\A\(may be repeated\) ")
_NOTES = re.compile(r"\A(\(may be repeated\) )?(\(delayed\) )?")


class EarlierAttempt(Struct, frozen=True):
    """What the channel shows of an earlier attempt: the message (`id`) that it has become, or that there surely is
    none. Neither: nobody knows."""

    id: str = ""
    is_absent: bool = False


class DiscordDrafts:
    """`shown` are the ids of those that this process shows."""

    def __init__(self, rest: DiscordRest, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._rest = rest
        self._now = now
        self._me = ""
        self._looked: dict[str, None] = {}
        self.shown: set[str] = set()

    async def earlier(self, part: OutgoingPart, channel: str) -> EarlierAttempt:
        """Look for one, if there may have been one. What is left of other drafts is taken away. Each channel is looked
        at once, and when it is not known whether something has arrived."""
        is_repeated = bool(_REPEATED.match(part.text))
        if channel in self._looked and not is_repeated:
            return EarlierAttempt()
        try:
            ours, all = await self._look(part, channel)
        except (ChannelDown, ChannelRefused, DiscordRefused) as error:  # an answer does not wait for this
            _log.info("what was left in a channel cannot be seen: %s", error)
            return EarlierAttempt()
        return self._found(part, ours, all) if is_repeated else EarlierAttempt()

    async def _look(self, part: OutgoingPart, channel: str) -> tuple[list[DiscordMessage], list[DiscordMessage]]:
        """The answers that we have given there, and all that was said."""
        self._me = self._me or msgspec.convert(await self._rest.call("GET", "users/@me"), DiscordUser).id
        path = f"channels/{channel}/messages?limit={LOOKED}"
        told = msgspec.convert(await self._rest.call("GET", path), list[DiscordMessage])
        ours = [message for message in told if message.author.id == self._me]
        drafts = [message for message in ours if message.content.endswith(WRITING.strip())]
        for message in drafts:
            if message.id not in (*self.shown, part.draft):
                await self._rest.call("DELETE", f"channels/{channel}/messages/{message.id}")
        self._remember(channel)
        return [message for message in ours if message not in drafts], told

    def _found(self, part: OutgoingPart, ours: list[DiscordMessage], all: list[DiscordMessage]) -> EarlierAttempt:
        wanted = _NOTES.sub("", part.text).strip()
        same = [each for each in ours if _NOTES.sub("", each.content).strip() == wanted]
        if recent := [each.id for each in same if self._is_recent(each)]:
            return EarlierAttempt(recent[0])
        letter = message_in(part.reply_to)
        if not letter.isdigit():
            return EarlierAttempt()
        is_whole = len(all) < LOOKED or any(int(each.id) <= int(letter) for each in all)  # of what was said since then
        return EarlierAttempt(is_absent=is_whole and not any(int(each.id) > int(letter) for each in same))

    def _is_recent(self, message: DiscordMessage) -> bool:
        """Whether it was made of a draft just now: what is sent at once has a nonce."""
        if not message.edited_timestamp:
            return False
        try:
            return self._now() - datetime.fromisoformat(message.edited_timestamp) < RECENT
        except (ValueError, TypeError):
            return False

    def _remember(self, channel: str) -> None:
        self._looked[channel] = None
        while len(self._looked) > REMEMBERED:
            del self._looked[next(iter(self._looked))]


def unmarked(part: OutgoingPart) -> OutgoingPart:
    return replace(part, text=_REPEATED.sub("", part.text), plain=_REPEATED.sub("", part.plain))
