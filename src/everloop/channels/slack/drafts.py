"""Drafts of an answer, and how one becomes the answer.

In a thread whose reader is known Slack streams natively (chat.startStream): it takes pieces of markdown, which can be
appended and never changed. Elsewhere, and when Slack will not, a draft is a message that is changed. A stream that
Slack has ended by itself, after a few minutes or because somebody stopped it, is changed like a message, too.
"""

import re
from collections import OrderedDict
from typing import Any

from ...core.mail import Address, ReplyTo
from ...errors import ChannelDown, ProviderError, Undeliverable
from ...readings.keys import name_of
from ..text import SLACK, draft
from .api import SlackApi
from .codec import place_of
from .messages import changed, text_fields
from .refusals import SlackRefused, is_about_access, to_send

REMEMBERED = 1_000  # drafts
LONGEST = 10_000  # characters of a stream; what is longer goes on as a message that is changed
STREAM, MESSAGE = "stream", "message"
_GONE = ("message_not_found", "thread_not_found")
# In markdown, too, `<!channel>` and `<@U1>` notify people; so might an entity that stands for the bracket.
_BRACKET = re.compile(r"(<|&lt;|&#0*60;|&#x0*3c;)(?=[@!#&\\])", re.IGNORECASE)
_HALF = re.compile(r"(?:<|\\|&[#\w]{0,10};?)+\Z")
_MARKUP = re.compile(r"[*_~`<>&|#\[\]\\!+=\n-]|^\s|\d[.)]\s|://|www\.", re.MULTILINE)  # which would be read otherwise
NO_WIDTH = "\u200b"


def harmless(markdown: str) -> str:
    """Markdown that mentions nobody. What may become a mention with the next word is kept back."""
    return _BRACKET.sub(rf"\1{NO_WIDTH}", _HALF.sub("", markdown))


class SlackDrafts:
    """Shows drafts. What one is called is its kind, its chat and its timestamp."""

    def __init__(self, api: SlackApi) -> None:
        self._api = api
        self._words: OrderedDict[str, str] = OrderedDict()  # what a draft shows, by its name
        self._no_streams: set[str] = set()  # kinds of chats, by their letter, in which Slack will not stream

    async def show(self, address: Address, shown: str, markdown: str, reply_to: ReplyTo) -> str:
        try:
            if not harmless(markdown):
                await self.take_away(shown)
                return ""
            if not shown:
                return await self._begin(address, markdown, reply_to)
            if shown.startswith(STREAM) and (again := await self._append(shown, markdown)):
                return again
            return await self._change(shown, text_fields(draft(markdown, SLACK).text))
        except SlackRefused as error:
            raise to_send(error) from error

    async def become(self, shown: str, fields: dict[str, Any]) -> str:
        """Make it the answer; returns its receipt, or "" when it is not there to be changed. Raises as a send does."""
        words, text = self._words.pop(shown, None), str(fields["text"])
        is_stream, whole = shown.startswith(STREAM), "blocks" not in fields
        if words == text and whole and not is_stream:
            return _receipt(shown)
        if words is not None and text.startswith(words) and whole and is_stream and not _MARKUP.search(text):
            if await self._stop(shown, text[len(words) :]):  # it ends as it began, and nobody reads `(edited)`
                return _receipt(shown)
        else:
            await self._stop(shown)
        try:
            return _receipt(await self._change(shown, fields))
        except SlackRefused as error:
            if is_about_access(error) or isinstance(to_send(error), ChannelDown):
                raise to_send(error) from error
            return ""
        except ProviderError:  # it may have been changed: to change it to the same once more does no harm
            return await self._once_more(shown, fields)

    async def _once_more(self, shown: str, fields: dict[str, Any]) -> str:
        try:
            return _receipt(await self._change(shown, fields))
        except SlackRefused as error:
            raise to_send(error) from error

    async def take_away(self, shown: str) -> None:
        """Raises SlackRefused; what is gone already is no error."""
        if not shown:
            return
        await self._stop(shown)
        try:
            await self._api.call("chat.delete", **_place(shown))
        except SlackRefused as error:
            if error.word not in _GONE:
                raise

    async def _begin(self, address: Address, markdown: str, reply_to: ReplyTo) -> str:
        chat, thread = name_of(address.chat), name_of(address.thread)
        if begun := await self._stream(chat, thread, markdown, reply_to):
            return begun
        fields = text_fields(draft(markdown, SLACK).text)
        posted = await self._api.call("chat.postMessage", channel=chat, thread_ts=thread or None, **fields)
        return self._remember(_name(MESSAGE, posted.fields), fields["text"])

    async def _stream(self, chat: str, thread: str, markdown: str, reply_to: ReplyTo) -> str:
        reader, words = place_of(reply_to), harmless(markdown)[:LONGEST]
        if not thread or not reader.user or not reader.team or not words or chat[:1] in self._no_streams:
            return ""
        whom = {"recipient_user_id": reader.user, "recipient_team_id": reader.team}
        try:
            begun = await self._api.call(
                "chat.startStream", channel=chat, thread_ts=thread, markdown_text=words, **whom
            )
        except SlackRefused:  # this workspace, or this kind of chat, has none
            self._no_streams.add(chat[:1])
            return ""
        return self._remember(_name(STREAM, begun.fields), words)

    async def _append(self, shown: str, markdown: str) -> str:
        """Nothing when it is to be changed from now on: its beginning has changed, or Slack has ended it."""
        before, words = self._words.get(shown), harmless(markdown)
        if before is None or not words.startswith(before) or len(words) > LONGEST:
            await self._stop(shown)
            return ""
        if words == before:
            return shown
        try:
            await self._api.call("chat.appendStream", **_place(shown), markdown_text=words[len(before) :])
        except SlackRefused:
            await self._stop(shown)
            return ""
        return self._remember(shown, words)

    async def _change(self, shown: str, fields: dict[str, Any]) -> str:
        place = _place(shown)
        await self._api.call("chat.update", **place, **changed(fields))
        return self._remember(_name(MESSAGE, place), fields["text"])

    async def _stop(self, shown: str, rest: str = "") -> bool:
        """A stream that goes on cannot be changed. Returns whether it has ended now, with this at its end."""
        if not shown.startswith(STREAM):
            return False
        self._words.pop(shown, None)
        try:
            await self._api.call("chat.stopStream", **_place(shown), markdown_text=rest or None)
        except SlackRefused as error:
            if is_about_access(error) or isinstance(to_send(error), ChannelDown):
                raise to_send(error) from error
            return False
        except ProviderError as error:  # whether it has ended is seen next time, and then it is changed
            raise ChannelDown(str(error)) from error
        return True

    def _remember(self, name: str, words: str) -> str:
        self._words[name] = words
        while len(self._words) > REMEMBERED:
            self._words.popitem(last=False)
        return name


def _name(kind: str, fields: Any) -> str:
    return f"{kind} {fields['channel']} {fields['ts']}"


def _place(shown: str) -> dict[str, str]:
    """Raises Undeliverable for what is no name of ours."""
    kind, _, rest = shown.partition(" ")
    chat, _, ts = rest.partition(" ")
    if kind not in (STREAM, MESSAGE) or not chat or not ts:
        raise Undeliverable("this is no draft of Slack's")
    return {"channel": chat, "ts": ts}


def _receipt(shown: str) -> str:
    return shown.partition(" ")[2].replace(" ", ":")
