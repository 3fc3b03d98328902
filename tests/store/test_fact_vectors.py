"""Words and vectors of facts: both stores tell which facts hold a word, and what an index has to learn."""

from everloop.ports import Store
from everloop.ports.fact_search import FactVector, VectorChanges, VectorsBehind, WordHolders
from everloop.ports.memory import Fact, FactEnd, MemoryChange, MemoryDocument

OSLO = Fact("f2", "Ann moved to Oslo on 14 March")
CAT = Fact("f1", "Ann's cat is called Miso")
M, OTHER = "host/small", "host/large"


async def change(store: Store, owner: str = "ann", **parts) -> int:
    return await store.change_memory(owner, MemoryChange("", "said so", **parts))


async def embed(store: Store, *vectors: tuple[str, int, bytes], model: str = M) -> None:
    await store.keep_vectors("ann", model, [FactVector(*each) for each in vectors])


def plain(holders: dict[str, WordHolders]) -> dict[str, tuple[int, list[str]]]:
    return {word: (each.count, sorted(each.facts)) for word, each in holders.items()}


async def test_facts_are_found_by_words_without_their_endings_and_dates_however_they_are_written(store: Store):
    await change(store, facts=(OSLO, CAT))
    assert plain(await store.word_holders("ann", ["mov", "cat", "ann", "14.3.", "dog"], 10)) == {
        "mov": (1, ["f2"]),
        "cat": (1, ["f1"]),
        "ann": (2, ["f1", "f2"]),
        "14.3.": (1, ["f2"]),
    }
    assert await store.word_holders("bob", ["cat"], 10) == {}


async def test_of_words_that_many_hold_it_is_told_how_many_unless_there_is_no_rarer_one(store: Store):
    await change(store, facts=tuple(Fact(f"f{n}", f"Ann likes tea {'and rum' if n < 2 else ''}") for n in range(5)))
    assert plain(await store.word_holders("ann", ["tea", "rum"], 3)) == {"tea": (5, []), "rum": (2, ["f0", "f1"])}
    [tea] = (await store.word_holders("ann", ["tea"], 3)).values()
    assert (tea.count, len(tea.facts)) == (5, 3)


async def test_whoever_has_new_facts_is_behind_until_all_of_them_have_vectors_of_the_model(store: Store):
    version = await change(store, facts=(OSLO, CAT))
    await change(store, "bob", documents=(MemoryDocument("MEMORY.md", "x\n"),))
    assert await store.vectors_behind(M, 10) == [VectorsBehind("ann", 1), VectorsBehind("bob", 1)]
    assert await store.vectors_behind(M, 10, after="ann") == [VectorsBehind("bob", 1)]
    assert {fact.id for fact in await store.unembedded("ann", M, 10)} == {"f1", "f2"}
    await embed(store, ("f1", version, b"one"), ("f2", version, b"two"))
    assert await store.unembedded("ann", M, 10) == []
    await store.all_embedded("ann", M, version)
    assert await store.vectors_behind(M, 10, "ann") == []
    assert await store.vectors_behind(OTHER, 10, "ann") == [VectorsBehind("ann", 1)]
    assert len(await store.unembedded("ann", OTHER, 10)) == 2
    await change(store, facts=(Fact("f3", "Ann has a dog"),))
    assert await store.vectors_behind(M, 10, "ann") == [VectorsBehind("ann", 2)]


async def test_vectors_of_the_model_before_go_when_the_new_one_has_them_all(store: Store):
    version = await change(store, facts=(CAT,))
    await embed(store, ("f1", version, b"old"))
    await embed(store, ("f1", version, b"new"), model=OTHER)
    assert (await store.vector_changes("ann", M, 0, 0)).vectors == (("f1", b"old"),)
    await store.all_embedded("ann", OTHER, version)
    assert (await store.vector_changes("ann", M, 0, 0)).vectors == ()
    assert (await store.vector_changes("ann", OTHER, 0, 0)).vectors == (("f1", b"new"),)


async def test_an_index_learns_of_new_vectors_though_the_memory_has_not_changed(store: Store):
    version = await change(store, facts=(OSLO, CAT))
    await embed(store, ("f1", version, b"one"))
    assert await store.vector_changes("ann", M, 0, 0) == VectorChanges(1, 1, vectors=(("f1", b"one"),))
    assert await store.vector_changes("ann", M, 1, 1) == VectorChanges(1, 1)
    await embed(store, ("f2", version, b"two"))
    assert await store.memory_version("ann") == version
    assert await store.vector_changes("ann", M, 1, 1) == VectorChanges(1, 2, vectors=(("f2", b"two"),))


async def test_an_index_drops_what_has_ended_and_takes_it_back_when_it_is_true_again(store: Store):
    version = await change(store, facts=(OSLO, CAT))
    await embed(store, ("f1", version, b"one"), ("f2", version, b"two"))
    await change(store, ended=(FactEnd("f1", 5.0, "f2"),))
    assert await store.vector_changes("ann", M, 1, 1) == VectorChanges(2, 1, dropped=("f1",))
    assert (await store.vector_changes("ann", M, 0, 0)).vectors == (("f2", b"two"),)
    await change(store, ended=(FactEnd("f1", 0.0),))
    assert await store.vector_changes("ann", M, 2, 1) == VectorChanges(3, 1, False, ("f1",), (("f1", b"one"),))


async def test_a_fact_that_was_written_anew_has_no_vector_and_takes_none_that_was_made_before(store: Store):
    version = await change(store, facts=(CAT,))
    await embed(store, ("f1", version, b"one"))
    await change(store, facts=(Fact("f1", "Ann's cat is called Tofu"),))
    assert await store.vector_changes("ann", M, 1, 1) == VectorChanges(2, 1, dropped=("f1",))
    await embed(store, ("f1", version, b"late"))
    assert [fact.text for fact in await store.unembedded("ann", M, 10)] == ["Ann's cat is called Tofu"]


async def test_after_something_was_forgotten_an_index_is_read_from_nothing(store: Store):
    version = await change(store, facts=(OSLO, CAT))
    await embed(store, ("f1", version, b"one"), ("f2", version, b"two"))
    await change(store, removed=("f1",))
    assert await store.vector_changes("ann", M, 1, 1) == VectorChanges(2, 1, anew=True, vectors=(("f2", b"two"),))
    assert await store.vector_changes("ann", M, 2, 1) == VectorChanges(2, 1)
    assert await store.vector_changes("nobody", M, 4, 2) == VectorChanges(0, 0, anew=True)


async def test_that_nothing_is_remembered_is_believed_for_a_second_but_not_after_a_change_of_our_own(store: Store):
    assert not await store.has_memory("ann")
    await change(store, facts=(CAT,))
    assert await store.has_memory("ann")
    assert not await store.has_memory("bob")
