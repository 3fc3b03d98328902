"""`everloop memory` as people run it."""

import asyncio

import msgspec
from tests.cli.person import Person, Ran

from everloop.ports.memory import HISTORY, MEMORY, Fact, FactSource, MemoryChange, MemoryDocument
from everloop.store.sqlite import SqliteStore

BODY = "# Memory\n\n## Ann\n\n- Ann lives in Rome\n- Ann likes tea\n"


async def remember(person: Person) -> None:
    person.home.mkdir(exist_ok=True)
    store = await SqliteStore.connect(person.home)
    facts = (
        Fact("aaaa1111", "Ann lives in Rome", FactSource(person="owner", at=1.0), "Ann", 5),
        Fact("bbbb1111", "Ann likes tea", FactSource(person="owner", at=1.0), "Ann"),
    )
    documents = (MemoryDocument(MEMORY, BODY), MemoryDocument(HISTORY, "- Ann lives in Rome, she said\n"))
    assert await store.change_memory("owner", MemoryChange("", "consolidated", facts=facts, documents=documents))
    await store.close()


async def test_where_nothing_is_remembered_it_says_so(person: Person):
    file = person.home / "workspace" / "memory" / MEMORY
    told = f"Nothing is remembered yet. Tell the agent something to remember, or write it into {file}.\n"
    assert await person.run("memory") == Ran(0, told, "")
    assert await person.run("memory", "log") == Ran(0, "Nothing is remembered yet.\n", "")
    assert not (person.home / "workspace" / "memory").exists()


async def test_one_looks_edits_goes_back_and_forgets(person: Person):
    await remember(person)
    file = person.home / "workspace" / "memory" / MEMORY
    told = (await person.run("memory")).out
    assert "Facts: 2 true, 0 no longer" in told
    assert str(file.parent) in told
    assert await person.run("memory", "show") == Ran(0, BODY, "")
    file.write_text(BODY.replace("Rome", "Oslo"))
    log = msgspec.json.decode((await person.run("memory", "log", "--json")).out)
    assert [(each["version"], each["why"]) for each in log["versions"]] == [(2, "edited by hand"), (1, "consolidated")]
    assert "-- Ann lives in Rome\n+- Ann lives in Oslo" in (await person.run("memory", "diff")).out
    restored = await person.run("memory", "restore", "1")
    assert restored.out == "MEMORY.md is again as in version 1; this is version 3.\n"
    assert file.read_text() == BODY
    assert "Ann lives in Rome" in (await person.run("memory", "search", "where", "is", "rome")).out
    refused = await person.run("memory", "forget", "Rome")
    assert (refused.status, "--yes" in refused.err) == (2, True)
    assert (await person.run("memory", "forget", "Rome", "--yes")).out.startswith("1 fact is forgotten")
    found = [
        (await person.run("memory", "show", "--document", "history")).out,
        (await person.run("memory", "show", "--version", "1")).out,
        (await person.run("memory", "facts", "--ended", "--json")).out,
        file.read_text(),
    ]
    assert ["Rome" in each for each in found] == [False] * 4


async def test_an_editor_changes_it_and_what_was_written_meanwhile_stays(person: Person):
    await remember(person)
    await person.run("memory")
    file = person.home / "workspace" / "memory" / MEMORY
    person.environment["EDITOR"] = f'sh -c \'echo "- meanwhile" >> {file}; sed -i s/tea/coffee/ "$0"\''
    assert (await person.run("memory", "edit")).out == "MEMORY.md is changed; this is version 3.\n"
    assert file.read_text() == BODY.replace("tea", "coffee") + "- meanwhile\n"
    del person.environment["EDITOR"]
    assert "set EDITOR" in (await person.run("memory", "edit")).err


async def test_wrong_use_is_told_in_a_sentence(person: Person):
    asked = [
        ("memory", "show", "--document", "FOO"),
        ("memory", "show", "--version", "9"),
        ("memory", "diff", "1", "2", "3"),
        ("memory", "restore", "x"),
        ("memory", "log", "--who", "nobody"),
    ]
    ran = await asyncio.gather(*(person.run(*each) for each in asked))
    assert [(bool(each.status), each.out, each.err.count("\n")) for each in ran] == [(True, "", 1)] * 5
    assert "Traceback" not in "".join(each.err for each in ran)


async def test_what_is_left_out_of_prompts_is_told_where_one_looks(person: Person):
    await remember(person)
    await person.run("memory")
    file = person.home / "workspace" / "memory" / MEMORY
    file.write_text(BODY + "".join(f"- a line of no importance, number {number}\n" for number in range(300)))
    assert "lines of MEMORY.md, those that matter least, do not fit" in (await person.run("memory")).out
    assert "lines of MEMORY.md, those that matter least, do not fit" in (await person.run("context")).out
    told = (await person.run("context", "--show", "memory")).out
    assert ("- Ann lives in Rome" in told, len(told) <= 4001, "left out here" in told) == (True, True, True)


async def test_the_groups_that_have_a_memory_are_named_and_one_is_shown(person: Person):
    person.home.mkdir(exist_ok=True)
    store = await SqliteStore.connect(person.home)
    change = MemoryChange("", "consolidated", documents=(MemoryDocument(MEMORY, BODY),))
    assert await store.change_memory("chat:telegram/-7", change)
    await store.close()
    assert "which `--who` shows: chat:telegram/-7." in (await person.run("memory")).out
    assert await person.run("memory", "show", "--who", "chat:telegram/-7") == Ran(0, BODY, "")
