"""A house in which nobody can answer yet: it says what is missing, and waits for a model to be chosen."""

from collections.abc import Callable

from ..core.prompt import Prompt
from ..errors import ModelMissing, ProviderError
from ..ports.provider import Delta, ModelLimits, Reply
from ..providers.models import ResolvedModel
from ..runtime.models import Model
from .presets import HouseModels, Presets, preset_model

CHOOSE = "You can choose a model and keep a key in the page, under Manage."


class Absent:
    """In the place of a Provider that cannot be asked: it says why."""

    def __init__(self, name: str, why: str, refusal: type[ProviderError] = ModelMissing) -> None:
        self.name = name
        self._why = why
        self._refusal = refusal

    async def reply(self, prompt: Prompt, show: Callable[[Delta], None]) -> Reply:
        raise self._refusal(self._why)

    async def close(self) -> None:
        pass


def sentence_of(error: ModelMissing) -> str:
    text = str(error).rstrip(".")
    return f"Nobody can answer yet: {text}. {CHOOSE}"


def absent(name: str, why: str) -> ResolvedModel:
    return ResolvedModel(name, name, Absent(name, why), ModelLimits())


class WaitingModels(HouseModels):
    """The models of a house whose usual model cannot be had: others may be chosen."""

    def __init__(self, presets: Presets, now: Callable[[], str], model: ResolvedModel) -> None:
        super().__init__(presets, now)
        self._waiting = preset_model(model, presets.asked(""), now)

    def find(self, name: str) -> Model:
        return super().find(name) if name else self._waiting
