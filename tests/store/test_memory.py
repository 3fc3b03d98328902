"""What is remembered: both stores keep each change as one version, by principal, all or none."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.store.test_store import append, heard, received

from everloop.core.log import ModelSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.prompt import Usage
from everloop.ports import Store
from everloop.ports.conversation import Branch
from everloop.ports.jobs import CONSOLIDATE, Job
from everloop.ports.memory import (
    HISTORY,
    MEMORY,
    Consolidated,
    Fact,
    FactEnd,
    FactSource,
    MemoryChange,
    MemoryDocument,
)
from everloop.ports.rows import Lease, Spent
from everloop.store.memory_edits import edit_between, undone

OSLO = Fact("f2", "Ann lives in Oslo", FactSource("t", 7, "ann", 200.0), "Ann", 4)
ROME = Fact("f1", "Ann lives in Rome", FactSource("t", 3, "ann", 100.0), "Ann", 4)


def change(**parts) -> MemoryChange:
    return MemoryChange("ann", "said so", **parts)


def plain(facts: list[Fact]) -> list[Fact]:
    """Without what the store tells."""
    return [structs.replace(fact, at=0.0, version=0) for fact in facts]


async def conversation(store: Store) -> str:
    receipt = await received(store)
    lease = Lease(receipt.thread)
    await append(store, lease, heard(receipt.id), ModelSaid("yes"), absorbed=[receipt.id], ended=[(receipt.id, 2)])
    await append(store, lease, release=True, state="resting")
    return receipt.thread


async def test_each_change_is_a_version_with_who_made_it_and_what_it_changed(store: Store):
    assert (await store.memory_version("ann"), await store.memory_versions("ann")) == (0, [])
    assert await store.change_memory("ann", change(facts=(ROME,), documents=(MemoryDocument(MEMORY, "one\n"),))) == 1
    assert await store.change_memory("ann", change(documents=(MemoryDocument(HISTORY, "then\n"),))) == 2
    assert await store.change_memory("ann", change(documents=(MemoryDocument(MEMORY, "one\ntwo\n", 1),))) == 3
    told = [(each.version, each.author, each.why, each.documents) for each in await store.memory_versions("ann")]
    assert told == [
        (3, "ann", "said so", (MEMORY,)),
        (2, "ann", "said so", (HISTORY,)),
        (1, "ann", "said so", (MEMORY,)),
    ]
    assert await store.document("ann", MEMORY) == MemoryDocument(MEMORY, "one\ntwo\n", 3)
    assert [await store.document_at("ann", MEMORY, version) for version in range(5)] == [
        None, "one\n", "one\n", "one\ntwo\n", None,
    ]  # fmt: skip


async def test_a_document_that_was_changed_meanwhile_is_not_written_over_and_nothing_else_is_done(store: Store):
    await store.change_memory("ann", change(documents=(MemoryDocument(MEMORY, "mine\n"),)))
    late = change(facts=(OSLO,), documents=(MemoryDocument(MEMORY, "theirs\n"),))
    assert await store.change_memory("ann", late) == 0
    assert await store.facts("ann") == []
    assert (await store.document("ann", MEMORY)).body == "mine\n"
    assert await store.memory_version("ann") == 1


async def test_what_is_replaced_stays_and_is_no_longer_true(store: Store):
    await store.change_memory("ann", change(facts=(ROME,)))
    await store.change_memory("ann", change(facts=(OSLO,), ended=(FactEnd("f1", 200.0, "f2"),)))
    assert plain(await store.facts("ann")) == [OSLO]
    ended = structs.replace(ROME, until=200.0, replaced_by="f2")
    assert plain(await store.facts("ann", ended=True, ids=["f1", "f2"])) == [ended, OSLO]
    assert await store.count_facts("ann") == 1


async def test_nobody_finds_what_is_another_s(store: Store):
    await store.change_memory("ann", change(facts=(ROME,), documents=(MemoryDocument(MEMORY, "mine\n"),)))
    assert await store.facts("bob") == []
    assert await store.facts("bob", ids=["f1"], ended=True) == []
    assert (await store.word_holders("bob", ["rom"], 10), await store.count_facts("bob")) == ({}, 0)
    assert await store.document("bob", MEMORY) == MemoryDocument(MEMORY)
    assert await store.document_at("bob", MEMORY, 1) is None
    assert (
        await store.change_memory("bob", change(removed=("f1",), ended=(FactEnd("f1", 1.0),), forgets=("mine",))) == 1
    )
    assert plain(await store.facts("ann")) == [ROME]
    assert (await store.document("ann", MEMORY)).body == "mine\n"


async def test_what_is_forgotten_stands_nowhere_not_even_in_earlier_versions(store: Store):
    bodies = ["a\n", "a\n- Ann lives in Rome\n", "a\n- Ann lives in Rome\nb\n", "b\n"]
    for version, body in enumerate(bodies):
        await store.change_memory("ann", change(facts=(ROME,), documents=(MemoryDocument(MEMORY, body, version),)))
    assert await store.change_memory("ann", change(removed=("f1",), forgets=("lives in rome",))) == 5
    assert [await store.document_at("ann", MEMORY, each) for each in range(1, 6)] == [
        "a\n",
        "a\n",
        "a\nb\n",
        "b\n",
        "b\n",
    ]
    assert await store.facts("ann", ended=True) == []
    assert (await store.word_holders("ann", ["rom"], 10), await store.count_facts("ann")) == ({}, 0)


async def test_an_entry_that_is_hidden_is_found_by_nobody(store: Store):
    thread = await conversation(store)
    assert [hit.seq for hit in await store.search("owner", "yes")] == [2]
    await store.change_memory("bob", change(hidden=((thread, 2),)))  # whose it is not
    assert [hit.seq for hit in await store.search("owner", "yes")] == [2]
    await store.change_memory("owner", change(hidden=((thread, 2),)))
    assert await store.search("owner", "yes") == []
    assert (await store.recall(thread, ["yes"], 2, 10)).entries == []


async def test_entries_are_consolidated_once_and_paid_for_with_it(store: Store):
    thread = await conversation(store)
    [waiting] = await store.unconsolidated(0.0, 100, 10)
    assert (waiting.thread, waiting.owner, waiting.after, waiting.head) == (thread, "owner", 0, 2)
    assert await store.unconsolidated(3600.0, 3, 10) == []
    assert [each.thread for each in await store.unconsolidated(3600.0, 2, 10)] == [thread]
    assert await store.unconsolidated(0.0, 100, 10, owner="ann") == []
    done = change(facts=(ROME,), consolidated=Consolidated(thread, 0, 2), spent=Spent(0, "m", Usage(10, 5)))
    assert await store.change_memory("owner", done) == 1
    assert await store.change_memory("owner", structs.replace(done, facts=(OSLO,))) == 0
    assert await store.change_memory("ann", structs.replace(done, consolidated=Consolidated(thread, 2, 3))) == 0
    assert (plain(await store.facts("owner")), await store.consolidated(thread)) == ([ROME], 2)
    assert await store.unconsolidated(0.0, 1, 10) == []
    [row] = await store.spent()
    assert (row.purpose, row.usage) == ("memory", Usage(10, 5))


@pytest.mark.parametrize("replaces", [False, True])
async def test_what_a_branch_shares_is_remembered_once(store: Store, replaces: bool):
    thread = await conversation(store)
    await store.change_memory("owner", change(consolidated=Consolidated(thread, 0, 1)))
    [found] = await store.conversations("owner")
    branch = Branch("b" * 32, (ModelSaid("no"),), 3, parent=thread, at=2, replaces=replaces)
    assert await store.perform("owner", found.session, branch)
    waiting = {each.thread: each.after for each in await store.unconsolidated(0.0, 100, 10)}
    assert waiting == ({"b" * 32: 1} if replaces else {thread: 1, "b" * 32: 2})


@given(st.lists(st.text("ab\n", max_size=12), min_size=2, max_size=6))
def test_every_earlier_text_is_found_again_from_the_last(texts: list[str]):
    edits = [edit_between(after, before) for before, after in pairwise(texts)]
    text = texts[-1]
    for edit, before in zip(reversed(edits), reversed(texts[:-1]), strict=True):
        text = undone(text, edit)
        assert text == before


async def test_facts_are_found_by_most_of_their_words(store: Store):
    await store.change_memory("ann", change(facts=(ROME, OSLO)))
    await store.change_memory("ann", change(ended=(FactEnd("f1", 200.0, "f2"),)))
    assert plain(await store.facts_holding("ann", ["ann", "oslo", "rom"], 10)) == [OSLO]
    both = await store.facts_holding("ann", ["liv", "rom"], 10, ended=True)
    assert [fact.id for fact in both] == ["f1", "f2"]
    assert [fact.id for fact in await store.facts_holding("ann", ["liv", "rom"], 1, ended=True)] == ["f1"]
    assert (await store.facts_holding("bob", ["rom"], 10, ended=True), await store.facts_holding("ann", [], 10)) == (
        [],
        [],
    )


async def test_what_was_left_is_waiting_at_once_and_what_a_job_waits_for_is_not(store: Store):
    thread = await conversation(store)
    assert await store.unconsolidated(3600.0, 100, 10) == []
    [found] = await store.conversations("owner")
    await store.command(Inbound(Address.parse(found.session), "new", Said((), "owner", found.session)), "new", "")
    [waiting] = await store.unconsolidated(3600.0, 100, 10)
    assert (waiting.thread, waiting.left) == (thread, True)
    await store.add_job(Job(f"consolidate:{thread}:2", CONSOLIDATE, 0.0, payload=thread))
    assert await store.unconsolidated(0.0, 1, 10) == []
    [row] = await store.claim_jobs([CONSOLIDATE], 30.0)
    await store.settle_job(row, "done")
    assert [each.thread for each in await store.unconsolidated(0.0, 1, 10)] == [thread]
    assert [await store.pass_over(thread, 0, 2), await store.pass_over(thread, 0, 2)] == [True, False]
    assert (await store.unconsolidated(0.0, 1, 10), await store.memory_version("owner")) == ([], 0)


async def test_the_memory_of_a_conversation_that_another_s_bot_has_brought_is_its_principal_s(store: Store):
    thread = await conversation(store)
    done = change(facts=(ROME,), consolidated=Consolidated(thread, 0, 2, owner="owner"))
    assert await store.change_memory("ann", done) == 1
    assert (plain(await store.facts("ann")), await store.facts("owner")) == ([ROME], [])
    assert await store.hidden(thread) == set()
    await store.change_memory("owner", change(hidden=((thread, 2),)))
    assert await store.hidden(thread) == {2}


async def test_who_forgets_hides_what_they_said_in_a_conversation_that_another_s_bot_has_brought(store: Store):
    thread = await conversation(store)
    known = structs.replace(ROME, source=FactSource(thread, 1, "ann", 100.0))
    await store.change_memory("ann", change(facts=(known,)))
    await store.change_memory("ann", change(removed=("f1",), hidden=((thread, 1), (thread, 2))))
    assert await store.hidden(thread) == {1}  # and no other entry, for none of them tells what is theirs
    assert await store.facts("ann", ended=True) == []
