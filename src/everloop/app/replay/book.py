"""The thread in hand of a replay: what came from outside comes in where it came in then."""

from ...core.decide import GOES_ON, Steering
from ...core.log import Answered, CallReturned, Entry, ModelChosen, PersonaChosen, Resumed, Stopped, UserSaid
from ...core.mail import Address, Choose, ChoosePersona, Decision, Inbound, Letter, Notice, Said, Stop
from ...core.message import is_strange, text_of
from ...ports import People
from ...runtime.book import Book
from .tape import Differs, Over, Tape

HERE = Address("replay", "turn")


class Died(Exception):
    """Here the process was killed."""


class PutDown(Exception):
    """Here the process was closed in an orderly way."""


class PlayedBook(Book):
    """Lets in what came from outside at the place where it came in, and compares all that is written."""

    @property
    def _tape(self) -> Tape:
        assert isinstance(self._listener, Tape)
        return self._listener

    def keep(self, *entries: Entry) -> None:
        for entry in entries:
            self._tape.compare(self.thread.seq + 1, entry, self.thread)
            super().keep(entry)

    async def write(self, *starts: Entry) -> bool:
        for seq, start in enumerate(starts, self.thread.seq + 1):
            self._tape.compare(seq, start, self.thread)
        return await super().write(*starts)

    async def absorb(self, steering: Steering, people: People, now: float = 0.0) -> None:
        self._settle_broken()
        while coming := self._tape.coming:
            if isinstance(coming, Resumed):
                await self.write()
                raise Died
            if self._tape.record.is_given(coming):
                self._tape.believed += 1
                self.keep(coming)
            elif not await self._deliver(coming, steering, people):
                return
        if self._tape.record.unfinished or self._next_has_begun():
            raise Over

    def _next_has_begun(self) -> bool:
        """What was said while the turn came to its end has begun another, which is not ours."""
        finished = self.thread.finished
        return finished is not None and finished.seq == self.thread.seq and self.thread.owes_reply

    def _settle_broken(self) -> None:
        tape = self._tape
        doing, tape.broken = tape.broken, ""
        if tape.different:
            raise Differs(tape.different)
        if not doing or tape.coming is None or isinstance(tape.coming, Resumed | Stopped):
            return
        if tape.put_down == tape.seq:  # even so it is not what came next
            raise Differs(tape.differs(doing))
        tape.put_down = tape.seq
        raise PutDown

    async def _deliver(self, coming: Entry, steering: Steering, people: People) -> bool:
        """Whether a letter has been taken in as it was then."""
        tape, letter = self._tape, self._letter_behind(coming)
        if letter is None or tape.delivered == tape.seq:
            return False
        tape.delivered = before = tape.seq
        if isinstance(coming, Stopped):
            self.cut = coming.text, coming.reasoning
        await self._store.receive(Inbound(HERE, f"letter:{before}", letter))
        self.expect_mail()
        await super().absorb(steering, people)
        return tape.seq > before

    def _letter_behind(self, entry: Entry) -> Letter | None:
        if isinstance(entry, UserSaid) and entry.source:
            return Notice(
                text=text_of(entry.parts),
                source=entry.source,
                by=entry.author,
                address=entry.address,
                outside=any(map(is_strange, entry.parts)),
                unattended=entry.unattended,
                principal=entry.principal,
                terms=entry.terms,
                payer=entry.payer,
                rounds=entry.rounds,
            )
        if isinstance(entry, UserSaid):
            return Said(
                parts=entry.parts,
                author=entry.author,
                address=entry.address,
                unattended=entry.unattended,
                before=entry.before,
                brought=entry.brought,
                preapproved=entry.preapproved,
                principal=entry.principal,
                terms=entry.terms,
                server=entry.server,
                payer=entry.payer,
            )
        if isinstance(entry, Stopped):
            return Stop(entry.by)
        if isinstance(entry, ModelChosen):
            return Choose(entry.model, entry.by)
        if isinstance(entry, PersonaChosen):
            return ChoosePersona(entry.persona, entry.by)
        if isinstance(entry, CallReturned) and entry.place in self.thread.awaited and not self.thread.turn.stopped:
            return self._report_behind(entry)
        return self._decision_behind(entry) if isinstance(entry, Answered) else None

    def _report_behind(self, entry: CallReturned) -> Letter | None:
        """What came of a task; or what somebody said, so that it was not waited for any longer."""
        if entry.text == GOES_ON:
            return self._said_behind(entry)
        if entry.outcome not in ("done", "failed", "cancelled"):
            return None
        return Notice(
            text=entry.text,
            source=entry.origin,
            by=self.thread.turn.requester,
            outside=bool(entry.origin),
            answers=(entry.answer, entry.place),
            outcome=entry.outcome,
        )

    def _said_behind(self, entry: Entry) -> Letter | None:
        """What was said right after this entry, and has brought it about."""
        record = self._tape.record
        following = record.turn[self.thread.seq + 1 - record.start :]
        said = next((later for later in following if isinstance(later, UserSaid)), None)
        return self._letter_behind(said) if said else None

    def _decision_behind(self, entry: Answered) -> Letter | None:
        thread = self.thread
        match entry.verdict:
            case "withdrawn":
                return self._said_behind(entry) or Said((), entry.by, "")  # or the record ends before it
            case "allowed" | "denied" | "expired" as verdict if entry.place in thread.asked:
                digest = thread.asked[entry.place].digest
                return Decision(thread.id, entry.answer, entry.place, verdict, entry.by, digest)
        return None
