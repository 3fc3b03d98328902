"""A conversation that is deleted for good is gone from every table and from the bytes of the database; what branched
from it reads as before. The same on both databases."""

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import pytest

from everloop.core.log import MANY, Compacted, Entry, ModelCalled, ModelSaid, UserSaid
from everloop.core.mail import Address, Decision, Inbound, Outbound, Said
from everloop.core.message import Media, said
from everloop.core.prompt import Usage
from everloop.errors import Fenced, MailRefused, ThreadGone
from everloop.ports import Store
from everloop.ports.conversation import Branch, Deletion, Leftovers, Mark, Written
from everloop.ports.jobs import DELETE, Job
from everloop.ports.permission import Grant
from everloop.ports.rows import Commit, Lease, Posting, Receipt, Spent, Taint, Timer
from everloop.runtime.sessions import Sessions
from everloop.store.deleting import GONE
from everloop.store.holders import Holders
from everloop.store.sqlite import SqliteStore
from everloop.store.watchdog import Watchdog

CHAT = Address("test", "chat")
MONTH = 30 * 86400
TABLES = {
    "users": "name",
    "sessions": "key || thread",
    "threads": "id || session || title || parent || replaced || spawned_by",
    "entries": "thread || body",
    "inbox": "body || coalesce(reply, '')",
    "outbox": "key || thread || body || receipt || parts",
    "timers": "key || thread || body",
    "grants": "body",
    "snapshots": "name || thread",
    "said": "thread || who",
    "reply_contexts": "session || reply_to",
    "watched": "body",
}


class Home(Protocol):
    async def connect(self) -> Store: ...
    async def lose(self, store: Store) -> None: ...
    async def write(self, statement: str) -> None: ...
    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


def letter(event: str, text: str = "hello", address: Address = CHAT, owner: str = "owner") -> Inbound:
    return Inbound(address, event, Said(said(text), "ann", str(address)), owner)


def user(words: str, address: Address = CHAT) -> UserSaid:
    return UserSaid(said(words), "ann", str(address))


async def told(store: Store, *entries: Entry, address: Address = CHAT, owner: str = "owner") -> Lease:
    """A resting thread that holds these entries, in a session of its own."""
    receipt = await store.command(letter(f"new/{address}/{random.random()}", "/new", address, owner), "new", "")
    lease = Lease(receipt.thread)
    await store.commit(lease, Commit(list(entries), release=True, state="resting"))
    return lease


async def holding(home: Home, word: str) -> list[str]:
    """The tables in which a word stands."""
    found = []
    for table, columns in TABLES.items():
        if await home.rows(f"SELECT 1 FROM {table} WHERE {columns} LIKE '%{word}%' LIMIT 1"):
            found.append(table)
    return found


async def test_everything_that_was_kept_of_a_conversation_goes_and_nothing_of_another(home: Home, store: Store):
    other = await told(store, user("another pear"), ModelSaid("pear"), address=Address("test", "other"))
    lease = await told(store, user("hello canary"))
    held = Lease(lease.thread, head=1)
    answer = Outbound("key", CHAT, "canary answer")
    timer = Timer(f"approval:{lease.thread}", 60, letter("t", "canary timer", Address("timer", lease.thread)))
    spent = Spent(3, "m", Usage(10, 5), 0.25)
    commit = Commit([ModelCalled("m"), ModelSaid("canary")], outbox=[answer], timers=[timer], usage=[spent])
    await store.commit(held, msgspec.structs.replace(commit, release=True, state="resting"))
    await store.receive(Inbound(CHAT, "m2", Said(said("canary waits"), "ann", str(CHAT), reply_to="canary reply")))
    await store.perform("owner", str(CHAT), Mark("canary place", lease.thread, 2))
    await store.keep_grant(Grant("g1", "owner", "owner", "exec", argv=("canary",), thread=lease.thread, until=1e12))
    await store.keep_grant(Grant("g2", "owner", "owner", "exec", argv=("pear",), until=1e12, call=other.thread))
    await store.add_job(Job("j1", "reminder", 1e12, letter=letter("j", "canary later")))
    assert [each.thread for each in await store.search("owner", "canary")] == [lease.thread] * 2
    before = await store.spent()

    deletion = await store.delete("owner", [lease.thread])

    assert deletion == Deletion((lease.thread,), (str(CHAT),), entries=3, jobs=1)
    assert await holding(home, "canary") == await holding(home, lease.thread) == []
    assert await store.search("owner", "canary") == await store.search("owner", "canary", thread=lease.thread) == []
    assert await store.session(str(CHAT)) is None
    assert await store.history(lease.thread) == []
    assert await store.named(lease.thread) == await store.asking() == await store.waiting() == []
    assert (await store.spent(), [row.cost for row in before]) == (before, [0.25])  # budgets stay true
    assert await home.rows("SELECT id, kind FROM jobs") == [(f"{DELETE}:{lease.thread}", DELETE)]
    assert [grant.id for grant in await store.grants()] == ["g2"]
    assert [each.title for each in await store.conversations("owner", archived=True)] == ["another pear"]
    assert sorted(each.seq for each in await store.search("owner", "pear")) == [1, 2]
    with pytest.raises(ThreadGone):
        await store.open(lease.thread)


async def test_deleting_again_or_what_is_anothers_does_nothing(home: Home, store: Store):
    mine, theirs = await told(store, user("mine")), await told(store, user("x"), address=Address("a", "b"), owner="bob")
    assert await store.delete("owner", [theirs.thread, "nothing"]) == Deletion()
    assert await store.delete("owner", [mine.thread]) == Deletion((mine.thread,), (str(CHAT),), entries=1)
    assert await store.delete("owner", [mine.thread]) == Deletion()
    assert [each.id for each in await store.conversations("bob")] == [theirs.thread]


async def test_a_thread_that_someone_works_on_is_not_deleted_and_one_whose_holder_is_gone_is(home: Home, store: Store):
    other = await home.connect()
    lease = await told(store, user("hello"))
    working = Lease(lease.thread, head=1)
    committed = await other.commit(working, Commit([ModelCalled("m")]))
    assert await store.delete("owner", [lease.thread]) is None
    assert await other.delete("owner", [lease.thread]) is None  # also where it is their own turn
    assert len(await store.history(lease.thread)) == 2
    await home.lose(other)
    assert await store.delete("owner", [lease.thread]) == Deletion((lease.thread,), (str(CHAT),), entries=2)
    late = Lease(lease.thread, committed.epoch, committed.head)
    with pytest.raises(Fenced):  # whoever was frozen in the middle of it, and comes back
        await store.commit(late, Commit([ModelSaid("late")], outbox=[Outbound("late", CHAT, "late")]))
    assert await home.rows("SELECT count(*) FROM outbox WHERE body LIKE '%late%'") == [(0,)]


async def test_one_that_waits_for_an_answer_is_deleted_with_its_question(home: Home, store: Store):
    lease = await told(store, user("hello"))
    await store.commit(Lease(lease.thread, head=1), Commit([ModelCalled("m")], release=True, state="waiting"))
    assert [row.id for row in await store.asking()] == [lease.thread]
    assert await store.delete("owner", [lease.thread]) == Deletion((lease.thread,), (str(CHAT),), entries=2)
    assert await store.asking() == []


async def test_nothing_brings_a_deleted_thread_back(home: Home, store: Store):
    other = await home.connect()
    lease = await told(store, user("hello"))
    await store.receive(letter("pending", "a letter that nobody has taken"))
    opened = await other.open(lease.thread)  # a driver that has just read it
    await store.add_job(Job("later", "reminder", 1.0, letter=letter("j", "a job")))
    await store.delete("owner", [lease.thread])

    mail = [each.id for each in opened.mail]
    with pytest.raises(Fenced):
        await other.commit(Lease(lease.thread, head=opened.row.head), Commit([user("late")], absorbed=mail))
    begun = Commit([user("late")], letter=letter("express"))
    with pytest.raises(Fenced):  # a process that has the resting thread in its memory
        await other.commit(Lease(lease.thread, head=opened.row.head), begun)
    with pytest.raises(MailRefused):
        await other.receive(Inbound(Address("timer", lease.thread), "d", Decision(lease.thread, 1, 0, "expired")))
    with pytest.raises(MailRefused):
        await other.command(Inbound(CHAT, "d2", Decision(lease.thread, 1, 0, "allowed"), "owner"), "tell", "")
    elsewhere = await told(store, user("child"), address=Address("test", "child"))
    post = Posting(letter("result", "a child's result"), lease.thread)
    await store.commit(Lease(elsewhere.thread, head=1), Commit([ModelSaid("x")], posts=[post], release=True))
    await store.fire()
    branch = Branch("b" * 16, [user("hello")], parent=lease.thread, at=1)
    assert not await other.perform("owner", str(CHAT), branch)
    assert await holding(home, lease.thread) == []
    assert await home.rows("SELECT count(*) FROM inbox WHERE ended = 0") == [(0,)]
    assert await other.session(str(CHAT)) is None


async def test_a_letter_that_comes_again_is_not_worked_on_again_for_a_month(home: Home, store: Store):
    lease = await told(store, user("hello"))
    first = await store.receive(letter("m1", "do it"))
    await store.delete("owner", [lease.thread])
    again = await store.receive(letter("m1", "do it"))
    assert again == Receipt(first.id, lease.thread, False, GONE)
    command = await store.command(letter("m1", "/new"), "new", "New session started.")
    assert command == Receipt(first.id, lease.thread, False, GONE)
    assert await store.waiting() == []
    fresh = await store.receive(letter("m2", "something else"))
    assert (fresh.fresh, fresh.thread != lease.thread) == (True, True)
    assert await store.waiting() == [fresh.thread]
    assert await store.forget_expired() == {}
    await home.write(f"UPDATE inbox SET at = at - {MONTH + 1}")
    assert await store.forget_expired() == {"letters of deleted conversations": 2}
    assert await home.rows("SELECT event FROM inbox") == [("m2",)]


async def test_what_strangers_may_have_written_into_a_workspace_stays_marked(home: Home, store: Store):
    lease = await told(store, user("hello"))
    taint = Taint(f"{lease.thread}:2:0", "/work", 10.0, 20.0)
    await store.commit(Lease(lease.thread, head=1), Commit([ModelSaid("x")], taints=[taint], release=True))
    await store.delete("owner", [lease.thread])
    assert await store.taints("/work", 15.0) == [taint]


async def test_the_versions_that_it_stands_for_go_with_it_and_a_copy_does_not(home: Home, store: Store):
    sessions = Sessions(store)
    lease = await told(store, user("the first canary"), ModelCalled("m"), ModelSaid("one"))
    copied = await sessions.fork(await sessions.find(lease.thread, "owner"), "test:copy", "ann")
    assert await store.perform("owner", "test:copy", copied)
    row = await store.session(str(CHAT))
    assert row is not None
    edited = await sessions.say_instead(row, Said(said("the second"), "ann", str(CHAT)), "the second")
    receipt = await store.command(letter("edit", "/session edit"), edited, "")
    await store.commit(
        Lease(receipt.thread), Commit([user("the second")], absorbed=[receipt.id], release=True, state="resting")
    )
    before = await store.history(copied.id)

    deletion = await store.delete("owner", [edited.id])

    assert deletion is not None
    assert (set(deletion.threads), deletion.branches) == ({lease.thread, edited.id}, (copied.id,))
    assert [each.id for each in await store.conversations("owner", archived=True)] == [copied.id]
    assert await store.history(copied.id) == before
    assert {each.thread for each in await store.search("owner", "first canary")} == {copied.id}
    assert await store.delete("owner", [copied.id]) is not None
    assert await holding(home, "canary") == []


async def test_what_worked_for_it_goes_with_it(home: Home, store: Store):
    parent = await told(store, user("hello"))
    child = Posting(letter("task", "do a part", Address("child", "c1")), spawned_by=f"{parent.thread}:1:0")
    await store.commit(Lease(parent.thread, head=1), Commit([ModelSaid("x")], posts=[child], release=True))
    row = await store.session("child:c1")
    assert row is not None
    deletion = await store.delete("owner", [parent.thread])
    assert deletion is not None
    assert (set(deletion.threads), set(deletion.sessions)) == ({parent.thread, row.id}, {str(CHAT), "child:c1"})


async def test_the_job_that_is_left_says_which_files_were_named_and_when(home: Home, store: Store):
    file = f"file:{'a' * 64}"
    lease = await told(store, UserSaid((Media(file, "image/png", "a.png"),), "ann", str(CHAT)))
    await store.receive(letter("m", f"see file:{'b' * 64}"))
    await store.add_job(Job("j1", "reminder", 1e12, letter=letter("j", f"file:{'c' * 64}")))
    await home.write("UPDATE entries SET at = 10")
    await home.write("UPDATE inbox SET at = 20")
    await store.delete("owner", [lease.thread])
    [row] = await store.claim_jobs([DELETE], 30, "owner")
    left = msgspec.json.decode(row.job.payload, type=Leftovers)
    assert left == Leftovers((lease.thread,), {"a" * 12: 10.0, "b" * 12: 20.0, "c" * 12: 0.0})
    assert await store.files_named() == set()


# Random trees of branches


class Tree:
    """Conversations that branch from one another, and what each of them reads."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.sessions = Sessions(store)
        self.choose = random.Random(seed)
        self.words = 0
        self.living: dict[str, set[str]] = {}  # the words of each

    async def grow(self, threads: int) -> None:
        first = await told(self.store, *self.some())
        self.living[first.thread] = set()
        for _ in range(threads - 1):
            await self.branch(self.choose.choice(list(self.living)))
            await self.extend(self.choose.choice(list(self.living)))
            if self.choose.random() < 0.3:
                await self.store.search("owner", f"word{self.words}x")  # what is indexed until now

    def some(self) -> list[Entry]:
        entries: list[Entry] = []
        for _ in range(self.choose.randint(1, 4)):
            self.words += 1
            entries.append(user(f"word{self.words}x"))
            if self.choose.random() < 0.4:
                entries.append(Compacted(f"summary{self.words}x"))
        return entries

    async def extend(self, thread: str) -> None:
        row = (await self.store.open(thread)).row
        await self.store.commit(Lease(thread, head=row.head), Commit(self.some(), release=True, state="resting"))

    async def branch(self, thread: str) -> None:
        found = await self.sessions.find(thread, "owner")
        cut = self.choose.randint(1, found.head)
        branch = await self.sessions.fork(found, f"test:{len(self.living)}-{self.words}", "ann", cut)
        assert await self.store.perform("owner", f"test:{len(self.living)}-{self.words}", branch)
        self.living[branch.id] = set()

    async def readings(self) -> dict[str, list[Written]]:
        return {thread: await self.store.history(thread) for thread in self.living}


def words_in(readings: dict[str, list[Written]]) -> dict[str, set[str]]:
    """By thread: the words of people that can be read in it."""
    return {
        thread: {part.text for each in written if isinstance(each.entry, UserSaid) for part in each.entry.parts}
        for thread, written in readings.items()
    }


@pytest.mark.parametrize("seed", [3, 4, 5])
async def test_what_is_left_of_a_tree_reads_as_before_and_nothing_else_is_left(home: Home, store: Store, seed: int):
    tree = Tree(store, seed)
    await tree.grow(8)
    everything = {f"word{n}x" for n in range(1, tree.words + 1)}
    order = tree.choose.sample(list(tree.living), len(tree.living))
    while order:
        before, doomed = await tree.readings(), order.pop()
        del tree.living[doomed]
        deletion = await store.delete("owner", [doomed])
        assert deletion is not None
        assert deletion.threads == (doomed,)
        after = await tree.readings()
        assert after == {thread: read for thread, read in before.items() if thread != doomed}
        assert await holding(home, doomed) == []
        readable = words_in(after)
        await check_index(store, readable)
        still = set().union(*readable.values())
        kept = "\n".join(body for (body,) in await home.rows("SELECT body FROM entries"))
        assert {word for word in everything if f'"{word}"' in kept} == still
    assert await home.rows("SELECT count(*) FROM entries") == await home.rows("SELECT count(*) FROM said") == [(0,)]
    assert await home.rows("SELECT id FROM threads WHERE head > 0") == []


async def check_index(store: Store, readable: dict[str, set[str]]) -> None:
    """Each thread finds each of its words once, and no word that cannot be read in it."""
    for thread, words in readable.items():
        for word in words:
            hits = [hit for hit in await store.search("owner", word, thread=thread) if hit.text == word]
            assert [hit.text for hit in hits] == [word]


# The bytes of the SQLite file


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def conversation_with(store: Store, word: str, turns: int = 40) -> Lease:
    lease = await told(store, user("hello"))
    head = 1
    for n in range(turns):
        receipt = await store.receive(letter(f"m{n}", f"{word} asks {n} {'x' * (n * 50)}"))
        entries = [user(f"{word} asks {n}"), ModelCalled("m"), ModelSaid(f"{word} answers {n}")]
        commit = Commit(entries, absorbed=[receipt.id], ended=[(receipt.id, head + 3)], release=True, state="resting")
        answers = [Outbound(f"k{n}", CHAT, f"{word} answers {n}")]
        committed = await store.commit(Lease(lease.thread, head=head), msgspec.structs.replace(commit, outbox=answers))
        head = committed.head
        await store.acknowledge([f"k{n}"])
    await store.search("owner", f"{word} asks")
    return Lease(lease.thread, 0, head)


async def test_after_scrubbing_no_byte_of_it_is_in_the_home(sqlite_home: Any):
    store: SqliteStore = await sqlite_home.connect()
    other: SqliteStore = await sqlite_home.connect()
    kept = await told(store, user("pearword stays"), address=Address("test", "kept"))
    lease = await conversation_with(store, "canaryword")
    await other.search("owner", "canaryword")
    assert b"canaryword" in bytes_of(sqlite_home.path)
    await store.delete("owner", [lease.thread])
    assert b"canaryword" in bytes_of(sqlite_home.path)  # deleting rows alone leaves their bytes
    await store.scrub()
    assert b"canaryword" not in bytes_of(sqlite_home.path)
    assert [hit.thread for hit in await other.search("owner", "pearword")] == [kept.thread]
    assert (await store.receive(letter("more", "and on"))).fresh


async def test_no_deleted_word_is_left_in_the_index(sqlite_home: Any):
    store: SqliteStore = await sqlite_home.connect()
    await told(store, user("pearword stays"), address=Address("test", "kept"))
    lease = await conversation_with(store, "canaryword")
    await store.delete("owner", [lease.thread])
    await store.search("owner", "pearword")
    await store.scrub()
    terms = {term for (term,) in await vocabulary(sqlite_home)}
    assert terms & {"pearword", "canaryword", "answers"} == {"pearword"}


async def vocabulary(home: Any) -> Sequence[tuple[str]]:
    import apsw

    connection = apsw.Connection(str(home.path / "everloop.db"))
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.terms USING fts5vocab('main', 'said_words', 'row')")
        rows: Sequence[tuple[str]] = connection.execute("SELECT term FROM temp.terms").fetchall()
        return rows
    finally:
        connection.close()


def test_a_process_that_writes_the_file_anew_is_not_taken_for_a_frozen_one(tmp_path: Path):
    (tmp_path / "everloop.db-shm").touch()
    ours, killed = Holders(tmp_path / "run"), list[tuple[int, int]]()

    class Waiting(Watchdog):
        def _pids(self) -> list[int]:
            import os

            return [os.getpid()]

    def kill(pid: int, how: int) -> None:
        killed.append((pid, how))

    watchdog = Waiting(tmp_path / "everloop.db", ours, kill=kill)
    with ours.marked_busy():
        watchdog.waited(31)
    assert killed == []
    watchdog.waited(31)
    assert len(killed) == 1
    ours.close()


ORPHANS = {
    "entries": "SELECT count(*) FROM entries WHERE thread NOT IN (SELECT id FROM threads)",
    "open letters": "SELECT count(*) FROM inbox WHERE ended = 0 AND thread NOT IN (SELECT id FROM threads)",
    "letters with text": "SELECT count(*) FROM inbox WHERE body <> '' AND thread NOT IN (SELECT id FROM threads)",
    "answers": "SELECT count(*) FROM outbox WHERE thread NOT IN (SELECT id FROM threads)",
    "sessions": "SELECT count(*) FROM sessions WHERE thread NOT IN (SELECT id FROM threads)",
}


async def test_letters_turns_branches_and_deletions_at_once_leave_nothing_behind(home: Home):
    stores = [await home.connect() for _ in range(3)]
    done: list[str] = []

    async def speak(store: Store, n: int) -> None:
        for m in range(200):
            await asyncio.sleep(0)
            await store.receive(letter(f"{n}-{m}"))
            done.append("letter")
            if done.count("deleted") >= 5:
                return

    async def drive(store: Store) -> None:
        for m in range(40):
            await asyncio.sleep(0)  # SQLite answers at once, and lets nobody else have a turn
            row = await store.session(str(CHAT))
            if row is None:
                continue
            try:
                opened = await store.open(row.id)
                taken = Commit([user("x")], absorbed=[each.id for each in opened.mail], release=True, state="resting")
                taken.outbox = [Outbound(f"{row.id}-{m}-{store.holder}", CHAT, "x")]
                taken.seen = MANY  # the lease is given back, whatever has come
                await store.commit(Lease(row.id, head=opened.row.head), taken)
                done.append("turn")
            except (Fenced, ThreadGone):
                done.append("fenced")

    async def branch(store: Store) -> None:
        sessions = Sessions(store)
        for _ in range(4):
            await asyncio.sleep(0)
            for found in (await store.conversations("owner"))[:1]:
                made = await sessions.fork(found, str(CHAT), "ann")
                done.append("branch" if await store.perform("owner", str(CHAT), made) else "refused")

    async def forget(store: Store) -> None:
        for _ in range(40):
            await asyncio.sleep(0)
            for found in (await store.conversations("owner", archived=True))[:2]:
                deletion = await store.delete("owner", [found.id])
                done.append("deleted" if deletion and deletion.threads else "not deleted")

    await told(stores[0], user("there is one at the beginning"))
    work = [do(store) for store in stores for do in (drive, branch, forget)]
    await asyncio.gather(*work, *(speak(store, n) for n, store in enumerate(stores)))
    assert {name: await home.rows(query) for name, query in ORPHANS.items()} == {name: [(0,)] for name in ORPHANS}
    assert {"letter", "deleted"} <= set(done)
