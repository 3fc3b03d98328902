"""What to do next: a pure function of the thread. No clock, no network, no await.

`decide` tells the driver its next step; `admit` tells which mail may enter the log now.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, assert_never

from msgspec import Struct, structs

from .approval import Policy, Stance, approval_id, digest_of
from .log import (
    AgentTold,
    Answered,
    Asked,
    CallReturned,
    CompactionAsked,
    Entry,
    ModelChosen,
    ModelFailed,
    Outcome,
    PersonaChosen,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
)
from .mail import Amendment, Choose, ChoosePersona, CompactRequest, Decision, Mail, Notice, Said, Stop, Telling, Undo
from .message import said
from .overrun import OVERRUN, Overrun
from .people import Role, role_of
from .thread import STOPPED, Thread
from .tool import Effect, ToolCall, ToolSpec, may_use, problems_of

Steering = Literal["steer", "queue", "interrupt"]


class Rules(Struct, frozen=True):
    tools: Mapping[str, ToolSpec] = {}
    max_steps: int = 40
    limit: int = 100_000  # tokens that a prompt may hold
    overhead: int = 0  # of these, what stands before the conversation: the system prompt and the tools
    prefix: str = ""  # the fingerprint of that; "" is any
    max_resumes: int = 3
    steering: Steering = "steer"
    compacts: bool = False
    policy: Policy = Policy()
    roles: Mapping[str, Role] = {}  # of who is asked about, beside the owner
    lifted: frozenset[str] = frozenset()  # tools that guests may use as well: see `may_use`
    repeats: int = 3  # futile steps after which the same call is not made again
    futile: int = 8  # and after which the turn ends


class CallModel(Struct, frozen=True):
    """Ask the model; with `wrap`, for the last time and without tools."""

    wrap: bool = False


class RunCalls(Struct, frozen=True):
    """Run these now: either reads, side by side, or one call alone."""

    places: tuple[int, ...]


class Verify(Struct, frozen=True):
    """Look whether this call, found started after a restart, took effect."""

    place: int


class Ask(Struct, frozen=True):
    """Ask a person whether these may run."""

    places: tuple[int, ...]


class Settle(Struct, frozen=True):
    """Answer these calls without running them, or leave a file as it is."""

    results: tuple[CallReturned | TakenBack, ...]


class Compact(Struct, frozen=True):
    """Let a summary stand for what was said before, so that there is room again."""


class TakeBack(Struct, frozen=True):
    """Put a file back to what it held before a change of the turn that is being undone."""

    place: int


class GiveUp(Struct, frozen=True):
    """End the turn without an answer and say why."""

    reason: str
    failure: ModelFailed | None = None


class Rest(Struct, frozen=True):
    """Nothing to do until someone speaks or answers."""


Step = CallModel | RunCalls | Verify | Ask | Settle | Compact | TakeBack | GiveUp | Rest

CANCELLED = STOPPED
CANCELLED_STARTED = f"{STOPPED}; it had already started and may have taken effect"
UNKNOWN = (
    "Interrupted by a restart: this call had started and nobody knows whether it took effect. "
    "It was not run again. Inspect before you repeat it."
)
ABANDONED = (
    "Interrupted: the process ended each time this was tried, and nobody knows whether it took effect. "
    "It was not run again. Inspect before you repeat it."
)
FATAL = "the process ended each time this was tried"
REFUSALS: dict[str, str] = {
    "denied": "The user did not allow this.",
    "expired": "Nobody answered in time, so this was not allowed.",
    "withdrawn": "not approved; the user went on",
    "unattended": "This needs a person's permission, and nobody is there to be asked, so it was not run.",
}
FORBIDDEN = "The owner's settings do not allow this."
HANDED = "Handed to the client, who runs it; what came of it is told in the next message."
CHANGED = (
    "This was allowed, but it is not any more what would run now: the tool or what it works in has changed. "
    "It was not run. Call again to have it asked again."
)
GOES_ON = (
    "The user has said something meanwhile, so this is not waited for any longer: the task goes on, and what comes of "
    "it is told in a message of its own."
)
REPEATED = (
    "Error: this very call has been made before in this turn, and the last steps have brought nothing new. It was not "
    "run again. Try another way, or tell the user what is missing."
)
WARNING, HARD = 0.8, 0.95  # shares of the limit at which the user is told, and room is made
ROOMY = 0.82  # the share that is taken when room was made
APPROVER = Role.ADMIN  # the least role that may allow what others, or the agent, want to do
REPEATABLE = frozenset({Effect.READ, Effect.IDEMPOTENT, Effect.KEYED})


def decide(thread: Thread, rules: Rules) -> Step:
    if thread.rests:
        return Rest()
    if thread.is_bare:
        rules = structs.replace(rules, tools={}, overhead=0)
    if thread.open_calls:
        return _decide_on_calls(thread, rules)
    if OVERRUN in thread.asked:
        return _decide_on_overrun(thread)
    if thread.wants_room and not thread.undoing:
        return Compact()
    if thread.undoing:
        place = len(thread.undoing.done)
        return Settle((TakenBack(place, FATAL),)) if thread.turn.resumes >= rules.max_resumes else TakeBack(place)
    if thread.turn.resumes >= rules.max_resumes:
        return GiveUp("resumed")
    if thread.turn.failure:
        return _decide_on_failure(thread.turn.failure, thread, rules)
    if thread.turn.empties > 1:
        return GiveUp("empty")
    if thread.turn.futile >= rules.futile and not _waits(thread, rules):
        return GiveUp("futile")
    if used(thread, rules) > HARD * rules.limit:
        return _make_room(thread, rules)
    return CallModel(wrap=thread.turn.steps >= rules.max_steps)


def _decide_on_overrun(thread: Thread) -> Step:
    """Whoever may let it go beyond a budget has been asked, and has not said yes."""
    overrun = thread.asked[OVERRUN].overrun
    if OVERRUN not in thread.verdicts:
        return Rest()
    return GiveUp("budget", ModelFailed("budget", overrun.refusal if overrun else ""))


def _waits(thread: Thread, rules: Rules) -> bool:
    """Whether it looks again and again for something that is still to come; the step cap ends that."""
    spec = rules.tools.get(thread.turn.tools_used[-1]) if thread.turn.tools_used else None
    return spec is not None and spec.polls


def _decide_on_failure(failure: ModelFailed, thread: Thread, rules: Rules) -> Step:
    if failure.error == "overflow":
        return _make_room(thread, rules)
    if failure.error == "cut" and thread.turn.failures < 2:
        return CallModel(wrap=thread.turn.steps >= rules.max_steps)
    return GiveUp(failure.error, failure)


def used(thread: Thread, rules: Rules) -> int:
    """The tokens that the next prompt will have, as far as is known."""
    counted = thread.measured and rules.prefix in ("", thread.prefix)
    return thread.tokens if counted else thread.estimated + rules.overhead


def _make_room(thread: Thread, rules: Rules) -> Step:
    return Compact() if rules.compacts and not thread.just_compacted else GiveUp("context")


def _decide_on_calls(thread: Thread, rules: Rules) -> Step:
    """Calls are settled strictly in their order, so the first open one decides."""
    if thread.turn.stopped:
        return Settle(
            tuple(
                _result(thread, place, CANCELLED_STARTED if place in thread.started else CANCELLED, "cancelled")
                for place in thread.open_calls
            )
        )
    if thread.turn.resumes >= rules.max_resumes:
        return Settle(tuple(_result(thread, place, ABANDONED, "abandoned") for place in thread.open_calls))
    awaited = thread.awaited
    place = next((each for each in thread.open_calls if each not in awaited), None)
    spec = rules.tools.get(thread.open_calls[place].name) if place is not None else None
    if place is None or (awaited and not (spec and spec.spawns)):
        return Rest()  # until a task has reported; several of one answer are worked at side by side
    call = thread.open_calls[place]
    if thread.offers(call.name):  # the client runs it, when what stands beside it is done and the turn has ended
        return Settle((_result(thread, place, HANDED, "handed"),))
    if place in thread.started and (spec is None or spec.effect not in REPEATABLE):
        verifiable = spec is not None and spec.effect is Effect.VERIFIABLE
        return Verify(place) if verifiable else Settle((_result(thread, place, UNKNOWN, "unknown"),))
    if refusal := _refusal(thread, place, rules):
        return Settle((refusal,))
    if _stance(thread, place, rules) == "ask" and thread.verdicts.get(place) is None:
        return _ask(thread, rules)
    return RunCalls(_ready_reads(thread, rules) or (place,))


def _refusal(thread: Thread, place: int, rules: Rules) -> CallReturned | None:
    """Why a call that has not started will not run; None when it may, or a person is to be asked."""
    call = thread.open_calls[place]
    spec = rules.tools.get(call.name)
    if problem := _problem(call, spec, rules):
        return _result(thread, place, problem, "failed")
    assert spec is not None
    if not may_use(role_of(thread.turn.requester, rules.roles), spec, rules.lifted):
        return _result(thread, place, f"{call.name} is not for {thread.turn.requester or 'guests'} to use.", "denied")
    if thread.turn.futile >= rules.repeats and not spec.polls and thread.was_made(call):
        return _result(thread, place, REPEATED, "repeated")
    verdict = thread.verdicts.get(place)
    if verdict in REFUSALS:
        return _result(thread, place, REFUSALS[verdict], "denied")
    if _stance(thread, place, rules) == "deny":
        return _result(thread, place, FORBIDDEN, "denied")
    if verdict is not None and thread.asked[place].digest != digest_of(call, spec):
        return _result(thread, place, CHANGED, "denied")
    return None


def _stance(thread: Thread, place: int, rules: Rules) -> Stance:
    call = thread.open_calls[place]
    policy = rules.policy
    if thread.turn.preapproved and role_of(thread.turn.requester, rules.roles) >= APPROVER:
        policy = structs.replace(policy, default="allow")
    return policy.stance(call, rules.tools[call.name], thread.before(place))


def _problem(call: ToolCall, spec: ToolSpec | None, rules: Rules) -> str:
    if spec is None:
        return f"Error: there is no tool {call.name!r}. The tools are: {', '.join(rules.tools) or 'none'}."
    if problems := problems_of(call, spec):
        return f"Error: the call was not run: {'; '.join(problems)}. Correct the arguments and call again."
    return ""


def _ask(thread: Thread, rules: Rules) -> Step:
    """Ask about all that need asking at once; wait when all have been asked."""
    unasked = tuple(
        place
        for place, call in thread.open_calls.items()
        if place not in thread.asked
        and not thread.offers(call.name)
        and _refusal(thread, place, rules) is None
        and _stance(thread, place, rules) == "ask"
    )
    return Ask(unasked) if unasked else Rest()


def _ready_reads(thread: Thread, rules: Rules) -> tuple[int, ...]:
    """The reads at the front of the open calls. One that stands behind an effect waits: it may depend on it."""
    ready = []
    for place, call in thread.open_calls.items():
        spec = rules.tools.get(call.name)
        if thread.offers(call.name):
            break
        free = spec is not None and spec.effect is Effect.READ and _refusal(thread, place, rules) is None
        if not free or _stance(thread, place, rules) == "ask":
            break
        ready.append(place)
    return tuple(ready)


def _result(thread: Thread, place: int, text: str, outcome: Outcome) -> CallReturned:
    return CallReturned(thread.answer, place, text, outcome)


class Absorbed(Struct, frozen=True):
    """What a letter becomes: `entries` now; the letter itself is done with, or waits in the inbox."""

    entries: Sequence[Entry] = ()
    taken: bool = True


WAIT = Absorbed(taken=False)


def heard(letter: Said, mail: int = 0) -> UserSaid:
    """A letter as the log keeps it."""
    return UserSaid(
        letter.parts,
        letter.author,
        letter.address,
        mail,
        letter.unattended,
        letter.before,
        letter.brought,
        letter.preapproved,
        letter.principal,
        letter.terms,
        speaker=letter.speaker,
        server=letter.server,
        payer=letter.payer,
    )


def announced(notice: Notice, mail: int) -> UserSaid:
    """What the house says, as the log keeps it."""
    return UserSaid(
        said(notice.text, notice.source if notice.outside else ""),
        notice.by,
        notice.address,
        mail,
        notice.unattended,
        principal=notice.principal,
        terms=notice.terms,
        source=notice.source,
        payer=notice.payer,
        rounds=notice.rounds,
    )


def admit(thread: Thread, mail: Mail, steering: Steering = "steer", roles: Mapping[str, Role] = {}) -> Absorbed:
    """Decide whether a letter may enter the log now. Only the turn's requester steers it; others wait their turn.

    What comes with another word about permissions waits, too: a script whose calls are to be denied is not asked in
    someone's place, and withdraws nobody's question. So does what is said by somebody who was not shown a question that
    waits, as at another terminal, and what somebody else pays for."""
    match mail.letter:
        case Said() as letter:
            entry = heard(letter, mail.id)
            other = letter.model is not None and letter.model != thread.choice
            chosen = (ModelChosen(letter.model or "", letter.author),) if other else ()
            if not thread.owes_reply:
                return Absorbed((*chosen, entry))
            joins = letter.due and not (thread.turn.steps or thread.turn.calling)  # nothing is done yet
            if thread.undoing or thread.turn.stopped or letter.author != thread.turn.requester:
                return WAIT
            if steering == "queue" and not joins:
                return WAIT
            if (letter.unattended, letter.preapproved) != (thread.turn.unattended, thread.turn.preapproved):
                return WAIT
            if (letter.principal or letter.author) != thread.turn.principal or letter.terms is not None:
                return WAIT
            if (letter.payer or letter.author) != thread.turn.payer:
                return WAIT
            if letter.instead is not None and not _questions(thread) <= set(letter.instead):
                return WAIT
            if steering == "interrupt" and not joins:
                return Absorbed((Stopped(letter.author),), taken=False)
            calls = [place for place in thread.pending if place != OVERRUN]  # what it may cost is asked all the same
            withdrawn = [Answered(thread.answer, place, "withdrawn", letter.author) for place in calls]
            left = [_result(thread, place, GOES_ON, "done") for place in thread.awaited]
            return Absorbed((*withdrawn, *left, *chosen, entry))
        case Amendment():
            return Absorbed()  # of a letter that waits no longer (readings/amendments.py)
        case Stop() if thread.undoing:
            return Absorbed()  # files are put back all or none
        case Undo() as letter:
            if thread.owes_reply:
                return WAIT
            undo = (letter.said, letter.changes, letter.lasting, letter.whose, letter.by, letter.address)
            return Absorbed((Undoing(*undo, mail.id, letter.terms),))
        case Stop(by=by):
            # What has not begun to work yet was not what someone else wanted to stop.
            meant = by == thread.turn.requester or thread.turn.steps > 0 or thread.turn.calling
            working = thread.owes_reply and not thread.turn.stopped and meant
            return Absorbed((Stopped(by),) if working or thread.wants_room else ())
        case Decision() as letter:
            if letter.thread != thread.id or letter.place not in thread.pending:
                return Absorbed()
            asked = thread.asked[letter.place]
            if letter.answer != asked.answer or not _may_decide(letter, asked, roles):
                return Absorbed()
            return Absorbed((Answered(letter.answer, letter.place, letter.verdict, letter.by),))
        case Choose(model=model, by=by):
            return Absorbed((ModelChosen(model, by),))
        case ChoosePersona(persona=persona, by=by):
            return Absorbed((PersonaChosen(persona, by),))
        case CompactRequest(by=by, payer=payer):
            return Absorbed((CompactionAsked(by, payer),))
        case Notice() as notice:
            answer, place = notice.answers or (0, 0)
            if answer and answer == thread.answer and place in thread.awaited:
                origin = notice.source if notice.outside else ""
                return Absorbed((CallReturned(answer, place, notice.text, notice.outcome, origin=origin),))
            if notice.outcome == "cancelled":
                return Absorbed()  # whoever has stopped it knows
            return WAIT if thread.owes_reply else Absorbed((announced(notice, mail.id),))
        case Telling() as word:
            if thread.owes_reply:
                return WAIT  # nobody is interrupted in the middle of a turn
            told = (word.text, word.files, word.address, word.sender, word.by, word.outside)
            return Absorbed((AgentTold(*told, mail.id),))
        case _:
            assert_never(mail.letter)


def _questions(thread: Thread) -> set[str]:
    """The names of what a person is asked."""
    asked = (thread.asked[place] for place in thread.pending)
    return {approval_id(thread.id, each.answer, each.place, each.digest) for each in asked}


def _may_decide(letter: Decision, asked: Asked, roles: Mapping[str, Role]) -> bool:
    """Time decides for nobody but against; a person needs the role, and must have seen what is asked."""
    if letter.verdict == "expired":
        return True
    return may_answer(asked.overrun, letter.by, role_of(letter.by, roles)) and letter.digest == asked.digest


def may_answer(overrun: Overrun | None, person: str, role: Role) -> bool:
    """Whether a question is for somebody of this role to answer: one about a call, or about going beyond a budget."""
    return overrun.may_answer(person, role) if overrun else role >= APPROVER
