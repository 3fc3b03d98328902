"""What deleted conversations leave outside of the tables is removed: at once, or after a kill by whoever comes next."""

import os
from pathlib import Path
from typing import Any

import pytest

from everloop.bus.local import LocalBus
from everloop.core.log import CallReturned, ModelCalled, UserSaid
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import Media, said
from everloop.errors import MailRefused
from everloop.files.folder import Folder
from everloop.files.inventory import FileInventory
from everloop.ports.conversation import Conversation
from everloop.ports.events import ConversationDeleted
from everloop.ports.jobs import DELETE
from everloop.ports.rows import Commit, Lease
from everloop.runtime.deletions import DAY, HOUR, Deletions
from everloop.runtime.sessions import Sessions
from everloop.store.sqlite import SqliteStore

CHAT = Address("test", "chat")
CANARY = "canary-in-a-coal-mine"


class Desk:
    """A home with a store, files and deletions; `forgotten` are the threads whose commands were."""

    def __init__(self, home: Path, store: SqliteStore) -> None:
        self.home, self.store = home, store
        self.folder, self.inventory = Folder(home / "files"), FileInventory(home / "files")
        self.sessions, self.bus, self.forgotten = Sessions(store), LocalBus(), list[str]()
        self.deletions = Deletions(store, self.inventory, self.forget, self.bus)

    async def forget(self, thread: str) -> None:
        self.forgotten.append(thread)

    async def say(self, *texts: str, files: tuple[str, ...] = (), address: Address = CHAT) -> Conversation:
        inbound = Inbound(address, f"new in {address}", Said(said("/new"), "owner", str(address)))
        receipt = await self.store.command(inbound, "new", "")
        parts = tuple(Media(ref, "text/plain", "a.txt") for ref in files)
        entries = [UserSaid((*said(text), *parts), "owner", str(address)) for text in texts]
        await self.store.commit(Lease(receipt.thread), Commit(entries, release=True, state="resting"))
        return await self.sessions.find(receipt.thread, "owner")

    async def delete(self, found: Conversation) -> int:
        await self.deletions.delete("owner", found)
        return await self.deletions.finish()

    async def kept(self) -> list[str]:
        return [file.ref for file in await self.inventory.files()]

    async def jobs(self) -> list[Any]:
        return [row.job for row in await self.store.jobs("owner")]

    def age(self, seconds: float) -> None:
        """Let the files be older, which is when they were put there last."""
        for path in (self.home / "files").rglob("*"):
            if path.is_file():
                os.utime(path, (path.stat().st_mtime - seconds,) * 2)


@pytest.fixture
async def desk(tmp_path: Path) -> Any:
    store = await SqliteStore.connect(tmp_path)
    yield Desk(tmp_path, store)
    await store.close()


def is_in(home: Path, text: str) -> bool:
    return any(text.encode() in path.read_bytes() for path in home.rglob("*") if path.is_file())


async def test_what_was_said_and_its_files_are_nowhere_in_the_home(desk: Desk):
    ref = await desk.folder.put("owner", CANARY.encode(), "a.txt")
    found = await desk.say(f"hello {CANARY}", files=(ref,))
    assert is_in(desk.home, CANARY)
    with desk.bus.subscribe() as feed:
        assert await desk.delete(found) == 1
        feed.end()
        told = [event async for event in feed]
    assert told == [ConversationDeleted(found.id, 0, str(CHAT), "owner")]
    assert not is_in(desk.home, CANARY)
    assert (await desk.kept(), await desk.jobs(), desk.forgotten) == ([], [], [found.id])


async def test_a_file_stays_until_the_last_conversation_that_names_it_goes_whosever_it_is(desk: Desk):
    mine = await desk.folder.put("owner", b"shared", "a.txt")
    await desk.folder.put("web:bob", b"shared", "a.txt")
    one = await desk.say("one", files=(mine,))
    two = await desk.say("two", files=(mine,), address=Address("test", "two"))
    three = await desk.say("three", address=Address("test", "three"))
    assert await desk.delete(three) == 0
    assert await desk.delete(one) == 0
    assert await desk.kept() == [mine, mine]
    assert await desk.delete(two) == 2
    assert (await desk.kept(), await desk.jobs()) == ([], [])


async def test_a_file_that_was_put_there_again_since_is_given_a_day_to_be_named(desk: Desk):
    ref = await desk.folder.put("owner", b"again", "a.txt")
    found = await desk.say("one", files=(ref,))
    desk.age(-60)  # an upload that waits for its message
    assert await desk.delete(found) == 0
    [job] = await desk.jobs()
    assert (job.kind, await desk.kept()) == (DELETE, [ref])
    assert await desk.deletions.finish() == 0  # it is not due yet
    desk.age(DAY + 120)
    assert await remove_later(desk) == 1
    assert (await desk.kept(), await desk.jobs()) == ([], [])


async def test_a_file_that_someone_names_meanwhile_stays(desk: Desk):
    ref = await desk.folder.put("owner", b"again", "a.txt")
    found = await desk.say("one", files=(ref,))
    desk.age(-60)
    await desk.delete(found)
    await desk.say("two", files=(ref,), address=Address("test", "two"))
    desk.age(2 * DAY)
    assert await remove_later(desk) == 0
    assert (await desk.kept(), await desk.jobs()) == ([ref], [])


async def test_while_a_turn_runs_anywhere_a_young_file_waits(desk: Desk):
    ref = await desk.folder.put("owner", b"young", "a.txt")
    found = await desk.say("one", files=(ref,))
    other = await desk.say("two", address=Address("test", "two"))
    lease = Lease(other.id, head=1)
    committed = await desk.store.commit(lease, Commit([ModelCalled("m")]))
    assert await desk.delete(found) == 0
    assert await desk.kept() == [ref]
    done = Commit([CallReturned(1, 0, "x", "done")], release=True, state="resting")
    await desk.store.commit(Lease(other.id, committed.epoch, committed.head), done)
    desk.age(HOUR)
    assert await remove_later(desk) == 1


async def remove_later(desk: Desk) -> int:
    await desk.store._change("UPDATE jobs SET due = 0")
    return await desk.deletions.finish()


async def test_one_in_which_a_turn_runs_is_refused_with_a_sentence(desk: Desk):
    found = await desk.say("one")
    await desk.store.commit(Lease(found.id, head=1), Commit([ModelCalled("m")]))
    with pytest.raises(MailRefused, match="something is still going on in this conversation; stop it first"):
        await desk.deletions.delete("owner", found)
    assert len(await desk.store.history(found.id)) == 2


async def test_many_at_once_are_written_anew_once(desk: Desk):
    store = desk.store
    written = []

    class Counting(SqliteStore):
        async def scrub(self) -> None:
            written.append(1)
            await super().scrub()

    store.__class__ = Counting
    for n in range(5):
        found = await desk.say(f"{CANARY} {n}", address=Address("test", f"{n}"))
        await desk.deletions.delete("owner", found)
    await desk.deletions.finish()
    assert (len(written), is_in(desk.home, CANARY), await desk.jobs()) == (1, False, [])
