"""Who answers: a model with the way it is spoken to and the rules that follow from its size."""

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from copy import copy
from typing import Protocol, Self

from ..core.decide import Rules
from ..core.errors import ModelMissing, ProviderError
from ..core.ports import Provider
from .context import Context

_log = logging.getLogger("everloop.voices")

Measure = Callable[[], Awaitable[int | None]]
# Tokens of a conversation that fits any model, with what is told before it and the answer after it: half of 4096, the
# smallest window that models are served with.
SHORT = 2048
_NEVER = sys.maxsize
_AGAIN = 300.0  # seconds, after a host could not be asked


class Voice:
    """One model, ready to be asked: `name` is provider/model, `key` what it is found by again.

    `fit` tells how a model with a window of so many tokens is spoken to, and by which rules. `measure` asks the host
    for the window (None if it does not say), and is called when a conversation has become longer than `asks_from`
    tokens, or than what the window is believed to hold. `guest_fit` is `fit` for turns that a guest has asked for.
    """

    def __init__(
        self,
        name: str,
        key: str,
        provider: Provider,
        window: int,
        fit: Callable[[int], tuple[Context, Rules]],
        measure: Measure | None = None,
        asks_from: int = SHORT,
        guest_fit: Callable[[int], tuple[Context, Rules]] | None = None,
    ) -> None:
        self.name = name
        self.key = key
        self.provider = provider
        self.window = window
        self.context, self.rules = fit(window)
        self.model = self.context.model
        self._fit = fit
        self._measure = measure
        self._asks_from = asks_from
        self._guest_fit = guest_fit
        self._for_guests: Voice | None = None
        self._again = 0.0  # when a host that could not be asked may be asked again
        self._asking = asyncio.Lock()
        self._answers = 0  # that the host has given, or owed
        self.unsure = False  # the host could not be asked: it may read more than is believed

    def told(self, fit: Callable[[int], tuple[Context, Rules]]) -> Self:
        """The same model, spoken to in another way. This one stays as it is, for the turns that have begun with it."""
        voice = copy(self)
        voice._fit, voice._asking = fit, asyncio.Lock()
        voice.context, voice.rules = fit(self.window)
        return voice

    @property
    def for_guests(self) -> "Voice":
        """The same model as guests meet it: told nothing of the owner's, with the tools that are for guests."""
        if self._guest_fit is None:
            return self
        if self._for_guests is None:
            self._for_guests = self.told(self._guest_fit)
            self._for_guests._guest_fit = None
        return self._for_guests

    def wonders(self, tokens: int, refused: bool = False, cramped: bool = False) -> bool:
        """Whether the host is to be asked for its window before it is sent a conversation of so many tokens, or after
        it has refused that. While it is asked, only one that is cramped in the window as it is known waits for that."""
        if self._measure is None or (tokens <= min(self._asks_from, self.rules.limit) and not refused):
            return False
        return (cramped or not self._asking.locked()) and time.monotonic() >= self._again

    async def learn(self) -> None:
        """Ask the host how much it can read, and believe it rather than the table. Not twice at a time: whoever comes
        while it is asked waits for what it says to the first."""
        answers = self._answers
        async with self._asking:
            if self._answers == answers:
                await self._ask()

    async def _ask(self) -> None:
        assert self._measure is not None
        try:
            window = await self._measure()
        except ProviderError as error:
            _log.info("%s cannot be asked how much it can read: %s", self.name, error)
            self._again, self.unsure = time.monotonic() + _AGAIN, True
            self._answers += 1
            return
        self._answers += 1
        self.unsure = False
        if window is None and self._asks_from < SHORT:
            self._asks_from = SHORT  # a server of this machine may not have loaded the model yet
        else:
            self._asks_from = _NEVER
        if window is not None and window != self.window:
            self.window = window
            self.context, self.rules = self._fit(window)


class Voices(Protocol):
    """The models that a conversation can be answered by."""

    @property
    def default(self) -> str:
        """The name of the model that answers where nothing else was chosen."""
        ...

    async def look(self, name: str) -> Voice:
        """As `find`, after a look at the servers of this machine where the name asks for it."""
        ...

    def find(self, name: str) -> Voice:
        """The voice of this name, "" being the default. Raises ModelMissing when there is none."""
        ...

    async def small(self) -> Voice | None:
        """Who writes summaries and the like; None: whoever answers. Raises ModelMissing."""
        ...

    def renew(self) -> None:
        """Take in what the owner has changed in what models are told; to be called when a turn begins. A voice that
        was found before does not change."""
        ...

    def names(self) -> list[str]:
        """What a person may choose from beside any provider/model: the names of the presets."""
        ...


class OneVoice:
    """For a house with one model that was handed over."""

    def __init__(self, voice: Voice) -> None:
        self._voice = voice

    @property
    def default(self) -> str:
        return self._voice.name

    async def look(self, name: str) -> Voice:
        raise ModelMissing("this program has one model, which was handed over to it")

    def find(self, name: str) -> Voice:
        return self._voice

    async def small(self) -> Voice | None:
        return None

    def renew(self) -> None:
        pass

    def names(self) -> list[str]:
        return []
