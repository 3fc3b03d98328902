"""An open everloop, as a programmer and the command line use it: speak, listen, see what was not yet shown."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, aclosing
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from msgspec import structs

from ..core.mail import Address, Inbound, Outbound, Said, Stop, reply_key
from ..core.message import Part, text_of
from ..core.people import OWNER
from ..core.turn import Finished
from ..errors import EverloopError, Fenced, MailRefused, NoFile, TurnFailed
from ..ports import Feed, FileRecord
from ..ports.channel import traits_of
from ..ports.events import Answer as Answer
from ..ports.events import AnswerGiven, Event, LetterTaken, ToolOutput, TurnEnded, answer_of
from ..ports.permission import Allowance, Grant
from ..ports.permission import Approval as Approval
from ..ports.rows import Receipt, ThreadRow
from ..ports.schedules import Schedule
from ..ports.tools import Shown
from ..runtime.askers import Askers
from ..runtime.lanes import Begun
from .held_house import HeldHouse
from .house import House
from .user import Manner, User, as_before, spoken

PATIENCE = 1.0  # seconds between looks whether a turn waits for a person
WAITS = "a question waits in {} and has to be answered first (see: everloop approvals)"

Again = Callable[[], Awaitable[Inbound | None]]
Admit = Callable[[], Awaitable[None]]


class Agent(HeldHouse):
    """Use `async with everloop.open(…) as agent`."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._attachments = house.storage.attachments
        self._bus = house.bus
        self._inbox = house.inbox
        self._lanes = house.lanes
        self._shown = house.shown
        self._askers = Askers(house.shown, house.traits)

    async def run_command(self, command: str, session: str, tell: Callable[[str], None] = lambda text: None) -> Shown:
        """Run a command that the owner has typed, where those of the agent run and under the same limits. `tell` hears
        what it says meanwhile. No model is asked, and nothing is written into the conversation. Raises ToolError."""
        key = secrets.token_hex(8)
        typed = Schedule(id=key, owner=OWNER, name="typed", does="command", text=command, session=session, by_hand=True)

        async def listen(feed: Feed) -> None:
            async for event in feed:
                if isinstance(event, ToolOutput):
                    tell(event.text)

        with self._bus.subscribe(f"check {key}") as feed:
            listening = asyncio.ensure_future(listen(feed))
            try:
                return await self._house.deeds.run_now(typed, key)
            finally:
                feed.end()
                await asyncio.gather(listening, return_exceptions=True)

    async def ask(
        self,
        text: str,
        session: str = "api:default",
        *,
        files: Sequence[str | Path] = (),
        event: str = "",
        author: str = "",
        **how: Unpack[Manner],
    ) -> Answer:
        """Say something and wait for the answer. The same `event` twice is one message with one answer.

        `files` come with it: what the model cannot see it is told about. What needs a person's permission is not run,
        unless somebody is there (`attended`) who answers through `decide` or another channel. In the owner's own
        sessions (`api:…`, `cli:…`, `page:…`) the owner speaks, unless `author` names somebody else; in all others it
        has to be said who does, and the session belongs to them: `agent.user(name)` says it once. A slash command is
        carried out, and its answer has no `turn`; without `commands` it is text like any other. `how` it can be said:
        see `Manner`.

        Raises TurnFailed when the turn ends without an answer, MailRefused when the message or a file cannot be taken.
        """
        inbound = spoken(text, session, event, author, **how)
        if files:
            inbound = await self._enclose(inbound, files)
        return await self.answer(inbound)

    def user(self, name: str, *, commands: bool = True) -> User:
        """One of the people whom a program speaks for, by a name such as `web:anna`. Raises MailRefused.

        Without `commands` a slash is a letter like any other in what they say.
        """
        user = User(self, name, commands)
        self._lanes.acting.note(user.name)
        return user

    async def answer(self, inbound: Inbound) -> Answer:
        """As `ask`, for a letter that is already written."""
        if begun := self._inbox.begin(inbound):
            try:
                return answer_of(await begun.finished, begun.thread, begun.session)
            except Fenced:  # it has to go through the inbox
                pass
        return await self.outcome(*await self._take(inbound))

    async def stream(
        self,
        text: str,
        session: str = "api:default",
        *,
        files: Sequence[str | Path] = (),
        event: str = "",
        author: str = "",
        beside: Sequence[Part] = (),
        **how: Unpack[Manner],
    ) -> AsyncIterator[Event]:
        """Say something as with `ask`, and watch: the events of the thread until the turn is over.

        The last event is named `answer` and holds what `ask` would return. `approval_asked`, which comes only where
        somebody is there (`attended`), lists what `decide` is to decide. What an admin or the owner allows ahead for
        this one message (`preapproved`) is not asked. A question that waits in the session is withdrawn by what is
        said, unless it `withdraws` none: then it waits until that is answered. Parts `beside` the text stand before it,
        each with whose words it holds. Raises what `ask` raises.
        """
        inbound = spoken(text, session, event, author, **how)
        if beside and isinstance(letter := inbound.letter, Said):
            inbound = structs.replace(inbound, letter=structs.replace(letter, parts=(*beside, *letter.parts)))
        if files:
            inbound = await self._enclose(inbound, files)
        async with aclosing(self.watch(inbound)) as events:
            async for together in events:
                for seen in together:
                    if not isinstance(seen, LetterTaken):
                        yield seen

    async def watch(
        self, inbound: Inbound, again: Again | None = None, beat: float = 0.0, admit: Admit | None = None
    ) -> AsyncGenerator[Sequence[Event]]:
        """As `stream`, for a letter that is already written: from LetterTaken, when it is committed, to AnswerGiven.

        What has come together is told together, and the answer with the end of its turn. `again` and `admit` are asked
        as `answering` does; with `beat`, nothing at all is told whenever nothing has come for so many seconds.
        """
        session = str(inbound.address)
        with self._askers.asking(session) as asker:
            followed = await self._follow(inbound, session, again, admit)
            receipt, feed = followed.receipt, followed.feed
            asker.mail = lambda: receipt.id
            try:
                yield (LetterTaken(receipt.thread, 0, receipt.id),)
                last: Sequence[Event] = ()
                while not last and (events := await feed.next_ones(beat)) is not None:
                    last = _until_over(events, receipt.id)
                    if not last:
                        yield events
                try:
                    answer, key = await followed.answer()
                except EverloopError:
                    if last:
                        yield last
                    raise
            finally:
                feed.close()
                followed.ending.cancel()
            yield (*last, AnswerGiven(receipt.thread, 0, answer))
            self.note_shown(key, receipt.id)  # whoever came back for more has shown it
            asker.has_it = True

    async def _follow(self, inbound: Inbound, session: str, again: Again | None, admit: Admit | None) -> "_Followed":
        """Take a letter, and listen before anything is told of its turn. Whoever calls this closes the feed."""
        if not self._may_wait(inbound, session) and (begun := self._inbox.begin(inbound, asked=False)):
            feed = self._bus.subscribe(begun.thread)  # it has not begun to run yet
            try:
                receipt = await begun.receipt()
            except BaseException:
                feed.close()
                raise
            if receipt is not None:
                return _Followed(receipt, feed, begun.finished, partial(self._begun, begun, session))
            feed.close()
        receipt, inbound = await self._take(inbound, again, admit)  # which wakes nobody before we listen
        feed = self._bus.subscribe(receipt.thread)
        ending = asyncio.ensure_future(self._answer(receipt, inbound, str(inbound.address)))
        return _Followed(receipt, feed, ending, lambda: ending)

    async def _take(
        self, inbound: Inbound, again: Again | None = None, admit: Admit | None = None
    ) -> tuple[Receipt, Inbound]:
        if admit is not None:
            await admit()
        try:
            receipt = await self._inbox.take(inbound, express=False)
        except MailRefused:
            if (other := as_before(inbound)) is None:
                raise
            receipt, inbound = await self._inbox.take(other, express=False), other
        while again is not None and not receipt.fresh:
            await self._shown.settle()  # what was given a moment ago is known as given
            other = await again()
            if other is None:
                break
            inbound = other
            receipt = await self._inbox.take(inbound, express=False)
        return receipt, inbound

    async def outcome(
        self, receipt: Receipt, inbound: Inbound, ending: asyncio.Future[Finished] | None = None
    ) -> Answer:
        """Wake the thread of a posted letter and wait for the answer, or for the ending of its turn where that is
        known. Raises TurnFailed."""
        session = str(inbound.address)
        if ending is not None:
            answer, key = self._result(await ending, receipt.thread, session)
        else:
            answer, key = await self._answer(receipt, inbound, session)
        self.note_shown(key)
        return answer

    def events(self, thread: str = "") -> AbstractContextManager[Feed]:
        """What happens in one thread, or in all, from now on. A reader that is too slow is cut off."""
        return self._bus.subscribe(thread)

    async def tell(self, inbound: Inbound) -> Receipt:
        """Commit a letter and wake its thread, without waiting for what comes of it."""
        receipt = await self._inbox.take(inbound)
        self._inbox.wake(receipt, inbound)
        return receipt

    async def stop_task(self, thread: str, by: str = "owner") -> int:
        """End the work at a task of somebody's, and all that works for it; how many were stopped."""
        letter = Inbound(Address("api", "tasks"), f"kill:{secrets.token_hex(8)}", Stop(by), by)
        return await self._inbox.stop_task(letter, thread)

    async def approvals(self, session: str = "") -> list[Approval]:
        """What waits for a person's permission, in one session or in all."""
        return await self._house.approvals.waiting(session)

    async def decide(
        self, approval: str, allow: bool, by: str = "owner", allowance: Allowance | None = None
    ) -> Approval:
        """Allow or deny a call, or a change of a file, by the name of its question; with an `allowance`, also the like
        of the call, ahead.

        Raises MailRefused when it waits no longer, is not theirs to decide, is not any more what was shown, or the
        allowance would not fit it; then nothing was decided."""
        found = await self._house.approvals.find(approval)
        if found.held:
            await self._house.approvals.decide_on_file(found, allow, by, allowance)
            return found
        letter, grant = await self._house.approvals.decide(found, allow, by, allowance)
        self._lanes.acting.note(found.requester)
        receipt = await self._inbox.take(letter)
        await self._house.approvals.keep(letter, grant)
        self._inbox.wake(receipt, letter)
        return found

    async def grants(self) -> list[Grant]:
        """What is allowed ahead, with the runs that are left. Each has the name of the question it was given with."""
        return await self._house.approvals.grants()

    async def revoke(self, grant: str, by: str = "owner") -> Grant:
        """Take back what was allowed ahead. Raises MailRefused."""
        return await self._house.approvals.revoke(grant, by)

    async def finish(self, session: str) -> bool:
        """Let a turn of this session that was cut off go on to its end, or until it waits for a person's answer.

        What it had to say is then among the unshown.
        """
        row = await self.store.session(session)
        mails = await self.store.unfinished(row.id) if row else []
        if row is None or not mails:
            return False
        self._lanes.acting.note(row.owner)  # a program that wants it finished speaks for them
        if not self._lanes.acting.covers(row.owner, row.session):
            return False
        future = self._lanes.outcome(row.id, mails[-1])
        self._bus.wake(row.id)
        while not future.done() and not await self._house.approvals.waiting_calls(session):
            await asyncio.wait({future}, timeout=PATIENCE)
        return True

    async def latest(self, owner: str = "owner") -> ThreadRow | None:
        return await self.store.latest(owner)

    async def unshown(self, session: str) -> list[Outbound]:
        """What was said at this address and nobody has seen yet: answers, and questions that still wait for theirs."""
        await self._shown.settle()  # what was shown a moment ago is not among them
        found = await self.store.unshown(session)
        if not any(each.approval for each in found):
            return found
        waiting = {"", *(approval.id for approval in await self.approvals(session))}
        return [each for each in found if each.approval in waiting]

    async def acknowledge(self, keys: Sequence[str]) -> None:
        """Say that these have been shown."""
        await self.store.acknowledge(keys)

    async def enclose(self, name: str, data: bytes, owner: str) -> Part:
        """Keep a file that comes with a message, and make the part that names it. Raises MailRefused."""
        return await self._attachments.take(owner, name, data)

    async def keep_file(self, owner: str, pieces: AsyncIterable[bytes], name: str) -> FileRecord:
        """Keep a file that comes in piece by piece, to be named in a message. Raises NoRoom, StoreFull."""
        return await self._attachments.keep(owner, pieces, name, sent=True)

    async def enclose_kept(self, name: str, ref: str, owner: str) -> Part:
        """As `enclose`, for a file that the owner has already. Raises NoFile, MailRefused."""
        try:
            return await self._attachments.name(owner, ref, name)
        except (ValueError, OSError):
            raise NoFile(f"there is no file {ref[:80]!r} of yours; send its bytes, or upload it first") from None

    async def _enclose(self, inbound: Inbound, files: Sequence[str | Path]) -> Inbound:
        """Keep the files, and name them in the letter."""
        letter = inbound.letter
        assert isinstance(letter, Said)
        parts = [part for part in letter.parts if text_of((part,)).strip()]  # hosts refuse an empty text
        parts += [await self._attachments.attach(letter.author, path) for path in files]
        return structs.replace(inbound, letter=structs.replace(letter, parts=tuple(parts)))

    async def _answer(self, receipt: Receipt, inbound: Inbound, session: str) -> tuple[Answer, str]:
        """The answer to a letter and its key in the outbox. Raises TurnFailed, which says all that was to be shown."""
        if receipt.reply is not None:
            self._inbox.wake(receipt, inbound)
            return Answer(receipt.reply, session, ""), f"command:{receipt.id}"
        return self._result(await self._finished(receipt, inbound), receipt.thread, session)

    async def _begun(self, begun: Begun, session: str) -> tuple[Answer, str]:
        return self._result(await begun.finished, begun.thread, session)

    def _result(self, finished: Finished, thread: str, session: str) -> tuple[Answer, str]:
        key = reply_key(thread, finished.seq)
        polled = traits_of(session, self.traits).polled
        if finished.reason and not polled:
            self.note_shown(key)
        try:
            return answer_of(finished, thread, session), key
        except TurnFailed as failed:
            failed.key = key if polled else ""  # a bot fetches it, unless it is told here
            raise

    async def _finished(self, receipt: Receipt, inbound: Inbound) -> Finished:
        if not receipt.fresh and (seq := await self.store.ended(receipt.id)):
            return await self._lanes.recall(receipt.thread, seq)
        future = self._lanes.outcome(receipt.thread, receipt.id)
        self._inbox.wake(receipt, inbound)
        session = str(inbound.address)
        if self._may_wait(inbound, session) or (isinstance(inbound.letter, Said) and inbound.letter.unattended):
            await self._wait_for_no_question(future, receipt.thread, session)
        return await future

    def _may_wait(self, inbound: Inbound, session: str) -> bool:
        """Whether its turn may come to a question that its sender is asked elsewhere, and not where they wait."""
        asked = isinstance(inbound.letter, Said) and not inbound.letter.unattended
        traits = traits_of(session, self.traits)
        return asked and (traits.polled or traits.unasked)

    async def _wait_for_no_question(self, future: asyncio.Future[Finished], thread: str, session: str) -> None:
        """Who is not there to be asked does not wait for what someone else is asked. Raises TurnFailed."""
        while not future.done():
            await asyncio.wait({future}, timeout=PATIENCE)
            if future.done() or self._lanes.is_driving(thread):
                continue
            if any(each.decision.thread == thread for each in await self._house.approvals.waiting_calls(session)):
                future.cancel()
                raise TurnFailed(f"{WAITS.format(session)}; the message is kept and answered then", "waiting", "")

    def note_shown(self, key: str, mail: int = 0) -> None:
        """Whoever waited has the answer; saying so to the store is in no hurry. `mail` is the letter of theirs."""
        self._shown.note(key, mail)


def _until_over(events: Sequence[Event], mail: int) -> Sequence[Event]:
    """Those up to the end of the turn that took this letter, for what follows belongs to the next; none before that."""
    for count, event in enumerate(events, 1):
        if isinstance(event, TurnEnded) and mail in event.finished.mails:
            return [*events][:count]
    return ()


class _Followed:
    """A letter whose turn is followed: what happens in its thread until its `ending`, and the answer with its key."""

    __slots__ = ("answer", "ending", "feed", "receipt")

    def __init__(
        self,
        receipt: Receipt,
        feed: Feed,
        ending: asyncio.Future[Any],
        answer: Callable[[], Awaitable[tuple[Answer, str]]],
    ) -> None:
        self.receipt = receipt
        self.feed = feed
        self.ending = ending
        self.answer = answer
        ending.add_done_callback(lambda _: feed.end())  # wherever it is given
