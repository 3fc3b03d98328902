"""Makes of a name a model that can be asked: how it is asked, how much it may read, what of a briefing it is told.
Joins the providers' room and the runtime's, which know nothing of each other."""

import logging
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from ..core.briefing import Briefing
from ..core.decide import Rules
from ..core.prompt import Section
from ..core.tool import ToolSpec
from ..errors import ModelMissing
from ..ports import Embedder
from ..ports.provider import ModelLimits
from ..ports.voice import SpeechMaker, Transcriber
from ..providers.model_limits import longest_answer
from ..providers.models import ModelResolver, ResolvedModel
from ..readings.contents import tokens_of
from ..readings.found_tools import ESSENTIAL, FIND, FINDERS
from ..readings.sections import PERSONA, SKILLS, joined, shrunk
from ..runtime.context import Context, Profile
from ..runtime.models import SHORT, Model
from ..settings import Defaults, Preset, Settings

_log = logging.getLogger("everloop.models")

TOOLS = "{tools}"  # stands in an identity for the names of those that are offered
ROOM_FOR_TOOLS = 0.35  # of the window
ROOM_FOR_BROUGHT = 0.1  # of the window, for tools that are not the house's own
MOST_FOR_BROUGHT = 10_000  # tokens, however large the window: each call pays for them
ROOM_FOR_FILES = 0.125  # of the window
COMPACT = 1200  # tokens that stand before the conversation of a model that is not shown all tools
# By these the embedded model's own, smaller tools are carried out.
_IN_LITTLE = frozenset({"grep", "find_files", "run_python", "apply_patch", "remember"})
LITTLE = 280  # characters of the system prompt that the embedded model is shown beside its tools


class Presets:
    """Which model a name stands for, as the settings say: a preset, or any model with all else as in the defaults."""

    def __init__(self, settings: Settings, models: ModelResolver) -> None:
        self._defaults = settings.agents.defaults
        self._models = models
        self._voice = settings.voice
        self._speech = settings.speech
        self.small = settings.agents.defaults.small_model
        self.embedding = settings.agents.defaults.embedding_model
        self.presets = settings.models

    async def look(self, name: str) -> ResolvedModel:
        """As `find`, after a look at the servers of this machine where a name asks for it. Raises ModelMissing."""
        asked = self.asked(name)
        await self._models.look(asked.model)
        missing: list[str] = []
        for spare in asked.fallbacks or ():
            try:
                await self._models.look(self.asked(spare).model)
            except ModelMissing as error:  # it is left out, as `ModelResolver.find` says
                missing.append(f"The fallback {spare} is left out: {error}.")
                _log.warning("%s", missing[-1])
        model = self.find(name)
        return replace(model, notice="\n".join([*filter(None, [model.notice]), *missing])) if missing else model

    def find(self, name: str) -> ResolvedModel:
        asked = self.asked(name)
        return self._models.find(asked.model, [self.asked(spare).model for spare in asked.fallbacks or ()])

    async def for_titles(self) -> ResolvedModel | None:
        """The small model of the settings, and no other in its place: what names a conversation is not worth a large
        one. The embedded model only where the settings name it. Raises ModelMissing."""
        if not (self._defaults.titles and self.small):
            return None
        asked = self.asked(self.small)
        await self._models.look(asked.model)
        model = self._models.find(asked.model)
        return None if model.compact and not asked.model.startswith("embedded") else model

    async def embedder(self) -> Embedder | None:
        """Who makes vectors of texts, if anyone is set for it. Raises ModelMissing."""
        return await self._models.embedder(self.asked(self.embedding).model) if self.embedding else None

    async def transcriber(self) -> Transcriber | None:
        """Who transcribes voice messages, if anyone is set for it. Raises ModelMissing."""
        voice = self._voice
        if not voice.model:
            return None
        return await self._models.transcriber(
            voice.model,
            voice.api_base,
            longest=voice.max_seconds,
            language=voice.language,
            minute_price=voice.minute_price,
        )

    @property
    def speech(self) -> str:
        """The model that reads aloud, as the settings name it."""
        return self._speech.model

    async def speech_maker(self) -> SpeechMaker | None:
        """Who reads answers aloud, if anyone is set for it. Raises ModelMissing."""
        speech = self._speech
        if not speech.model:
            return None
        return await self._models.speech_maker(
            speech.model,
            speech.api_base,
            voice=speech.voice,
            format=speech.format,
            longest=speech.max_characters,
            million_price=speech.million_price,
        )

    def asked(self, name: str) -> Preset:
        """How this name is to be asked; "" is the default."""
        name = name or self._defaults.model
        return filled(self.presets.get(name) or Preset(name), self._defaults)


class HouseModels:
    """The Models port. `now` tells the time as models are to read it."""

    def __init__(self, presets: Presets, now: Callable[[], str]) -> None:
        self._presets = presets
        self._now = now
        self._models: dict[str, Model] = {}

    @property
    def default(self) -> str:
        return self.find("").name

    def names(self) -> list[str]:
        return list(self._presets.presets)

    async def look(self, name: str) -> Model:
        await self._presets.look(name)
        return self.find(name)

    async def small(self) -> Model | None:
        """For summaries and the like: the small model of the settings; None: whoever answers. Raises ModelMissing."""
        return await self.look(self._presets.small) if self._presets.small else None

    async def embedder(self) -> Embedder | None:
        """For recall by meaning: the embedding model of the settings, if there is one. Raises ModelMissing."""
        return await self._presets.embedder()

    def find(self, name: str) -> Model:
        if name not in self._models:
            model = self._presets.find(name)
            key = name if name in self._presets.presets else model.name
            self._models[name] = preset_model(model, self._presets.asked(name), self._now, key)
        return self._models[name]


def preset_model(model: ResolvedModel, asked: Preset, now: Callable[[], str], key: str = "") -> Model:
    """A model that is asked in this way."""

    def fit(limits: ModelLimits, briefing: Briefing) -> tuple[Context, Rules]:
        return _fitted(limits, model, asked, briefing, now)

    return Model(
        name=model.name,
        key=key,
        model=model.model,
        provider=model.provider,
        window=asked.context_window or model.window,
        fit=fit,
        measure=None if asked.context_window else model.measure,
        asks_from=0 if model.local or model.limits.window is None else SHORT,
        output=model.limits.output,
        assumed=not (asked.context_window or model.limits.window),
        price=model.price,
    )


def _fitted(
    limits: ModelLimits, model: ResolvedModel, asked: Preset, told: Briefing, now: Callable[[], str]
) -> tuple[Context, Rules]:
    """A model with all that it is told. What an answer may need is kept free in its window."""
    assert asked.max_tokens is not None
    assert limits.window is not None
    window = limits.window
    tools = _tools_for(window, model.compact, told)
    hidden = {name: spec for name, spec in told.rules.tools.items() if FIND in tools and name not in tools}
    names = ", ".join(tools) or "none"
    identity = ((model.compact and told.brief) or told.identity).replace(TOOLS, names)
    room = LITTLE - len(identity) if model.compact else _room_for_files(window, told, tools)
    persona = (Section(PERSONA, told.prompt),) if told.prompt else ()
    files = [section for section in told.files if _is_of_use(section, model.compact, tools)]
    sections = (Section("identity", identity), *persona, *shrunk(files, room - len(told.prompt)))
    profile = Profile(
        model=model.model,
        sections=sections,
        max_tokens=longest_answer(min(asked.max_tokens, told.max_tokens or asked.max_tokens), limits),
        temperature=asked.temperature,
        top_p=asked.top_p,
        effort=asked.reasoning_effort or "",
        tail=not model.compact,
        place=told.place if model.compact else "",
    )
    context = Context(profile, tuple(tools.values()), now)
    rules = replace(
        told.rules,
        tools={**tools, **hidden},
        limit=window - profile.max_tokens,
        overhead=tokens_of(joined(sections), tools.values()),
        prefix=context.prefix(False),
        compacts=True,
    )
    return context, rules


def _is_of_use(section: Section, compact: bool, tools: Mapping[str, ToolSpec]) -> bool:
    """The embedded model has no room for skills, and whoever cannot read a file has no use for where one lies."""
    return section.name not in SKILLS or (not compact and (section.name == SKILLS[0] or "read_file" in tools))


def _room_for_files(window: int, told: Briefing, tools: Mapping[str, ToolSpec]) -> int:
    """Characters."""
    tokens = int(window * ROOM_FOR_FILES)
    if any(name in told.large and name not in FINDERS and name not in tools for name in told.rules.tools):
        tokens = min(tokens, COMPACT - tokens_of(told.identity, tools.values()))
    return 4 * tokens


def _tools_for(window: int, compact: bool, told: Briefing) -> Mapping[str, ToolSpec]:
    """All tools, if they leave most of the window free; else those that matter most, else none. What others have
    brought has a share of its own: what does not fit into that is found by `find_tools`, in the order in which it
    comes, the last first."""
    everything = {name: spec for name, spec in told.rules.tools.items() if name not in FINDERS}
    own = {name: spec for name, spec in everything.items() if name in told.large or name in ESSENTIAL}
    shown = _IN_LITTLE if compact else frozenset()
    few = {name: spec for name, spec in own.items() if name not in told.large or name in shown}
    brought = {name: spec for name, spec in everything.items() if name not in own}
    for tools in (few,) if compact else (own, few):
        if compact or tokens_of(told.identity, tools.values()) <= window * ROOM_FOR_TOOLS:
            return {**tools, **_brought(window, brought, told.rules.tools, finds=not compact)}
    return {}


def _brought(
    window: int, brought: Mapping[str, ToolSpec], tools: Mapping[str, ToolSpec], *, finds: bool
) -> Mapping[str, ToolSpec]:
    """Those of them that there is room for and, unless that is all, what finds the others. They stand by their names,
    for what is used most comes first: that one is used more often must not change a prefix that it is in anyway."""
    room = min(int(window * ROOM_FOR_BROUGHT), MOST_FOR_BROUGHT)
    if tokens_of("", brought.values()) <= room:
        return dict(sorted(brought.items()))
    finders = {name: tools[name] for name in FINDERS if finds and name in tools}
    fits: dict[str, ToolSpec] = {}
    room -= tokens_of("", finders.values())
    for name, spec in brought.items():
        room -= tokens_of("", [spec])
        if room < 0:
            break
        fits[name] = spec
    return {**dict(sorted(fits.items())), **finders}


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
