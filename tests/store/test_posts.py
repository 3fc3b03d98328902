"""A book posts letters to other threads with its next commit, and wakes them when that is done: over both databases."""

from collections.abc import AsyncIterator

import pytest

from everloop.core.log import CallStarted
from everloop.core.mail import Address, Inbound, Said, Stop
from everloop.core.message import said
from everloop.core.thread import Finished, Thread
from everloop.errors import StoreError
from everloop.ports import Store
from everloop.ports.rows import COUNT, Posting, ThreadRow
from everloop.runtime.book import Book

from .conftest import Home

HERE, CHILD = Address("test", "here"), Address("child", "1")


class Woken:
    """A listener that keeps who was woken, and whether the letter lay there by then."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def take(self, mail: int, head: int) -> None: ...

    def finish(self, turn: Finished) -> None: ...

    def is_waited_for(self) -> bool:
        return False

    def wake(self, thread: str) -> None:
        self.threads.append(thread)


@pytest.fixture
async def store(home: Home) -> AsyncIterator[Store]:
    opened = await home.connect()
    yield opened
    await home.lose(opened)


async def opened(store: Store, woken: Woken) -> Book:
    receipt = await store.receive(inbound("e1", HERE))
    return await Book.open(store, Thread(receipt.thread), woken)


def inbound(event: str, address: Address, owner: str = "owner") -> Inbound:
    return Inbound(address, event, Said(said("hi"), owner, str(address)), owner)


async def test_a_letter_lies_in_the_other_inbox_after_the_next_commit_and_its_thread_is_woken(store: Store):
    woken = Woken()
    book = await opened(store, woken)
    by = f"{book.thread.id}:1:0"
    book.post(Posting(inbound("do", CHILD), spawned_by=by))
    assert (await store.session(str(CHILD)), woken.threads) == (None, [])
    await book.write()
    made = await store.session(str(CHILD))
    assert made is not None
    assert (made.spawned_by, woken.threads) == (by, [made.id])
    assert [mail.letter for mail in await store.mail(made.id)] == [inbound("do", CHILD).letter]
    await book.write()
    assert woken.threads == [made.id]


async def test_a_thread_that_has_nothing_else_to_write_still_posts_before_it_rests(store: Store):
    woken = Woken()
    book = await opened(store, woken)
    other = await store.receive(inbound("e2", Address("test", "other")))
    book.post(Posting(inbound("do", CHILD), other.thread))
    assert await book.rest()
    assert woken.threads == [other.thread]
    assert [mail.letter for mail in await store.mail(other.thread)] == [
        inbound("e2", Address("test", "other")).letter,
        inbound("do", CHILD).letter,
    ]


async def test_nobody_is_woken_for_a_letter_that_was_not_posted(store: Store):
    await store.receive(inbound("h", Address("test", "hers"), "ann"))
    woken = Woken()
    book = await opened(store, woken)
    book.post(Posting(inbound("mine", Address("test", "hers"))))
    await book.write()
    assert woken.threads == []


class Blind:
    """A store that cannot say which thread a session has."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def session(self, key: str) -> ThreadRow | None:
        raise StoreError("the server is away")


async def test_a_wake_that_is_lost_costs_nothing_but_time(store: Store, caplog):
    woken = Woken()
    receipt = await store.receive(inbound("e1", HERE))
    book = await Book.open(Blind(store), Thread(receipt.thread), woken)
    book.post(Posting(inbound("do", CHILD)))
    await book.write()
    made = await store.session(str(CHILD))
    assert made is not None
    assert (woken.threads, await store.waiting()) == ([], [made.id])
    assert "the thread of child:1 is not woken, and looks for its mail later: the server is away" in caplog.text


@pytest.mark.parametrize("stopped", [True, False])
async def test_a_child_begins_with_the_start_of_its_call_or_not_at_all(store: Store, stopped: bool):
    """A stop that lies in the inbox keeps the call from starting, and so the child from beginning; other letters go."""
    book = await opened(store, Woken())
    await book.write()
    if stopped:
        await store.command(Inbound(HERE, "halt", Stop("owner")), "stop", "")
    call = f"{book.thread.id}:1:0"
    book.post(Posting(inbound("do", CHILD), spawned_by=call, title="the task"))
    book.post(Posting(inbound("other", Address("test", "other"))))
    assert await book.write(CallStarted(1, 0, waits=True)) is not stopped
    other = await store.session("test:other")
    assert other is not None
    assert len(await store.mail(other.id)) == 1
    made = await store.session(str(CHILD))
    mail = await store.mail(made.id) if made else []
    tasks = [(task.title, task.stage, task.spawned_by) for task in await store.tasks("owner")]
    assert (len(mail), tasks) == ((0, []) if stopped else (1, [("the task", "queued", call)]))


async def test_a_stop_reaches_all_that_works_for_a_conversation_and_nothing_else(store: Store):
    book = await opened(store, Woken())
    book.post(Posting(inbound("do", CHILD), spawned_by=f"{book.thread.id}:1:0"))
    await book.write()
    (child,) = await store.tasks(under=book.thread.id)
    deeper = await Book.open(store, Thread(child.thread), Woken())
    deeper.post(Posting(inbound("more", Address("child", "2")), spawned_by=f"{child.thread}:1:0"))
    await deeper.write()
    stranger = await store.receive(inbound("x", Address("test", "stranger")))
    receipt = await store.command(Inbound(HERE, "halt", Stop("owner")), "stop", f"{COUNT} stopped")
    again = await store.command(Inbound(HERE, "halt", Stop("owner")), "stop", f"{COUNT} stopped")
    family = [book.thread.id, *(task.thread for task in await store.tasks(under=book.thread.id))]
    stops = [[type(each.letter) for each in await store.mail(thread)].count(Stop) for thread in family]
    assert (receipt.reply, again.reply, stops) == ("3 stopped", "3 stopped", [1, 1, 1])
    assert Stop not in [type(each.letter) for each in await store.mail(stranger.thread)]
    assert len(await store.tasks("owner")) == 2
    assert await store.tasks("ann") == []
