"""The settings that hold for every channel: who is answered there, and when."""

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from ..core.people import Strangers

GroupRule = Literal["mention", "reply", "always", "never"]


class ChatPolicy(Struct, frozen=True, kw_only=True):
    """What is otherwise in one chat; None is as in the channel."""

    rule: GroupRule | None = None
    allow_from: tuple[str, ...] | None = None
    off: bool = False


class ChannelPolicy(Struct, frozen=True, kw_only=True):
    """`channels.<name>`, but for what is the channel's own.

    `allow_from` are accounts, by the ids that the platform never gives to anybody else; without any, whoever people and
    `strangers` let in. `groups` says what is answered where others read: what names us or replies to us, what replies
    to us, all, nothing. `bots` are those other bots that may speak. Messages within `gather` seconds are one turn.
    None: what is usual for such a channel. 0 messages a minute is no limit. `progress` and `reasoning` are shown while
    a turn runs.
    """

    enabled: bool = True
    disabled: bool = False
    allow_from: tuple[str, ...] = ()
    groups: GroupRule | None = None
    chats: Mapping[str, ChatPolicy] = {}
    bots: tuple[str, ...] = ()
    gather: float | None = None
    per_minute: int = 0  # of one person
    per_minute_all: int = 0
    progress: bool = False
    reasoning: bool = False
    strangers: Strangers | None = None

    def allowed_in(self, chat: str) -> tuple[str, ...]:
        there = self.chats.get(chat)
        return self.allow_from if there is None or there.allow_from is None else there.allow_from

    def rule_in(self, chat: str, usual: GroupRule) -> GroupRule:
        there = self.chats.get(chat)
        return (there and there.rule) or self.groups or usual

    def is_off(self, chat: str) -> bool:
        there = self.chats.get(chat)
        return there is not None and there.off


USUAL_POLICY = ChannelPolicy()
