"""Conversations that are over, or elsewhere: finding them, going back to them, going on from some place in them.

Whatever changes one is worked out here as a deed of the store, which does all of it or nothing. What a person may not
do, or what cannot be done, is a MailRefused with a sentence.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Protocol

from msgspec import Struct, structs

from ..core.decide import APPROVER
from ..core.log import IMPORTED, Compacted, Entry, Stopped, Undoing, UserSaid
from ..core.mail import Inbound, Letter, Notice, Said, Undo
from ..core.message import Part, Text, enclosed, is_strange, said, text_of
from ..core.people import OWNER
from ..core.thread import Thread
from ..core.tool import ToolSpec
from ..core.wording import cut_short
from ..errors import MailRefused
from ..ports import Archive, Clock, Log, People
from ..ports.conversation import Branch, Conversation, Deed, Mark, ResumeThread, RunningTurn, Snapshot
from ..ports.rows import Opened, ThreadRow
from ..readings.branch import LastTurn, branch_off, last_turn
from ..readings.spoken import spoken
from ..readings.undo import changes_of, lasting_in
from ..readings.visible import refuse_unseen
from .clock import MACHINE
from .people import KnownPeople
from .reports import title_of

BUSY = "Something is still going on in this conversation. Stop it with /stop, then try again."
RUNNING = "a turn is running here; stop it with /stop first"
WAITING = "something waits for permission here; answer it with /approve, or stop it with /stop, first"
PAGE = 1000
LONGEST_NAME = 80
LAST = 4  # that are shown of a conversation that is gone back to,
LOOKED = 100  # if they stand among so many entries at its end,
LONGEST_LAST = 500  # and so many characters of each


class Spoken(Struct, frozen=True):
    """One thing that was said, with its place and time."""

    seq: int
    at: float
    who: str
    text: str


class Running(Struct, frozen=True):
    """A turn that runs in a conversation, whose it is, and where the log ends without it."""

    turn: RunningTurn
    requester: str
    cut: int
    last: LastTurn | None = None


class SessionStore(Archive, Log, Protocol):
    """Conversations, and what was said in them."""


class Sessions:
    def __init__(
        self,
        store: SessionStore,
        people: People | None = None,
        tools: Callable[[], Mapping[str, ToolSpec]] = dict,
        clock: Clock = MACHINE,
    ) -> None:
        self._store = store
        self._people = people or KnownPeople()
        self._tools = tools
        self._clock = clock

    def scope(self, person: str, inbound: Inbound) -> str:
        """The session that a person may look at; any (""), for the owner."""
        return "" if person == OWNER else str(inbound.address)

    async def find(self, id: str, owner: str, session: str = "") -> Conversation:
        """The conversation whose id begins so, in one session or all. Raises MailRefused."""
        begin = id.strip().lower()
        found = await self._store.conversations(owner, session=session, id=begin, archived=True) if begin else []
        if len(found) == 1:
            return found[0]
        if not found:
            raise MailRefused(f"no conversation has an id that begins with {id.strip()!r}")
        some = ", ".join(each.id for each in found[:3])
        raise MailRefused(
            f"{len(found)} conversations have an id that begins with {begin!r} ({some}, …); give more of it"
        )

    async def current(self, session: str, owner: str) -> Conversation | None:
        """The conversation that a session is at, if something was said in it."""
        row = await self._store.session(session)
        found = await self._store.conversations(owner, id=row.id, archived=True) if row else []
        return found[0] if found else None

    async def go_to(self, conversation: Conversation, session: str, by: str) -> Deed:
        """How a session goes on with a conversation: its own as it is, another's in a branch."""
        if session == conversation.session:
            return ResumeThread(conversation.id)
        return await self.fork(conversation, session, by)

    async def fork(self, conversation: Conversation, session: str, by: str, at: int | None = None) -> Branch:
        """A branch after an entry of the conversation, or with 0 before the first; after the last one when none is
        given. Raises MailRefused."""
        cut = conversation.head if at is None else at
        if not 0 <= cut <= conversation.head:
            raise MailRefused(f"conversation {conversation.id} has entries 1 to {conversation.head}, not {cut}")
        return await self._branch(conversation.id, cut, session, by, title=conversation.title)

    def snapshot(self, conversation: Conversation, name: str) -> Mark:
        if not 1 <= len(name) <= LONGEST_NAME:
            raise MailRefused(f"a snapshot's name is one line of up to {LONGEST_NAME} characters")
        refuse_unseen(name, "a snapshot's name")
        return Mark(name, conversation.id, conversation.head)

    async def restore(self, name: str, owner: str, session: str, by: str, within: str = "") -> Branch:
        """A branch from a snapshot, into its own session or the one that is named. Raises MailRefused."""
        found = [each for each in await self._store.snapshots(owner) if each.name == name]
        if not found:
            names = "" if within else _there(await self._store.snapshots(owner))
            raise MailRefused(f"there is no snapshot {name!r}{names}")
        conversation = await self.find(found[0].thread, owner, within)
        return await self.fork(conversation, session or conversation.session, by, found[0].seq)

    async def undo(self, row: ThreadRow, by: str) -> Branch:
        """A branch before the last turn, with a letter that says what is to be done with files. Raises MailRefused."""
        turn = await self._last_turn(row, by)
        letter = Undo(
            said=_beginning(turn),
            changes=changes_of(turn.entries),
            lasting=lasting_in(turn.cut + 1, turn.entries, self._tools()),
            whose=turn.said[0].principal or turn.said[0].author,
            by=by,
            address=row.session,
            terms=turn.terms,
        )
        return await self._without(row, turn, by, letter)

    async def say_instead(self, row: ThreadRow, letter: Said, text: str = "") -> Branch:
        """A branch before the last turn, in which something else is said, by whoever sent the letter that wants it; or
        the same again, still by whoever said it: nobody's words become another's, and nobody has somebody's said again
        who may do more. Raises MailRefused."""
        turn = await self._last_turn(row, letter.author)
        by, first = letter.author, turn.said[0].author
        if not text and by != first and await self._people.role(by) < await self._people.role(first):
            raise MailRefused(f"this is for {first} to have answered again, who has said it")
        again = _edited(turn, letter, row.session, text) if text else _repeated(turn, letter, row.session)
        return await self._without(row, turn, letter.author, again)

    async def running(self, row: ThreadRow) -> "Running | None":
        """What runs in a conversation, or is about to: a turn, or a letter that none has taken yet."""
        opened = await self._store.open(row.id)
        fold = _folded(opened)
        if not fold.owes_reply:
            letters = [mail for mail in opened.mail if isinstance(mail.letter, Said)]
            if not letters:
                return None
            said = letters[0].letter
            assert isinstance(said, Said)
            turn = RunningTurn(row.id, letters[0].id, title_of(text_of(said.parts)), self._clock.now())
            return Running(turn, said.author, opened.row.head)
        last = await self._turn_in(row, opened)
        if fold.undoing or last is None or not fold.turn.mails:
            raise MailRefused("This cannot go on in the background. Wait until it is over, or stop it with /stop.")
        [began] = await self._store.history(row.id, last.seq - 1, 1)
        turn = RunningTurn(row.id, fold.turn.mails[0], title_of(text_of(last.said[0].parts)), began.at)
        return Running(turn, fold.turn.requester, last.cut, last)

    async def before(self, row: ThreadRow, running: "Running | None", by: str) -> Branch:
        """A branch of the conversation as it was before what runs in it now."""
        found = await self._store.conversations(row.owner, id=row.id, archived=True)
        cut = running.cut if running else row.head
        title = found[0].title if found and cut else ""
        branch = await self._branch(row.id, cut, row.session, by, title=title, turn=running.last if running else None)
        return structs.replace(branch, replaces=False)

    def empty(self) -> Branch:
        """A conversation in which nothing was said."""
        return Branch(secrets.token_hex(8))

    async def _turn_in(self, row: ThreadRow, opened: Opened) -> LastTurn | None:
        first, entries = opened.first, opened.entries
        fold = _folded(opened)
        if 0 < fold.turn.seq < first:  # it began before the last compaction, or that came after it
            first = await self._store.folded(row.id, fold.turn.seq - 1) or 1
            entries = await self._store.read(row.id, first - 1)
        return last_turn(first, entries)

    async def _last_turn(self, row: ThreadRow, by: str) -> LastTurn:
        if row.state != "resting":
            raise MailRefused(RUNNING if row.state == "running" else WAITING)
        opened = await self._store.open(row.id)
        if opened.mail:
            raise MailRefused(RUNNING)
        turn = await self._turn_in(row, opened)
        if turn is None:
            raise MailRefused("nothing has been said here that could be taken back")
        if by != turn.said[0].author and await self._people.role(by) < APPROVER:
            raise MailRefused(f"this is for {turn.said[0].author} to take back, who has said it")
        return turn

    async def _without(self, row: ThreadRow, turn: LastTurn, by: str, letter: Letter) -> Branch:
        before = await self.find(row.id, row.owner)
        # What is said instead of the first thing has its own beginning for a title, unless one was given.
        title = before.title if turn.cut or (before.named and not isinstance(letter, Undo)) else ""
        return await self._branch(
            row.id, turn.cut, row.session, by, title=title, turn=turn, head=row.head, letter=letter
        )

    async def _branch(
        self,
        thread: str,
        cut: int,
        session: str,
        by: str,
        *,
        title: str,
        turn: LastTurn | None = None,
        head: int = 0,
        letter: Letter | None = None,
    ) -> Branch:
        first = await self._store.folded(thread, cut) or 1
        written = await self._store.history(thread, first - 1, cut - first + 1) if cut else []
        left_out, choice, told = (turn.seq, turn.choice, turn.told) if turn else (0, None, ())
        persona = turn.persona if turn else None
        return Branch(
            secrets.token_hex(8),
            branch_off(written, session, by, turn=left_out, choice=choice, persona=persona, told=told),
            first,
            times=[each.at for each in written],
            parent=thread,
            at=cut,
            head=head,
            title=title,
            replaces=turn is not None,
            letter=letter,
        )

    async def said(self, conversation: Conversation, after: int = 0) -> list[Spoken]:
        """What was said in it, by whom, with the results of calls and what was compacted."""
        found = []
        for written in await self._store.history(conversation.id, after):
            if told := _spoken(written.entry):
                found.append(Spoken(written.seq, written.at, *told))
        return found

    async def said_last(self, conversation: Conversation) -> list[Spoken]:
        """What people and the model said last, in short, for whoever comes back to it."""
        after = max(0, conversation.head - LOOKED)
        told = [each for each in await self.said(conversation, after) if each.who != "tool" and each.text.strip()]
        return [structs.replace(each, text=shortened(each.text)) for each in told[-LAST:]]

    async def export(self, conversation: Conversation) -> AsyncIterator[str]:
        """A conversation as lines of JSON: what it is, then each message."""
        from .exporting import Exporting

        exporting = Exporting(conversation)
        lines: list[str] = []
        after = 0
        while page := await self._store.history(conversation.id, after, PAGE):
            lines += [line for written in page for line in exporting.lines(written)]
            after = page[-1].seq
        lines += exporting.close()
        yield exporting.metadata()
        for line in lines:
            yield line

    def bring_in(self, lines: Iterable[bytes], session: str = "", id: str = "") -> tuple[Branch, str]:
        """A thread from a file of that kind, with this id or a new one, and the session it is for. Raises MailRefused,
        which names the line."""
        from .jsonl import read_conversation, with_summary

        brought = read_conversation(lines, self._clock.now())
        key = session or brought.key
        written = [structs.replace(each, entry=_from_file(each.entry)) for each in brought.written]
        entries = with_summary(brought, branch_off(written, key, OWNER))
        branch = Branch(
            id or secrets.token_hex(8),
            entries,
            times=[each.at for each in brought.written],
            title=brought.title,
            created=brought.created,
            stay=True,
        )
        return branch, key


def _folded(opened: Opened) -> Thread:
    fold = Thread(opened.row.id, opened.first - 1)
    fold.extend(opened.entries)
    return fold


def shortened(text: str) -> str:
    """The end of what was said is where one goes on."""
    return text if len(text) <= LONGEST_LAST else f"… {text[-LONGEST_LAST:].lstrip()}"


def _from_file(entry: Entry) -> Entry:
    """Whoever made the file may have been a stranger: what people are said to have said there is not theirs."""
    if not isinstance(entry, UserSaid):
        return entry
    parts = [structs.replace(part, origin=IMPORTED) if _is_plain(part) else part for part in entry.parts]
    return structs.replace(entry, parts=tuple(parts))


def _is_plain(part: Part) -> bool:
    return isinstance(part, Text) and not part.origin


def _edited(turn: LastTurn, letter: Said, session: str, text: str) -> Said:
    files = tuple(part for entry in turn.said for part in entry.parts if enclosed(part))
    return Said(
        (*said(text), *files),
        letter.author,
        session,
        letter.unattended,
        preapproved=letter.preapproved,
        principal=letter.principal or turn.said[0].principal,
        terms=turn.terms,
        speaker=letter.speaker,
        server=letter.server or turn.said[0].server,
        payer=letter.payer,
    )


def _repeated(turn: LastTurn, letter: Said, session: str) -> Said | Notice:
    """The words stay their author's, and are answered again at the expense of who wants that."""
    first, parts = turn.said[0], tuple(part for entry in turn.said for part in entry.parts)
    payer = letter.payer or letter.author
    payer = "" if payer == first.author else payer
    if first.source:
        return Notice(
            text_of(parts),
            first.source,
            first.author,
            session,
            outside=any(map(is_strange, parts)),
            unattended=letter.unattended,
            principal=first.principal,
            terms=turn.terms,
            payer=payer,
        )
    return Said(
        parts,
        first.author,
        session,
        letter.unattended,
        preapproved=letter.preapproved and letter.author == first.author,
        principal=first.principal or letter.principal,
        terms=turn.terms,
        speaker=first.speaker,
        server=letter.server or first.server,
        payer=payer,
    )


def _spoken(entry: Entry) -> tuple[str, str] | None:
    """As `spoken` tells it, and what else happened that a reader would miss."""
    if isinstance(entry, Stopped):
        by = entry.by or "user"
        return ("assistant", cut_short(entry.text, f"stopped by {by}")) if entry.text else (by, "/stop")
    if isinstance(entry, Compacted):
        return "everloop", f"[compacted] {entry.summary}"
    if isinstance(entry, Undoing):
        return "everloop", f"[a turn that followed here was taken back: {entry.said}]"
    if isinstance(entry, UserSaid) and entry.before:
        told = f"[after {len(entry.before)} messages that its client has kept]\n{text_of(entry.parts)}"
        return entry.author or "user", told.strip()
    uttered = spoken(entry)
    if uttered is None:
        return None
    if uttered.who == "user":
        return uttered.author or "user", uttered.text.strip()
    return ("everloop" if uttered.who == "house" else uttered.who), uttered.with_calls()


def _beginning(turn: LastTurn) -> str:
    text = " ".join(text_of(turn.said[0].parts)[:400].split())
    return f"“{text}”" if len(text) <= 80 else f"“{text[:79]}…”"


def _there(snapshots: list[Snapshot]) -> str:
    return f"; there are: {', '.join(each.name for each in snapshots[:10])}" if snapshots else ""
