"""Which of several answers to one question is the one that counts."""

from collections.abc import Sequence

from ..core.log import Answered, Entry
from ..core.mail import Decision, Letter, Said, Stop


def is_answered_by(decision: Decision, entries: Sequence[Entry], mail: Sequence[Letter]) -> bool:
    """Whether this is the answer that its question has, or will have: the first in the log, and else the first that
    waits in the inbox, where it lies behind nothing by which the question may be withdrawn."""
    named = decision.answer, decision.place
    for entry in entries:
        if isinstance(entry, Answered) and (entry.answer, entry.place) == named:
            return (entry.verdict, entry.by) == (decision.verdict, decision.by)
    for letter in mail:
        if isinstance(letter, Said | Stop):
            return False
        if isinstance(letter, Decision) and (letter.answer, letter.place) == named:
            return letter == decision
    return False
