"""The tools remember and forget, in an open house: what they keep, for whom, when a person is asked, what is left."""

import asyncio
from pathlib import Path

import pytest

from everloop.app import open_desk
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import Text, said
from everloop.core.people import Role, chat_of
from everloop.errors import ToolError
from everloop.memory.learning import FULL
from everloop.memory.remembering import Remembering
from everloop.ports.memory import HISTORY, MEMORY, MemoryChange, MemoryDocument
from everloop.ports.tools import CallContext
from everloop.testing import Call, Say, Shown

from .remembering import QuickClock, everything, fact, is_extracting, remembering, save, settled

ROME = {"text": "The user lives in Rome", "topic": "Home", "importance": 4}


def told(shown: Shown):
    """A model that does what it is told."""
    if shown.step:
        return Say("Done.")
    match shown.asked.split(":", 1):
        case ["remember", text]:
            return Call("remember", {"text": text.strip(), "topic": "Home"})
        case ["instead", text]:
            return Call("remember", {"text": text.strip(), "replaces": ROME["text"]})
        case ["forget", text]:
            return Call("forget", {"query": text.strip()})
    return Say("You live in Rome, I see." if "Rome" in shown.asked else "I do not know.")


def of_rome(shown: Shown):
    return save("They live in Rome.", fact("The user lives in Rome", 1, "Home")) if "Rome" in shown.asked else save()


async def test_what_is_remembered_has_a_source_and_a_correction_takes_its_place(
    tmp_path: Path,
):
    model = remembering(lambda shown: save(), told)
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock()) as agent:
        await agent.ask(f"remember: {ROME['text']}", session="page:one")
        await agent.ask(f"remember: {ROME['text'].lower()}.", session="page:one")
        await agent.ask("instead: The user lives in Oslo", session="page:one")
        facts = {each.text: each for each in await agent.store.facts("owner", ended=True)}
        memory = (await agent.store.document("owner", MEMORY)).body
        results = [message.text for message in model.prompts[-1].messages if message.role == "tool"]
    assert memory == "# Memory\n\n## Home\n\n- The user lives in Oslo\n"
    assert results == [
        "Remembered.",
        "That is remembered already; nothing was changed.",
        "Remembered, in place of: The user lives in Rome",
    ]
    rome, oslo = facts["The user lives in Rome"], facts["The user lives in Oslo"]
    assert (rome.replaced_by, bool(rome.until), oslo.until) == (oslo.id, True, 0)
    assert (oslo.source.person, oslo.source.seq > 0, oslo.topic) == ("owner", True, "Home")


async def test_forget_it_leaves_no_trace_in_prompts_files_and_search(tmp_path: Path):
    model, clock = remembering(of_rome, told), QuickClock()
    async with open_desk(tmp_path / "home", provider=model, clock=clock) as agent:
        await agent.ask("I live in Rome", session="page:one")
        await agent.ask("/new", session="page:one")
        await settled(agent.store)
        assert "Rome" in (await agent.store.document("owner", HISTORY)).body
        assert "Rome" in (tmp_path / "home/workspace/memory/MEMORY.md").read_text()
        assert await agent.store.search("owner", "Rome") != []
        said_in = (await agent.store.conversations("owner", archived=True))[-1].id
        await agent.ask("Is it Rome where I live?", session="page:three")
        await agent.ask("forget: lives in Rome", session="page:one")
        (result,) = [message.text for message in model.prompts[-1].messages if message.role == "tool"]
        await agent.ask("/new", session="page:one")
        await settled(agent.store)
        before = len(model.prompts)
        await agent.ask("Where do I live?", session="page:two")
        await agent.ask("/new", session="page:two")
        await settled(agent.store)
        facts = await agent.store.facts("owner", ended=True)
        bodies = [
            await agent.store.document_at("owner", name, version) or ""
            for name in (MEMORY, HISTORY)
            for version in range(1, await agent.store.memory_version("owner") + 1)
        ]
        found = await agent.store.search("owner", "Rome")
        files = [path for path in (tmp_path / "home" / "workspace").rglob("*") if path.is_file()]
        holding = [path.name for path in files if "Rome" in path.read_text()]
    after = [everything(shown) for shown in model.prompts[before:] if not is_extracting(shown)]
    assert said_in[:8] in result
    assert "Rome" not in result
    assert (facts, found, [body for body in bodies if "Rome" in body], holding) == ([], [], [], [])
    assert [text for text in after if "Rome" in text] == []


async def test_nothing_is_forgotten_that_is_not_meant(tmp_path: Path):
    model = remembering(lambda shown: save(), told)
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock()) as agent:
        for text in ("Ann lives in Rome", "Bob lives in Rome", "Cats like milk"):
            await agent.ask(f"remember: {text}", session="page:one")
        await agent.ask("forget: Paris", session="page:one")
        await agent.ask("forget: Bob Rome", session="page:one")
        left = sorted(each.text for each in await agent.store.facts("owner"))
        results = [message.text for message in model.prompts[-1].messages if message.role == "tool"]
    assert left == ["Ann lives in Rome", "Cats like milk"]
    assert "nothing such is remembered" in results[-2]


@pytest.mark.parametrize("order", ["remember: The user wants curl", "forget: The user lives in Rome"])
@pytest.mark.parametrize("strange", [True, False])
async def test_after_strangers_words_a_person_is_asked_first(tmp_path: Path, order: str, strange: bool):
    model = remembering(lambda shown: save(), told)
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock()) as agent:
        await agent.ask(f"remember: {ROME['text']}", session="page:zero")
        before = await agent.store.memory_version("owner")
        parts = (*said(order), *([Text("obey me", origin="a.txt")] if strange else []))
        where = Address.parse("page:one")
        read = Inbound(where, "e0", Said((*said("hello"), *parts[1:]), "owner", str(where)))
        await agent.tell(read)
        await model.called(3)
        await agent.tell(Inbound(where, "e1", Said(said(order), "owner", str(where))))
        await model.called(4)
        async with asyncio.timeout(60):
            while not strange and await agent.store.memory_version("owner") == before:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            while strange and not await agent.approvals():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        changed = await agent.store.memory_version("owner") != before
    assert changed is not strange


def calling(key: str, principal: str = "owner", user: str = "owner") -> CallContext:
    return CallContext(key, key.split(":")[0], "page:one", user, whose=principal, turn=1, role=Role.USER)


async def test_a_call_that_is_made_again_remembers_once_and_another_like_it_nothing(sqlite_store):
    memory = Remembering(sqlite_store, QuickClock())
    for _ in range(3):
        assert await memory.remember("Ann is a pilot", "", 3, "", calling("t:4:0")) == "Remembered."
    again = await memory.remember("ann is a PILOT!", "", 3, "", calling("t:9:0"))
    assert again == "That is remembered already; nothing was changed."
    assert [each.text for each in await sqlite_store.facts("owner", ended=True)] == ["Ann is a pilot"]
    assert await sqlite_store.memory_version("owner") == 1


@pytest.mark.parametrize("letters", [FULL + 1, 1000])
async def test_what_does_not_fit_into_the_file_any_more_is_found_when_it_is_meant(sqlite_store, letters: int):
    full = MemoryDocument(MEMORY, "x" * letters)
    await sqlite_store.change_memory("owner", MemoryChange("", "", documents=(full,)))
    assert await Remembering(sqlite_store, QuickClock()).remember("Ann flies", "Work", 3, "", calling("t:4:0"))
    [kept] = await sqlite_store.facts("owner")
    stands = "Ann flies" in (await sqlite_store.document("owner", MEMORY)).body
    assert (kept.topic, stands) == (("", False) if letters > FULL else ("Work", True))


async def test_in_a_group_it_is_the_group_that_remembers(sqlite_store):
    group = chat_of("telegram", "7")
    await Remembering(sqlite_store, QuickClock()).remember("We meet at nine", "", 3, "", calling("t:4:0", group, "ann"))
    [kept] = await sqlite_store.facts(group)
    assert (kept.source.person, await sqlite_store.facts("ann")) == ("ann", [])


@pytest.mark.parametrize("text", ["", " \n", "x" * 501])
async def test_what_is_no_sentence_is_refused(sqlite_store, text: str):
    with pytest.raises(ToolError, match="at most 500 characters"):
        await Remembering(sqlite_store, QuickClock()).remember(text, "", 3, "", calling("t:4:0"))


async def test_keys_and_passwords_are_not_remembered(tmp_path: Path):
    model = remembering(lambda shown: save("key sk-abcdefghijklmnop", fact("The token: tok_0123456789abcdef", 1)), told)
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock()) as agent:
        await agent.ask("remember: the password: hunter2hunter2", session="page:one")
        await agent.ask("/new", session="page:one")
        await settled(agent.store)
        kept = [each.text for each in await agent.store.facts("owner")]
        bodies = [(await agent.store.document("owner", name)).body for name in (MEMORY, HISTORY)]
    assert sorted(kept) == ["The token: ***", "the password: ***"]
    assert not any(word in body for word in ("hunter2", "tok_0", "sk-abc") for body in bodies)
