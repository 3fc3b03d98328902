"""Where channels hand in what they hear: admission decides who speaks, then the inbox commits it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from msgspec import structs

from ..core.mail import Address, Amendment, Inbound, ReplyTo, Said
from ..core.message import Part, Text, said
from ..core.speakers import GroupSpeaker
from ..errors import MailRefused, Undeliverable
from ..ports import Admission, Arrivals, Channel, Fetches, Hooked
from ..ports.channel import Declined, Delivered, FileRef, Hook, HookAnswer, HookRequest, Incoming
from ..readings.keys import escaped
from .inbox import Inbox
from .live import Live
from .strangers import contained

LONGEST_EVENT = 500  # characters; what is longer is no platform's id
OURS = ("decision:", "message:", "job:", "ws:", "key:", "once:")  # how names begin that the house gives to letters
MOST_FILES = 20  # with one message
LARGEST_FILE = 20_000_000  # bytes
FETCHING = 60.0  # seconds for one of them
ANSWERED = "what it changes is no message of theirs that still waits for its answer"

Answers = Callable[[HookRequest], Awaitable[HookAnswer]]
Enclose = Callable[[str, bytes, str], Awaitable[Part]]


class Reception:
    """Takes what comes in through one channel, whose `Deliver` it is."""

    def __init__(self, channel: Channel, inbox: Inbox, store: Arrivals, admission: Admission, enclose: Enclose) -> None:
        """`enclose` keeps a file for someone and makes the part that names it. Raises MailRefused."""
        self._channel = channel
        self._enclose = enclose
        self.live = Live(channel)
        self._manifest = channel.manifest
        self._inbox = inbox
        self._store = store
        self._admission = admission

    @property
    def name(self) -> str:
        return self._manifest.name

    def hooks(self) -> Sequence[Hook]:
        """What its platform calls, if it does."""
        if not isinstance(self._channel, Hooked):
            return ()
        return [structs.replace(hook, answer=_contained(hook.answer)) for hook in self._channel.hooks(self)]

    async def skip_to(self, resume: str) -> None:
        await self._store.keep_resume(self.name, resume)

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        delivered = await self._take(incoming, resume)
        if delivered.refused and resume:  # nothing was committed that it could have been committed with
            await self.skip_to(resume)
        return delivered

    async def _take(self, incoming: Incoming, resume: str) -> Delivered:
        if sentence := _wrong_in(incoming):
            return Delivered(refused=sentence)
        decided = await self._admission.admit(self._manifest, incoming)
        address = Address(self._manifest.name, escaped(incoming.chat), escaped(incoming.thread))
        event = _event_of(incoming)
        if isinstance(decided, Declined):
            return await self._decline(decided, address, event, incoming.reply_to, resume)
        if incoming.files and await self._store.came(self.name, event):
            return Delivered(fresh=False)
        parts = said(incoming.text) if incoming.text.strip() or not incoming.files else ()
        files = [await self._file(ref, decided.owner) for ref in incoming.files[:MOST_FILES]]
        whose = decided.owner if decided.owner != decided.author else ""
        letter = Said(
            parts=(*parts, *files),
            author=decided.author,
            address=str(address),
            reply_to=incoming.reply_to,
            principal=whose,
            server=escaped(incoming.server),
            speaker=GroupSpeaker(incoming.name, "guest") if incoming.name and whose else None,
            due=decided.due,
        )
        if incoming.replaces:
            return await self._amend(incoming, Inbound(address, event, Amendment(0, letter), decided.owner, resume))
        inbound = Inbound(address, event, letter, decided.owner, resume)
        try:
            receipt = await self._inbox.take(inbound)
        except MailRefused as error:
            return Delivered(refused=str(error))
        self.live.note(receipt.thread, address, incoming.reply_to)
        self._inbox.wake(receipt, inbound)
        return Delivered(receipt.fresh)

    async def _amend(self, incoming: Incoming, inbound: Inbound) -> Delivered:
        """What is changed or taken back is that of the letter, if it still can be."""
        replaced = _event_of(structs.replace(incoming, event=incoming.replaces))
        try:
            receipt = await self._inbox.amend(inbound, replaced, withdrawn=incoming.withdrawn)
        except MailRefused as error:
            return Delivered(refused=str(error))
        return Delivered(receipt.fresh) if receipt else Delivered(refused=ANSWERED)

    async def _decline(
        self, decided: Declined, address: Address, event: str, reply_to: ReplyTo, resume: str
    ) -> Delivered:
        """What they wrote is not kept: nobody has let them in."""
        if not decided.reply:
            return Delivered(refused=decided.why)
        letter = Said((), decided.account, str(address), reply_to=reply_to)
        try:
            receipt = await self._inbox.answer(Inbound(address, event, letter, decided.account, resume), decided.reply)
        except MailRefused:  # the conversation is somebody else's
            return Delivered(refused=decided.why)
        return Delivered(receipt.fresh)

    async def _file(self, ref: FileRef, owner: str) -> Part:
        """A file that came along, or a word on why it cannot be had. Raises ChannelDown: then it is to come again."""
        if not isinstance(self._channel, Fetches):
            return Text("[a file came along that this channel cannot fetch]")
        try:
            async with asyncio.timeout(FETCHING):
                with contained():
                    name, data = await self._channel.fetch(ref, LARGEST_FILE)
            return await self._enclose(name, data, owner)
        except (MailRefused, Undeliverable) as error:
            return Text(f"[a file came along that cannot be taken: {error}]")

    async def run(self) -> None:
        """Listen as long as there is something to listen to. Raises whatever breaks it off: `run` it under a
        supervisor, which begins it again where its last letter was."""
        resume = await self._store.resume(self._manifest.name)
        with contained():
            await self._channel.run(self, resume)


def _event_of(incoming: Incoming) -> str:
    """The name of its letter. Whoever writes may choose the platform's id, and must not choose one of ours: a decision
    of that name would be taken for the same letter again."""
    return f"={incoming.event}" if incoming.event.startswith((*OURS, "=")) else incoming.event


def _contained(answer: Answers) -> Answers:
    async def answer_contained(request: HookRequest) -> HookAnswer:
        with contained():
            return await answer(request)

    return answer_contained


def _wrong_in(incoming: Incoming) -> str:
    if not incoming.event or len(incoming.event) > LONGEST_EVENT:
        return f"a message has an id of 1 to {LONGEST_EVENT} characters"
    if not incoming.chat or not incoming.account:
        return "a message says in which chat it was written, and by whom"
    try:
        where = (incoming.server, incoming.chat, incoming.thread, incoming.reply_to)
        "".join((incoming.event, incoming.account, *where)).encode()
    except UnicodeEncodeError:
        return "the message is not valid UTF-8 text"
    return ""
