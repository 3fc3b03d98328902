"""What tests of consolidation share: a time of their own, a model that says what is to be remembered, a way to wait."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from everloop.memory.planning import EVERY
from everloop.ports import Store
from everloop.runtime.scheduler import POLL
from everloop.testing import Call, Line, Say, ScriptedModel, Shown

NOON = 1_794_830_400.0  # when no day ends soon
EXTRACTS = "You keep the memory of an assistant."


class QuickClock:
    """A time that a test moves on; whoever sleeps is awake in a moment."""

    def __init__(self) -> None:
        self.time = NOON
        self.slept: Counter[float] = Counter()
        self.slow = False  # whether a minute is one

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept[seconds] += 1
        await asyncio.sleep(seconds if self.slow else 0.002)


def is_extracting(shown: Shown) -> bool:
    return shown.system.startswith(EXTRACTS)


def save(entry: str = "They talked.", *facts: dict[str, Any]) -> Call:
    return Call("save_memory", {"history_entry": entry, "facts": list(facts)})


def fact(text: str, entry: int = 1, topic: str = "Ann", importance: int = 3, **more: Any) -> dict[str, Any]:
    return {"text": text, "topic": topic, "importance": importance, "entry": entry, **more}


def remembering(extract: Callable[[Shown], Line], answer: Callable[[Shown], Line] = lambda shown: Say("fine")):
    """A model that answers, and says what is to be remembered when it is asked that."""
    return ScriptedModel(lambda shown: extract(shown) if is_extracting(shown) else answer(shown))


def extractions(model: ScriptedModel) -> list[Shown]:
    return [shown for shown in model.prompts if is_extracting(shown)]


def turns(model: ScriptedModel) -> list[Shown]:
    return [shown for shown in model.prompts if not is_extracting(shown)]


def everything(shown: Shown) -> str:
    """All that a model was shown at a call."""
    calls = [call.args for message in shown.messages for call in message.calls]
    return "\n".join((shown.system, shown.tail, *(message.text for message in shown.messages), *calls))


async def settled(store: Store, *owners: str) -> None:
    """Until no consolidation waits or is worked on."""
    async with asyncio.timeout(60):
        while True:
            unplanned = await store.unconsolidated(1e12, 10**9, 10)
            jobs = [row for owner in owners or ("owner",) for row in await store.jobs(owner)]
            states = {row.state for row in jobs if row.job.kind == "consolidate"}
            if not unplanned and not states & {"waiting", "working"}:
                return
            await asyncio.sleep(0.01)


def texts(facts: Sequence[Any]) -> list[str]:
    return [each.text for each in facts]


async def pass_time(clock: QuickClock, seconds: float = 0.0) -> None:
    """Let time pass, and whoever looks around every minute or second do so, with all that came of it."""
    clock.time += seconds
    for period in (EVERY, POLL, EVERY, POLL):
        until = clock.slept[period] + 2
        while clock.slept[period] < until:  # noqa: ASYNC110
            await asyncio.sleep(0.001)
