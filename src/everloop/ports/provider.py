"""Models: who answers, and who makes vectors."""

from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct

from ..core.message import Opaque
from ..core.prompt import Finish, Prompt, Usage
from ..core.tool import ToolCall


class ModelLimits(Struct, frozen=True, gc=False):
    """Tokens that a model can hold, prompt and answer together, and of an answer alone. None: nobody says."""

    window: int | None = None
    output: int | None = None


class Reply(Struct, frozen=True, gc=False):
    """One whole answer of a model."""

    text: str
    calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    finish: Finish = "stop"
    model: str = ""
    reasoning: str = ""
    opaque: tuple[Opaque, ...] = ()
    cost: float | None = None  # US dollars, where the price is known


class Delta(Struct, frozen=True, gc=False):
    """What arrived in one network read while an answer streams. A draft: only the committed answer counts."""

    text: str = ""
    reasoning: str = ""
    progress: str = ""  # something to show while there is no text yet, such as "reading 40 %"
    notice: str = ""  # something a person should know, such as that another model is asked


class Provider(Protocol):
    """A source of model answers."""

    name: str

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        """Ask once and return the whole answer; `show` is called with each piece as it arrives.

        Retries what can be retried as long as nothing has been shown. Raises ProviderError. Cancelling it
        closes the connection.
        """

    async def close(self) -> None: ...


class Embeddings(Struct, frozen=True):
    """Texts as vectors, one for each, in their order. `model` is provider/model: vectors of two cannot be compared."""

    vectors: list[list[float]]
    model: str
    usage: Usage = Usage()
    cost: float | None = None  # US dollars, where the price and the number of tokens are known


class Embedder(Protocol):
    """A model that turns texts into vectors: what means the same lies close together."""

    name: str  # provider/model

    def price(self, usage: Usage) -> float | None:
        """US dollars, where the price is known."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """Retries what can be retried. Raises ProviderError.

        Nobody else takes note of what it cost: whoever asks in a turn commits a `Spent` for it with what came of it.
        """
