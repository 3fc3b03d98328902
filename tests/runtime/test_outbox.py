"""Answers leave in order and once, whatever the platform does."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from everloop.core.log import ModelSaid
from everloop.core.mail import Address, Outbound
from everloop.core.rows import Commit, Lease, OutboxRow
from everloop.runtime.outbox import ATTEMPTS, LATE, Outbox
from everloop.store.sqlite import SqliteStore
from everloop.testing import RecordingChannel, Trouble
from tests.runtime.conftest import letter


@pytest.fixture
async def store(tmp_path):
    store = await SqliteStore.connect(tmp_path)
    yield store
    await store.close()


async def queue(store: SqliteStore, *texts: str, chat: str = "c") -> None:
    receipt = await store.receive(letter("hi", f"{chat}:{texts}", session=f"fake:{chat}"))
    row = (await store.open(receipt.thread)).row
    outbox = [Outbound(f"{chat}:{text}", Address("fake", chat), text) for text in texts]
    lease = Lease(receipt.thread, 0, row.head)
    await store.commit(lease, Commit([ModelSaid("x")], outbox=outbox, release=True, seen=receipt.id, state="resting"))


@asynccontextmanager
async def sending(store: "SqliteStore | Aged", channel: RecordingChannel):
    task = asyncio.create_task(Outbox(store, channel, patience=0.0).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_answers_leave_in_order_chat_by_chat(store):
    channel = RecordingChannel()
    await queue(store, "one", "two", "three")
    await queue(store, "eins", "zwei", chat="d")
    async with sending(store, channel):
        await channel.sent(5)
    assert [sent.text for sent in channel.sends if sent.chat == "fake:c"] == ["one", "two", "three"]
    assert [sent.text for sent in channel.sends if sent.chat == "fake:d"] == ["eins", "zwei"]


async def test_while_a_channel_is_down_nothing_is_lost_and_nothing_overtakes(store):
    channel = RecordingChannel()
    channel.trouble(Trouble.DOWN, times=2)
    await queue(store, "one", "two")
    async with sending(store, channel):
        await channel.sent(2)
    assert [sent.text for sent in channel.sends] == ["one", "two"]
    assert channel.attempts == 4


async def test_a_lost_acknowledgement_is_not_seen_on_a_channel_that_knows_our_keys(store):
    channel = RecordingChannel()
    channel.trouble(Trouble.ACK_LOST, times=1)
    await queue(store, "one")
    async with sending(store, channel):
        await channel.sent(1)
    assert [sent.text for sent in channel.delivered] == ["one"]
    assert channel.attempts == 2


async def test_a_lost_acknowledgement_on_a_blind_channel_is_repeated_and_marked(store):
    channel = RecordingChannel(once=False)
    channel.trouble(Trouble.ACK_LOST, times=1)
    await queue(store, "one")
    async with sending(store, channel):
        await channel.sent(1)
    assert [sent.text for sent in channel.delivered] == ["one", "(may be repeated) one"]


async def test_after_many_attempts_a_message_is_a_dead_letter_and_the_next_one_goes(store):
    channel = RecordingChannel()
    channel.trouble(Trouble.DOWN, times=ATTEMPTS)
    await queue(store, "one", "two")
    async with sending(store, channel):
        await channel.sent(1)
    assert [sent.text for sent in channel.sends] == ["two"]
    assert channel.attempts == ATTEMPTS + 1
    dead = (await store.deliveries(["c:one"]))["c:one"]
    assert (dead.state, dead.attempts) == ("failed", ATTEMPTS)


async def test_one_attempt_less_and_it_arrives(store):
    channel = RecordingChannel()
    channel.trouble(Trouble.DOWN, times=ATTEMPTS - 1)
    await queue(store, "one", "two")
    async with sending(store, channel):
        await channel.sent(2)
    assert [sent.text for sent in channel.sends] == ["one", "two"]


class Aged:
    """A store that has kept messages for so long."""

    def __init__(self, *ages: float) -> None:
        self._rows = [
            OutboxRow(n, "t", Outbound(f"k{n}", Address("fake", f"c{n}"), "hi"), attempts=1, unsure=False, age=age)
            for n, age in enumerate(ages)
        ]

    async def due(self, channel: str) -> list[OutboxRow]:
        rows, self._rows = self._rows, []
        return rows

    async def settle(self, *_: object) -> None:
        pass


async def test_what_leaves_late_says_so():
    channel = RecordingChannel()
    async with sending(Aged(LATE - 1, LATE + 1), channel):
        await channel.sent(2)
    assert [(sent.chat, sent.text) for sent in channel.sends] == [("fake:c0", "hi"), ("fake:c1", "(delayed) hi")]
