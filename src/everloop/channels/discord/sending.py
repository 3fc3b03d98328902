"""What we say: messages and drafts, their changes, reactions."""

import logging
from urllib.parse import quote

from msgspec.structs import replace

from ...core.mail import Address, ReplyTo
from ...errors import ChannelDown, ChannelRefused, ProviderError, Undeliverable
from ...ports.channel import OutgoingPart, Rendered
from ..text import DISCORD, draft
from .drafts import WRITING, DiscordDrafts, unmarked
from .outgoing import DiscordPost, edited, message_in, posts_of, reference, text_body
from .rest import DiscordRefused, DiscordRest

_log = logging.getLogger("everloop.channels.discord")

TOO_LARGE = 40005


def channel_of(address: Address) -> str:
    """A thread is a channel of its own. Raises Undeliverable for what is none of Discord's."""
    channel = address.thread or address.chat
    if not (channel.isascii() and channel.isdigit()):
        raise Undeliverable(f"{str(address)[:100]!r} is no channel of Discord's")
    return channel


class DiscordSending:
    def __init__(self, rest: DiscordRest) -> None:
        self._rest = rest
        self._drafts = DiscordDrafts(rest)

    async def send(self, part: OutgoingPart) -> str:
        """Raises ChannelDown also while the token is refused: the answer waits for another one."""
        try:
            return await self._send(part)
        except ChannelRefused as error:
            raise ChannelDown(str(error)) from error

    async def _send(self, part: OutgoingPart) -> str:
        channel = channel_of(part.address)
        if part.number == 0:
            earlier = await self._drafts.earlier(part, channel)
            if earlier.id:
                if part.draft:
                    await self._remove_quietly(f"channels/{channel}/messages/{part.draft}")
                return earlier.id
            part = unmarked(part) if earlier.is_absent else part
        try:
            return await self._post_all(part, posts_of(part, part.text, channel), channel)
        except DiscordRefused as error:
            if error.status == 413 or error.code == TOO_LARGE:
                return await self._post_all(part, posts_of(_without_files(part), part.text, channel), channel)
            if error.status == 400 and part.plain and part.plain != part.text:
                return await self._post_all(part, posts_of(part, part.plain, channel), channel)
            raise

    async def _post_all(self, part: OutgoingPart, posts: list[DiscordPost], channel: str) -> str:
        first = await self._become(part.draft, posts[0], channel) if part.draft else ""
        ids = [first] if first else []
        for post in posts[len(ids) :]:
            told = await self._rest.call("POST", f"channels/{channel}/messages", post.body, files=post.files)
            ids.append(str(told["id"]))
        return ids[0]

    async def _become(self, shown: str, post: DiscordPost, channel: str) -> str:
        """Make a draft the message; "" when it cannot be, and is taken away."""
        path = f"channels/{channel}/messages/{shown}"
        try:
            await self._rest.call("PATCH", path, edited(post), files=post.files)
        except DiscordRefused as error:
            _log.info("a draft cannot become the answer: %s", error)
            await self._remove_quietly(path)
            return ""
        finally:
            self._drafts.shown.discard(shown)
        return shown

    async def _remove_quietly(self, path: str) -> None:
        try:
            await self._rest.call("DELETE", path)
        except (ChannelDown, DiscordRefused) as error:
            _log.info("a draft stays: %s", error)

    async def preview(self, address: Address, shown: str, text: str, reply_to: ReplyTo) -> str:
        channel = channel_of(address)
        method = "DELETE" if not text else "PATCH" if shown else "POST"
        path = f"channels/{channel}/messages" + (f"/{shown}" if shown else "")
        if method == "DELETE":
            await self._rest.call("DELETE", path)
            self._drafts.shown.discard(shown)
            return ""
        body = text_body(draft(text, DISCORD).text + WRITING)
        if not shown:
            body |= reference(reply_to, channel)
        told = await self._rest.call(method, path, body, patience=0.0)  # no draft waits: the next one says more
        self._drafts.shown.add(str(told["id"]))
        return str(told["id"])

    async def type(self, address: Address) -> None:
        path = f"channels/{channel_of(address)}/typing"
        await self._rest.call("POST", path, patience=0.0)

    async def react(self, address: Address, to: ReplyTo, emoji: str) -> None:
        if not (message := message_in(to)):
            raise Undeliverable("nobody knows to which message this is a reaction")
        path = f"channels/{channel_of(address)}/messages/{message}/reactions/{quote(emoji, safe='')}/@me"
        await self._call("PUT", path)

    async def replace(self, address: Address, sent: str, text: Rendered) -> None:
        await self._call("PATCH", f"channels/{channel_of(address)}/messages/{sent}", text_body(text.text))

    async def withdraw(self, address: Address, sent: str) -> None:
        try:
            await self._call("DELETE", f"channels/{channel_of(address)}/messages/{sent}")
        except DiscordRefused as error:
            if error.status != 404:
                raise

    async def chat_with(self, account: str) -> str:
        if not (account.isascii() and account.isdigit()):
            raise Undeliverable(f"{account[:100]!r} is no account of Discord's: theirs are numbers")
        told = await self._call("POST", "users/@me/channels", {"recipient_id": account})
        return str(told["id"])

    async def _call(self, method: str, path: str, body: dict[str, object] | None = None) -> dict[str, object]:
        """What can be done again without harm: whatever breaks it off, it may be tried again."""
        try:
            told: dict[str, object] = await self._rest.call(method, path, body)
        except (ChannelRefused, ProviderError) as error:
            raise ChannelDown(str(error)) from error
        return told


def _without_files(part: OutgoingPart) -> OutgoingPart:
    why = "Discord takes no file as large"
    return replace(part, files=tuple(replace(file, data=b"", why=why) for file in part.files))
