"""Gives every fact its vector, as work in the background.

The store says whose facts may lack one of the model that is in force, and a job is kept for each. What was done is kept
batch by batch, so that whoever is interrupted goes on there, and another model begins anew. Until then words answer.
"""

import logging
from collections.abc import Sequence
from typing import Protocol

from ..errors import EverloopError, StoreError
from ..ports.clock import Clock
from ..ports.fact_search import FactVector, FactVectors, PaidEmbedder
from ..ports.jobs import Job, JobRow, Jobs
from ..ports.memory import Fact
from .vectors import packed

_log = logging.getLogger("everloop.recall")

KIND = "embed"
BATCH = 32  # facts at once
PEOPLE = 50  # at once
EVERY = 5.0  # seconds between two looks
MINUTE = 60.0


class NotEmbedded(EverloopError):
    """Some facts have no vector yet, and get it later."""


class EmbeddingStore(FactVectors, Jobs, Protocol):
    """What it asks of the store."""


class FactEmbedding:
    """`run` it under a supervisor, and have `work` done by the scheduler. `owner`: whose facts are seen to; "":
    everyone's."""

    def __init__(self, store: EmbeddingStore, embedder: PaidEmbedder, clock: Clock, owner: str = "") -> None:
        self._store = store
        self._embedder = embedder
        self._clock = clock
        self._owner = owner
        self._is_away = False  # the store
        self._after = ""  # whose the next look begins with: those who wait for long keep nobody else waiting

    async def run(self) -> None:
        while True:
            try:
                await self.plan()
                self._is_away = False
            except StoreError as error:
                if not self._is_away:  # one line for an outage
                    _log.warning("facts get their vectors when the store is back: %s", error)
                self._is_away = True
            await self._clock.sleep(EVERY)

    async def plan(self) -> None:
        """Keep a job for everyone whose facts may lack a vector, unless there is one. Raises StoreError."""
        if not (model := await self._embedder.model()):
            return
        some = await self._store.vectors_behind(model, PEOPLE, self._owner, self._after)
        self._after = some[-1].owner if len(some) == PEOPLE else ""
        for behind in some:
            jobs = await self._store.jobs(behind.owner)
            if not any(row.job.kind == KIND and row.state in ("waiting", "working") for row in jobs):
                # Two processes that look at once name it the same.
                id = f"{KIND}:{behind.owner}:{self._clock.now() // MINUTE:.0f}"
                await self._store.add_job(Job(id, KIND, self._clock.now(), behind.owner))

    async def work(self, row: JobRow) -> str:
        """The Worker. Raises NotEmbedded where it is to be tried again; ProviderError, StoreError."""
        owner, done = row.job.owner, 0
        if not (model := await self._embedder.model()):
            return "nobody makes vectors"
        for behind in await self._store.vectors_behind(model, 1, owner):
            while facts := await self._store.unembedded(owner, model, BATCH):
                await self._store.keep_vectors(owner, model, await self._made(owner, model, facts))
                done += len(facts)
            await self._store.all_embedded(owner, model, behind.version)
        return f"{done} vectors" if done else "nothing"

    async def _made(self, owner: str, model: str, facts: Sequence[Fact]) -> list[FactVector]:
        made = await self._embedder.embed(owner, [fact.text for fact in facts])
        if made is None:
            raise NotEmbedded("there is no room for it in the budget")
        if made.model != model:
            raise NotEmbedded("another model makes the vectors since")
        packs = map(packed, made.vectors)
        return [FactVector(fact.id, fact.version, vector) for fact, vector in zip(facts, packs, strict=True)]
