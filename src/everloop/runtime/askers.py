"""Who waits here for the answer to a message: while they do, it is handed to nobody else."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from ..ports.channel import Traits, traits_of
from .acknowledgements import Acknowledgements


class Asker:
    """`mail` finds the number of their letter: 0 while it has none. `has_it`: they have been given the answer."""

    __slots__ = ("has_it", "mail")

    def __init__(self) -> None:
        self.mail: Callable[[], int] = lambda: 0
        self.has_it = False


class Askers:
    """Of messages in channels whose bots fetch the rest by themselves (`Traits.polled`), those who wait."""

    def __init__(self, shown: Acknowledgements, traits: Mapping[str, Traits]) -> None:
        self._shown = shown
        self._traits = traits
        self._here: set[Asker] = set()

    @property
    def mails(self) -> frozenset[int]:
        return frozenset(asker.mail() for asker in self._here)

    @contextmanager
    def asking(self, session: str) -> Iterator[Asker]:
        """Who leaves without the answer is let go, and the answer is fetched."""
        asker = Asker()
        if not traits_of(session, self._traits).polled:
            yield asker
            return
        self._here.add(asker)
        try:
            yield asker
        finally:
            self._here.discard(asker)
            if not asker.has_it and (mail := asker.mail()):
                self._shown.let_go(mail)
