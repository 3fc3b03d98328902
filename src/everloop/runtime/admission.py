"""Who may speak on a channel, decided before anything is committed.

An account (`<channel>:<account>`) belongs to a person whom the owner has introduced, or to a stranger, of whom
`users.strangers` says what becomes. With `pair` a stranger who writes in a conversation of two is told a code, once
while it holds, and is let in when the owner names it. In a group nobody is told anything.
"""

from collections.abc import Callable, Container
from typing import Protocol, assert_never, runtime_checkable

from ..core.people import Strangers, chat_of
from ..ports import Directory
from ..ports.audit import acting_as
from ..ports.channel import Admitted, Declined, Incoming, Manifest
from ..ports.directory import Person
from ..readings.commands import command_in, rest_of
from ..readings.keys import author_of, escaped

PAIRING_SECONDS = 86_400.0
PAIR = (
    "I do not know you yet. Ask the person who runs me to let you in: `everloop users pair {code}`, or `/pair {code}` "
    "where they speak with me. The code holds for a day. What you wrote was not kept: say it again then."
)
UNPROVEN = (
    "I cannot tell whether you have written this: anyone could write in your name, and nobody proves to me that it was "
    "you. What you wrote was not kept. Whoever runs me is told more by `everloop channels test {channel}`."
)
BLOCKED = "this account is blocked"
UNKNOWN = "this account belongs to nobody who is known here"


@runtime_checkable
class KnowsAccounts(Protocol):
    """An Admission that can be asked who somebody is."""

    async def knows(self, manifest: Manifest, account: str) -> bool:
        """Raises StoreError."""


class AdmitPeople:
    """A conversation of two belongs to the person; that of a group to the chat, whoever speaks in it."""

    def __init__(
        self,
        directory: Directory,
        strangers: Callable[[], Strangers | None],
        usual: Strangers = "guest",
        given: Container[str] = (),
    ) -> None:
        """`strangers` says what becomes of them, or that it is as `usual`. `given` are those of whom a program has said
        who they are."""
        self._directory = directory
        self._strangers = strangers
        self._usual: Strangers = usual
        self._given = given

    async def admit(self, manifest: Manifest, incoming: Incoming, *, listed: bool = False) -> Admitted | Declined:
        """Who is `listed` is let in, a guest if nobody knows them."""
        account = author_of(manifest.name, incoming.account)
        person = await self._directory.known_by(account)
        if person and person.blocked:
            return Declined(BLOCKED)
        if incoming.unproven:
            return self._unproven(account, manifest, incoming, is_known=person is not None)
        if person is None and account not in self._given:
            declined = await self._met(account, manifest, incoming, "guest" if listed else None)
            if declined:
                return declined
        author = person.id if person else account
        return Admitted(author, author if incoming.direct else chat_of(manifest.name, escaped(incoming.chat)))

    async def knows(self, manifest: Manifest, account: str, *, listed: bool = False) -> bool:
        """Whether this account is that of a person who may speak, or stands in a list of such."""
        name = author_of(manifest.name, account)
        person = await self._directory.known_by(name)
        return not person.blocked if person else listed or name in self._given

    async def author(self, manifest: Manifest, incoming: Incoming) -> str:
        """Who writes, a person or an account that is nobody's; "" for one who is blocked."""
        account = author_of(manifest.name, incoming.account)
        person = await self._directory.known_by(account)
        if person and person.blocked:
            return ""
        return person.id if person else account

    def _unproven(self, account: str, manifest: Manifest, incoming: Incoming, *, is_known: bool) -> Admitted | Declined:
        """A stranger, also if the account was linked to somebody; no code is told and none is taken."""
        strangers = self._strangers() or self._usual
        if strangers == "guest" and not is_known:
            return Admitted(account, account if incoming.direct else chat_of(manifest.name, escaped(incoming.chat)))
        if strangers == "ignore" or not incoming.direct:
            return Declined(UNKNOWN)
        return Declined(UNKNOWN, account, UNPROVEN.format(channel=manifest.name))

    async def _linked(self, account: str, incoming: Incoming) -> Person | None:
        """Who says the code that somebody has asked for elsewhere is the same person here, from now on."""
        if not incoming.direct or command_in(incoming.text) != "/link":
            return None
        asked = await self._directory.use_code("link", rest_of(incoming.text))
        if asked is None:
            return None
        with acting_as(asked.account, "a code that was said in both places"):
            if await self._directory.link(account, asked.account):
                return None
        return await self._directory.person(asked.account)

    async def _met(
        self, account: str, manifest: Manifest, incoming: Incoming, rule: Strangers | None
    ) -> Declined | None:
        """Why a stranger is not let in; `rule` counts before the settings'."""
        if linked := await self._linked(account, incoming):
            return Declined(UNKNOWN, linked.id, f"You are {linked.name} here, too, from now on.")
        match rule or self._strangers() or self._usual:
            case "guest":
                return None
            case "ignore":
                return Declined(UNKNOWN)
            case "pair" if not incoming.direct:
                return Declined(UNKNOWN)
            case "pair":
                session = f"{manifest.name}:{escaped(incoming.chat)}"
                asked = await self._directory.ask_code("pair", account, session, incoming.event, PAIRING_SECONDS)
                first = asked.event == incoming.event  # also when it comes again: perhaps the answer was never sent
                return Declined(UNKNOWN, account, PAIR.format(code=asked.code) if first else "")
            case never:
                assert_never(never)
