"""An open everloop, as a programmer and the command line use it: speak, listen, see what was not yet shown."""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, aclosing
from pathlib import Path
from typing import Unpack

from msgspec import structs

from ..core.mail import Address, Inbound, Outbound, Said, Stop
from ..core.message import Part, text_of
from ..core.people import OWNER
from ..core.turn import Finished
from ..errors import NoFile
from ..ports import Feed, FileRecord
from ..ports.events import Answer as Answer
from ..ports.events import Event, LetterTaken, ToolOutput
from ..ports.permission import Allowance, Grant
from ..ports.permission import Approval as Approval
from ..ports.rows import Receipt, ThreadRow
from ..ports.schedules import Schedule
from ..ports.tools import Shown
from .answering import PATIENCE, Admit, Again, Answering
from .answering import WAITS as WAITS
from .held_house import HeldHouse
from .house import House
from .user import Manner, User, spoken


class Agent(HeldHouse):
    """Use `async with everloop.open(…) as agent`."""

    def __init__(self, house: House) -> None:
        super().__init__(house)
        self._attachments = house.storage.attachments
        self._bus = house.bus
        self._inbox = house.inbox
        self._lanes = house.lanes
        self._shown = house.shown
        self._answering = Answering(house)

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
        return await self._answering.answer(inbound)

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
        said, unless it `withdraws` none: then it waits until that is answered. Parts `beside` the text stand after it,
        each with whose words it holds. Raises what `ask` raises.
        """
        inbound = spoken(text, session, event, author, **how)
        if beside and isinstance(letter := inbound.letter, Said):
            inbound = structs.replace(inbound, letter=structs.replace(letter, parts=(*letter.parts, *beside)))
        if files:
            inbound = await self._enclose(inbound, files)
        async with aclosing(self.watch(inbound)) as events:
            async for together in events:
                for seen in together:
                    if not isinstance(seen, LetterTaken):
                        yield seen

    def watch(
        self, inbound: Inbound, again: Again | None = None, beat: float = 0.0, admit: Admit | None = None
    ) -> AsyncGenerator[Sequence[Event]]:
        """As `stream`, for a letter that is already written: from LetterTaken, when it is committed, to AnswerGiven.

        What has come together is told together, and the answer with the end of its turn. `again` and `admit` are asked
        as `answering` does; with `beat`, nothing at all is told whenever nothing has come for so many seconds.
        """
        return self._answering.watch(inbound, again, beat, admit)

    async def outcome(
        self, receipt: Receipt, inbound: Inbound, ending: asyncio.Future[Finished] | None = None
    ) -> Answer:
        """Wake the thread of a posted letter and wait for the answer, or for the ending of its turn where that is
        known. Raises TurnFailed."""
        return await self._answering.outcome(receipt, inbound, ending)

    def note_shown(self, key: str, mail: int = 0) -> None:
        """Whoever waited has the answer; saying so to the store is in no hurry. `mail` is the letter of theirs."""
        self._answering.note_shown(key, mail)

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
