"""What came of a task, told where it was handed on: in the transaction in which its turn ends, and once, for the event
is the task's own."""

from typing import Literal

from ..core.mail import Address, Inbound, Notice
from ..core.thread import Thread
from ..core.turn import Finished
from ..ports.rows import Posting
from ..ports.tasks import session_of

LONGEST = 20_000  # characters of a report
STOPPED = "The task was stopped before it was done."
NOTHING = "The task has ended without a word."


def report_of(thread: Thread, finished: Finished, *, text: str | None, session: str, owner: str) -> Posting | None:
    """The letter to whoever has handed the task on that this conversation works at; None where it works at none, as in
    a branch of one, or nobody is to be told: who stops a task that nobody waits for knows that it ends."""
    turn = thread.turn
    task = turn.terms.task if turn.terms else None
    if task is None or session_of(task) != session or not (finished.steps or finished.reason):
        return None
    stopped = finished.reason == "stopped"
    if stopped and not task.waits:
        return None
    parent, answer, place = task.call.split(":")
    outcome: Literal["done", "failed", "cancelled"] = "done"
    if finished.reason:
        outcome = "cancelled" if stopped else "failed"
    letter = Notice(
        text=_shortened(f"{STOPPED}\n{text or ''}".strip() if stopped else text or NOTHING),
        source=f"a task that was handed on ({outcome})",
        by=turn.requester,
        address=thread.address,
        outside=thread.outside,
        unattended=turn.unattended,
        principal=turn.principal if turn.principal != turn.requester else "",
        payer=turn.payer if turn.payer != turn.requester else "",
        answers=(int(answer), int(place)),
        outcome=outcome,
        rounds=task.rounds + 1,
    )
    return Posting(Inbound(Address.parse(session), f"child:{thread.id}", letter, owner), parent)


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n[{len(text) - LONGEST:,} characters were left out; people can read the whole: /tasks]"
