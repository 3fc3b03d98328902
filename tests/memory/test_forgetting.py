"""To forget: what is forgotten stands nowhere any more, and all else stays."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from everloop.memory.forgetting import forget
from everloop.ports.memory import HISTORY, MEMORY, Fact, FactSource, MemoryChange, MemoryDocument
from everloop.ports.remembering import NOTHING, Forgotten, SaidIn
from everloop.store.memory_edits import without_words
from everloop.store.sqlite import SqliteStore
from tests.store.test_memory import conversation, plain

BODY = "# Memory\n\n## Ann\n\n- Ann lives in Rome.\n- likes tea\n"
THEN = "- 2026-03-01: moved. Ann lives in Rome, she said.\n- 2026-03-02: bought tea\n"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.connect(tmp_path)
    yield store
    await store.close()


async def filled(store: SqliteStore) -> str:
    thread = await conversation(store)
    facts = (
        Fact("f1", "Ann lives in Rome.", FactSource(thread, 2, "owner", 1.0), "Ann"),
        Fact("f2", "likes tea", topic="Ann"),
        Fact("f3", "ann lives in rome.", until=3.0),
    )
    documents = (MemoryDocument(MEMORY, BODY), MemoryDocument(HISTORY, THEN))
    await store.change_memory("owner", MemoryChange("", "said so", facts=facts, documents=documents))
    return thread


async def test_what_is_forgotten_leaves_no_trace_and_where_it_was_said_is_told(store: SqliteStore):
    thread = await filled(store)
    assert len(await store.search("owner", "yes")) == 1
    forgotten = await forget(store, "owner", "owner", ["f1"])
    assert sorted(fact.id for fact in forgotten.facts) == ["f1", "f3"]  # which says the same
    assert (forgotten.version, [each.thread for each in forgotten.said_in]) == (2, [thread])
    assert thread[:8] in forgotten.told()
    assert "Rome" not in forgotten.told()
    assert plain(await store.facts("owner", ended=True)) == [Fact("f2", "likes tea", topic="Ann")]
    left = [await store.document_at("owner", name, version) for name in (MEMORY, HISTORY) for version in (1, 2)]
    memory, history = "# Memory\n\n## Ann\n\n- likes tea\n", "- 2026-03-02: bought tea\n"
    assert left == [memory, memory, history, history]
    assert await store.search("owner", "yes") == []


async def test_a_fact_of_one_word_takes_no_other_line_with_it(store: SqliteStore):
    await filled(store)
    body = BODY + "- tea\n"
    documents = (MemoryDocument(MEMORY, body, 1),)
    await store.change_memory(
        "owner", MemoryChange("", "", facts=(Fact("f4", "tea", topic="Ann"),), documents=documents)
    )
    await forget(store, "owner", "owner", ["f4"])
    assert (await store.document("owner", MEMORY)).body == BODY
    assert (await store.document("owner", HISTORY)).body == THEN


async def test_nobody_forgets_for_another_and_nothing_is_no_change(store: SqliteStore):
    await filled(store)
    assert await forget(store, "ann", "ann", ["f1"]) == Forgotten()
    assert await forget(store, "owner", "owner", []) == Forgotten()
    assert await forget(store, "owner", "owner", ["f9"]) == Forgotten()
    assert Forgotten().told() == NOTHING
    assert (await store.memory_version("owner"), await store.memory_version("ann")) == (1, 0)


async def test_a_change_meanwhile_is_not_lost_by_forgetting(store: SqliteStore):
    await filled(store)

    class Busy(SqliteStore):
        """Somebody else writes a line between the look and the change."""

        async def document(self, owner: str, name: str) -> MemoryDocument:
            found = await store.document(owner, name)
            if found.version == 1:
                theirs = MemoryDocument(MEMORY, BODY + "- is a pilot\n", 1)
                await store.change_memory(owner, MemoryChange("", "", documents=(theirs,)))
            return found

    busy = object.__new__(Busy)
    busy.__dict__ = store.__dict__
    assert (await forget(busy, "owner", "owner", ["f1"])).version == 3
    assert (await store.document("owner", MEMORY)).body == "# Memory\n\n## Ann\n\n- likes tea\n- is a pilot\n"


def test_words_are_found_within_a_line_and_only_as_words():
    text = "- Ann lives in Rome\n- Hann lives in Rome\n- ann lives in romeo\n- so: Ann lives in Rome.\n"
    assert without_words(text, ["Ann lives in Rome"]) == "- Hann lives in Rome\n- ann lives in romeo\n"
    assert without_words("- 住在东京\n- 我住在东京附近\n- 东京\n", ["住在东京"]) == "- 东京\n"
    assert without_words(text, ["", " "]) == text


def test_where_it_was_said_is_told_by_name():
    said = tuple(SaidIn(f"{number:032}", "cli:direct", f"talk {number}") for number in range(12))
    assert "and 2 more" in Forgotten((Fact("f", "x"),), 1, said).told()
