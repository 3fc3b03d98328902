"""Who we are in Slack, and what others are called: asked once, and remembered."""

import asyncio
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

from ...errors import ChannelDown, ChannelRefused, ProviderError, Undeliverable
from .api import SlackApi
from .codec import SlackSelf
from .refusals import SlackRefused

REMEMBERED = 10_000  # people
SECONDS = 1.5  # for all names of an event, which Slack wants acknowledged within three


class SlackPeople:
    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._me: SlackSelf | None = None
        self._names: OrderedDict[str, str] = OrderedDict()
        self._chats: dict[str, str] = {}
        self._may_ask = True

    async def me(self) -> SlackSelf:
        """Raises ChannelDown, ChannelRefused."""
        if self._me is None:
            self._me = self_of((await self._api.ask_who_we_are()).fields)
        return self._me

    async def names(self, ids: Iterable[str]) -> Mapping[str, str]:
        """Of those whom Slack names in time. A name is for people to read: nothing waits for it, or fails."""
        unknown = [id for id in ids if id and id not in self._names]
        if unknown and self._may_ask:
            with suppress(ChannelDown, ProviderError, TimeoutError):
                async with asyncio.timeout(SECONDS):
                    for id in unknown:
                        await self._learn(id)
        return {id: self._names[id] for id in ids if self._names.get(id)}

    async def _learn(self, id: str) -> None:
        try:
            user = (await self._api.call("users.info", user=id)).fields.get("user")
        except SlackRefused as error:
            self._may_ask = self._may_ask and error.word != "missing_scope"
            user = None
        self._remember(id, _called(user))

    async def chat_with(self, account: str) -> str:
        """Raises ChannelDown, Undeliverable."""
        user = account.partition("@")[0]
        if user not in self._chats:
            try:
                opened = (await self._api.send("conversations.open", users=user)).get("channel")
            except ProviderError as error:
                raise ChannelDown(str(error)) from error
            if not isinstance(opened, Mapping) or not isinstance(opened.get("id"), str):
                raise Undeliverable("Slack opens no chat with this person")
            self._chats[user] = opened["id"]
        return self._chats[user]

    def _remember(self, id: str, name: str) -> None:
        self._names[id] = name
        while len(self._names) > REMEMBERED:
            self._names.popitem(last=False)


def self_of(fields: Mapping[str, Any]) -> SlackSelf:
    """Raises ChannelRefused for a token that is no bot's."""
    user, bot, team, url = (fields.get(name) for name in ("user_id", "bot_id", "team_id", "url"))
    if not isinstance(user, str) or not isinstance(bot, str):
        raise ChannelRefused("this is no bot's token: channels.slack.bot_token is the Bot User OAuth Token (xoxb-)")
    return SlackSelf(user, bot, team if isinstance(team, str) else "", url if isinstance(url, str) else "")


def _called(user: Any) -> str:
    fields = user if isinstance(user, Mapping) else {}
    profile = fields.get("profile")
    told = profile if isinstance(profile, Mapping) else {}
    names = (told.get("display_name"), told.get("real_name"), fields.get("real_name"), fields.get("name"))
    return next((name.strip() for name in names if isinstance(name, str) and name.strip()), "")[:100]
