"""What the tools `remember` and `forget` do: one change of the memory each, under the name of the call."""

from collections.abc import Iterable
from hashlib import sha256

from msgspec import structs

from ..errors import ToolError
from ..ports import Clock
from ..ports.memory import MEMORY, Fact, FactEnd, FactSource, MemoryChange, MemoryDocument
from ..ports.tools import CallContext
from ..readings.words import terms_of, words_of
from .extraction import TOPIC
from .forgetting import ForgettingStore, forget
from .learning import FULL, NOTES, Changed, Redact, tell_nobody
from .lines import LONGEST, one_line, replaced_line, with_line

WHY = "the agent was told to remember something"
FEW = 8  # facts that are forgotten at once; whoever means more says which
ALIKE = 200  # facts that are looked at


class Remembering:
    def __init__(
        self, store: ForgettingStore, clock: Clock, redact: Redact = str, changed: Changed = tell_nobody
    ) -> None:
        self._changed = changed
        self._store = store
        self._clock = clock
        self._redact = redact

    async def remember(self, text: str, topic: str, importance: int, replaces: str, context: CallContext) -> str:
        """Once, however often the call is run. Raises ToolError."""
        too_long = len(text) > LONGEST
        text, topic = one_line(self._redact(text)), one_line(self._redact(topic))[:TOPIC]
        if not text or too_long:
            raise ToolError(f"what is to be remembered is one sentence of at most {LONGEST} characters")
        owner, id = context.principal, sha256(context.key.encode()).hexdigest()[:16]
        while True:  # until nobody was quicker
            if await self._store.facts(owner, ids=[id], ended=True):
                return "Remembered."
            if any(words_of(fact.text) == words_of(text) for fact in await self.meant(owner, text)):
                return "That is remembered already; nothing was changed."
            old = await self._replaced(owner, replaces) if replaces else None
            fact = Fact(id, text, self._source(context), topic or (old.topic if old else "") or NOTES, importance)
            if await self._store.change_memory(owner, await self._change(fact, old, context)):
                await self._changed(owner)
                return f"Remembered, in place of: {old.text}" if old else "Remembered."

    async def forget(self, query: str, context: CallContext) -> str:
        """Raises ToolError where nothing is meant, or too much."""
        found = await self.meant(context.principal, query)
        if not found:
            raise ToolError("nothing such is remembered; use its own words, as they stand in the memory")
        if len(found) > FEW:
            shown = "\n".join(f"- {fact.text}" for fact in found[:FEW])
            raise ToolError(f"{len(found)} facts hold these words; say which of them is meant, as:\n{shown}")
        asked = [(context.thread, seq) for seq in (context.turn, int(context.key.split(":")[1]))]
        done = await forget(self._store, context.principal, context.user, [fact.id for fact in found], asked)
        await self._changed(context.principal)
        return done.told()

    async def meant(self, owner: str, query: str) -> list[Fact]:
        """The facts that say just this; else those that hold all its words. Those of strangers' words are among them,
        and those that are true no longer."""
        words = terms_of(query)
        alike = await self._store.facts_holding(owner, words, ALIKE, ended=True)
        held = [fact for fact in alike if {*words} <= {*terms_of(f"{fact.topic} {fact.text}")}]
        named = await self._store.facts(owner, ids=[query.strip()], ended=True)
        return named or _exact(held, query) or held

    async def _replaced(self, owner: str, said: str) -> Fact:
        found = [fact for fact in await self.meant(owner, said) if not fact.until]
        if len(found) != 1:
            many = "several facts hold" if found else "no fact holds"
            raise ToolError(f"{many} the words of `replaces`; say it as it stands in the memory, or leave it out")
        return found[0]

    def _source(self, context: CallContext) -> FactSource:
        return FactSource(context.thread, context.turn, context.user, self._clock.now())

    async def _change(self, fact: Fact, old: Fact | None, context: CallContext) -> MemoryChange:
        memory = await self._store.document(context.principal, MEMORY)
        if old:
            body = replaced_line(memory.body, old.text, fact.text, fact.topic)
        elif len(memory.body) > FULL:  # it is found when it is meant
            body, fact = memory.body, structs.replace(fact, topic="")
        else:
            body = with_line(memory.body, fact.text, fact.topic)
        return MemoryChange(
            author=context.user,
            why=WHY,
            facts=(fact,),
            ended=(FactEnd(old.id, fact.source.at, fact.id),) if old else (),
            documents=(MemoryDocument(MEMORY, body, memory.version),),
        )


def _exact(facts: Iterable[Fact], query: str) -> list[Fact]:
    return [fact for fact in facts if words_of(fact.text) == words_of(query)]
