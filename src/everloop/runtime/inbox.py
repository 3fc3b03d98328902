"""The one door in: every channel, timer and programmer writes mail here. What is committed is never lost."""

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from msgspec import structs

from ..core.log import MANY
from ..core.mail import Amendment, Decision, Inbound, Notice, Said
from ..core.message import Text, text_of
from ..core.people import OWNER, is_chat
from ..errors import MailRefused
from ..ports import Archive, Bus, Log, Mailroom
from ..ports.conversation import (
    BackgroundDeed,
    BeginInBackground,
    Branch,
    BringToFront,
    ResumeThread,
    SendToBackground,
)
from ..ports.events import CommandDone, TurnMoved
from ..ports.failpoint import reach
from ..ports.rows import Receipt
from ..ports.tasks import CHILD, Tasks, background_number
from ..readings.commands import SlashCommand, unescaped
from ..readings.commands import find as find_command
from ..readings.keys import group_at
from .lanes import Begun, Lanes
from .people import Speakers

if TYPE_CHECKING:
    from .commands import SlashCommands
    from .typed_command import CommandEffect

Leave = Callable[[str], Awaitable[None]]
GOES_ON = "This goes on in the background as task {}."
ALONE = "a sub-agent works alone: nobody can speak with it. /tasks in the conversation that it works for shows it"


async def _leave_nothing(thread: str) -> None:
    pass


class InboxStore(Mailroom, Archive, Log, Tasks, Protocol):
    """Letters, the threads that sessions are at, and what works for them."""


class Inbox:
    def __init__(
        self,
        store: InboxStore,
        bus: Bus,
        lanes: Lanes,
        commands: "Callable[[], SlashCommands]",
        max_chars: int = 200_000,
        leave: Leave = _leave_nothing,
        speakers: Speakers | None = None,
    ) -> None:
        """`leave` ends what a thread has running in the background, `speakers` say who speaks in a group."""
        self._store = store
        self._bus = bus
        self._lanes = lanes
        self._commands = commands
        self._max_chars = max_chars
        self._leave = leave
        self._speakers = speakers

    async def take(self, inbound: Inbound, *, express: bool = True) -> Receipt:
        """Commit a letter; only then may the channel acknowledge it. The same event twice is one letter.

        The caller wakes the thread (`wake`) when it is ready for the answer; with `express` the turn may already
        have begun. Raises MailRefused.
        """
        reach("inbox.arrived")
        self._lanes.acting.note(inbound.owner)
        inbound = _placed(inbound)
        if self._speakers:
            inbound = await self._speakers.name(inbound)
        letter = inbound.letter
        if isinstance(letter, Said) and inbound.address.channel == CHILD:
            raise MailRefused(ALONE)
        if isinstance(letter, Said) and (command := self._command(letter)):
            effect = await self._commands().work_out(command, inbound, letter)
            if effect.says:
                receipt = await self._store.receive(effect.inbound)
                reach("inbox.committed")
                return receipt
            leaves = effect.action in ("new", "stop") or isinstance(effect.action, Branch | ResumeThread)
            row = await self._store.session(str(inbound.address)) if leaves else None
            reply = await self._decided(effect) if effect.decision else effect.reply
            receipt = await self._store.command(effect.inbound, effect.action, reply, effect.otherwise)
            if effect.grant and not effect.decision:
                await self._commands().keep(effect.inbound, effect.grant)
            reach("command.committed")
            if row and receipt.fresh and (effect.action == "stop" or receipt.thread != row.id):
                await self._leave(row.id)
            if effect.action == "stop" and receipt.fresh:
                tasks = await self._store.tasks(under=receipt.thread)
                await self._leave_all([task.thread for task in tasks if task.is_open])
            await self._leave_all(effect.stopped)
            if isinstance(effect.action, BackgroundDeed) and receipt.fresh:
                await self._tell_moves(effect.action, receipt)
            self._bus.publish(CommandDone(receipt.thread, 0, command.name, str(inbound.address)))
            return receipt
        inbound = _unescaped(inbound)
        begun = await self._take_express(inbound) if express else None
        receipt = begun or await self._store.receive(inbound)
        reach("inbox.committed")
        return receipt

    async def _tell_moves(self, deed: BackgroundDeed, receipt: Receipt) -> None:
        """Wake what has begun, and say which conversation is where now; as every hint, of what is committed."""
        if isinstance(deed, BeginInBackground):
            self._bus.wake(deed.branch.id)
            return
        moved = [deed.turn.thread] if isinstance(deed, SendToBackground) else [deed.thread]
        moved += [deed.left.thread] if isinstance(deed, BringToFront) and deed.left else []
        for thread in moved:
            row = (await self._store.open(thread, MANY)).row
            mails = tuple(await self._store.unfinished(thread))
            number = background_number(row.spawned_by)
            self._bus.publish(TurnMoved(thread, 0, number, receipt.thread, row.session, row.owner, mails))
            if number:
                self._lanes.let_go(mails, GOES_ON.format(number))

    async def stop_task(self, inbound: Inbound, thread: str) -> int:
        """Stop a task and all that works for it; how many are stopped."""
        stopped = await self._store.stop_task(inbound, thread)
        await self._leave_all(stopped)
        return len(stopped)

    async def _leave_all(self, threads: Sequence[str]) -> None:
        """End what runs for tasks that have been stopped, as is known; that they are to stop is told to them."""
        for thread in threads:
            await self._leave(thread)
            self._bus.cancel(thread)

    async def _decided(self, effect: "CommandEffect") -> str:
        """Post what was decided in another conversation, and say whether it counts: the first who answers decides."""
        assert effect.decision is not None
        receipt = await self._store.receive(effect.decision)
        await self._commands().keep(effect.decision, effect.grant)
        self._bus.wake(receipt.thread)
        return effect.reply if receipt.fresh else effect.otherwise

    async def _take_express(self, inbound: Inbound) -> Receipt | None:
        letter = inbound.letter
        # More than the letter is committed, or more of the same may come.
        more = isinstance(letter, Said) and (letter.reply_to or letter.due or letter.model is not None)
        if more or inbound.resume or inbound.account:
            return None
        begun = self._lanes.begin(inbound, asked=False)
        return await begun.receipt() if begun else None

    async def amend(self, inbound: Inbound, event: str, *, withdrawn: bool) -> Receipt | None:
        """Put what an author says now in the place of the letter that came with this event, or take that back; None
        when that cannot be any more. Raises MailRefused."""
        assert isinstance(inbound.letter, Amendment)
        if not withdrawn:
            self._command(inbound.letter.said)  # which looks whether it can be taken; a command it is not
        named = _placed(structs.replace(inbound, letter=inbound.letter.said))
        named = await self._speakers.name(named) if self._speakers else named
        assert isinstance(named.letter, Said)
        said = structs.replace(named.letter, parts=()) if withdrawn else named.letter
        change = structs.replace(inbound, letter=Amendment(0, said, withdrawn))
        receipt = await self._store.amend(change, event)
        if receipt:
            self._lanes.wake_by(receipt.thread, said.due)
        if receipt and withdrawn:
            self._bus.cancel(receipt.thread)
        return receipt

    async def answer(self, inbound: Inbound, text: str) -> Receipt:
        """Say something where a letter came from, without a turn; once per event."""
        receipt = await self._store.command(inbound, "none", text)
        self._bus.publish(CommandDone(receipt.thread, 0, "", str(inbound.address)))
        return receipt

    def begin(self, inbound: Inbound, *, asked: bool = True) -> Begun | None:
        """Take a letter straight into its resting thread, if that can be; then the whole turn is one thing to await.

        With `asked`, whoever awaits it has the answer with that; else it also waits in the outbox until it was shown.
        """
        letter = inbound.letter
        if not isinstance(letter, Said) or letter.model is not None or self._command(letter):
            return None
        if inbound.address.channel == CHILD:
            return None  # which is refused, and why, where everything is taken
        self._lanes.acting.note(inbound.owner)
        placed = _placed(inbound)
        assert isinstance(placed.letter, Said)
        whose = placed.letter.principal
        if whose and is_chat(whose):  # who speaks there is looked up first
            return None
        return self._lanes.begin(_unescaped(placed), asked=asked)

    def wake(self, receipt: Receipt, inbound: Inbound) -> None:
        """Say that there is mail; losing this hint costs a moment, no more."""
        if receipt.begun:
            return
        if receipt.reply is None and isinstance(inbound.letter, Said) and inbound.letter.due:
            self._lanes.wake_by(receipt.thread, inbound.letter.due)
            return
        if isinstance(inbound.letter, Decision | Said | Notice):
            self._bus.wake(receipt.thread)
        if receipt.reply is not None or not isinstance(inbound.letter, Decision | Said | Notice):
            self._bus.cancel(receipt.thread)

    def _command(self, letter: Said) -> SlashCommand | None:
        """The command that someone typed, if it is one. Raises MailRefused for what cannot be taken at all."""
        text = text_of(letter.parts)
        if not text.strip() and not letter.before:
            raise MailRefused("the message is empty")
        self._check(text)
        for message in letter.before:
            self._check(message.text)
        return find_command(text) if "/" in text and not (letter.before or letter.literal) else None

    def _check(self, text: str) -> None:
        if len(text) > self._max_chars:
            raise MailRefused(
                f"the message has {len(text):,} characters; at most {self._max_chars:,} are taken. "
                "Put it into a file in the workspace and ask about that file"
            )
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise MailRefused("the message is not valid UTF-8 text") from error


def _placed(inbound: Inbound) -> Inbound:
    """In a group it is about the group's files, through whichever door it comes and whoever says it. In a conversation
    that is somebody else's, which a bot of theirs brings, it is they who pay: their bot names whom it likes."""
    letter = inbound.letter
    if not isinstance(letter, Said):
        return inbound
    if not letter.principal and (whose := group_at(inbound.address, inbound.owner)):
        letter = structs.replace(letter, principal=whose)
    if inbound.owner not in (OWNER, letter.author, "") and not letter.payer and not is_chat(inbound.owner):
        letter = structs.replace(letter, payer=inbound.owner)
    return inbound if letter is inbound.letter else structs.replace(inbound, letter=letter)


def _unescaped(inbound: Inbound) -> Inbound:
    """Without the slash by which someone has said that this is for the model."""
    letter = inbound.letter
    if not isinstance(letter, Said) or letter.before or letter.literal:
        return inbound
    if not letter.parts or not isinstance(letter.parts[0], Text):
        return inbound
    first, *more = letter.parts
    assert isinstance(first, Text)
    if "//" not in first.text:
        return inbound
    text = unescaped(first.text)
    if text == first.text:
        return inbound
    parts = (structs.replace(first, text=text), *more)
    return structs.replace(inbound, letter=structs.replace(letter, parts=parts))
