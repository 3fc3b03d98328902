"""`everloop models test`: asks a model for an answer and for a tool call. Nothing of it is stored."""

import time
from collections.abc import Callable

from msgspec import Struct

from ..app import open_library
from ..core.errors import ProviderError
from ..core.message import Message, said
from ..core.ports import Embedder
from ..core.prompt import Delta, Prompt, Reply, Transcript
from ..core.tool import ToolSpec, parse_args, problems_of
from ..providers.models import Speaker
from ..settings import Preset
from ..voices import Casting
from .table import dollars, to_json
from .terminal import Terminal


class Trial(Struct, frozen=True):
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
    Trial("answer", "Answer with the single word: ready", (), fault_of_answer),
    Trial("tool call", "Use the tool to add 17 and 25.", (ADD,), fault_of_call),
)


async def try_model(name: str, as_json: bool, terminal: Terminal) -> int:
    """A model that makes vectors is asked for some; any other for an answer and a tool call."""
    async with open_library() as library:
        casting = Casting(library.settings, library.models)
        asked = casting.asked(name)
        choice = await library.models.look(asked.model)
        if "embed" in choice.model.lower() or (name and name == casting.embedding):
            return await _try_embedder(await library.models.embedder(asked.model), as_json, terminal)
        speaker = library.models.find(asked.model)  # without its fallbacks, which would answer in its place
        if speaker.notice:
            terminal.note(speaker.notice)
        terminal.note(f"asking {speaker.name}")
        tried = []
        for trial in TRIALS:
            tried.append(await _try(trial, speaker, asked, terminal))
            if not as_json:
                terminal.answer(_tried_text(tried[-1]))
    if as_json:
        terminal.answer(to_json({"model": speaker.name, "checks": tried}))
    return 0 if all(each.ok for each in tried) else 1


async def _try_embedder(embedder: Embedder, as_json: bool, terminal: Terminal) -> int:
    terminal.note(f"asking {embedder.name}")
    began = time.perf_counter()
    try:
        made = await embedder.embed(["The cat sat on the mat.", "A kitten rested on the rug."])
    except ProviderError as error:
        tried = Embedding(False, str(error), time.perf_counter() - began)
    else:
        total = time.perf_counter() - began
        tried = Embedding(True, "", total, len(made.vectors[0]), made.usage.input, made.cost)
    terminal.answer(to_json({"model": embedder.name, "checks": [tried]}) if as_json else _embedding_text(tried))
    return 0 if tried.ok else 1


async def _try(trial: Trial, speaker: Speaker, asked: Preset, terminal: Terminal) -> Tried:
    began = time.perf_counter()
    first = None

    def show(delta: Delta) -> None:
        nonlocal first
        if delta.progress:
            terminal.status(delta.progress)
        elif first is None:
            first = time.perf_counter() - began

    try:
        reply = await speaker.provider.reply(_prompt(trial, speaker, asked), show)
    except ProviderError as error:
        return Tried(trial.name, False, str(error), first, time.perf_counter() - began)
    fault, used = trial.fault(reply), reply.usage
    total = time.perf_counter() - began
    return Tried(trial.name, not fault, fault, first, total, used.input, used.output, reply.cost)


def _prompt(trial: Trial, speaker: Speaker, asked: Preset) -> Prompt:
    window = asked.context_window or speaker.window
    return Prompt(
        model=speaker.model,
        system="You are being tried out. Do exactly as you are told.",
        transcript=Transcript((Message("user", said(trial.says)),)),
        tools=trial.tools,
        max_tokens=min(asked.max_tokens or window, window // 4),
        temperature=asked.temperature,
        top_p=asked.top_p,
        effort=asked.reasoning_effort or "",
    )


def _tried_text(tried: Tried) -> str:
    if not tried.ok:
        return f"{tried.name}: failed: {tried.why}"
    first = "" if tried.first is None else f"began after {tried.first:.2f} s, "
    counts = f"{tried.input:,} tokens in, {tried.output:,} out"
    return f"{tried.name}: ok ({first}ended after {tried.total:.2f} s; {counts}; {_cost_text(tried.cost)})"


def _embedding_text(tried: Embedding) -> str:
    if not tried.ok:
        return f"{tried.name}: failed: {tried.why}"
    size = f"{tried.dimensions:,} dimensions after {tried.total:.2f} s"
    return f"{tried.name}: ok ({size}; {tried.input:,} tokens in; {_cost_text(tried.cost)})"


def _cost_text(cost: float | None) -> str:
    return "price not known" if cost is None else dollars(cost)
