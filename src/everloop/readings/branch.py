"""Where a thread can be cut, and what its branch then begins with."""

from collections.abc import Sequence

from msgspec import Struct, structs

from ..core.decide import Rules, Settle, decide
from ..core.log import (
    AgentTold,
    Compacted,
    Entry,
    ModelChosen,
    PersonaChosen,
    Removed,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
)
from ..core.personas import PersonaWish
from ..core.prompt import Terms
from ..core.thread import Thread
from ..ports.conversation import Written
from .spoken import KINDS


class LastTurn(Struct, frozen=True):
    """The turn that could be taken back: it began with the entry `seq`, and without it the log ends at `cut`."""

    seq: int
    cut: int
    said: tuple[UserSaid, ...]
    entries: tuple[Entry, ...]  # all that came after the cut
    choice: str  # the model that is chosen at the end of it
    persona: PersonaWish = PersonaWish()  # as well
    terms: Terms | None = None  # that hold at the end of it

    @property
    def told(self) -> list[Entry]:
        """What came after it from elsewhere, and so is not taken back with it."""
        return [entry for entry in self.entries if isinstance(entry, AgentTold)]


def last_turn(first: int, entries: Sequence[Entry]) -> LastTurn | None:
    """The last turn of a log that is at rest, if these entries hold all of it.

    Usually it begins where the turn before has ended. But what someone says while a model answers stands before the end
    of that answer, and begins the next turn.
    """
    thread = Thread(seq=first - 1)
    before, ended, turn = 0, 0, 0
    for entry in entries:
        thread.add(entry)
        if thread.finished and thread.finished.seq == thread.seq and not isinstance(entry, Undoing | TakenBack):
            ended = thread.seq
        if thread.turn.seq != turn:
            turn, before = thread.turn.seq, ended
    if not turn or turn < first:
        return None
    cut = max(turn - 1, before)
    said = [entry for entry in entries[turn - first :] if isinstance(entry, UserSaid)]
    later = tuple(entries[cut + 1 - first :])
    return LastTurn(turn, cut, tuple(said), later, thread.choice, thread.persona, thread.turn.terms)


def branch_off(
    written: Sequence[Written],
    session: str,
    by: str,
    *,
    turn: int = 0,
    choice: str | None = None,
    persona: PersonaWish | None = None,
    told: Sequence[Entry] = (),
) -> list[Entry]:
    """These entries as the beginning of another thread: none of its letters are here, and nothing in it is open.

    With `turn`, what people said from there on is left out: it belongs to a turn that is taken back. `choice` is the
    model that is to answer, `persona` who is to, `told` what stays though it came later.
    """
    entries = [_copied(each.entry, session, bool(turn) and each.seq >= turn) for each in written]
    thread = Thread(seq=written[0].seq - 1 if written else 0)
    thread.extend(entries)
    closing: list[Entry] = []
    if thread.owes_reply or thread.open_calls:
        closing.append(Stopped(by))
        thread.add(closing[0])
        step = decide(thread, Rules())
        closing += step.results if isinstance(step, Settle) else ()
    if choice is not None and choice != thread.choice:
        closing.append(ModelChosen(choice, by))
    if persona is not None and persona != thread.persona:
        closing.append(PersonaChosen(persona.name, persona.by))
    return [*entries, *closing, *(_copied(entry, session, late=False) for entry in told)]


def _copied(entry: Entry, session: str, late: bool) -> Entry:
    how = KINDS[type(entry)].branched
    if how == "removed" or (late and isinstance(entry, UserSaid)):
        return Removed()
    if how == "readdressed":
        return structs.replace(entry, mail=0, address=session)
    if isinstance(entry, Compacted):
        return structs.replace(entry, standing=structs.replace(entry.standing, mails=(), address=session))
    return entry
