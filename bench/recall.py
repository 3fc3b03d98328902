"""How well facts are found, on our own questions (tests/memory/evaluation), and what it costs.

    .venv/bin/python bench/recall.py            # recall@1 and @5: words, vectors, plain rank fusion, and both as one
    .venv/bin/python bench/recall.py --cost     # CPU of recall with 0, 100 and 20,000 facts, on SQLite and PostgreSQL

`--postgres URL` names a server for the second, else SQLite alone is measured.
"""

import argparse
import asyncio
import random
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from msgspec import Struct

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.memory.evaluation import KINDS, NEGATIVE, Question, facts, questions

from everloop.memory.minilm import MiniLM
from everloop.memory.ranking import (
    FOUND,
    HOLDERS,
    TOLD,
    WORDS,
    Ranked,
    ranked,
    shares_of,
    worth_telling,
)
from everloop.memory.recall import NEAREST, Recall
from everloop.memory.vectors import VectorIndex, packed
from everloop.ports.fact_search import FactVector, WordHolders
from everloop.ports.memory import Fact, MemoryChange
from everloop.ports.provider import Embeddings
from everloop.readings.words import terms_of

RRF = 60


class Score(Struct, frozen=True):
    first: float
    five: float
    false: float  # negatives for which something was told


class Evaluation:
    """The facts that are true, with their words and vectors."""

    def __init__(self, vectors: Mapping[str, Sequence[float]], asked: Mapping[str, Sequence[float]]) -> None:
        self.facts = [fact for fact in facts() if not fact.until]
        self._asked = asked
        self._near: dict[str, dict[str, float]] = {}
        self._index = VectorIndex()
        self._index.put((fact, packed(vector)) for fact, vector in vectors.items())
        held: dict[str, list[str]] = {}
        for fact in self.facts:
            for word in terms_of(fact.text):
                held.setdefault(word, []).append(fact.id)
        self._held = {word: WordHolders(len(ids), tuple(ids)) for word, ids in held.items() if len(ids) <= HOLDERS}

    def shares(self, question: str) -> dict[str, float]:
        return shares_of(terms_of(question)[:WORDS], self._held, len(self.facts))

    def cosines(self, question: str) -> dict[str, float]:
        if question not in self._near:
            vector = self._asked[question]
            near = {each.fact: each.cosine for each in self._index.nearest(vector, NEAREST)}
            self._near[question] = near | dict(self._index.cosines(vector, self.shares(question)))
        return self._near[question]

    def words(self, question: str) -> list[Ranked]:
        return ranked(self.shares(question), {})

    def vectors(self, question: str) -> list[Ranked]:
        return ranked({}, self.cosines(question))

    def both(self, question: str) -> list[Ranked]:
        return ranked(self.shares(question), self.cosines(question))

    def fused(self, question: str) -> list[Ranked]:
        """Plain reciprocal rank fusion."""
        scores: dict[str, float] = {}
        for way in (self.words(question), self.vectors(question)):
            for place, each in enumerate(way, 1):
                scores[each.fact] = scores.get(each.fact, 0.0) + 1 / (RRF + place)
        return sorted((Ranked(fact, score, 1.0) for fact, score in scores.items()), key=lambda each: -each.score)

    def score(self, way: Callable[[str], list[Ranked]], some: Sequence[Question], least: float = 0.0) -> Score:
        asked = [each for each in some if each.kind != NEGATIVE]
        others = [each for each in some if each.kind == NEGATIVE]

        def told(question: Question) -> list[str]:
            found = way(question.text)
            return [each.fact for each in (worth_telling(found, least, 5) if least else found[:5])]

        answers = [(question.right, told(question)) for question in asked]
        first = sum(bool(right & set(found[:1])) for right, found in answers)
        five = sum(bool(right & set(found)) for right, found in answers)
        false = sum(bool(told(question)) for question in others)
        count = max(1, len(asked))
        return Score(first / count, five / count, false / max(1, len(others)))


async def evaluation(some: Sequence[Question]) -> Evaluation:
    model, known = MiniLM(), [fact for fact in facts() if not fact.until]
    vectors = (await model.embed([fact.text for fact in known])).vectors
    texts = [question.text for question in some]
    asked = (await model.embed(texts)).vectors
    return Evaluation(
        {fact.id: vector for fact, vector in zip(known, vectors, strict=True)},
        dict(zip(texts, asked, strict=True)),
    )


async def tell_quality() -> None:
    made = await evaluation(questions())
    ways = {"words": made.words, "vectors": made.vectors, "rank fusion": made.fused, "both (ours)": made.both}
    for name, half in (("tuned on", False), ("held out", True)):
        some = [question for question in questions() if question.held_out == half]
        print(f"\n{name}: {sum(q.kind != NEGATIVE for q in some)} questions over {len(made.facts)} facts")
        print(f"{'':14}{'@1':>7}{'@5':>7}{'':4}{'told @5':>8}{'false':>7}")
        for way, find in ways.items():
            plain, told = made.score(find, some), made.score(find, some, TOLD)
            gated = f"{told.five:8.3f}{told.false:7.3f}" if way != "rank fusion" else ""
            print(f"{way:14}{plain.first:7.3f}{plain.five:7.3f}{'':4}{gated}")
        found = made.score(made.both, some, FOUND)
        print(f"{'both, asked for':18}{found.first:3.3f}{found.five:7.3f}{'':12}{found.false:7.3f}")
    print("\nheld out, by kind: words, vectors, both (@1 / @5)")
    for kind in KINDS:
        some = [question for question in questions() if question.held_out and question.kind == kind]
        shown = [made.score(find, some) for find in (made.words, made.vectors, made.both)]
        print(f"{kind:12}{len(some):4}  " + "   ".join(f"{each.first:.2f} / {each.five:.2f}" for each in shown))


class _Free:
    """The built-in embedder, at nobody's expense; what it takes is counted apart."""

    def __init__(self) -> None:
        self._model = MiniLM()
        self.seconds = 0.0

    async def model(self) -> str:
        return self._model.name

    async def embed(self, owner: str, texts: Sequence[str]) -> Embeddings:
        began = time.process_time()
        made = await self._model.embed(texts)
        self.seconds += time.process_time() - began
        return made


def many(count: int) -> list[Fact]:
    """The facts of the evaluation, and variations of them with other names and numbers."""
    chance, known = random.Random(7), [fact for fact in facts() if not fact.until]
    made = []
    for number in range(count):
        fact = known[number % len(known)]
        words = [f"{chance.randrange(10 ** len(w))}" if w.isdigit() else w for w in fact.text.split()]
        made.append(Fact(f"n{number:05}", f"{' '.join(words)}, says person{chance.randrange(400)}"))
    return made


async def tell_cost(name: str, opened: Callable[[], Awaitable[object]], rounds: int = 40) -> None:
    store = await opened()
    embedder = _Free()
    recall = Recall(store, embedder)  # type: ignore[arg-type]
    asked = [question.text for question in questions() if question.kind != NEGATIVE][:rounds]
    for count in (0, 100, 20_000):
        owner = f"owner{count}-{time.time():.0f}"
        made = many(count)
        for start in range(0, count, 1000):
            change = MemoryChange("", "measured", facts=tuple(made[start : start + 1000]))
            await store.change_memory(owner, change)  # type: ignore[attr-defined]
        if count:
            vectors = (await embedder.embed(owner, [fact.text for fact in made[:300]])).vectors
            await _keep(store, owner, count, vectors)
        await recall.told(owner, [asked[0]], lambda: "", 1800)
        embedder.seconds, began, wall = 0.0, time.process_time(), time.perf_counter()
        for text in asked:
            await recall.told(owner, [text], lambda: "", 1800)
        spent = (time.process_time() - began - embedder.seconds) / len(asked) * 1000
        took = (time.perf_counter() - wall) / len(asked) * 1000
        each = embedder.seconds / len(asked) * 1000
        print(
            f"{name}: {count:6} facts: {spent:6.2f} ms of CPU a turn, {each:.2f} for the vector, {took:.1f} ms in all"
        )
    await store.close()  # type: ignore[attr-defined]


async def _keep(store: object, owner: str, count: int, vectors: Sequence[Sequence[float]]) -> None:
    """Vectors like those of the facts, each a little different."""
    import numpy as np

    chance, known = np.random.default_rng(11), np.array(vectors)
    for start in range(0, count, 1000):
        ids = range(start, min(count, start + 1000))
        near = known[[n % len(known) for n in ids]] + chance.normal(0, 0.02, (len(ids), known.shape[1]))
        kept = [
            FactVector(f"n{n:05}", start // 1000 + 1, packed(row)) for n, row in zip(ids, near.tolist(), strict=True)
        ]
        await store.keep_vectors(owner, NAME, kept)  # type: ignore[attr-defined]


NAME = MiniLM.name


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--postgres", default="")
    arguments = parser.parse_args()
    if not arguments.cost:
        await tell_quality()
        return
    from everloop.store.sqlite import SqliteStore

    with TemporaryDirectory() as folder:
        await tell_cost("SQLite", lambda: SqliteStore.connect(Path(folder)))
    if arguments.postgres:
        from everloop.store.postgres import PostgresStore

        await tell_cost("PostgreSQL", lambda: PostgresStore.connect(arguments.postgres))


if __name__ == "__main__":
    asyncio.run(main())
