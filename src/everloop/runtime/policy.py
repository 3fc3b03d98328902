"""Which messages of a channel are for us, and how many: decided before anything is committed or costs anything.

What is not for us is not kept. Whoever writes too much, or is on no list, is told so where nobody else reads, and once
for a while; in a group nobody is told anything.
"""

import logging
import math

from msgspec import Struct, structs

from ..ports import Clock
from ..ports.channel import Admitted, Declined, Incoming, Manifest
from ..ports.policy import ChannelPolicy, GroupRule
from ..readings.commands import command_in, rest_of
from .admission import AdmitPeople
from .pace import Pace

_log = logging.getLogger("everloop.channels")

OFF = "this chat is switched off in the settings"
A_BOT = "another bot has written it"
BOTS_ALONE = "only bots have spoken here for a while"
NOT_LISTED = "this account is not on the list of those who are answered here"
NOT_FOR_US = "it is not addressed to us"
TOO_MANY = "more was written in a minute than is taken"
MOST_OF_BOTS = 5  # messages of bots that are answered in a chat before a person has spoken
DAY = 86_400.0
ALBUM_SECONDS = 1.0  # for which the further messages of an album are waited for
URGENT = ("/stop", "/approve", "/deny")  # also from somebody who has said much
_ANSWERS = ("/approve", "/deny")  # they name what they are about
STRANGE = (
    "I answer only some accounts here, and {account} is not among them. Whoever runs me can add it to "
    "channels.{channel}.allow_from. What you wrote was not kept."
)
SLOWER = (
    "You have sent {limit} messages within a minute, and I take no more than that. What you wrote was not kept: say it "
    "again in {seconds} s."
)
BUSY = "I am being written to more than I can take. What you wrote was not kept: say it again in {seconds} s."


class Usual(Struct, frozen=True):
    """What a channel does where its settings say nothing."""

    rule: GroupRule = "mention"
    gather: float = 1.0


USUAL = Usual()


class AdmitByPolicy:
    """Of one channel."""

    def __init__(
        self, people: AdmitPeople, policy: ChannelPolicy, pace: Pace, clock: Clock, usual: Usual = USUAL
    ) -> None:
        self._people = people
        self.policy = policy
        self._pace = pace
        self._clock = clock
        self._usual = usual

    async def admit(self, manifest: Manifest, incoming: Incoming) -> Admitted | Declined:
        if why := refusal(self.policy, self._usual.rule, incoming):
            return await self._decline(why, manifest, incoming)
        listed = not incoming.bot and incoming.account in self.policy.allowed_in(incoming.chat)
        decided = await self._people.admit(manifest, incoming, listed=listed)
        if isinstance(decided, Declined):
            return await self._told_once(decided) if incoming.unproven and decided.reply else decided
        await self._pace.read()
        return self._slowed(decided, incoming) or self._due(decided, incoming)

    async def knows(self, manifest: Manifest, account: str) -> bool:
        """Whether this account stands in the list of those who are answered; without one, whether it is a person's. Who
        is blocked is not known, whatever list they are on."""
        if self.policy.allow_from and account not in self.policy.allow_from:
            return False
        return await self._people.knows(manifest, account, listed=bool(self.policy.allow_from))

    async def _decline(self, why: str, manifest: Manifest, incoming: Incoming) -> Declined:
        if why != NOT_LISTED or not incoming.direct or incoming.replaces:
            return Declined(why)
        author = await self._people.author(manifest, incoming)
        await self._pace.read()
        if not author or not self._pace.tell(author, DAY):
            return Declined(why)
        return Declined(why, author, STRANGE.format(account=incoming.account, channel=manifest.name))

    async def _told_once(self, decided: Declined) -> Declined:
        """Whoever is told may not have written anything: not more than once a day (backscatter)."""
        await self._pace.read()
        return decided if self._pace.tell(decided.account, DAY) else Declined(decided.why)

    def _slowed(self, decided: Admitted, incoming: Incoming) -> Declined | None:
        """Why it is too much, if it is; else it is counted. What comes again was counted before."""
        pace, policy = self._pace, self.policy
        is_of_album = incoming.album and not incoming.replaces  # an album is one message, its changes are not
        event = f"album {incoming.chat} {incoming.account} {incoming.album}" if is_of_album else incoming.event
        if pace.came(event) or (incoming.replaces and incoming.withdrawn):
            return None
        if incoming.bot and pace.streak(incoming.chat) >= MOST_OF_BOTS:
            if pace.tell(f"bots in {incoming.chat}", DAY):
                _log.warning("bots are not answered in a chat any more until a person speaks there: %s", incoming.chat)
            return Declined(BOTS_ALONE)
        who = f"{decided.author} urgent" if command_in(incoming.text) in URGENT else decided.author
        if seconds := pace.wait_of(who, policy.per_minute, policy.per_minute_all):
            return self._too_many(decided.author, incoming, math.ceil(seconds))
        pace.count(who, event)
        pace.note_speaker(incoming.chat, incoming.bot)
        return None

    def _too_many(self, author: str, incoming: Incoming, seconds: int) -> Declined:
        if not incoming.direct or incoming.replaces or not self._pace.tell(author):
            return Declined(TOO_MANY)
        limit = self.policy.per_minute
        words = SLOWER if limit and self._pace.wait_of(author, limit, 0) else BUSY
        return Declined(TOO_MANY, author, words.format(limit=limit, seconds=seconds))

    def _due(self, decided: Admitted, incoming: Incoming) -> Admitted:
        gather = self._usual.gather if self.policy.gather is None else self.policy.gather
        seconds = max(gather, ALBUM_SECONDS) if incoming.album else gather
        return structs.replace(decided, due=self._clock.now() + seconds) if seconds else decided


def refusal(policy: ChannelPolicy, usual: GroupRule, incoming: Incoming) -> str:
    """Why a message is not for us, whoever its author is to the house; "" when it is."""
    chat, account = incoming.chat, incoming.account
    if policy.is_off(chat):
        return OFF
    if incoming.bot:
        if account not in policy.bots:
            return A_BOT
    elif (allowed := policy.allowed_in(chat)) and account not in allowed:
        return NOT_LISTED
    if incoming.direct or incoming.replaces:  # a change is for whom the message was
        return ""
    return "" if _is_addressed(policy.rule_in(chat, usual), incoming) else NOT_FOR_US


def _is_addressed(rule: GroupRule, incoming: Incoming) -> bool:
    command = command_in(incoming.text)
    if rule == "always" or rule == "never":
        return rule == "always"
    if incoming.replies or (command in _ANSWERS and rest_of(incoming.text)):
        return True
    return incoming.mentioned and (rule == "mention" or bool(command))
