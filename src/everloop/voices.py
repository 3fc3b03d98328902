"""Turns the names of models into voices: what a model is told about itself and its tools, how it is asked, how much
it may read. Joins the providers' room and the runtime's, which know nothing of each other."""

import logging
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from .core.decide import Rules
from .core.errors import ModelMissing
from .core.ports import Embedder
from .providers.models import Models, Speaker
from .runtime.context import Context, Profile
from .runtime.voices import SHORT, Voice
from .settings import Defaults, Preset, Settings

_log = logging.getLogger("everloop.voices")


class Stage(Struct, frozen=True):
    """What every voice of this house has in common."""

    system: str
    rules: Rules
    now: Callable[[], str]
    large: frozenset[str] = frozenset()  # tools that a small model is not shown


class Casting:
    """Which speaker a name stands for, as the settings say: a preset, or any model with all else as in the defaults."""

    def __init__(self, settings: Settings, models: Models) -> None:
        self._defaults = settings.agents.defaults
        self._models = models
        self.small = settings.agents.defaults.small_model
        self.embedding = settings.agents.defaults.embedding_model
        self.presets = settings.models

    async def look(self, name: str) -> Speaker:
        """As `find`, after a look at the servers of this machine where a name asks for it. Raises ModelMissing."""
        asked = self.asked(name)
        await self._models.look(asked.model)
        missing: list[str] = []
        for spare in asked.fallbacks or ():
            try:
                await self._models.look(self.asked(spare).model)
            except ModelMissing as error:  # it is left out, as `Models.find` says
                missing.append(f"The fallback {spare} is left out: {error}.")
                _log.warning("%s", missing[-1])
        speaker = self.find(name)
        return replace(speaker, notice="\n".join([*filter(None, [speaker.notice]), *missing])) if missing else speaker

    def find(self, name: str) -> Speaker:
        asked = self.asked(name)
        return self._models.find(asked.model, [self.asked(spare).model for spare in asked.fallbacks or ()])

    async def embedder(self) -> Embedder | None:
        """Who makes vectors of texts, if anyone is set for it. Raises ModelMissing."""
        return await self._models.embedder(self.asked(self.embedding).model) if self.embedding else None

    def asked(self, name: str) -> Preset:
        """How this name is to be asked; "" is the default."""
        name = name or self._defaults.model
        return filled(self.presets.get(name) or Preset(name), self._defaults)


class HouseVoices:
    """The Voices port."""

    def __init__(self, casting: Casting, stage: Stage) -> None:
        self._casting = casting
        self._stage = stage
        self._voices: dict[str, Voice] = {}

    @property
    def default(self) -> str:
        return self.find("").name

    def names(self) -> list[str]:
        return list(self._casting.presets)

    async def look(self, name: str) -> Voice:
        await self._casting.look(name)
        return self.find(name)

    async def small(self) -> Voice:
        """For summaries and the like: the small model of the settings, or the default. Raises ModelMissing."""
        return await self.look(self._casting.small)

    async def embedder(self) -> Embedder | None:
        """For recall by meaning: the embedding model of the settings, if there is one. Raises ModelMissing."""
        return await self._casting.embedder()

    def find(self, name: str) -> Voice:
        if name not in self._voices:
            speaker = self._casting.find(name)
            key = name if name in self._casting.presets else speaker.name
            self._voices[name] = voice_of(key, speaker, self._casting.asked(name), self._stage)
        return self._voices[name]


def voice_of(key: str, speaker: Speaker, asked: Preset, stage: Stage) -> Voice:
    """A speaker with all that it is told. What an answer may need is kept free in its window."""
    assert asked.max_tokens is not None
    longest = asked.max_tokens
    left_out = stage.large if speaker.compact else ()
    tools = {name: spec for name, spec in stage.rules.tools.items() if name not in left_out}

    def fit(window: int) -> tuple[Context, Rules]:
        profile = Profile(
            model=speaker.model,
            system=stage.system,
            max_tokens=min(longest, window // 4),
            temperature=asked.temperature,
            top_p=asked.top_p,
            effort=asked.reasoning_effort or "",
            tail=not speaker.compact,
        )
        # "Compact" is the step at which a conversation is given up, unless nobody knows how much the model reads.
        rules = replace(stage.rules, tools=tools, limit=window - profile.max_tokens, compacts=True)
        return Context(profile, tuple(tools.values()), stage.now), rules

    window = asked.context_window or speaker.window
    measure = None if asked.context_window else speaker.measure
    return Voice(speaker.name, key, speaker.provider, window, fit, measure, 0 if speaker.local else SHORT)


def filled(preset: Preset, defaults: Defaults) -> Preset:
    """A preset with its gaps filled from the defaults."""
    return replace(
        preset,
        fallbacks=defaults.fallbacks if preset.fallbacks is None else preset.fallbacks,
        reasoning_effort=defaults.reasoning_effort if preset.reasoning_effort is None else preset.reasoning_effort,
        temperature=defaults.temperature if preset.temperature is None else preset.temperature,
        top_p=defaults.top_p if preset.top_p is None else preset.top_p,
        max_tokens=preset.max_tokens or defaults.max_tokens,
        context_window=preset.context_window or defaults.context_window,
    )
