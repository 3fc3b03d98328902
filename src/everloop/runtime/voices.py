"""Who answers: a model with the way it is spoken to and the rules that follow from its size."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from ..core.decide import Rules
from ..core.errors import ModelMissing
from ..core.ports import Provider
from .context import Context


async def _nothing_to_learn() -> int | None:
    return None


class Voice:
    """One model, ready to be asked: `name` is provider/model, `key` what it is found by again.

    `fit` tells how a model with a window of so many tokens is spoken to, and by which rules; `measure` asks the host
    for the window, None if nobody can tell.
    """

    def __init__(
        self,
        name: str,
        key: str,
        provider: Provider,
        window: int,
        fit: Callable[[int], tuple[Context, Rules]],
        measure: Callable[[], Awaitable[int | None]] = _nothing_to_learn,
        unmeasured: bool = False,
    ) -> None:
        self.name = name
        self.unmeasured = unmeasured  # its host is to be asked for the window before it is used
        self.key = key
        self.provider = provider
        self.window = window
        self.context, self.rules = fit(window)
        self._fit = fit
        self._measure = measure

    async def grow(self) -> bool:
        """Ask the host how much it can read, and believe it; whether that is more than was believed.

        Raises ProviderError when it cannot be asked now and may tell later.
        """
        believed = self.window  # another thread may learn the same while we ask
        window = await self._measure()
        if window is not None and window != self.window:
            self.window = window
            self.context, self.rules = self._fit(window)
        return window is not None and window > believed


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

    def names(self) -> list[str]:
        return []
