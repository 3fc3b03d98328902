"""Whether a conversation is too long for its model, and what is said then."""

from ..core.decide import Compact, GiveUp, Step, used
from ..core.log import ModelFailed
from ..core.thread import Thread
from .excuses import EXCUSES, TOO_LONG
from .models import Briefed


def may_be_too_long(thread: Thread, briefed: Briefed, step: Step) -> bool:
    """So that the model's host is to be asked how much it can read, before anything else."""
    refused = thread.turn.failure is not None and thread.turn.failure.error == "overflow"
    rules = briefed.rules
    return briefed.should_measure(used(thread, rules) - rules.overhead, refused, isinstance(step, Compact))


def is_told_by_the_call(thread: Thread, briefed: Briefed) -> bool:
    """Whether to ask rather than to make room: nobody knows how much the model can read, and its host will say so."""
    return briefed.model.unsure and thread.turn.failure is None and not thread.wants_room


def overflow(thread: Thread, briefed: Briefed) -> GiveUp:
    return GiveUp("context", ModelFailed("overflow", _too_long(thread, briefed)))


def _too_long(thread: Thread, briefed: Briefed) -> str:
    if thread.turn.failure:  # the host itself has said so
        return EXCUSES["context"]
    return TOO_LONG.format(tokens=used(thread, briefed.rules), model=briefed.model.name, limit=briefed.rules.limit)
