"""What is remembered goes with the person, also what they said in a group; and they are given it when they ask."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.store.test_erasing import place_of
from tests.store.town import GROUP, Town, dumped

from everloop.ports import Store
from everloop.ports.memory import HISTORY, MEMORY, Fact, FactSource, MemoryChange, MemoryDocument

NAMES = ("anna", "ben")


@pytest.fixture
async def town(home: Any, store: Store, tmp_path: Path) -> Town:
    town = Town(store, place_of(home, tmp_path))
    await town.settle(NAMES)
    (town.folder / "views").mkdir()
    for name in NAMES:
        await remember(town, f"fake:{name}", name)
        (town.folder / "views" / f"fake%3A{name}.json").write_text("{}")
    await remember(town, GROUP, *NAMES)
    return town


async def remember(town: Town, owner: str, *names: str) -> None:
    """A line and a fact of each, the lines one after the other, so that there are versions."""
    body, version = "# Memory\n\n", 0
    for name in names:
        text = f"the remembered word of {name} is plum{name}"
        body += f"- {text}\n"
        fact = Fact(f"f-{name}", text, FactSource(town.group.thread, 2, f"fake:{name}", 5.0), "Memory")
        documents = (MemoryDocument(MEMORY, body, version), MemoryDocument(HISTORY, body, version))
        change = MemoryChange(f"fake:{name}", "said", (fact,), documents=documents)
        version = await town.store.change_memory(owner, change)


async def test_nothing_that_is_remembered_of_them_is_left_and_the_rest_of_a_groups_memory_is(home: Any, town: Town):
    group = "# Memory\n\n- the remembered word of ben is plumben\n"
    gone = await town.erase("Anna")
    assert {what: gone[what] for what in ("facts", "memory documents", "facts in the memory of groups")} == {
        "facts": 1,
        "memory documents": 2,
        "facts in the memory of groups": 1,
    }
    rows = str(await dumped(home))
    assert ("plumanna" in rows, "fake:anna" in rows, "plumben" in rows) == (False, False, True)
    assert [each.name for each in (town.folder / "views").iterdir()] == ["fake%3Aben.json"]
    assert (await town.store.document(GROUP, MEMORY)).body == group
    assert await town.store.document_at(GROUP, HISTORY, 2) == group
    assert [fact.id for fact in await town.store.facts(GROUP)] == ["f-ben"]
    assert [fact.id for fact in await town.store.facts("fake:ben")] == ["f-ben"]


async def test_an_export_holds_the_memory_to_be_read(town: Town):
    files = await town.exported("Anna")
    assert files["memory/MEMORY.md"].decode() == "# Memory\n\n- the remembered word of anna is plumanna\n"
    own, said = (msgspec.json.decode(files[f"memory/{name}"]) for name in ("facts.jsonl", "in-groups.jsonl"))
    assert own["text"] == said["text"] == "the remembered word of anna is plumanna"
    assert own["source"] == {"thread": town.group.thread, "seq": 2, "person": "fake:anna", "at": 5.0}
    assert b"plumanna" in files["tables/facts.csv"]
    assert b"plumben" not in b"".join(files.values())
