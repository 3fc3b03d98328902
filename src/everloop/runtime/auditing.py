"""What is noted in the audit of a turn: answers to questions, and tools with effects that start."""

from collections.abc import Sequence

from ..core.log import Answered, Entry
from ..core.mail import Decision
from ..core.overrun import OVERRUN
from ..core.people import Role
from ..core.thread import Thread
from ..core.tool import Effect, ToolSpec
from ..ports.audit import AuditLine, Authority, line_of


def decided(thread: Thread, letter: Decision, entries: Sequence[Entry]) -> list[AuditLine]:
    """Of an answer that counts: one that came too late has no entry."""
    by = Authority(letter.by, letter.authority or ("its time ran out" if letter.verdict == "expired" else "unknown"))
    return [
        line_of(f"approval.{each.verdict}", _key(thread, each.place), _about(thread, each.place), by)
        for each in entries
        if isinstance(each, Answered)
    ]


def granted(thread: Thread, answered: Answered) -> AuditLine:
    """Of a call that was allowed ahead."""
    by = Authority(thread.turn.requester, answered.by)
    return line_of("approval.granted", _key(thread, answered.place), _about(thread, answered.place), by)


def started(thread: Thread, places: Sequence[int], specs: Sequence[ToolSpec], role: Role) -> list[AuditLine]:
    """Of calls that have effects: never what they are called with."""
    by = Authority(thread.turn.requester, role.name.lower())
    ahead = "preapproved" if thread.turn.preapproved else "not asked"
    return [
        line_of(
            "tool.started",
            _key(thread, place),
            {"tool": spec.name, "effect": spec.effect.value, "decision": thread.verdicts.get(place, ahead)},
            by,
        )
        for place, spec in zip(places, specs, strict=True)
        if spec.effect is not Effect.READ
    ]


def _about(thread: Thread, place: int) -> dict[str, str]:
    if place == OVERRUN:
        overrun = thread.asked[place].overrun
        whose = [f"{each.owner} {each.per}" for each in overrun.accounts] if overrun else []
        return {"budget": ", ".join(whose), "requester": thread.turn.requester}
    return {"tool": thread.open_calls[place].name, "requester": thread.turn.requester}


def _key(thread: Thread, place: int) -> str:
    answer = thread.asked[place].answer if place == OVERRUN else thread.answer
    return f"{thread.id}:{answer}:{place}"
