"""What becomes of a letter that its author has changed or taken back.

The change is a letter itself, so it stands in the order of the inbox, and whoever drives the thread sees both or the
first alone. As long as the first waits, the two are one letter with the new text, or none. Once a turn has taken it the
change is a further word to that turn, or a stop when nothing else was asked for; after the turn it is nothing.
"""

from collections.abc import Sequence

from msgspec import Struct, structs

from ..core.mail import Amendment, Letter, Mail, Said, Stop
from ..core.message import Part, Text
from ..core.thread import Thread

CHANGED = "[I have changed what I wrote just now. It says now:]"
TAKEN_BACK = "[I have taken back one of the messages that I wrote just now.]"


class Amended(Struct, frozen=True):
    """Letters as they are to be read. `with_them` are the changes that came into each, by its number; `gone` are
    those that were taken back in time."""

    mail: list[Mail]
    with_them: dict[int, tuple[int, ...]] = {}
    gone: tuple[int, ...] = ()


def amend(mail: Sequence[Mail]) -> Amended:
    """These letters, those that wait with what has come in their place."""
    changes: dict[int, list[Mail]] = {}
    waiting = {each.id for each in mail if isinstance(each.letter, Said)}
    for each in mail:
        if isinstance(each.letter, Amendment) and each.letter.mail in waiting:
            changes.setdefault(each.letter.mail, []).append(each)
    if not changes:
        return Amended([*mail])
    merged = {id for group in changes.values() for id in (each.id for each in group)}
    read = [Mail(each.id, _read(each, changes.get(each.id, ()))) for each in mail if each.id not in merged]
    gone = tuple(id for id, group in changes.items() if any(_withdraws(each) for each in group))
    return Amended(read, {id: tuple(each.id for each in group) for id, group in changes.items()}, gone)


def _withdraws(change: Mail) -> bool:
    return isinstance(change.letter, Amendment) and change.letter.withdrawn


def _read(mail: Mail, changes: Sequence[Mail]) -> Letter:
    letter = mail.letter
    if changes and isinstance(letter, Said) and isinstance(last := changes[-1].letter, Amendment):
        return structs.replace(letter, parts=last.said.parts)
    return letter


def applied(thread: Thread, mail: Mail) -> Mail:
    """A change of what a turn has taken, as the word or the stop that it is to that turn. It has no number there: what
    the turn answers are the letters themselves."""
    change = mail.letter
    if not isinstance(change, Amendment):
        return mail
    turn = thread.turn
    heard = [*turn.mails, *(entry.mail for _, entry in thread.unheard)] if thread.owes_reply else []
    if change.mail not in heard or turn.stopped:
        return mail
    if change.withdrawn and set(heard) <= {change.mail}:
        return Mail(0, Stop(change.said.author))
    parts: tuple[Part, ...] = (Text(TAKEN_BACK),) if change.withdrawn else (Text(CHANGED), *change.said.parts)
    return Mail(0, structs.replace(change.said, parts=parts, due=0.0))
