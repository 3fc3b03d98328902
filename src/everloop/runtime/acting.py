"""Whom this process acts for, and so whose threads it drives.

`gateway` and `worker` drive every thread of the store. A terminal drives those of the person who sits there. A program
drives the owner's, those of everyone it speaks for, and what comes in through the channels that it brought.
"""

from collections import OrderedDict
from collections.abc import Collection, Iterable
from typing import Protocol

from ..core.people import OWNER
from ..ports.rows import Whose

MOST = 1000  # principals that are remembered: those that have spoken last


class Acting(Protocol):
    def note(self, principal: str) -> None:
        """Somebody has spoken through this process."""
        ...

    def covers(self, principal: str, session: str) -> bool:
        """Whether a thread is driven here that belongs to them."""
        ...

    def whose(self) -> Whose | None:
        """Whose threads to look for; None: everyone's."""
        ...


class ForEveryone:
    def note(self, principal: str) -> None:
        pass

    def covers(self, principal: str, session: str) -> bool:
        return True

    def whose(self) -> Whose | None:
        return None


class ForOne:
    """Whatever is said here, and whoever is answered: nobody else's thread goes on here."""

    def __init__(self, person: str = OWNER) -> None:
        self._whose = Whose((person,))

    def note(self, principal: str) -> None:
        pass

    def covers(self, principal: str, session: str) -> bool:
        return principal in self._whose.principals

    def whose(self) -> Whose | None:
        return self._whose


class ForSpeakers:
    """`introduced` is looked at each time, so that a program may add to it."""

    def __init__(self, introduced: Collection[str] = (), channels: Iterable[str] = ()) -> None:
        self._introduced = introduced
        self._channels = tuple(channels)
        self._spoken: OrderedDict[str, None] = OrderedDict()  # the one that spoke least lately first

    def note(self, principal: str) -> None:
        if principal == OWNER:
            return
        self._spoken[principal] = None
        self._spoken.move_to_end(principal)
        if len(self._spoken) > MOST:
            self._spoken.popitem(last=False)

    def covers(self, principal: str, session: str) -> bool:
        known = principal == OWNER or principal in self._spoken or principal in self._introduced
        return known or session.partition(":")[0] in self._channels

    def whose(self) -> Whose | None:
        names = dict.fromkeys((*self._spoken, *self._introduced))
        return Whose((OWNER, *filter(_can_be_stored, names)), self._channels)


def _can_be_stored(name: str) -> bool:
    """Nobody else has a thread; and to ask a database for one would be an error."""
    try:
        return b"\0" not in name.encode()
    except UnicodeEncodeError:
        return False
