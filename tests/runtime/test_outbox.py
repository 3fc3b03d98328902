"""Answers leave in order and once, whatever the platform does."""

import asyncio
from collections import defaultdict
from contextlib import asynccontextmanager

import pytest
from msgspec import structs

from everloop.core.log import ModelSaid
from everloop.core.mail import Address, Outbound, ReplyTo
from everloop.errors import Undeliverable
from everloop.ports.channel import OutgoingFile, OutgoingPart, Rendered
from everloop.ports.rows import Commit, Lease, OutboxRow, OutboxState
from everloop.runtime.outbox import BLIND, LASTS, LATE, LEAST, Outbox, parts_of
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
async def sending(store: "SqliteStore | Aged | Watched", channel: RecordingChannel):
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


async def test_parts_leave_in_order_and_each_has_its_key(store):
    channel = RecordingChannel()
    await queue(store, "one\ftwo\fthree", "next")
    async with sending(store, channel):
        await channel.sent(4)
    key = "c:one\ftwo\fthree"
    assert [(sent.key, sent.text) for sent in channel.sends] == [
        (key, "one"),
        (f"{key}/1", "two"),
        (f"{key}/2", "three"),
        ("c:next", "next"),
    ]


async def test_a_part_that_has_arrived_is_not_sent_again_when_the_next_one_fails(store):
    class Failing(RecordingChannel):
        async def send(self, part):
            if part.number == 1 and self.attempts == 1:
                self.trouble(Trouble.DOWN, times=2)
            return await super().send(part)

    channel = Failing(once=False)
    await queue(store, "one\ftwo\fthree")
    async with sending(store, channel):
        await channel.sent(3)
    assert [sent.text for sent in channel.sends] == ["one", "two", "three"]
    assert channel.attempts == 5


async def test_only_the_part_of_which_nobody_knows_says_that_it_may_be_repeated(store):
    channel = RecordingChannel(once=False)
    channel.trouble(Trouble.ACK_LOST, times=1)
    await queue(store, "one\ftwo")
    async with sending(store, channel):
        await channel.sent(2)
    assert [sent.text for sent in channel.sends] == ["one", "(may be repeated) one", "two"]


class Watched:
    """A store of which is known how long each row is to wait."""

    def __init__(self, store: SqliteStore, trying: float = 0.0, at_once: bool = True) -> None:
        self._store = store
        self._at_once = at_once
        self._trying = trying
        self.waits: list[float] = []
        self._states: dict[str, int] = defaultdict(int)
        self._some = asyncio.Condition()

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)

    async def due(self, channel: str) -> list[OutboxRow]:
        return [structs.replace(row, trying=self._trying) for row in await self._store.due(channel)]

    async def settle(self, row: int, state: OutboxState, receipt: str = "", again_in: float = 0.0) -> None:
        if state != "sent":
            self.waits.append(again_in)
        await self._store.settle(row, state, receipt, 0.0 if self._at_once else again_in)
        async with self._some:
            self._states[state] += 1
            self._some.notify_all()

    async def settled(self, state: OutboxState, times: int = 1) -> None:
        """Wait until something has come to be so, so many times."""
        async with self._some:
            await self._some.wait_for(lambda: self._states[state] >= times)


async def test_what_the_platform_says_about_waiting_is_heeded_exactly(store):
    channel = RecordingChannel(retry_after=0.125)
    channel.trouble(Trouble.LIMITED, times=3)
    await queue(store, "one")
    watched = Watched(store)
    async with sending(watched, channel):
        await channel.sent(1)
    assert watched.waits == [0.125, 0.125, 0.125]


async def test_without_such_a_word_each_attempt_waits_about_twice_as_long_as_the_last(store):
    channel = RecordingChannel()
    channel.trouble(Trouble.DOWN, times=4)
    await queue(store, "one")
    watched = Watched(store)
    task = asyncio.create_task(Outbox(watched, channel, patience=0.001, chance=lambda: 0.5).run())
    await channel.sent(1)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert watched.waits == [0.00075, 0.0015, 0.003, 0.006]


async def test_after_a_day_a_message_is_a_dead_letter_with_a_note_and_the_next_one_goes(store):
    channel = RecordingChannel()
    channel.trouble(Trouble.DOWN, times=LEAST)
    await queue(store, "one", "two")
    watched = Watched(store, trying=LASTS + 1)
    async with sending(watched, channel):
        await watched.settled("sent")
    assert [sent.text for sent in channel.sends] == ["two"]
    (dead,) = await store.undelivered()
    assert (dead.state, dead.attempts, dead.chat, dead.text) == ("failed", LEAST, "fake:c", "one")
    assert dead.why == "it did not arrive within 24 hours (fake does not answer)"


async def test_within_the_day_it_is_tried_however_often_it_takes(store):
    channel = RecordingChannel()
    channel.trouble(Trouble.DOWN, times=40)
    await queue(store, "one", "two")
    async with sending(Watched(store, trying=LASTS - 1), channel):
        await channel.sent(2)
    assert [sent.text for sent in channel.sends] == ["one", "two"]


async def test_a_blind_channel_does_not_repeat_a_message_for_a_whole_day(store):
    channel = RecordingChannel(once=False)
    channel.trouble(Trouble.ACK_LOST)
    await queue(store, "one")
    watched = Watched(store)
    async with sending(watched, channel):
        await watched.settled("failed")
    assert len(channel.sends) == BLIND


async def test_what_surely_did_not_arrive_does_not_count_as_a_send_that_may_have(store):
    channel = RecordingChannel(once=False)
    channel.trouble(Trouble.DOWN, times=BLIND + 2)
    await queue(store, "one")
    watched = Watched(store)
    async with sending(watched, channel):
        await watched.settled("pending", BLIND + 2)
        channel.trouble(Trouble.ACK_LOST, times=1)
        await channel.sent(1)
    assert [sent.text for sent in channel.sends] == ["one", "(may be repeated) one"]


async def test_what_is_being_sent_when_it_is_to_end_is_sent_and_has_its_receipt(store):
    class Slow(RecordingChannel):
        async def send(self, part):
            begun.set()
            await gate.wait()
            return await super().send(part)

    begun, gate, channel = asyncio.Event(), asyncio.Event(), Slow(once=False)
    await queue(store, "one")
    async with sending(store, channel):
        await begun.wait()
        asyncio.get_running_loop().call_soon(gate.set)
    assert [sent.text for sent in channel.sends] == ["one"]
    assert await store.due("fake") == await store.undelivered() == []


async def test_a_dead_letter_can_be_sent_again_and_is_not_older_than_before(store):
    class Refusing(RecordingChannel):
        refuses = True

        async def send(self, part):
            if self.refuses:
                self.refuses = False
                raise Undeliverable("no such chat")
            return await super().send(part)

    channel = Refusing()
    await queue(store, "one", "two")
    watched = Watched(store)
    async with sending(watched, channel):
        await watched.settled("sent")
        (dead,) = await store.undelivered()
        assert (dead.why, await store.send_again(dead.id), await store.send_again(dead.id)) == (
            "no such chat",
            True,
            False,
        )
        await watched.settled("sent", 2)
    assert [sent.text for sent in channel.sends] == ["two", "one"]
    assert await store.undelivered() == []


async def test_an_answer_of_which_a_channel_makes_nothing_is_given_up_and_holds_up_no_other(store):
    class Silent(RecordingChannel):
        def render(self, outbound):
            return () if outbound.text == "one" else (outbound.text,)

    channel = Silent()
    await queue(store, "one", "two")
    watched = Watched(store)
    async with sending(watched, channel):
        await watched.settled("sent")
    assert [sent.text for sent in channel.sends] == ["two"]
    assert [each.why for each in await store.undelivered()] == ["fake makes nothing of it that could be sent"]


async def test_an_error_that_nobody_expects_holds_up_that_message_alone(store):
    class Failing(Watched):
        async def settle(self, id: int, state: OutboxState, receipt: str = "", again_in: float = 0.0) -> None:
            await super().settle(id, state, receipt, again_in)
            if [sent.text for sent in channel.sends][-1] == "one":
                failed.set()
                raise RuntimeError("nobody expects it")

    class Slow(RecordingChannel):
        async def send(self, part):
            if part.text == "eins":
                await failed.wait()
                await asyncio.sleep(0)  # whoever would be cancelled by that failure is, here
                await asyncio.sleep(0)
            return await super().send(part)

    failed, channel = asyncio.Event(), Slow()
    await queue(store, "one", "two")
    await queue(store, "eins", chat="d")
    watched = Failing(store)
    async with sending(watched, channel):
        await watched.settled("sent", 3)
    assert sorted(sent.text for sent in channel.sends) == ["eins", "one", "two"]
    assert channel.attempts == 3


async def test_a_dropped_letter_is_never_sent(store):
    channel = RecordingChannel()
    channel.trouble(Trouble.DOWN)
    await queue(store, "one", "two")
    watched = Watched(store, at_once=False)
    outbox = asyncio.create_task(Outbox(watched, channel, patience=60.0).run())
    await watched.settled("pending")
    (waiting,) = await store.undelivered()
    assert (waiting.state, await store.drop(waiting.id)) == ("pending", True)
    channel.trouble(None)
    await channel.sent(1)
    outbox.cancel()
    await asyncio.gather(outbox, return_exceptions=True)
    assert [sent.text for sent in channel.sends] == ["two"]


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

    async def reply_to(self, outbound: Outbound) -> ReplyTo:
        return ReplyTo("")

    async def settle(self, *_: object) -> None:
        pass


async def test_what_leaves_late_says_so():
    channel = RecordingChannel()
    async with sending(Aged(LATE - 1, LATE + 1), channel):
        await channel.sent(2)
    assert [(sent.chat, sent.text) for sent in channel.sends] == [("fake:c0", "hi"), ("fake:c1", "(delayed) hi")]


def test_an_answer_becomes_a_part_for_each_text_with_the_files_at_the_last():
    answer, files = Outbound("k", Address("fake", "room"), "one two"), (OutgoingFile("a.txt", "text/plain", b"a"),)
    found = parts_of(answer, ("one", "two"), ReplyTo("there"), [files])
    assert [(part.key, part.text, part.files, part.number, part.of, part.reply_to) for part in found] == [
        ("k", "one", (), 0, 2, "there"),
        ("k/1", "two", files, 1, 2, "there"),
    ]


def test_further_groups_of_files_are_parts_of_their_own_without_a_text():
    answer = Outbound("k", Address("fake", "room"), "one")
    small, large = OutgoingFile("a.txt", "text/plain", b"a"), OutgoingFile("b.txt", "text/plain")
    found = parts_of(answer, ("one",), ReplyTo("there"), [(large,), (small,)])
    assert [(part.key, part.text, part.files, part.number, part.of) for part in found] == [
        ("k", "one", (large,), 0, 2),
        ("k/1", "", (small,), 1, 2),
    ]


class Written(RecordingChannel):
    """A channel with markup of its own; `plain` is what it was handed without it."""

    def __init__(self, *, once: bool) -> None:
        super().__init__(once=once)
        self.plain: list[str] = []

    def render(self, outbound: Outbound) -> tuple[Rendered, ...]:
        return tuple(Rendered(f"<b>{word}</b>", word) for word in outbound.text.split())

    async def send(self, part: OutgoingPart) -> str:
        self.plain.append(part.plain)
        return await super().send(part)


async def test_a_part_is_sent_with_its_text_without_markup(store):
    channel = Written(once=True)
    await queue(store, "one two")
    async with sending(store, channel):
        await channel.sent(2)
    assert ([sent.text for sent in channel.sends], channel.plain) == (["<b>one</b>", "<b>two</b>"], ["one", "two"])


async def test_what_has_to_be_said_with_a_part_is_said_in_both_forms(store):
    channel = Written(once=False)
    channel.trouble(Trouble.ACK_LOST, times=1)
    await queue(store, "one")
    async with sending(store, channel):
        await channel.sent(1)
    assert channel.plain == ["one", "(may be repeated) one"]
    assert channel.sends[-1].text == "(may be repeated) <b>one</b>"
