"""Makes a conversation part of the memory: a job that asks a small model what is to be remembered of what is new.

A long conversation is read in excerpts. All that comes of one, with what it has cost and with how far the conversation
is consolidated by it, is one change of the memory: whoever is killed before it has changed nothing and is asked again,
and nobody does it twice. What no model can tell is kept as people have said it, so that nothing is skipped in silence.
"""

import logging
import random
import re
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import structs

from ..core.log import MANY
from ..core.people import Role, is_chat
from ..core.prompt import Prompt, Usage
from ..errors import Postponed, ProviderError, ThreadGone
from ..ports import Archive, Clock, Ledger, Log, Memory, People
from ..ports.consolidation import Consolidations
from ..ports.fact_search import FactWords
from ..ports.failpoint import reach
from ..ports.jobs import JobRow
from ..ports.memory import HISTORY, MEMORY, Fact
from ..ports.memory_model import MemoryAnswer, MemoryModel
from ..ports.rows import Spent
from ..readings.words import terms_of
from .extraction import SavedMemory, Unusable, prompt_for, read_answer
from .learning import (
    Changed,
    Lesson,
    MemoryState,
    Redact,
    change_for,
    history_text,
    learned,
    nearest,
    tell_nobody,
    topics_in,
)
from .material import ROOM, Excerpt, first_excerpt

_log = logging.getLogger("everloop.memory")

PURPOSE = "memory"  # what a model was asked for, as usage tells it
KNOWN = 60  # facts that a model is shown
WORDS = 100  # by which those are found
TRIES = 2  # of a model whose answer cannot be used
PATIENCE = 3 * 86400.0  # seconds for which a model is asked that does not answer
FIRST, LONGEST = 60.0, 6 * 3600.0  # seconds between two tries
AT_ONCE = 2  # conversations, in this process
SOON = 5.0  # seconds
OFF = 3600.0  # after which it is looked whether memory is switched on again
_SILENT = "no answer since"
_SINCE = re.compile(rf"{_SILENT} (\d+)")
_FOR_GOOD = ("request", "overflow")  # errors by which a host says that it will never answer this


class ConsolidationStore(Log, Archive, Memory, FactWords, Consolidations, Ledger, Protocol):
    """What it asks of the store."""


class Consolidation:
    """`work` is the Worker of its jobs; a job is named after the conversation and its last entry (`planning`)."""

    def __init__(
        self,
        store: ConsolidationStore,
        people: People,
        clock: Clock,
        model: MemoryModel,
        *,
        enabled: Callable[[], bool],
        redact: Redact = str,
        changed: Changed = tell_nobody,
    ) -> None:
        self._store = store
        self._people = people
        self._clock = clock
        self._model = model
        self._enabled = enabled
        self._redact = redact
        self._changed = changed
        self._working = 0

    async def work(self, row: JobRow) -> str:
        """Says in a word what came of it, and nothing of what was said. Raises Postponed, StoreError."""
        if not self._enabled():
            raise Postponed(_still(row, "memory is switched off"), OFF)
        if self._working >= AT_ONCE:  # other work is not to wait for models
            raise Postponed(_still(row, "others are consolidated first"), SOON * (1 + random.random()))
        self._working += 1
        try:
            parts = await self._work(row)
        except ThreadGone:
            return "the conversation is gone"
        finally:
            self._working -= 1
        return f"consolidated in {parts} part{'s' if parts != 1 else ''}" if parts else "nothing to remember"

    async def _work(self, row: JobRow) -> int:
        thread, head, parts = row.job.payload, int(row.job.id.rpartition(":")[2]), 0
        while excerpt := await self._next(thread, head):
            reach("consolidation.read")
            parts += await self._consolidate(row, excerpt)
        return parts

    async def _next(self, thread: str, head: int) -> Excerpt | None:
        """What comes next of a conversation; None where nothing does, or people have put it aside."""
        after = await self._store.consolidated(thread)
        if after >= head:
            return None
        row = (await self._store.open(thread, MANY)).row
        if not any(found.id == thread for found in await self._store.conversations(row.owner, id=thread)):
            return None
        begins = max(1, await self._store.folded(thread, after))
        written = await self._store.history(thread, begins - 1, head - begins + 1)
        if not written or written[-1].seq <= after:
            return None
        room = min(ROOM, await self._room())
        return first_excerpt(thread, row.session, row.owner, written, after, room, await self._store.hidden(thread))

    async def _room(self) -> int:
        try:
            return await self._model.room()
        except ProviderError:  # whoever asks it says so
            return ROOM

    async def _consolidate(self, row: JobRow, excerpt: Excerpt) -> int:
        """How many excerpts were remembered of."""
        if not await self._may_remember(excerpt.principal) or not (excerpt.has_people or excerpt.hides):
            await self._store.pass_over(excerpt.thread, excerpt.after, excerpt.upto)
            return 0
        if not excerpt.has_people:
            return await self._remember(row, excerpt, [], None, None)
        known = await self._known(excerpt)
        saved, spent = await self._saved(row, excerpt, known)
        reach("consolidation.answered")
        topics = topics_in((await self._store.document(excerpt.principal, MEMORY)).body)
        lessons = learned(saved, excerpt, known, topics) if saved else []
        return await self._remember(row, excerpt, lessons, saved, spent)

    async def _may_remember(self, principal: str) -> bool:
        """Guests are nobody's acquaintances: nothing is kept of them."""
        return is_chat(principal) or await self._people.role(principal) >= Role.USER

    async def _remember(
        self, row: JobRow, excerpt: Excerpt, lessons: Sequence[Lesson], saved: SavedMemory | None, spent: Spent | None
    ) -> int:
        """One change; made anew for as long as somebody else was quicker with theirs."""
        while await self._store.consolidated(excerpt.thread) == excerpt.after:
            change = change_for(
                excerpt,
                lessons,
                history_text(saved, excerpt),
                await self._state(excerpt.principal, lessons),
                raw=saved is None and excerpt.has_people,
                redact=self._redact,
                spent=spent,
                job=row.job.id,
            )
            reach("consolidation.writing")
            if await self._store.change_memory(excerpt.principal, change):
                reach("consolidation.written")
                await self._changed(excerpt.principal)
                return 1
        if spent:  # another has done it, and both were paid
            await self._store.add_spent(excerpt.principal, excerpt.thread, spent, PURPOSE)
        return 0

    async def _saved(
        self, row: JobRow, excerpt: Excerpt, known: Sequence[Fact]
    ) -> tuple[SavedMemory | None, Spent | None]:
        """What a model wants remembered (None: nobody can tell) and what that has cost. Raises Postponed."""
        wrong, spent = "", None
        for _ in range(TRIES):
            try:
                answer = await self._ask(row, excerpt, prompt_for(excerpt, known, wrong))
            except Postponed:
                if spent:
                    await self._store.add_spent(excerpt.principal, excerpt.thread, spent, PURPOSE)
                raise
            if answer is None:
                break
            spent = _summed(spent, answer.spent)
            try:
                return read_answer(answer.reply, excerpt, known), spent
            except Unusable as error:
                wrong = str(error)
        _log.warning("conversation %s is remembered as it was said, for no model can tell what of it", excerpt.thread)
        return None, spent

    async def _ask(self, row: JobRow, excerpt: Excerpt, prompt: Prompt) -> MemoryAnswer | None:
        try:
            return await self._model.ask(excerpt.principal, excerpt.owner, excerpt.thread, row.job.id, prompt)
        except (ProviderError, TimeoutError) as error:
            kind = error.kind if isinstance(error, ProviderError) else "timeout"
            found, now = _SINCE.search(row.result), self._clock.now()
            since = float(found[1]) if found else now
            if kind in _FOR_GOOD or now - since >= PATIENCE:
                return None
            pause = min(LONGEST, FIRST * 2 ** min(row.attempts - 1, 16)) * (0.75 + random.random() / 4)
            raise Postponed(f"{_SILENT} {since:.0f} ({kind})", pause) from error

    async def _known(self, excerpt: Excerpt) -> list[Fact]:
        """What is known that the excerpt may be about. Strangers' words are not among it."""
        text = " ".join(line.text for line in excerpt.lines)
        found = await self._holding(excerpt.principal, terms_of(text)[:WORDS])
        return nearest((fact for fact in found if not fact.marked), excerpt, KNOWN)

    async def _state(self, principal: str, lessons: Sequence[Lesson]) -> MemoryState:
        words = dict.fromkeys(word for lesson in lessons for word in terms_of(lesson.fact.text))
        alike = await self._holding(principal, list(words)[:WORDS]) if lessons else []
        replaced = [lesson.replaces for lesson in lessons if lesson.replaces]
        more = await self._store.facts(principal, ids=replaced) if replaced else []
        memory, history = [await self._store.document(principal, name) for name in (MEMORY, HISTORY)]
        return MemoryState(memory, history, list({fact.id: fact for fact in (*alike, *more)}.values()))

    async def _holding(self, principal: str, words: Sequence[str]) -> list[Fact]:
        """All facts where there are few, else those that hold most of these words."""
        newest = await self._store.facts(principal, limit=KNOWN + 1)
        return newest if len(newest) <= KNOWN else await self._store.facts_holding(principal, words, 2 * KNOWN)


def _still(row: JobRow, why: str) -> str:
    """Why it waits, and since when no model has answered: else one that never does would be asked for ever."""
    found = _SINCE.search(row.result)
    return f"{why}; {found[0]}" if found else why


def _summed(one: Spent | None, other: Spent) -> Spent:
    if one is None:
        return other
    costs = [each for each in (one.cost, other.cost) if each is not None]
    usage: Usage = one.usage + other.usage
    return structs.replace(other, usage=usage, cost=sum(costs) if len(costs) == 2 else None)
