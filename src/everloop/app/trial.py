"""Trying a model out: it is asked for an answer and for a tool call, for vectors, or for speech. Nothing of it is
stored."""

import time
from collections.abc import Awaitable, Callable
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from ..core.message import Message, said
from ..core.people import OWNER, Role
from ..core.prompt import Prompt, Transcript, Usage
from ..core.tool import ToolSpec, parse_args, problems_of
from ..errors import ProviderError
from ..ports import Embedder
from ..ports.provider import Delta, Reply
from ..ports.voice import SpeechMaker
from ..providers.model_limits import longest_answer
from ..providers.models import ModelResolver, ResolvedModel
from ..runtime.budgets import BudgetControl, Denied, Payer, charge_for, charge_for_failure
from ..runtime.reading_aloud import counted
from ..settings import Preset
from .presets import Presets

Show = Callable[[str], None]
READ = 600  # tokens that a trial is asked by, at most
PAID = "trial"  # by which it is known what is held for it: one after the other


class TestQuestion(Struct, frozen=True):
    """Something to ask; `fault` finds what is wrong with the answer, if anything is."""

    name: str
    says: str
    tools: tuple[ToolSpec, ...]
    fault: Callable[[Reply], str]


class Tried(Struct, frozen=True):
    name: str
    ok: bool
    why: str
    first: float | None  # seconds to the first piece
    total: float
    input: int = 0  # tokens
    output: int = 0
    cost: float | None = None


class Embedding(Struct, frozen=True):
    """How the making of vectors went."""

    ok: bool
    why: str
    total: float
    dimensions: int = 0
    input: int = 0
    cost: float | None = None
    name: str = "embedding"


class SpokenTrial(Struct, frozen=True):
    """How the reading aloud of a sentence went."""

    ok: bool
    why: str
    total: float
    bytes: int = 0
    mime: str = ""
    input: int = 0
    cost: float | None = None
    name: str = "speech"


TriedOut = Tried | Embedding | SpokenTrial
SAMPLE = "This is how answers will sound."
ADD = ToolSpec(
    "add",
    "Add two whole numbers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


def fault_of_answer(reply: Reply) -> str:
    return "" if reply.text.strip() else "it answered nothing"


def fault_of_call(reply: Reply) -> str:
    call = next((call for call in reply.calls if call.name == ADD.name), None)
    if call is None:
        return "it did not call the tool"
    if problems := problems_of(call, ADD):
        return f"it called the tool wrongly: {'; '.join(problems)}"
    given = parse_args(call)
    return "" if sorted(given.values()) == [17, 25] else f"it called the tool with {given['a']} and {given['b']}"


TRIALS = (
    TestQuestion("answer", "Answer with the single word: ready", (), fault_of_answer),
    TestQuestion("tool call", "Use the tool to add 17 and 25.", (ADD,), fault_of_call),
)


class Trials:
    """What a model of this name is tried with, one thing after the other.

    A model that makes vectors is asked for some, the one that reads aloud for a sentence; any other for an answer and a
    tool call, without its fallbacks, which would answer in its place.
    """

    def __init__(self, model: str, notice: str, run: tuple[Callable[[Show], Awaitable[TriedOut]], ...]) -> None:
        self.model = model
        self.notice = notice
        self.run = run


async def _try_speech(budgets: BudgetControl | None, maker: SpeechMaker) -> SpokenTrial:
    """As far as the owner may spend it."""
    usage = counted(SAMPLE)

    def price(used: Usage) -> float | None:
        return maker.price(used, len(SAMPLE))

    allowed = await budgets.reserve(Payer(OWNER, Role.OWNER), PAID, maker.name, price, usage) if budgets else None
    if isinstance(allowed, Denied):
        return SpokenTrial(False, allowed.text, 0.0)
    began = time.perf_counter()
    try:
        sound = await maker.speak(SAMPLE)
    except ProviderError as error:
        if budgets and allowed:
            await budgets.charge(charge_for_failure(allowed, price, error.kind, ""))
        return SpokenTrial(False, str(error), time.perf_counter() - began)
    if budgets and allowed:
        await budgets.charge(charge_for(allowed, price, usage, None, ""))
    total = time.perf_counter() - began
    return SpokenTrial(True, "", total, len(sound.data), sound.mime, usage.input, price(usage))


async def trials_of(name: str, presets: Presets, models: ModelResolver, budgets: BudgetControl | None = None) -> Trials:
    """The owner pays for it, out of the `budgets`. Raises ModelMissing."""
    asked = presets.asked(name)
    if name and name == presets.speech and (maker := await presets.speech_maker()):
        return Trials(maker.name, "", (lambda progress: _try_speech(budgets, maker),))
    choice = await models.look(asked.model)
    if "embed" in choice.model.lower() or (name and name == presets.embedding):
        embedder = await models.embedder(asked.model)
        return Trials(embedder.name, "", (lambda progress: _try_embedder(embedder),))
    return trials_with(models.find(asked.model), asked, budgets)


def trials_with(model: ResolvedModel, asked: Preset, budgets: BudgetControl | None = None) -> Trials:
    return Trials(model.name, model.notice, tuple(partial(_pay, budgets, trial, model, asked) for trial in TRIALS))


async def _pay(
    budgets: BudgetControl | None, trial: TestQuestion, model: ResolvedModel, asked: Preset, progress: Show
) -> Tried:
    """Try it, as far as the owner may spend it."""
    most = Usage(READ, _prompt(trial, model, asked).max_tokens)
    payer = Payer(OWNER, Role.OWNER)
    allowed = await budgets.reserve(payer, PAID, model.name, model.price, most) if budgets else None
    if isinstance(allowed, Denied):
        return Tried(trial.name, False, allowed.text, None, 0.0)
    tried = await _try(trial, model, asked, progress)
    if budgets and allowed:
        await budgets.charge(charge_for(allowed, model.price, Usage(tried.input, tried.output), tried.cost, ""))
    return tried


async def _try_embedder(embedder: Embedder) -> Embedding:
    began = time.perf_counter()
    try:
        made = await embedder.embed(["The cat sat on the mat.", "A kitten rested on the rug."])
    except ProviderError as error:
        return Embedding(False, str(error), time.perf_counter() - began)
    total = time.perf_counter() - began
    return Embedding(True, "", total, len(made.vectors[0]), made.usage.input, made.cost)


async def _try(trial: TestQuestion, model: ResolvedModel, asked: Preset, progress: Show) -> Tried:
    began = time.perf_counter()
    first = None

    def show(delta: Delta) -> None:
        nonlocal first
        if delta.progress:
            progress(delta.progress)
        elif first is None:
            first = time.perf_counter() - began

    try:
        reply = await model.provider.reply(_prompt(trial, model, asked), show)
    except ProviderError as error:
        return Tried(trial.name, False, str(error), first, time.perf_counter() - began)
    fault, used = trial.fault(reply), reply.usage
    total = time.perf_counter() - began
    return Tried(trial.name, not fault, fault, first, total, used.input, used.output, reply.cost)


def _prompt(trial: TestQuestion, model: ResolvedModel, asked: Preset) -> Prompt:
    limits = replace(model.limits, window=asked.context_window or model.window)
    return Prompt(
        model=model.model,
        system="You are being tried out. Do exactly as you are told.",
        transcript=Transcript((Message("user", said(trial.says)),)),
        tools=trial.tools,
        max_tokens=longest_answer(asked.max_tokens or limits.window or 0, limits),
        temperature=asked.temperature,
        top_p=asked.top_p,
        effort=asked.reasoning_effort or "",
    )
