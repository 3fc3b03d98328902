"""Whom the agent may write to for somebody, and where: their own conversations and accounts, the groups in which they
speak, and for the owner and administrators everybody who is known.

Of anyone else's conversation one hears what one hears of none.
"""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from ..core.log import UserSaid
from ..core.mail import Address, Inbound
from ..core.people import Role, is_chat
from ..errors import BadSession, ChannelDown, ToolError, Undeliverable
from ..ports import Channel
from ..ports.channel import OpensChats, Traits, traits_of
from ..ports.conversation import Conversation, Written
from ..ports.directory import Person
from ..ports.rows import Receipt, ThreadRow
from ..ports.tools import CallContext
from ..readings.keys import escaped

ME = "me"
SHOWN = 10
LATELY = 20  # conversations of somebody's that are looked at
READ = 500  # entries of a group, the last ones, in which one has to have spoken


class PostOffice(Protocol):
    """The part of the store that knows people and conversations, and takes letters for them."""

    async def session(self, key: str) -> ThreadRow | None: ...

    async def conversations(self, owner: str, *, limit: int) -> list[Conversation]: ...

    async def history(self, thread: str, after: int = 0, limit: int = 0) -> list[Written]: ...

    async def account_at(self, session: str) -> str: ...

    async def people(self) -> list[Person]: ...

    async def person(self, id: str) -> Person | None: ...

    async def came(self, channel: str, event: str) -> bool: ...

    async def receive(self, inbound: Inbound) -> Receipt: ...


class Recipient(Struct, frozen=True):
    """Where, whose conversation that is or is to be, and the account that is there alone with us, if it begins here."""

    address: Address
    owner: str
    account: str = ""


class Recipients:
    """`channels` are those that are known here, `opened` those that are open at the moment, by name."""

    def __init__(self, post: PostOffice, channels: Mapping[str, Traits], opened: Mapping[str, Channel]) -> None:
        self._post = post
        self._channels = channels
        self._open = opened

    async def at(self, session: str, context: CallContext) -> Recipient:
        """The conversation of this key. Raises ToolError."""
        try:
            row = await self._post.session(str(Address.parse(session)))
        except BadSession as error:
            raise ToolError(str(error)) from error
        if row is None or row.spawned_by or not await self._may_write(row, context):
            raise ToolError(f"there is no conversation {session!r} that you may write to; {await self._there(context)}")
        if row.session == context.session:
            raise ToolError("that is this very conversation: say it in your answer")
        return Recipient(Address.parse(row.session), row.owner)

    async def _may_write(self, row: ThreadRow, context: CallContext) -> bool:
        if row.owner in (context.principal, context.user):
            return True
        if not is_chat(row.owner) or context.role < Role.USER:
            return False
        return context.role >= Role.ADMIN or await self._has_spoken(row, context.user)

    async def _has_spoken(self, row: ThreadRow, who: str) -> bool:
        entries = await self._post.history(row.id, max(0, row.head - READ), READ)
        return any(isinstance(each.entry, UserSaid) and each.entry.author == who for each in entries)

    async def _there(self, context: CallContext) -> str:
        """Those of the group, where others read it."""
        known = await self._post.conversations(context.principal, limit=SHOWN)
        keys = dict.fromkeys(each.session for each in known if each.session != context.session)
        return f"there are: {', '.join(keys)}" if keys else "there is no other"

    async def person(self, to: str, channel: str, context: CallContext) -> Recipient:
        """Where this person is reached alone, on this channel if one is named. Raises ToolError."""
        person = await self._find(to, context)
        if found := await self._where_they_speak(person, channel, context):
            return found
        for account in person.principals:
            name, _, id = account.partition(":")
            speaks = self._open.get(name)
            if isinstance(speaks, OpensChats) and channel in ("", name):
                return await self._opened(speaks, id, account, person)
        where = ", ".join(sorted({each.partition(":")[0] for each in person.accounts if ":" in each}))
        there = f"has accounts on: {where}" if where else "has no account on a channel"
        on = f" on {channel!r}" if channel else ""
        raise ToolError(f"{person.name} is not reached from here{on}; {person.name} {there}")

    async def _find(self, to: str, context: CallContext) -> Person:
        own = await self._post.person(context.user) or Person(context.user, context.user, context.role)
        if to.casefold() in (ME, own.name.casefold(), own.id.casefold()):
            return own
        if context.role < Role.ADMIN:
            raise ToolError(f"only the owner and administrators write to other people; to {ME!r} you may")
        known = [each for each in await self._post.people() if not each.blocked and not each.erasing]
        found = [each for each in known if to in each.principals]
        found = found or [each for each in known if each.name.casefold() == to.casefold()]
        if len(found) != 1:
            names = ", ".join(each.name for each in known[:SHOWN]) or "nobody"
            how_many = "several people are" if found else "nobody is"
            raise ToolError(f"{how_many} called {to!r} here; there are: {names}")
        return found[0]

    async def _where_they_speak(self, person: Person, channel: str, context: CallContext) -> Recipient | None:
        """The last conversation that they had with us alone: a private one, or one of an account that is theirs now."""
        for each in await self._post.conversations(person.id, limit=LATELY):
            name, traits = each.session.partition(":")[0], traits_of(each.session, self._channels)
            if channel not in ("", name) or each.session == context.session or traits.aside or traits.polled:
                continue
            spoken = await self._post.account_at(each.session) or ":".join(each.session.split(":")[:2])
            if traits.private or spoken in person.principals:
                return Recipient(Address.parse(each.session), person.id)
        return None

    async def _opened(self, channel: OpensChats, id: str, account: str, person: Person) -> Recipient:
        name = account.partition(":")[0]
        try:
            chat = await channel.chat_with(id)
        except (ChannelDown, Undeliverable) as error:
            raise ToolError(f"{person.name} cannot be written to on {name}: {error}") from error
        address = Address(name, escaped(chat))
        row = await self._post.session(str(address))
        if row is not None and row.owner != person.id:
            raise ToolError(f"the chat with {account} belongs to somebody else by now")
        return Recipient(address, person.id, account if row is None else "")
