"""Who answers: a model, and what of a briefing it can be told, by its size."""

import asyncio
import logging
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Protocol

from msgspec import Struct

from ..core.briefing import Briefing
from ..core.decide import Rules
from ..core.prompt import Usage
from ..errors import ModelMissing, ProviderError
from ..ports import Provider
from ..ports.provider import ModelLimits
from .context import Context
from .own_keys import AskedProvider

_log = logging.getLogger("everloop.models")

Measure = Callable[[], Awaitable[ModelLimits]]
Fit = Callable[[ModelLimits, Briefing], tuple[Context, Rules]]
# Tokens of a conversation that fits any model, with what is told before it and the answer after it: half of 4096, the
# smallest window that models are served with.
SHORT = 2048
_NEVER = sys.maxsize
BRIEFINGS = 100  # for which it is kept how they are told
_AGAIN = 300.0  # seconds, after a host could not be asked


class Fitted(Struct, frozen=True):
    """How a model of these limits is told a briefing, and by which rules it works."""

    briefing: Briefing
    limits: ModelLimits
    context: Context
    rules: Rules


class Model:
    """One model, ready to be asked: `name` is provider/model, `key` what it is found by again, `model` what its host
    calls it.

    `fit` tells how a model of such limits is told a briefing, and by which rules it works. `measure` asks the host for
    them (None where it does not say), and is called when a conversation has become longer than `asks_from` tokens, or
    than what the window is believed to hold.
    """

    def __init__(
        self,
        name: str,
        key: str,
        model: str,
        provider: Provider,
        window: int,
        fit: Fit,
        measure: Measure | None = None,
        asks_from: int = SHORT,
        output: int | None = None,
        assumed: bool = False,
        price: Callable[[Usage], float | None] = lambda usage: None,
    ) -> None:
        """`price` is the most that a call of such a usage costs, in dollars; None: nobody knows."""
        self.price = price
        self.name = name
        self.key = key
        self.model = model
        self.provider = provider
        self.limits = ModelLimits(window, output)
        self._fit = fit
        self._fitted: dict[int, Fitted] = {}  # by the briefing
        self._measure = measure
        self._asks_from = asks_from
        self._again = 0.0  # when a host that could not be asked may be asked again
        self._asking = asyncio.Lock()
        self._answers = 0  # that the host has given, or owed
        self.unsure = False  # the host could not be asked: it may read more than is believed
        self.assumed = assumed  # nobody has said yet how much it can read

    @property
    def window(self) -> int:
        assert self.limits.window is not None
        return self.limits.window

    def fitted_to(self, briefing: Briefing) -> "Fitted":
        """This model, told this."""
        fitted = self._fitted.get(id(briefing))
        if fitted is None or fitted.briefing is not briefing or fitted.limits is not self.limits:
            if len(self._fitted) >= BRIEFINGS:
                self._fitted.clear()
            fitted = self._fitted[id(briefing)] = Fitted(briefing, self.limits, *self._fit(self.limits, briefing))
        return fitted

    def should_measure(
        self, tokens: int, limit: int, refused: bool = False, cramped: bool = False, looking: bool = False
    ) -> bool:
        """Whether the host is to be asked for its window before it is sent a conversation of so many tokens, or after
        it has refused that, or because someone is `looking` at how much it can read. While it is asked, only one that
        is cramped in the window as it is known waits for that."""
        if self._measure is None or (tokens <= min(self._asks_from, limit) and not (refused or looking)):
            return False
        return (cramped or not self._asking.locked()) and time.monotonic() >= self._again

    async def measure_window(self) -> None:
        """Ask the host how much it can read, and believe it rather than the table. Not twice at a time: whoever comes
        while it is asked waits for what it says to the first."""
        answers = self._answers
        async with self._asking:
            if self._answers == answers:
                await self._ask()

    async def _ask(self) -> None:
        assert self._measure is not None
        try:
            told = await self._measure()
        except ProviderError as error:
            _log.info("%s cannot be asked how much it can read: %s", self.name, error)
            self._again, self.unsure = time.monotonic() + _AGAIN, True
            self._answers += 1
            return
        self._answers += 1
        self.unsure = False
        self.assumed = self.assumed and told.window is None
        if told.window is None and self._asks_from < SHORT:
            self._asks_from = SHORT  # a server of this machine may not have loaded the model yet
        else:
            self._asks_from = _NEVER
        limits = ModelLimits(told.window or self.limits.window, told.output or self.limits.output)
        if limits != self.limits:
            self.limits = limits


class Briefed:
    """A model with what it is told in one turn, and who is asked for it; `own`: with a key of whoever has asked.
    `context` and `rules` are those of its limits as they were when it was made, or when it was last `fit_again`."""

    __slots__ = ("_limits", "briefing", "context", "model", "own", "provider", "rules")

    context: Context
    rules: Rules

    def __init__(self, model: Model, briefing: Briefing, asked: AskedProvider | None = None) -> None:
        self.model = model
        self.briefing = briefing
        self.provider = asked.provider if asked else model.provider
        self.own = asked is not None and asked.own
        self._limits: ModelLimits | None = None
        self.fit_again()

    def fit_again(self) -> None:
        """To its limits, as they are known by now."""
        if self._limits is not self.model.limits:
            fitted = self.model.fitted_to(self.briefing)
            self._limits, self.context, self.rules = fitted.limits, fitted.context, fitted.rules

    def should_measure(self, tokens: int, refused: bool = False, cramped: bool = False, looking: bool = False) -> bool:
        return self.model.should_measure(tokens, self.rules.limit, refused, cramped, looking)


class Models(Protocol):
    """The models that a conversation can be answered by."""

    @property
    def default(self) -> str:
        """The name of the model that answers where nothing else was chosen."""
        ...

    async def look(self, name: str) -> Model:
        """As `find`, after a look at the servers of this machine where the name asks for it."""
        ...

    def find(self, name: str) -> Model:
        """The model of this name, "" being the default. Raises ModelMissing when there is none."""
        ...

    async def small(self) -> Model | None:
        """Who writes summaries and the like; None: whoever answers. Raises ModelMissing."""
        ...

    def names(self) -> list[str]:
        """What a person may choose from beside any provider/model: the names of the presets."""
        ...


class OneModel:
    """For a house with one model that was handed over."""

    def __init__(self, model: Model) -> None:
        self._model = model

    @property
    def default(self) -> str:
        return self._model.name

    async def look(self, name: str) -> Model:
        raise ModelMissing("this program has one model, which was handed over to it")

    def find(self, name: str) -> Model:
        return self._model

    async def small(self) -> Model | None:
        return None

    def names(self) -> list[str]:
        return []
