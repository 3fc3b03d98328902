"""Every file that is named anywhere in a store is told, and no other: what is not told may be removed."""

from everloop.core.log import AgentTold, CallReturned, Compacted, ModelSaid, UserSaid
from everloop.core.mail import Address, Inbound, Outbound, Said, Undo
from everloop.core.message import Made, Media, said
from everloop.core.tool import FileChange
from everloop.ports import Store
from everloop.ports.conversation import ArchiveThread, Branch
from everloop.ports.rows import Commit, Lease, Timer
from everloop.store import file_references

CHAT = Address("test", "chat")


def file(digit: str) -> str:
    return f"file:{digit * 64}"


def named(*digits: str) -> set[str]:
    return {digit * 12 for digit in digits}


def letter(event: str, text: str) -> Inbound:
    return Inbound(CHAT, event, Said(said(text), "ann", str(CHAT)))


async def begun(store: Store, event: str = "e") -> Lease:
    return Lease((await store.command(letter(event, "/new"), "new", "")).thread)


async def test_an_empty_store_names_nothing(store: Store):
    assert await store.files_named() == set()


async def test_files_are_named_by_every_kind_of_entry(store: Store):
    entries = [
        UserSaid((Media(file("a"), "image/png", "a.png"),), "ann", str(CHAT)),
        UserSaid(said(f"[b.txt, kept as {file('b')[:17]}]\nhello"), "ann", str(CHAT)),
        CallReturned(1, 0, "long …", "done", file("c")),
        CallReturned(1, 0, "changed", changes=(FileChange("x", file("d"), "0" * 12),)),
        CallReturned(1, 0, "made", made=(Media(file("e"), "text/plain", "e"),)),
        AgentTold("look", files=(Media(file("f"), "text/plain", "f"),)),
        ModelSaid(f"see /api/files/{file('1').replace(':', '%3A')}/x?thread=t and {file('2')[:17]}…"),
        ModelSaid(f"neither {'3' * 64} nor file:abc nor a profile: {'4' * 64}"),
    ]
    await store.commit(await begun(store), Commit(entries, release=True, state="resting"))
    assert await store.files_named() == named(*"abcdef12")


async def test_letters_answers_and_timers_name_files_as_well(store: Store):
    lease = await begun(store)
    await store.receive(Inbound(CHAT, "m", Said((Media(file("a"), "image/png", "a"),), "ann", str(CHAT))))
    undo = Undo("t", 1, "take it back", (FileChange("x", file("b"), "gone"),), "ann", str(CHAT))
    await store.receive(Inbound(CHAT, "u", undo))
    answer = Outbound("k", CHAT, "here", files=(Made(1, Media(file("c"), "text/plain", "c")),))
    timer = Timer("t", 3600, letter("timer", file("d")))
    await store.commit(lease, Commit([ModelSaid("x")], outbox=[answer], timers=[timer]))
    await store.command(letter("c", "/what"), "none", f"it is {file('e')}")
    assert await store.files_named() == named(*"abcde")


async def test_what_was_archived_branched_off_or_summed_up_is_named_still(store: Store):
    lease = await begun(store)
    said_with = UserSaid((Media(file("a"), "image/png", "a"),), "ann", str(CHAT))
    entries = [said_with, ModelSaid("seen"), Compacted("we looked at a picture")]
    await store.commit(lease, Commit(entries, release=True, state="resting"))
    assert await store.perform("owner", str(CHAT), Branch("branch", lease.thread, 2))
    assert await store.perform("owner", str(CHAT), ArchiveThread(lease.thread, True))
    assert await store.files_named() == named("a")


async def test_a_table_of_many_rows_is_read_to_its_end(store: Store):
    for thread in range(3):
        entries = [ModelSaid("a file") for _ in range(file_references.BATCH * 2 // 3)]
        last = ModelSaid(file("abc"[thread]))
        await store.commit(await begun(store, f"e{thread}"), Commit([*entries, last], release=True, state="resting"))
    assert await store.files_named() == named(*"abc")
