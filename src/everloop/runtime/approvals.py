"""Asking a person whether a call may run: the question, the timer that turns silence into a denial, the answer.

What waits for an answer is nowhere but in the logs: whoever wants to see it reads the threads that wait.
"""

import time
from collections.abc import Mapping

from msgspec import Struct

from ..core.approval import Grant, approval_id, digest_of, risk_of, shown
from ..core.decide import APPROVER
from ..core.errors import MailRefused
from ..core.log import Asked
from ..core.mail import Address, Decision, Inbound, Outbound
from ..core.people import Role, role_of
from ..core.ports import Store
from ..core.rows import Timer
from ..core.thread import Thread
from ..core.tool import Risk, ToolCall, ToolSpec

EXPIRES = 24 * 3600.0


class Approval(Struct, frozen=True):
    """A question that waits for an answer. `text` is the whole call as it would run."""

    id: str
    session: str
    requester: str
    tool: str
    text: str
    risk: Risk
    until: float  # Unix time
    decision: Decision  # with everything but the verdict and who gave it
    address: str

    @property
    def summary(self) -> str:
        """The whole call, and what is known of its risk."""
        return "\n".join((self.text, *_described(self.risk)))

    @property
    def question(self) -> str:
        how = f"Answer with /approve {self.id} or /approve {self.id} no."
        return f"May I run {self.summary}\n{how}"


def asking(thread: Thread, place: int, spec: ToolSpec) -> Asked:
    """The entry that says what a person is asked."""
    call = thread.open_calls[place]
    risk = risk_of(call, spec, thread.before(place))
    return Asked(thread.answer, place, digest_of(call, spec), time.time() + EXPIRES, risk)


def question(thread: Thread, asked: Asked) -> tuple[Outbound, Timer]:
    """Shown in full, keyed by the call, so that it is asked once."""
    approval = _approval(thread, asked, thread.address)
    key = f"approval:{thread.id}:{asked.answer}:{asked.place}"
    expiry = Inbound(Address("timer", thread.id), key, Decision(thread.id, asked.answer, asked.place, "expired"))
    asks = Outbound(key, Address.parse(thread.address), approval.question, kind="question", approval=approval.id)
    return asks, Timer(key, EXPIRES, expiry)


def _described(risk: Risk) -> list[str]:
    traits = [f"risk: {risk.level}"]
    traits += ["changes something"] if risk.mutates else []
    traits += ["leaves the sandbox"] if risk.leaves else []
    traits += ["wants to be privileged"] if risk.privileged else []
    return [f"({', '.join(traits)})", *([f"Why: {risk.why}"] if risk.why else [])]


def pending_in(thread: Thread, session: str) -> list[Approval]:
    return [_approval(thread, thread.asked[place], session) for place in thread.pending]


def _approval(thread: Thread, asked: Asked, session: str) -> Approval:
    call: ToolCall = thread.open_calls[asked.place]
    name = approval_id(thread.id, asked.answer, asked.place, asked.digest)
    decision = Decision(thread.id, asked.answer, asked.place, "denied", digest=asked.digest)
    return Approval(
        *(name, session, thread.requester, call.name, shown(call), asked.risk, asked.until),
        *(decision, thread.address),
    )


class Approvals:
    """What waits for an answer, and what was allowed ahead."""

    def __init__(self, store: Store, roles: Mapping[str, Role]) -> None:
        self._store = store
        self._roles = roles

    async def waiting(self, session: str = "") -> list[Approval]:
        """The open questions of one session, or of all."""
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

    async def find(self, id: str, session: str = "") -> Approval:
        """Raises MailRefused when no question of this name, or with a name that begins so, waits."""
        found = [approval for approval in await self.waiting(session) if id and approval.id.startswith(id)]
        if len(found) != 1:
            many = "several questions have" if found else "no question has"
            raise MailRefused(f"{many} the name {id!r}; it may have been answered already")
        return found[0]

    def answer(self, approval: Approval, allow: bool, by: str, event: str = "") -> Inbound:
        """The letter that answers it. Raises MailRefused for whom it is not to answer."""
        if role_of(by, self._roles) < APPROVER:
            raise MailRefused(f"this is not for {by or 'guests'} to decide")
        asked = approval.decision
        verdict = Decision(asked.thread, asked.answer, asked.place, "allowed" if allow else "denied", by, asked.digest)
        return Inbound(Address.parse(approval.address), event or f"decision:{approval.id}", verdict)

    async def granted(self, requester: str, tool: str, risk: Risk) -> str:
        """The name of a grant under which a call may run, one run of which is used up by this; "" if there is none."""
        for grant in await self._store.grants(requester):
            allowed = role_of(grant.by, self._roles) >= APPROVER
            if allowed and grant.fits(tool, risk) and await self._store.use_grant(grant.id):
                return grant.id
        return ""

    async def grant(self, grant: Grant) -> None:
        """Allow ahead. Raises MailRefused for whom it is not to allow."""
        if role_of(grant.by, self._roles) < APPROVER:
            raise MailRefused(f"this is not for {grant.by or 'guests'} to allow")
        await self._store.keep_grant(grant)
