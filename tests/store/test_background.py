"""Sending a turn to the background, beginning one there and taking it back, over both databases: each is one
transaction, and a turn that ends meanwhile is told where it belongs."""

import asyncio

import pytest

from everloop.core.log import AgentTold, ModelCalled, ModelSaid, UserSaid
from everloop.core.mail import Address, Inbound, Said, Telling
from everloop.core.message import said
from everloop.core.thread import Thread
from everloop.ports import Store
from everloop.ports.conversation import BeginInBackground, Branch, BringToFront, RunningTurn, SendToBackground
from everloop.ports.rows import COUNT
from everloop.runtime.book import Book
from everloop.runtime.people import KnownPeople

from .test_posts import Woken

CHAT = Address("test", "chat")


def inbound(event: str, text: str = "hi") -> Inbound:
    return Inbound(CHAT, event, Said(said(text), "owner", str(CHAT)))


async def running(store: Store, text: str = "dig") -> tuple[Book, RunningTurn]:
    """A turn in the middle of its model call."""
    receipt = await store.receive(inbound(text, text))
    book = await Book.open(store, Thread(receipt.thread), Woken())
    await book.absorb("steer", KnownPeople())
    assert await book.write(ModelCalled("m"))
    return book, RunningTurn(receipt.thread, receipt.id, text, 1.0)


async def send(store: Store, turn: RunningTurn, event: str = "bg", front: str = "f" * 16) -> str:
    deed = SendToBackground(turn, Branch(front, parent=turn.thread))
    return (await store.command(inbound(event), deed, f"task {COUNT}", "over")).reply or ""


async def end(book: Book) -> None:
    book.keep(ModelSaid("gold"))
    while not await book.rest():
        await book.absorb("steer", KnownPeople())


async def told_in(store: Store) -> list[str]:
    """What waits to be sent from the chat, and lies in the inbox of the thread in front."""
    sent = [each.text for each in await store.unshown(str(CHAT)) if not each.key.startswith("command:")]
    row = await store.session(str(CHAT))
    assert row
    return sent + [each.letter.text for each in await store.mail(row.id) if isinstance(each.letter, Telling)]


class TestSending:
    async def test_who_learns_of_it_only_when_the_turn_ends_tells_it_in_front(self, store: Store):
        book, turn = await running(store)
        assert await send(store, turn) == "task 1"
        assert book.spawned_by == ""  # as its driver knows it
        await end(book)
        (task,) = await store.tasks(under="f" * 16)
        assert await told_in(store) == ["Task 1 is done:\n\ngold"]
        assert (task.thread, task.stage, task.number, task.created) == (turn.thread, "done", 1, 1.0)

    async def test_one_that_is_taken_back_before_it_ends_is_answered_as_ever(self, store: Store):
        book, turn = await running(store)
        await send(store, turn)
        again = await store.command(inbound("fg"), BringToFront(turn.thread), "here", "no")
        assert (again.reply, again.thread) == ("here", turn.thread)
        await end(book)
        assert await told_in(store) == ["gold"]
        assert await store.tasks() == []

    async def test_a_turn_that_is_over_is_not_sent(self, store: Store):
        book, turn = await running(store)
        await end(book)
        assert await send(store, turn) == "over"
        row = await store.session(str(CHAT))
        assert row
        assert (row.id, await store.tasks()) == (turn.thread, [])

    async def test_of_two_at_once_one_does_it(self, store: Store):
        _, turn = await running(store)
        told = await asyncio.gather(*(send(store, turn, f"bg{n}", f"{n}" * 16) for n in range(4)))
        assert sorted(told) == ["over", "over", "over", "task 1"]
        assert [task.number for task in await store.tasks()] == [1]

    async def test_its_end_and_the_moving_at_once_tell_it_once(self, store: Store):
        for n in range(8):
            book, turn = await running(store, f"dig {n}")
            front = f"{n}" * 16
            await asyncio.gather(end(book), send(store, turn, f"bg{n}", front))
            row = await store.session(str(CHAT))
            assert row
            if row.id == front:  # else it was over before: what is in front takes in what it was told
                await end_of_telling(store, front)
        texts = [each.text for each in await store.unshown(str(CHAT)) if not each.key.startswith("command:")]
        assert sorted(text.removeprefix("Task ")[-4:] for text in texts) == ["gold"] * 8

    async def test_what_was_said_before_is_remembered_once(self, store: Store):
        book, _ = await running(store, "hello")
        await end(book)
        book, turn = await running(store)
        deed = SendToBackground(turn, Branch("f" * 16, [UserSaid(said("hello"), "owner")], parent=turn.thread, at=3))
        await store.command(inbound("bg"), deed, "")
        waiting = {each.thread: each.after for each in await store.unconsolidated(0.0, 1, 10)}
        await end(book)
        await store.command(inbound("fg"), BringToFront(turn.thread), "")
        after = {each.thread: each.after for each in await store.unconsolidated(0.0, 1, 10)}
        assert (waiting, after[turn.thread]) == ({"f" * 16: 0}, 3)

    async def test_a_command_that_comes_again_is_answered_as_before(self, store: Store):
        _, turn = await running(store)
        assert [await send(store, turn, "bg") for _ in range(2)] == ["task 1", "task 1"]
        assert len(await store.tasks()) == 1


async def end_of_telling(store: Store, thread: str) -> None:
    book = await Book.open(store, Thread(thread), Woken())
    await book.absorb("steer", KnownPeople())
    while not await book.rest():
        await book.absorb("steer", KnownPeople())


class TestBeginning:
    async def test_it_begins_behind_the_chat_and_numbers_go_on(self, store: Store):
        _, turn = await running(store)
        await send(store, turn)
        letter = Said(said("look"), "owner", str(CHAT))
        deed = BeginInBackground(Branch("b" * 16, title="look", stay=True, letter=letter), "bg2/bg")
        receipt = await store.command(inbound("bg2"), deed, f"task {COUNT}")
        assert (receipt.reply, receipt.thread) == ("task 2", "f" * 16)
        assert [(each.title, each.stage, each.number) for each in await store.tasks(under="f" * 16)] == [
            ("dig", "running", 1),
            ("look", "queued", 2),
        ]
        assert [each.letter for each in await store.mail("b" * 16)] == [letter]


class TestMoving:
    @pytest.mark.parametrize("action", ["new", "branch"])
    async def test_what_is_behind_stays_behind_the_chat(self, store: Store, action: str):
        book, turn = await running(store)
        await send(store, turn)
        deed = "new" if action == "new" else Branch("c" * 16, parent="f" * 16)
        receipt = await store.command(inbound("move"), deed, "done", "busy")
        assert [each.thread for each in await store.tasks(under=receipt.thread)] == [turn.thread]
        await end(book)
        assert await told_in(store) == ["Task 1 is done:\n\ngold"]

    async def test_what_runs_in_front_goes_behind_in_its_place(self, store: Store):
        digging, first = await running(store)
        await send(store, first)
        looking, second = await running(store, "look")
        await store.command(inbound("fg"), BringToFront(first.thread, second), "here", "no")
        assert [(each.thread, each.number) for each in await store.tasks(under=first.thread)] == [(second.thread, 2)]
        await end(looking)
        await end(digging)
        assert await told_in(store) == ["gold", "Task 2 is done:\n\ngold"]

    async def test_nobody_takes_back_what_is_another_s_or_of_another_chat(self, store: Store):
        _, turn = await running(store)
        await send(store, turn)
        assert not await store.perform("somebody", str(CHAT), BringToFront(turn.thread))
        assert not await store.perform("owner", "test:elsewhere", BringToFront(turn.thread))
        assert not await store.perform("owner", str(CHAT), BringToFront("f" * 16))  # which is in front
        assert await store.perform("owner", str(CHAT), BringToFront(turn.thread))


def test_what_is_told_is_an_entry_without_a_turn():
    thread = Thread.of(AgentTold("Task 1 is done:\n\ngold", sender="task 1", by="owner"))
    assert (thread.rests, thread.turn.steps) == (True, 0)
