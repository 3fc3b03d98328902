"""Asking a person whether a call may run: the question, the timer that turns silence into a denial, the answer.

What waits for an answer is nowhere but in the logs: whoever wants to see it reads the threads that wait.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

from msgspec import structs

from ..core.approval import approval_id, definition_of, digest_of, risk_of
from ..core.decide import APPROVER, may_answer
from ..core.log import Answered, Asked
from ..core.mail import Address, Decision, Inbound, Outbound
from ..core.overrun import OVERRUN, Overrun
from ..core.people import Role
from ..core.thread import Thread
from ..core.tool import Ground, Risk, ToolCall, ToolSpec
from ..core.wording import one_line
from ..errors import GrantRefused, MailRefused
from ..ports import Audit, Clock, Grants, Log, Mailroom, People, PromptFiles
from ..ports.audit import acting_as, line_of, speaking_for
from ..ports.permission import GOING_BEYOND, Allowance, Approval, Grant, Held, WantedCall
from ..ports.rows import Timer
from ..readings.grants import DAY, choices_of, covers, granted
from ..readings.held import difference, is_private, why_of
from ..readings.questions import NOTHING_ALIKE, asked_of, question_of, shown
from ..readings.verdicts import is_answered_by
from .approvers import ReachedApprover, who_was_asked
from .clock import MACHINE

EXPIRES = 24 * 3600.0
BEYOND = "budget"  # what is asked about, in the place of a tool


def asking(thread: Thread, place: int, spec: ToolSpec, grounds: tuple[Ground, ...], now: float) -> Asked:
    """The entry that says what a person is asked, from `now` on."""
    call = thread.open_calls[place]
    until, risk = now + EXPIRES, risk_of(call, spec, thread.before(place))
    return Asked(thread.answer, place, digest_of(call, spec), until, risk, definition_of(spec), grounds)


def asking_beyond(thread: Thread, overrun: Overrun, now: float) -> Asked:
    """The entry that says that somebody is asked whether a model may be, beyond a budget."""
    return Asked(thread.seq, OVERRUN, overrun.digest, now + EXPIRES, overrun=overrun)


def wanted(thread: Thread, asked: Asked) -> WantedCall:
    """A call that was asked about, as it is compared with what was allowed ahead."""
    tool = thread.open_calls[asked.place].name
    bound = (asked.digest, asked.definition, asked.risk, asked.grounds)
    return WantedCall(tool, thread.turn.requester, thread.id, *bound)


def question(
    thread: Thread, asked: Asked, reached: Sequence[ReachedApprover] = (), requester: str = ""
) -> tuple[tuple[Outbound, ...], Timer]:
    """Shown in full, keyed by the call, so that it is asked once: where it came up, or, when the requester may not
    answer, to those who were `reached`, each once and with who wants it. The requester is told who was asked; in a
    group, others may answer there, too."""
    approval = _approval(thread, asked, thread.address)
    key = f"approval:{thread.id}:{asked.answer}:{asked.place}"
    expiry = Inbound(Address("timer", thread.id), key, Decision(thread.id, asked.answer, asked.place, "expired"))
    here, text = Address.parse(thread.address), question_of(approval)
    asks = Outbound(key, here, text, kind="question", approval=approval.id)
    if reached and thread.is_group:
        asks = structs.replace(asks, text=f"{text}\n{who_was_asked(reached)}")
    elif reached:
        asks = Outbound(key, here, f"{asked_of(approval)}\n{who_was_asked(reached)}", kind="notice")
    who = one_line(requester or approval.requester or "a guest")
    words = f"{who} wants this, in {one_line(thread.address)}.\n{text}"
    others = [
        Outbound(f"approval:{approval.id}:{each.person}", Address.parse(each.session), words, "question")
        for each in asked.told
    ]
    return (asks, *(structs.replace(each, approval=approval.id) for each in others)), Timer(key, EXPIRES, expiry)


_SETTLED = {
    "allowed": "was allowed by somebody else",
    "denied": "was refused by somebody else",
    "expired": "was not answered in time, and is not run",
    "withdrawn": "is not wanted any more",
    "unattended": "is not run",
}


def settled(thread: Thread, answered: Answered) -> list[Outbound]:
    """What is told to those who were asked elsewhere, and have not answered."""
    asked = thread.asked.get(answered.place)
    if asked is None or not asked.told or answered.by.startswith("grant:"):
        return []
    name = approval_id(thread.id, asked.answer, asked.place, asked.digest)
    what = GOING_BEYOND if asked.overrun else thread.open_calls[answered.place].name
    text = f"{what} ({name}) {_SETTLED[answered.verdict]}."
    return [
        Outbound(f"settled:{name}:{each.person}", Address.parse(each.session), text, "notice")
        for each in asked.told
        if each.person != answered.by
    ]


def pending_in(thread: Thread, session: str) -> list[Approval]:
    return [_approval(thread, thread.asked[place], session) for place in thread.pending]


def _approval(thread: Thread, asked: Asked, session: str) -> Approval:
    name = approval_id(thread.id, asked.answer, asked.place, asked.digest)
    decision = Decision(thread.id, asked.answer, asked.place, "denied", digest=asked.digest)
    if asked.overrun:
        return Approval(
            id=name,
            session=session,
            requester=thread.turn.requester,
            tool=BEYOND,
            text=asked.overrun.question,
            risk=asked.risk,
            until=asked.until,
            decision=decision,
            address=thread.address,
            overrun=asked.overrun,
        )
    call: ToolCall = thread.open_calls[asked.place]
    call_wanted = wanted(thread, asked)
    return Approval(
        id=name,
        session=session,
        requester=thread.turn.requester,
        tool=call.name,
        text=shown(call),
        risk=asked.risk,
        until=asked.until,
        decision=decision,
        address=thread.address,
        wanted=call_wanted,
        choices=choices_of(call_wanted),
    )


def _about(held: Held) -> Approval:
    """A change of a prompt file, as a question. Nobody is asked to run anything, so its decision is no letter."""
    decision = Decision(held.thread, 0, 0, "denied", digest=held.id)
    risk = Risk("high", mutates=True, why=why_of(held))
    return Approval(
        id=held.id,
        session=held.session,
        requester=held.owner,
        tool=held.name,
        text=difference(held),
        risk=risk,
        until=0.0,
        decision=decision,
        address=held.session,
        held=held,
    )


class ApprovalStore(Log, Mailroom, Grants, Audit, Protocol):
    """Threads that ask, and what is allowed ahead."""


class Approvals:
    """What waits for an answer, and what was allowed ahead."""

    def __init__(
        self, store: ApprovalStore, people: People, files: PromptFiles | None = None, clock: Clock = MACHINE
    ) -> None:
        self._store = store
        self._clock = clock
        self._people = people
        self._files = files

    async def waiting(self, session: str = "") -> list[Approval]:
        """The open questions of one session, or of all; those about files last."""
        held = await self._files.held() if self._files else []
        about = [_about(each) for each in held if session in ("", each.session)]
        return [*await self.waiting_calls(session), *about]

    async def private(self, person: str) -> list[Approval]:
        """Changes of what is remembered for them, wherever they came up."""
        held = await self._files.held() if self._files else []
        return [_about(each) for each in held if is_private(each) and each.owner == person]

    async def waiting_calls(self, session: str = "") -> list[Approval]:
        """Those that turns wait for."""
        found: list[Approval] = []
        for row in await self._store.asking(session):
            opened = await self._store.open(row.id)
            thread = Thread(row.id, opened.first - 1)
            thread.extend(opened.entries)
            answered = {(m.letter.answer, m.letter.place) for m in opened.mail if isinstance(m.letter, Decision)}
            found += [
                approval
                for approval in pending_in(thread, row.session)
                if (approval.decision.answer, approval.decision.place) not in answered
            ]
        return found

    async def find_anywhere(self, id: str, session: str) -> Approval:
        """As `find` in a session; or by its whole name in any other, for whoever was asked in another place."""
        try:
            return await self.find(id, session)
        except MailRefused:
            elsewhere = [each for each in await self.waiting() if each.id == id]
            if not elsewhere:
                raise
            return elsewhere[0]

    async def find(self, id: str, session: str = "") -> Approval:
        """Raises MailRefused when no question of this name, or with a name that begins so, waits."""
        found = [approval for approval in await self.waiting(session) if id and approval.id.startswith(id)]
        if len(found) != 1:
            many = "several questions have" if found else "no question has"
            raise MailRefused(f"{many} the name {id!r}; it may have been answered already")
        return found[0]

    async def ask_about_files(self, thread: str) -> list[Approval]:
        """Put the questions about held changes that nobody has been told of yet, now that this thread rests."""
        told: list[Approval] = []
        for held in await self._files.due(thread) if self._files else ():
            approval, asks = _about(held), None
            if held.session:  # of whose files these are: nobody else is shown what stands in them
                where = Address.parse(held.session)
                asks = Outbound(f"held:{held.id}", where, question_of(approval), kind="question", approval=held.id)
            if self._files and await self._files.tell(held, asks) and asks:
                told.append(approval)
        return told

    async def decide_on_file(self, approval: Approval, allow: bool, by: str, chosen: Allowance | None = None) -> str:
        """What was done about a held change. Raises MailRefused for whom it is not to decide, and when it is not any
        more what was shown; nothing of the kind can be `chosen` ahead."""
        assert approval.held is not None
        assert self._files is not None
        await self._check_may_answer(approval, by)
        if chosen:
            raise GrantRefused(NOTHING_ALIKE)
        told = await self._files.decide(approval.held, allow)
        deed = "file.accepted" if allow else "file.refused"
        await self._store.note(line_of(deed, approval.held.name, {"change": approval.id}, speaking_for(by)))
        return told

    async def may_answer(self, approval: Approval, by: str) -> bool:
        if approval.held and is_private(approval.held):
            return by == approval.held.owner
        return may_answer(approval.overrun, by, await self._people.role(by))

    async def _check_may_answer(self, approval: Approval, by: str) -> None:
        if not await self.may_answer(approval, by):
            raise MailRefused(f"this is not for {by or 'guests'} to decide")

    async def answer(self, approval: Approval, allow: bool, by: str, event: str = "") -> Inbound:
        """The letter that answers it. Raises MailRefused for whom it is not to answer."""
        await self._check_may_answer(approval, by)
        asked, authority = approval.decision, speaking_for(by).by
        said: Literal["allowed", "denied"] = "allowed" if allow else "denied"
        verdict = Decision(asked.thread, asked.answer, asked.place, said, by, asked.digest, authority)
        return Inbound(Address.parse(approval.address), event or f"decision:{approval.id}", verdict)

    async def decide(
        self, approval: Approval, allow: bool, by: str, chosen: Allowance | None = None, event: str = ""
    ) -> tuple[Inbound, Grant | None]:
        """The letter that answers it, and what would be allowed ahead with that: whoever posts the letter has it kept
        then, with `keep`. Raises MailRefused; then nothing was decided."""
        letter = await self.answer(approval, allow, by, event)
        if chosen and not allow:
            raise GrantRefused("a no allows nothing ahead; nothing was decided")
        return letter, await self._grant(approval, chosen, by) if chosen else None

    async def keep(self, letter: Inbound, grant: Grant | None) -> bool:
        """Keep what is allowed ahead with a letter that is posted, if it is the answer that counts: somebody may have
        said no before. Before its thread is woken, so that the next of its calls finds it."""
        if grant is None or not isinstance(letter.letter, Decision):
            return False
        opened = await self._store.open(letter.letter.thread)
        counts = is_answered_by(letter.letter, opened.entries, [each.letter for each in opened.mail])
        if counts:
            await self._store.keep_grant(grant)
        return counts

    async def _grant(self, approval: Approval, chosen: Allowance, by: str) -> Grant:
        if approval.wanted is None:
            raise GrantRefused(NOTHING_ALIKE)
        now = self._clock.now()
        grant = granted(approval.wanted, chosen, id=approval.id, by=by, now=now, call=approval.text)
        if await self._people.role(by) < (Role.OWNER if chosen.seconds > DAY else _needed(grant)):
            raise MailRefused("only the owner allows anything of a tool, or for longer than a day; nothing was decided")
        return grant

    async def granted(self, call: WantedCall) -> str:
        """The name of a grant under which a call may run, one run of which is used up by this; "" if there is none."""
        for grant in await self._store.grants(call.user):
            allowed = await self._people.role(grant.by) >= _needed(grant)
            if allowed and covers(grant, call) and await self._store.use_grant(grant.id):
                return grant.id
        return ""

    async def grants(self) -> list[Grant]:
        """All that is allowed ahead, with the runs that are left."""
        return await self._store.grants()

    async def revoke(self, id: str, by: str) -> Grant:
        """Take back what was allowed ahead, by its name or how that begins. Raises MailRefused."""
        if await self._people.role(by) < APPROVER:
            raise MailRefused(f"this is not for {by or 'guests'} to take back")
        found = [grant for grant in await self._store.grants() if id and grant.id.startswith(id)]
        now = speaking_for(by)
        with acting_as(now.person, now.by):
            taken = len(found) == 1 and await self._store.forget_grant(found[0].id)
        if not taken:
            raise MailRefused(f"there is no grant {id!r}, or more than one; see: everloop approvals grants")
        return found[0]


def _needed(grant: Grant) -> Role:
    """The least role of whoever gives it."""
    return Role.OWNER if grant.any else APPROVER
