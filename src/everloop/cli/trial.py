"""`everloop models test`: asks a model for an answer and for a tool call. Nothing of it is stored."""

from ..app.presets import Presets
from ..app.records import open_library
from ..app.trial import Embedding, SpokenTrial, Tried, TriedOut, trials_of
from .table import dollars, to_json
from .terminal import Terminal


async def try_model(name: str, as_json: bool, terminal: Terminal) -> int:
    async with open_library() as library:
        trials = await trials_of(name, Presets(library.settings, library.models), library.models, library.budgets)
        if trials.notice:
            terminal.note(trials.notice)
        terminal.note(f"asking {trials.model}")
        tried = []
        for run in trials.run:
            tried.append(await run(terminal.status))
            if not as_json:
                terminal.answer(to_text(tried[-1]))
    if as_json:
        terminal.answer(to_json({"model": trials.model, "checks": tried}))
    return 0 if all(each.ok for each in tried) else 1


def to_text(tried: TriedOut) -> str:
    match tried:
        case Tried():
            return _tried_text(tried)
        case Embedding():
            return _embedding_text(tried)
        case SpokenTrial():
            return _speech_text(tried)


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


def _speech_text(tried: SpokenTrial) -> str:
    if not tried.ok:
        return f"{tried.name}: failed: {tried.why}"
    size = f"{tried.bytes:,} bytes of {tried.mime} after {tried.total:.2f} s"
    return f"{tried.name}: ok ({size}; {_cost_text(tried.cost)})"


def _cost_text(cost: float | None) -> str:
    return "price not known" if cost is None else dollars(cost)
