"""Looking back at conversations and going elsewhere with them, which every store does alike."""

import asyncio
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.effort import examples

from everloop.core.log import (
    CallReturned,
    Compacted,
    Entry,
    GaveUp,
    ModelCalled,
    ModelSaid,
    Stopped,
    TakenBack,
    Undoing,
    UserSaid,
)
from everloop.core.mail import Address, Inbound, Mail, Said, Undo
from everloop.core.message import said
from everloop.core.tool import FileChange, ToolCall
from everloop.ports import Store
from everloop.ports.conversation import (
    ArchiveThread,
    Branch,
    Conversation,
    Mark,
    PinThread,
    Rename,
    ResumeThread,
    SearchHit,
    Snapshot,
)
from everloop.ports.rows import Commit, Lease
from everloop.readings.words import words_of
from everloop.store.search import SHORT, TOGETHER

CHAT = Address("test", "chat")
HELLO = UserSaid(said("hello"), "ann", str(CHAT))
ASKED = ModelCalled("m")
ANSWERED = ModelSaid("hi")


class Home(Protocol):
    async def connect(self) -> Store: ...
    async def write(self, statement: str) -> None: ...
    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


def letter(event: str, text: str = "hello", address: Address = CHAT, owner: str = "owner") -> Inbound:
    return Inbound(address, event, Said(said(text), "ann", str(address)), owner)


async def told(store: Store, *entries: Entry, address: Address = CHAT, owner: str = "owner", event: str = "e") -> Lease:
    """A resting thread that holds these entries, in a session of its own."""
    receipt = await store.command(letter(f"{event}/{address}", "/new", address, owner), "new", "")
    lease = Lease(receipt.thread)
    if entries:
        await store.commit(lease, Commit(list(entries), release=True, state="resting"))
    return lease


def text(words: str) -> UserSaid:
    return UserSaid(said(words), "ann", str(CHAT))


async def at(store: Store, address: Address = CHAT) -> str:
    row = await store.session(str(address))
    assert row is not None
    return row.id


# The list


async def test_a_conversation_is_listed_with_the_beginning_of_what_was_said_first(home: Home, store: Store):
    lease = await told(store, HELLO, ASKED, ANSWERED)
    await home.write("UPDATE threads SET created = 10")
    await home.write("UPDATE entries SET at = 20 + seq")
    assert await store.conversations("owner") == [
        Conversation(lease.thread, "test:chat", "hello", 10, 23, 2, 3, current=True)
    ]


async def test_a_long_beginning_is_shortened_to_a_line(store: Store):
    await told(store, text("What  is\nthe capital of " + "x" * 100))
    assert [each.title for each in await store.conversations("owner")] == [f"What is the capital of {'x' * 36}…"]


async def test_what_was_said_is_counted_and_what_was_only_called_is_not(store: Store):
    call = ModelSaid("", (ToolCall("c", "t", "{}"),))
    await told(store, HELLO, ASKED, call, CallReturned(3, 0, "done"), ASKED, GaveUp("context", "too long"))
    assert [each.messages for each in await store.conversations("owner")] == [2]


async def test_what_has_been_counted_is_not_counted_again(home: Home, store: Store):
    lease = await told(store, *[HELLO, ASKED, ANSWERED] * 100)
    assert [each.messages for each in await store.conversations("owner")] == [200]
    assert await home.rows("SELECT messages, counted FROM threads WHERE head > 0") == [(200, 300)]
    await store.commit(structs.replace(lease, head=300), Commit([HELLO], release=True, state="resting"))
    assert [each.messages for each in await store.conversations("owner")] == [201]


async def test_the_list_has_the_latest_first_and_says_where_a_session_is(home: Home, store: Store):
    old = await told(store, HELLO, event="1")
    new = await told(store, HELLO, event="2")
    other = await told(store, HELLO, address=Address("test", "other"))
    await home.write("UPDATE threads SET created = 0")
    for moment, lease in enumerate((other, old, new)):
        await home.write(f"UPDATE entries SET at = {moment} WHERE thread = '{lease.thread}'")
    found = await store.conversations("owner")
    assert [(each.id, each.current) for each in found] == [
        (new.thread, True),
        (old.thread, False),
        (other.thread, True),
    ]
    assert [each.id for each in await store.conversations("owner", session="test:chat")] == [new.thread, old.thread]
    assert [each.id for each in await store.conversations("owner", id=old.thread[:9])] == [old.thread]
    assert [each.id for each in await store.conversations("owner", limit=1)] == [new.thread]


async def test_a_conversation_in_which_nothing_was_said_is_not_listed(store: Store):
    await told(store)
    assert await store.conversations("owner") == []


async def test_nobody_sees_the_conversations_of_others(store: Store):
    mine = await told(store, HELLO, owner="ann")
    theirs = await told(store, HELLO, address=Address("test", "b"), owner="bob")
    assert [each.id for each in await store.conversations("ann")] == [mine.thread]
    assert [each.thread for each in await store.search("ann", "hello")] == [mine.thread]
    assert await store.search("ann", "hello", thread=theirs.thread) == []
    for deed in (
        Rename(theirs.thread, "x"),
        ArchiveThread(theirs.thread),
        Mark("m", theirs.thread, 1),
        ResumeThread(theirs.thread),
        Branch("new", [HELLO], parent=theirs.thread, at=1),
    ):
        assert not await store.perform("ann", "test:b", deed)
        assert not await store.perform("ann", "test:chat", deed)
    assert [each.title for each in await store.conversations("bob")] == ["hello"]
    assert await at(store, Address("test", "b")) == theirs.thread


async def test_a_conversation_can_be_renamed(store: Store):
    lease = await told(store, HELLO)
    assert await store.perform("owner", "", Rename(lease.thread, "greetings"))
    assert [each.title for each in await store.conversations("owner")] == ["greetings"]
    assert not await store.perform("owner", "", Rename("nowhere", "x"))


async def test_a_pinned_conversation_stands_first_and_so_does_what_replaces_it(home: Home, store: Store):
    old = await told(store, HELLO, ANSWERED, event="1")
    new = await told(store, HELLO, address=Address("test", "other"))
    await home.write(f"UPDATE entries SET at = 1 WHERE thread = '{old.thread}'")
    await home.write(f"UPDATE threads SET created = 1 WHERE id = '{old.thread}'")
    assert [each.id for each in await store.conversations("owner")] == [new.thread, old.thread]
    assert await store.perform("owner", "", PinThread(old.thread))
    assert not await store.perform("ann", "", PinThread(old.thread))
    listed = [(each.id, each.pinned, each.archived) for each in await store.conversations("owner")]
    assert listed == [(old.thread, True, False), (new.thread, False, False)]
    again = Branch("f" * 16, [HELLO], parent=old.thread, at=0, replaces=True)
    assert await store.perform("owner", "test:chat", again)
    listed = [(each.id, each.pinned) for each in await store.conversations("owner")]
    assert listed == [("f" * 16, True), (new.thread, False)]
    assert await store.perform("owner", "", PinThread("f" * 16, pinned=False))
    assert [each.pinned for each in await store.conversations("owner", archived=True)] == [False] * 3


async def test_an_archived_conversation_is_not_listed_but_found(store: Store):
    lease = await told(store, HELLO)
    assert await store.perform("owner", "", ArchiveThread(lease.thread))
    assert await store.conversations("owner") == []
    assert [each.archived for each in await store.conversations("owner", archived=True)] == [True]
    assert [each.thread for each in await store.search("owner", "hello")] == [lease.thread]
    assert await store.perform("owner", "", ArchiveThread(lease.thread, archived=False))
    assert [each.archived for each in await store.conversations("owner")] == [False]


# Going back


async def test_a_session_goes_back_to_one_of_its_threads(store: Store):
    old, new = await told(store, HELLO, event="1"), await told(store, event="2")
    assert await at(store) == new.thread
    assert await store.perform("owner", "test:chat", ArchiveThread(old.thread))
    assert await store.perform("owner", "test:chat", ResumeThread(old.thread))
    assert await at(store) == old.thread
    assert [each.archived for each in await store.conversations("owner")] == [False]


async def test_a_session_does_not_go_to_the_thread_of_another(store: Store):
    await told(store, HELLO)
    other = await told(store, HELLO, address=Address("test", "other"))
    assert not await store.perform("owner", "test:chat", ResumeThread(other.thread))
    assert not await store.perform("owner", "test:nobody", ResumeThread(other.thread))


async def test_a_branch_is_a_thread_of_its_own_with_the_same_beginning(home: Home, store: Store):
    old = await told(store, HELLO, ASKED, ANSWERED, HELLO, ASKED, ANSWERED)
    branch = Branch("x" * 16, [HELLO, ASKED, ANSWERED], times=[1, 2, 3], parent=old.thread, at=3, title="again")
    assert await store.perform("owner", "test:chat", branch)
    assert await at(store) == branch.id
    (found,) = await store.conversations("owner", id="xxxx")
    assert (found.title, found.active, found.messages, found.head) == ("again", found.created, 2, 3)
    assert [written.at for written in await store.history(branch.id)] == [1, 2, 3]
    assert (found.parent, found.parent_seq, found.current) == (old.thread, 3, True)
    assert await store.read(branch.id) == [HELLO, ASKED, ANSWERED]
    assert len(await store.read(old.thread)) == 6
    assert await home.rows("SELECT count(*) FROM usage") == [(0,)]


async def test_a_branch_reads_what_was_before_a_compaction_from_its_parent(store: Store):
    fold = Compacted("they said hello")
    old = await told(store, HELLO, ASKED, ANSWERED, fold, HELLO, ASKED, ANSWERED)
    branch = Branch("x" * 16, [fold, HELLO], 4, parent=old.thread, at=5)
    assert await store.perform("owner", "test:chat", branch)
    again = Branch("y" * 16, [HELLO, Stopped("ann")], 1, parent=branch.id, at=1)
    assert await store.perform("owner", "test:chat", again)
    opened = await store.open(branch.id)
    assert (opened.row.head, opened.row.folded, opened.first, opened.entries) == (5, 4, 4, [fold, HELLO])
    assert await store.read(branch.id) == [HELLO, ASKED, ANSWERED, fold, HELLO]
    assert [written.seq for written in await store.history(branch.id, after=1, limit=3)] == [2, 3, 4]
    assert await store.read(again.id) == [HELLO, Stopped("ann")]
    assert [each.messages for each in await store.conversations("owner", id="xxxx")] == [3]
    assert [await store.folded(branch.id, seq) for seq in (3, 4, 5)] == [0, 4, 4]


async def test_branches_of_branches_before_a_compaction_read_from_the_right_parent(store: Store):
    fold = Compacted("s")
    old = await told(store, text("one"), ASKED, fold, text("four"), fold, text("six"))
    late = Branch("x" * 16, [fold, text("six")], 5, parent=old.thread, at=6)
    early = Branch("y" * 16, [fold, text("four!")], 3, parent=late.id, at=3)
    assert await store.perform("owner", "test:chat", late)
    assert await store.perform("owner", "test:chat", early)
    assert await store.read(late.id) == [text("one"), ASKED, fold, text("four"), fold, text("six")]
    assert await store.read(early.id) == [text("one"), ASKED, fold, text("four!")]


async def test_the_next_letter_goes_into_the_branch_and_its_turn_is_numbered_on(store: Store):
    old = await told(store, Compacted("s"), HELLO, ASKED, ANSWERED)
    assert await store.perform("owner", "test:chat", Branch("x" * 16, [Compacted("s")], 1, parent=old.thread, at=1))
    receipt = await store.receive(letter("e1"))
    assert receipt.thread == "x" * 16
    committed = await store.commit(Lease("x" * 16, 0, 1), Commit([HELLO], absorbed=[receipt.id]))
    assert committed.head == 2


async def test_a_branch_without_a_parent_comes_from_elsewhere_and_leaves_the_session_alone(store: Store):
    here = await told(store, HELLO)
    branch = Branch("x" * 16, [HELLO, ASKED, ANSWERED], times=[5.0], created=4.0, stay=True)
    assert await store.perform("owner", "test:chat", branch)
    assert await store.perform("owner", "other:chat", structs.replace(branch, id="y" * 16))
    assert await at(store) == here.thread
    assert await store.session("other:chat") is None
    assert [each.created for each in await store.conversations("owner", id="xxxx")] == [4.0]
    assert [written.at for written in await store.history("x" * 16)][:1] == [5.0]
    assert await store.perform("owner", "other:chat", ResumeThread("y" * 16))
    assert await at(store, Address("other", "chat")) == "y" * 16


async def test_many_entries_are_branched_at_once(store: Store):
    entries = [text(str(n)) for n in range(1234)]
    times = [float(n) for n in range(1200)]
    assert await store.perform("owner", "test:chat", Branch("x" * 16, entries, times=times))
    assert await store.read("x" * 16) == entries
    assert [written.at for written in await store.history("x" * 16)][:1200] == times


@pytest.mark.parametrize("state", ["running", "waiting"])
async def test_a_thread_that_does_not_rest_is_not_branched(home: Home, store: Store, state: str):
    old = await told(store, HELLO)
    await home.write(f"UPDATE threads SET state = '{state}'")
    assert not await store.perform("owner", "test:chat", Branch("b", [HELLO], parent=old.thread, at=1))
    assert await at(store) == old.thread


async def test_a_thread_with_mail_is_not_branched(store: Store):
    old = await told(store, HELLO)
    await store.receive(letter("e1"))
    assert not await store.perform("owner", "test:chat", Branch("b", [HELLO], parent=old.thread, at=1))


async def test_a_session_does_not_leave_a_thread_that_does_not_rest(store: Store):
    old = await told(store, HELLO, event="1")
    await told(store, HELLO, event="2")
    await store.receive(letter("e1"))
    assert not await store.perform("owner", "test:chat", Branch("b", [HELLO], parent=old.thread, at=1))


async def test_a_parent_that_has_grown_is_not_branched_where_its_end_counts(store: Store):
    old = await told(store, HELLO, ASKED, ANSWERED)
    assert not await store.perform("owner", "test:chat", Branch("b", [], parent=old.thread, at=0, head=2))
    assert await store.perform("owner", "test:chat", Branch("b", [], parent=old.thread, at=0, head=3))


async def test_of_two_branches_that_meet_one_is_made(home: Home, store: Store):
    old = await told(store, HELLO, ASKED, ANSWERED)
    stores = [store, await home.connect()]
    done = await asyncio.gather(
        *(
            stores[n % 2].command(letter("same"), Branch(f"b{n}", [], parent=old.thread, head=3), "done", "busy")
            for n in range(10)
        )
    )
    assert sum(receipt.fresh for receipt in done) == 1
    assert {receipt.thread for receipt in done} == {await at(store)}


# As commands


async def test_a_branch_by_command_answers_once_and_moves_the_session(store: Store):
    old = await told(store, HELLO, ASKED, ANSWERED)
    first = await store.command(letter("e1", "/session fork"), Branch("x1", [HELLO], parent=old.thread, at=1), "yes")
    again = await store.command(letter("e1", "/session fork"), Branch("x2", [HELLO], parent=old.thread, at=1), "yes")
    assert (first.thread, first.reply, first.fresh) == ("x1", "yes", True)
    assert (again.thread, again.reply, again.fresh) == ("x1", "yes", False)
    assert await at(store) == "x1"
    assert [each.id for each in await store.conversations("owner", id="x")] == ["x1"]


async def test_a_branch_that_cannot_be_made_by_command_says_so(store: Store):
    old = await told(store, HELLO)
    branch = Branch("b1", [], parent=old.thread, head=7)
    receipt = await store.command(letter("e1", "/undo"), branch, "yes", "something was said meanwhile")
    assert (receipt.reply, receipt.thread, await at(store)) == ("something was said meanwhile", old.thread, old.thread)


async def test_a_branch_with_a_letter_has_the_letter_in_its_inbox_and_no_reply_yet(store: Store):
    old = await told(store, HELLO, ASKED, ANSWERED)
    said_instead = Said(said("good day"), "ann", "test:chat")
    branch = Branch("b1", [], parent=old.thread, head=3, letter=said_instead)
    receipt = await store.command(letter("e1", "/session edit good day"), branch, "")
    assert (receipt.thread, receipt.reply, receipt.fresh) == ("b1", None, True)
    assert await store.mail("b1") == [Mail(receipt.id, said_instead)]
    assert await store.unfinished("b1") == [receipt.id]
    assert await store.waiting() == ["b1"]
    assert [row.outbound.text for row in await store.due("test")] == [""]  # what /new has answered
    again = await store.command(letter("e1", "/session edit good day"), structs.replace(branch, id="b2"), "")
    assert (again.id, again.thread, again.reply, again.fresh) == (receipt.id, "b1", None, False)


async def test_an_undo_is_unfinished_until_it_has_ended(store: Store):
    old = await told(store, HELLO, ASKED, ANSWERED)
    undo = Undo("hello", (FileChange("a.md", "new", "0123"),), by="ann", address="test:chat")
    receipt = await store.command(letter("e1", "/undo"), Branch("b1", parent=old.thread, head=3, letter=undo), "")
    assert await store.mail("b1") == [Mail(receipt.id, undo)]
    lease = Lease("b1")
    entry = Undoing("hello", undo.changes, by="ann", address="test:chat", mail=receipt.id)
    committed = await store.commit(lease, Commit([entry], absorbed=[receipt.id]))
    lease.epoch, lease.head = committed.epoch, committed.head
    assert await store.unfinished("b1") == [receipt.id]
    assert not await store.perform("owner", "test:chat", Branch("b2", parent="b1"))
    await store.commit(
        lease, Commit([TakenBack(0)], ended=[(receipt.id, 2)], release=True, seen=receipt.id, state="resting")
    )
    assert (await store.unfinished("b1"), await store.ended(receipt.id)) == ([], 2)
    assert await store.perform("owner", "test:chat", Branch("b2", parent="b1"))


# Snapshots


async def test_a_snapshot_is_a_name_for_a_place(home: Home, store: Store):
    lease = await told(store, HELLO, ASKED, ANSWERED)
    assert await store.perform("owner", "", Mark("good", lease.thread, 1))
    assert await store.perform("owner", "", Mark("better", lease.thread, 3))
    assert await store.perform("owner", "", Mark("good", lease.thread, 2))
    assert not await store.perform("owner", "", Mark("beyond", lease.thread, 4))
    await home.write("UPDATE snapshots SET at = seq")
    assert await store.snapshots("owner") == [
        Snapshot("better", lease.thread, 3, 3),
        Snapshot("good", lease.thread, 2, 2),
    ]
    assert await store.snapshots("ann") == []


# Searching


async def test_what_was_said_is_found_with_what_stands_around_it(home: Home, store: Store):
    long = "so " * 100 + "the Amount is 41,27 € for INV-2041 " + "and " * 100
    call = ModelSaid("I look.", (ToolCall("c", "read_file", '{"path":"bills/may.md"}'),))
    lease = await told(store, text("What do I owe?"), ASKED, call, CallReturned(3, 0, long), ASKED, ModelSaid("41.27"))
    await home.write("UPDATE entries SET at = seq")
    around = "…" + "so " * 22 + "the Amount is 41,27 € for INV-2041" + " and" * 10 + "…"
    assert await store.search("owner", "inv-2041 amount") == [SearchHit(lease.thread, 4, 4, "tool", around)]
    assert [(each.who, each.seq) for each in await store.search("owner", "OWE")] == [("user", 1)]
    assert [(each.who, each.seq) for each in await store.search("owner", "bills/may.md")] == [("assistant", 3)]
    assert await store.search("owner", "elephants") == []


async def test_all_words_come_before_beginnings_and_these_before_some(store: Store):
    await told(store, text("a red house"), text("a redder housing"), text("a red boat"))
    assert [each.seq for each in await store.search("owner", "red house")] == [1]
    assert [each.seq for each in await store.search("owner", "redd hous")] == [2]
    assert {each.seq for each in await store.search("owner", "red plane")} == {1, 2, 3}
    assert (await store.search("owner", "boat plane red"))[0].seq == 3


async def test_the_newest_comes_first_and_no_more_than_asked_for(store: Store):
    await told(store, *(text(f"note {n}") for n in range(50)))
    assert [each.seq for each in await store.search("owner", "note", limit=3)] == [50, 49, 48]


async def test_case_and_accents_do_not_matter_and_scripts_without_spaces_are_found(store: Store):
    await told(store, text("Ärger im CAFÉ"), text("明日は東京へ行きます"), text("straße"))
    assert [each.seq for each in await store.search("owner", "arger cafe")] == [1]
    assert [each.seq for each in await store.search("owner", "東京")] == [2]
    assert [each.seq for each in await store.search("owner", "STRASSE")] == [3]


async def test_what_was_said_since_the_last_search_is_found(home: Home, store: Store):
    lease = await told(store, text("one"))
    assert [each.seq for each in await store.search("owner", "one")] == [1]
    await store.commit(structs.replace(lease, head=1), Commit([text("two, not one")], release=True, state="resting"))
    assert [each.seq for each in await store.search("owner", "one")] == [2, 1]
    assert await home.rows("SELECT indexed FROM threads WHERE head > 0") == [(2,)]
    assert await home.rows("SELECT count(*) FROM said") == [(2,)]


async def test_two_processes_that_search_at_once_index_once(home: Home, store: Store):
    await told(store, *(text(f"note {n}") for n in range(2500)))
    stores = [store, await home.connect()]
    found = await asyncio.gather(*(stores[n % 2].search("owner", "note 2499") for n in range(4)))
    assert [[each.seq for each in each_found] for each_found in found] == [[2500]] * 4
    assert await home.rows("SELECT count(*) FROM said") == [(2500,)]


async def test_one_thread_is_searched_with_what_it_branched_from_and_nothing_twice(store: Store):
    old = await told(store, text("apple one"), ASKED, ANSWERED, text("apple two"))
    branch = Branch("x" * 16, [text("apple one"), ASKED, ANSWERED], parent=old.thread, at=3)
    assert await store.perform("owner", "test:chat", branch)
    await store.commit(Lease(branch.id, 0, 3), Commit([text("apple three")], release=True, state="resting"))
    found = await store.search("owner", "apple", thread=branch.id)
    assert sorted((each.seq, each.thread) for each in found) == [(1, branch.id), (4, branch.id)]
    assert len(await store.search("owner", "apple")) == 3
    assert [each.seq for each in await store.search("owner", "apple", thread=old.thread)] == [4, 1]


async def test_what_was_replaced_by_a_branch_is_found_there_as_far_as_it_lives_on(store: Store):
    old = await told(store, text("apple one"), ASKED, ANSWERED, text("apple two"), ASKED, ANSWERED)
    for id, parent, at_seq in (("x1", old.thread, 3), ("x2", "x1", 1)):
        entries = [text("apple one"), ASKED, ANSWERED][:at_seq]
        assert await store.perform("owner", "test:chat", Branch(id, entries, parent=parent, at=at_seq, replaces=True))
    found = await store.search("owner", "apple")
    assert [(each.thread, each.seq) for each in found] == [(old.thread, 4), ("x2", 1)]
    assert [each.id for each in await store.conversations("owner")] == ["x2"]
    assert await store.perform("owner", "test:chat", ResumeThread(old.thread))
    assert [each.thread for each in await store.search("owner", "apple")] == [old.thread] * 2


async def test_in_one_thread_a_whole_question_finds_what_it_asks_for(store: Store):
    facts = [
        text(f"{what}: {number}") for number, what in enumerate(("red house", "old boat", "red boat", "old house"))
    ]
    lease = await told(store, *facts, text("Which number did we have for the old house, and why?"))
    found = await store.search("owner", "Which number did we have for the red boat, and why?", thread=lease.thread)
    assert (found[0].seq, found[-1].seq) == (3, 5)  # who asks is no answer
    found = await store.search("owner", "Which number did we have for the old house, and why?", thread=lease.thread)
    assert [each.seq for each in found][:2] == [5, 4]  # it holds all of the words


# Recalling


async def recalled(store: Store, thread: str, *words: str, until: int = 100, limit: int = 9) -> list[int]:
    return [each.seq for each in (await store.recall(thread, words, until, limit)).entries]


async def test_what_holds_the_rarest_words_is_recalled_first_and_nothing_later_than_asked_for(store: Store):
    notes = [text(f"note {n} {'copper' if n % 10 == 0 else 'iron'} {'lantern' if n == 20 else ''}") for n in range(60)]
    lease = await told(store, *notes)
    found = await store.recall(lease.thread, ["lantern", "copper", "note", "elephant"], 60, 3)
    assert [each.seq for each in found.entries] == [21, 51, 41]
    assert found.entries[0].entry == notes[20]
    assert list(found.weights) == ["lantern", "copper", "note"]
    assert found.weights["lantern"] > found.weights["copper"] > found.weights["note"]
    assert await recalled(store, lease.thread, "copper", until=30) == [21, 11, 1]
    assert await recalled(store, lease.thread, "elephant") == await recalled(store, lease.thread) == []


async def test_nothing_of_other_threads_and_of_other_people_is_recalled(store: Store):
    mine = await told(store, text("copper mine"))
    await told(store, text("copper other"), address=Address("test", "other"))
    theirs = await told(store, text("copper theirs"), address=Address("test", "ann"), owner="ann")
    found = [(await store.recall(lease.thread, ["copper"], 9, 9)).entries for lease in (mine, theirs)]
    assert [[each.entry for each in entries] for entries in found] == [[text("copper mine")], [text("copper theirs")]]
    assert await recalled(store, "nowhere", "copper") == []


async def test_a_branch_recalls_what_its_parent_held_before_it_and_not_what_came_after(store: Store):
    old = await told(store, text("copper one"), ASKED, ANSWERED, text("copper two"))
    branch = Branch("x" * 16, [text("copper one"), ASKED, ANSWERED], parent=old.thread, at=3)
    assert await store.perform("owner", "test:chat", branch)
    await store.commit(Lease(branch.id, 0, 3), Commit([text("copper three")], release=True, state="resting"))
    found = await store.recall(branch.id, ["copper"], 9, 9)
    assert {each.seq: each.entry for each in found.entries} == {1: text("copper one"), 4: text("copper three")}
    assert await recalled(store, old.thread, "copper") == [4, 1]


async def test_what_was_never_searched_is_recalled_a_part_at_a_time(home: Home, store: Store):
    lease = await told(store, text("copper first"), *(text(f"note {n}") for n in range(1999)), text("copper last"))
    assert await recalled(store, lease.thread, "copper", until=5000) == [1]
    assert await recalled(store, lease.thread, "copper", until=5000) == [1]
    assert await recalled(store, lease.thread, "copper", until=5000) == [2001, 1]
    assert await home.rows(f"SELECT indexed FROM threads WHERE id = '{lease.thread}'") == [(2001,)]


async def test_one_session_is_searched_alone(store: Store):
    await told(store, text("apple"))
    other = await told(store, text("apple pie"), address=Address("test", "other"))
    assert [each.thread for each in await store.search("owner", "apple", session="test:other")] == [other.thread]


ODD = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ['"', "' OR 1=1 --", "NEAR(a b)", "a AND", "(", "*", "col:x", "a & b | !c", "<->", "\\", "\x00", "^x", "-", "a\\'b"]
)


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(words=ODD, content=ODD)
async def test_any_text_is_a_query_and_any_text_can_be_indexed(store: Store, words: str, content: str):
    lease = await told(store, event=f"{words}{content}".encode().hex()[:180])
    opened = await store.open(lease.thread)
    await store.commit(
        structs.replace(lease, head=opened.row.head),
        Commit([text(content)], release=True, state="resting"),
    )
    found = await store.search("owner", words, thread=lease.thread)
    assert all(each.thread == lease.thread for each in found)
    await store.recall(lease.thread, words_of(words), 9, 9)
    if any(letter.isalnum() for letter in content):
        await store.search("owner", content, thread=lease.thread)


async def test_many_short_conversations_and_a_long_one_are_found_the_first_time_someone_searches(
    home: Home, store: Store
):
    many = 2 * TOGETHER + 1
    short = [
        await told(store, text(f"train {n}"), ANSWERED, address=Address("test", f"c{n}"), event=f"{n}")
        for n in range(many)
    ]
    long = await told(store, *[text(f"plane {n}") for n in range(SHORT + 1)], address=Address("test", "long"))
    assert len(await store.search("owner", "train", limit=many + 1)) == many
    assert [each.thread for each in await store.search("owner", f"train {many - 1}")] == [short[-1].thread]
    assert [(each.thread, each.seq) for each in await store.search("owner", f"plane {SHORT}")] == [
        (long.thread, SHORT + 1)
    ]
    assert await home.rows("SELECT count(*) FROM said") == [(2 * many + SHORT + 1,)]
