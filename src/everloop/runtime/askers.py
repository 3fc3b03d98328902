"""Who waits here for the answer to a message: while they do, it is handed to nobody else."""

from collections.abc import Callable, Mapping
from typing import Self

from ..ports.channel import Traits, traits_of
from .acknowledgements import Acknowledgements


class Asker:
    """One of them, for as long as they are asking: `with` it. `mail` finds the number of their letter: 0 while it has
    none. `has_it`: they have been given the answer; who leaves without it is let go, and it is fetched."""

    __slots__ = ("_here", "_shown", "has_it", "mail")

    def __init__(self, here: "set[Asker] | None", shown: Acknowledgements) -> None:
        """`here` are those among whom they wait, unless nobody else could be handed the answer."""
        self._here = here
        self._shown = shown
        self.mail: Callable[[], int] = _none
        self.has_it = False

    def __enter__(self) -> Self:
        if self._here is not None:
            self._here.add(self)
        return self

    def __exit__(self, *error: object) -> None:
        if self._here is None:
            return
        self._here.discard(self)
        if not self.has_it and (mail := self.mail()):
            self._shown.let_go(mail)


def _none() -> int:
    return 0


class Askers:
    """Of messages in channels whose bots fetch the rest by themselves (`Traits.polled`), those who wait."""

    def __init__(self, shown: Acknowledgements, traits: Mapping[str, Traits]) -> None:
        self._shown = shown
        self._traits = traits
        self._here: set[Asker] = set()

    @property
    def mails(self) -> frozenset[int]:
        return frozenset(asker.mail() for asker in self._here)

    def asking(self, session: str) -> Asker:
        return Asker(self._here if traits_of(session, self._traits).polled else None, self._shown)
