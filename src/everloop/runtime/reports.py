"""What came of a task, told where it was handed on, or in the chat in whose background it went on: in the transaction
in which its turn ends, and once, for the event is the task's own."""

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from ..core.mail import Address, Inbound, Notice, Outbound, Telling, reply_key
from ..core.message import Message
from ..core.thread import Thread
from ..core.turn import Finished
from ..ports.rows import Posting
from ..ports.tasks import session_of
from ..readings.visible import in_one_line

TITLE = 80  # characters
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


class Ending(Struct, frozen=True):
    """How a turn has ended, and what is told of it; it began with the first that a person said of `asked`. Whoever
    `waited_for` the answer has it without being told."""

    thread: str
    finished: Finished
    text: str
    asked: Sequence[Message]
    waited_for: bool = False
    by: str = ""
    outside: bool = False

    @property
    def reply(self) -> Outbound:
        """Where it was asked."""
        key, finished = reply_key(self.thread, self.finished.seq), self.finished
        address, failed = Address.parse(finished.address), bool(finished.reason)
        return Outbound(key, address, self.text, failed=failed, mails=finished.mails, files=finished.files)

    def telling(self, number: int, session: str, owner: str) -> Posting | None:
        """A letter to the conversation that is in front now: it is told there, and known from then on, and no model is
        asked for that. Who has stopped the turn knows that it ends; but what it may have done is told all the same."""
        finished = self.finished
        if finished.reason == "stopped" and not finished.unknown:
            return None
        how = "is done" if not finished.reason else "was stopped" if finished.reason == "stopped" else "has failed"
        title = title_of(next((message.text for message in self.asked if message.role == "user"), ""))
        asked = f", where it was asked: “{title}”" if title else ""
        letter = Telling(
            text=f"Task {number} {how}:\n\n{self.text}",
            files=tuple(made.media for made in finished.files),
            address="" if self.waited_for else finished.address,
            sender=f"task {number} in the background{asked}",
            by=self.by,
            outside=self.outside,
        )
        event = f"background:{self.thread}:{finished.seq}"
        return Posting(Inbound(Address.parse(session), event, letter, owner))


def title_of(text: str) -> str:
    """A task's: the beginning of what is to be done."""
    first = in_one_line(next((line for line in text.splitlines() if line.strip()), "").strip())
    return first if len(first) <= TITLE else f"{first[: TITLE - 1]}…"


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}\n[{len(text) - LONGEST:,} characters were left out; people can read the whole: /tasks]"
