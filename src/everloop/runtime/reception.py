"""Where channels hand in what they hear: admission decides who speaks, then the inbox commits it."""

from collections.abc import Awaitable, Callable, Sequence

from msgspec import structs

from ..core.mail import Address, Amendment, Inbound, ReplyTo, Said
from ..core.message import said
from ..core.speakers import GroupSpeaker
from ..errors import MailRefused
from ..ports import Admission, Arrivals, Channel, Hooked
from ..ports.channel import Admitted, Declined, Delivered, Hook, HookAnswer, HookRequest, Incoming
from ..ports.policy import USUAL_POLICY, ChannelPolicy
from ..readings.commands import command_in
from ..readings.keys import author_of, escaped
from .admission import KnowsAccounts
from .inbox import Inbox
from .incoming_files import Enclose, IncomingFiles
from .live import Live
from .strangers import contained
from .voice import VoiceMessages

LONGEST_QUOTE = 1000  # characters
_ROUND = str.maketrans("[]［］⟦⟧【】", "()()()()", "\0")
LONGEST_EVENT = LONGEST_ACCOUNT = 500  # characters; what is longer is no platform's id
OURS = ("decision:", "message:", "job:", "ws:", "key:", "once:")  # how names begin that the house gives to letters
ANSWERED = "what it changes is no message of theirs that still waits for its answer"

Answers = Callable[[HookRequest], Awaitable[HookAnswer]]


class Reception:
    """Takes what comes in through one channel, whose `Deliver` it is."""

    def __init__(
        self,
        channel: Channel,
        inbox: Inbox,
        store: Arrivals,
        admission: Admission,
        enclose: Enclose,
        voice: VoiceMessages | None = None,
        policy: ChannelPolicy = USUAL_POLICY,
    ) -> None:
        """`enclose` keeps a file for someone and makes the part that names it. Raises MailRefused."""
        self._channel = channel
        self._files = IncomingFiles(channel, enclose, voice)
        self.live = Live(channel, progress=policy.progress, reasoning=policy.reasoning)
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

    async def knows(self, account: str) -> bool:
        if not isinstance(self._admission, KnowsAccounts) or not _can_be_account(account):
            return False
        return await self._admission.knows(self._manifest, account)

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        delivered = await self._take(_without_nul(incoming), resume)
        if delivered.refused and resume:  # nothing was committed that it could have been committed with
            await self.skip_to(resume)
        return delivered

    async def _take(self, incoming: Incoming, resume: str) -> Delivered:
        if sentence := _wrong_in(incoming):
            return Delivered(refused=sentence)
        if incoming.replaces and not await self._still_waits(incoming):  # before anything of it is counted or fetched
            return Delivered(refused=ANSWERED)
        decided = await self._admission.admit(self._manifest, incoming)
        address = Address(self._manifest.name, escaped(incoming.chat), escaped(incoming.thread))
        event = _event_of(incoming)
        if isinstance(decided, Declined):
            return await self._decline(decided, address, event, incoming.reply_to, resume)
        if not incoming.files:
            return await self._commit(incoming, decided, address, event, resume)
        async with self._files.alone(event):
            if await self._store.came(self.name, event):
                return Delivered(fresh=False)
            if incoming.replaces and not await self._still_waits(
                incoming
            ):  # before anything is fetched for it, or paid
                return Delivered(refused=ANSWERED)
            return await self._commit(incoming, decided, address, event, resume)

    async def _commit(
        self, incoming: Incoming, decided: Admitted, address: Address, event: str, resume: str
    ) -> Delivered:
        parts = said(_with_quote(incoming)) if incoming.text.strip() or not incoming.files else ()
        files = await self._files.parts(incoming, decided, address) if incoming.files else ()
        whose = decided.owner if decided.owner != decided.author else ""
        name = incoming.name.encode("utf-8", "replace").decode()  # half of a surrogate pair can be kept nowhere
        letter = Said(
            parts=(*parts, *files),
            author=decided.author,
            address=str(address),
            reply_to=incoming.reply_to,
            principal=whose,
            server=escaped(incoming.server),
            speaker=GroupSpeaker(name, "guest") if name and whose else None,
            due=decided.due,
        )
        if incoming.replaces:
            return await self._amend(incoming, Inbound(address, event, Amendment(0, letter), decided.owner, resume))
        account = author_of(self.name, incoming.account) if incoming.direct else ""
        inbound = Inbound(address, event, letter, decided.owner, resume, account)
        try:
            receipt = await self._inbox.take(inbound)
        except MailRefused as error:
            return Delivered(refused=str(error))
        self.live.note(receipt, address, incoming.reply_to)
        self._inbox.wake(receipt, inbound)
        return Delivered(receipt.fresh)

    async def _still_waits(self, incoming: Incoming) -> bool:
        """Whether what it changes still waits for its answer."""
        replaced = _replaced_by(incoming)
        found = await self._store.newest(self.name, replaced, replaced)
        return found is not None and not found.ended

    async def _amend(self, incoming: Incoming, inbound: Inbound) -> Delivered:
        """What is changed or taken back is that of the letter, if it still can be."""
        try:
            receipt = await self._inbox.amend(inbound, _replaced_by(incoming), withdrawn=incoming.withdrawn)
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


def _with_quote(incoming: Incoming) -> str:
    """With the words of others that it is a reply to; what we have said ourselves stands in the conversation. No
    bracket in them ends what is theirs, as if the author went on."""
    quote = " ".join(incoming.quoted.encode("utf-8", "replace").decode().split()).translate(_ROUND)
    if not quote or incoming.replies or command_in(incoming.text):
        return incoming.text
    shown = quote if len(quote) <= LONGEST_QUOTE else f"{quote[:LONGEST_QUOTE]}…"
    return f"{incoming.text}\n\n[a reply to this message: {shown}]"


def _replaced_by(incoming: Incoming) -> str:
    """The name of the letter that it changes."""
    return _event_of(structs.replace(incoming, event=incoming.replaces))


def _contained(answer: Answers) -> Answers:
    async def answer_contained(request: HookRequest) -> HookAnswer:
        with contained():
            return await answer(request)

    return answer_contained


def _without_nul(incoming: Incoming) -> Incoming:
    """What somebody says may be looked for, or become a title: no NUL has a place there."""
    return structs.replace(incoming, text=incoming.text.replace("\0", "")) if "\0" in incoming.text else incoming


def _wrong_in(incoming: Incoming) -> str:
    """What no database would take: it would be handed in again for ever."""
    if not incoming.event or max(len(incoming.event), len(incoming.replaces)) > LONGEST_EVENT:
        return f"a message has an id of 1 to {LONGEST_EVENT} characters"
    if not incoming.chat or not _can_be_account(incoming.account):
        return f"a message says in which chat it was written, and by whom, in at most {LONGEST_ACCOUNT} characters"
    where = (incoming.server, incoming.chat, incoming.thread, incoming.reply_to)
    if not _is_text("".join((incoming.event, incoming.replaces, incoming.account, incoming.text, *where))):
        return "the message is not valid UTF-8 text"
    return ""


def _can_be_account(account: str) -> bool:
    return 0 < len(account) <= LONGEST_ACCOUNT and _is_text(account)


def _is_text(text: str) -> bool:
    """PostgreSQL has no NUL in a text."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
