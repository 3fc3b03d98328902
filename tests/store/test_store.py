"""What every store promises, whichever database it keeps things in. Two stores on one home are two processes."""

import asyncio
import itertools
from collections.abc import Awaitable
from typing import Any, Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs
from tests.effort import examples

from everloop.core.log import (
    MANY,
    AgentTold,
    CallStarted,
    Compacted,
    Entry,
    ModelCalled,
    ModelChosen,
    ModelSaid,
    Stopped,
    UserSaid,
)
from everloop.core.mail import Address, Choose, Decision, Inbound, Mail, Outbound, ReplyTo, Said, Stop, Telling
from everloop.core.message import Made, Media, said
from everloop.core.prompt import Usage
from everloop.errors import Fenced, MailRefused, StoreError, StoreNewer
from everloop.ports import Store
from everloop.ports.permission import Grant
from everloop.ports.rows import (
    Commit,
    Committed,
    Lease,
    OutboxRow,
    Receipt,
    Renewal,
    Spent,
    SpentRow,
    ThreadRow,
    Timer,
    Whose,
)
from everloop.store import schema

CHAT = Address("test", "chat")
HELLO = Said(said("hello"), "ann", str(CHAT))
ASKED = ModelCalled("m")
ANSWERED = ModelSaid("hi", usage=Usage(10, 5))
START = CallStarted(2, 0)


class Home(Protocol):
    async def connect(
        self, lease_seconds: float = 30.0, migrations: schema.Migrations = schema.MIGRATIONS
    ) -> Store: ...
    async def lose(self, store: Store) -> None: ...
    async def write(self, statement: str) -> None: ...
    async def rows(self, query: str) -> list[tuple[Any, ...]]: ...


def letter(event: str, text: str = "hello", address: Address = CHAT, owner: str = "owner") -> Inbound:
    return Inbound(address, event, Said(said(text), "ann", str(address)), owner)


def stop(event: str, address: Address = CHAT) -> Inbound:
    return Inbound(address, event, Stop("ann"))


def heard(mail: int) -> UserSaid:
    return UserSaid(said("hello"), "ann", str(CHAT), mail)


def answer(key: str, address: Address = CHAT) -> Outbound:
    return Outbound(key, address, f"text of {key}")


async def received(store: Store, event: str = "e1", address: Address = CHAT) -> Receipt:
    return await store.receive(letter(event, address=address))


async def taken(store: Store, event: str = "e1", address: Address = CHAT) -> Lease:
    """A thread with one letter, taken in, and the lease on it."""
    receipt = await received(store, event, address)
    lease = Lease(receipt.thread)
    await append(store, lease, heard(receipt.id), absorbed=[receipt.id])
    return lease


async def append(store: Store, lease: Lease, *entries: Entry, **rest: Any) -> Committed:
    committed = await store.commit(lease, Commit(list(entries), **rest))
    lease.epoch, lease.head = committed.epoch, committed.head
    return committed


async def expire(home: Home) -> None:
    await home.write("UPDATE threads SET expires = 1")


async def log_of(home: Home, thread: str) -> list[tuple[Any, ...]]:
    return await home.rows(f"SELECT seq, body FROM entries WHERE thread = '{thread}' ORDER BY seq")


async def everything(home: Home) -> list[list[tuple[Any, ...]]]:
    tables = ("sessions", "threads", "entries", "inbox", "outbox", "jobs", "usage")
    return [sorted(await home.rows(f"SELECT * FROM {table}"), key=repr) for table in tables]


# Receiving


async def test_a_letter_lies_in_the_inbox_of_the_sessions_thread(store: Store):
    receipt = await received(store)
    opened = await store.open(receipt.thread)
    assert (receipt.fresh, receipt.reply) == (True, None)
    assert opened.row == ThreadRow(receipt.thread, "test:chat", "owner", 0, 0, "resting", "")
    assert (opened.entries, opened.first, opened.mail) == ([], 1, [Mail(receipt.id, HELLO)])


async def test_of_two_who_speak_first_in_one_session_the_second_is_refused(store: Store):
    """Whoever looked before either had spoken saw that it was nobody's."""
    mine = await store.receive(letter("e1", owner="ann"))
    others = await asyncio.gather(
        store.receive(letter("e2", owner="bob")),
        store.command(letter("e3", owner="bob"), "help", "so it is"),
        return_exceptions=True,
    )
    assert [(type(other), str(other)) for other in others] == [(MailRefused, "this session is not yours")] * 2
    with pytest.raises(Fenced):
        await store.commit(Lease(mine.thread), Commit([heard(0)], letter=letter("e4", owner="bob")))
    assert [(mail.id, mail.letter) for mail in await store.mail(mine.thread)] == [(mine.id, letter("e1").letter)]


async def test_the_same_event_twice_is_one_letter(store: Store):
    first, second = await received(store), await received(store)
    assert (second.id, second.thread, second.fresh) == (first.id, first.thread, False)
    assert await store.mail(first.thread) == [Mail(first.id, HELLO)]


async def test_the_same_event_on_two_channels_is_two_letters(store: Store):
    receipts = [await received(store, "e1", Address(channel, "chat")) for channel in ("a", "b")]
    assert [receipt.fresh for receipt in receipts] == [True, True]


async def test_an_event_is_still_known_after_its_turn_and_by_another_process(home: Home, store: Store):
    lease = await taken(store)
    again = await received(await home.connect())
    assert (again.fresh, again.thread) == (False, lease.thread)
    assert await store.mail(lease.thread) == []


async def test_letters_keep_the_order_in_which_they_came(store: Store):
    receipts = [await store.receive(letter(f"e{n}", str(n))) for n in range(20)]
    mail = await store.mail(receipts[0].thread)
    assert [m.id for m in mail] == [receipt.id for receipt in receipts]
    assert [m.letter.parts[0].text for m in mail if isinstance(m.letter, Said)] == [str(n) for n in range(20)]


async def test_a_sessions_thread_is_made_once_even_when_two_processes_meet(home: Home):
    stores = [await home.connect(), await home.connect()]
    receipts = await asyncio.gather(*(received(stores[n % 2], f"e{n}") for n in range(20)))
    assert len({receipt.thread for receipt in receipts}) == 1
    assert await home.rows("SELECT count(*) FROM threads") == [(1,)]


async def test_one_event_that_arrives_in_two_processes_at_once_is_one_letter(home: Home):
    stores = [await home.connect(), await home.connect()]
    receipts = await asyncio.gather(*(received(stores[n % 2], f"e{n // 2}") for n in range(40)))
    assert sorted(r.fresh for r in receipts) == [False] * 20 + [True] * 20
    assert len(await stores[0].mail(receipts[0].thread)) == 20


async def test_a_session_that_nobody_wrote_to_is_none(store: Store):
    assert await store.session("test:chat") is None
    assert await store.latest("owner") is None


async def test_a_thread_is_opened_for_its_row_alone_by_asking_for_what_follows_more_than_there_is(store: Store):
    receipt = await store.receive(letter("e"))
    opened = await store.open(receipt.thread, MANY)
    assert (opened.row.id, opened.row.owner, opened.entries) == (receipt.thread, "owner", [])


async def test_a_thread_that_does_not_exist_cannot_be_opened(store: Store):
    with pytest.raises(StoreError, match="no thread"):
        await store.open("nowhere")


async def test_the_latest_session_is_the_owners_most_recently_active(store: Store):
    for event, chat, owner in (("1", "a", "ann"), ("2", "b", "ann"), ("3", "c", "bob"), ("4", "a", "ann")):
        await store.receive(letter(event, address=Address("test", chat), owner=owner))
    await store.receive(letter("5", address=Address("openai", "x"), owner="ann"))  # a client's own conversation
    latest = await store.latest("ann")
    assert latest is not None
    assert (latest.session, latest.owner) == ("test:a", "ann")


async def test_threads_are_found_by_how_their_names_begin(store: Store):
    ids = sorted([(await store.receive(letter(str(n), address=Address("test", str(n))))).thread for n in range(40)])
    assert await store.named("", 100) == ids
    assert await store.named(ids[7]) == [ids[7]]
    for beginning in {id[:1] for id in ids}:
        assert await store.named(beginning, 100) == [id for id in ids if id.startswith(beginning)]
    assert await store.named("%") == await store.named("_") == await store.named("xyz") == []


async def test_text_survives_as_it_was_written(store: Store):
    text = "zero\x00, quotes '\" {} \\ \\u0000, Ünïcode 🙂, \x7f"
    receipt = await store.receive(letter("e1", text))
    entry = UserSaid(said(text), "ann", "test:chat", receipt.id)
    await append(store, Lease(receipt.thread), entry, absorbed=[receipt.id], outbox=[Outbound("k", CHAT, text)])
    assert await store.read(receipt.thread) == [entry]
    assert [row.outbound.text for row in await store.due("test")] == [text]


# Commands


async def test_new_moves_the_session_to_a_new_thread_and_the_old_one_stays(store: Store):
    old = await taken(store)
    receipt = await store.command(letter("e2", "/new"), "new", "A new conversation.")
    session = await store.session("test:chat")
    assert session is not None
    assert receipt.thread == session.id != old.thread
    assert (await received(store, "e3")).thread == session.id
    assert await store.read(old.thread) == [heard(1)]


async def test_a_command_acts_and_answers_once(store: Store):
    first = await store.command(letter("e1", "/new"), "new", "A new conversation.")
    second = await store.command(letter("e1", "/new"), "new", "A new conversation.")
    session = await store.session("test:chat")
    assert first == Receipt(first.id, session.id if session else "", True, "A new conversation.")
    assert second == Receipt(first.id, first.thread, False, "A new conversation.")
    assert [row.outbound.text for row in await store.due("test")] == ["A new conversation."]
    assert await store.due("test") == []


async def test_a_command_that_only_answers_leaves_no_mail(store: Store):
    receipt = await store.command(letter("e1", "/help"), "none", "Help.")
    assert await store.mail(receipt.thread) == []
    assert await store.waiting() == []
    assert [(row.outbound.text, row.outbound.mails) for row in await store.due("test")] == [("Help.", (receipt.id,))]


async def test_stop_posts_a_stop_when_a_turn_runs(store: Store):
    lease = await taken(store)
    receipt = await store.command(stop("e2"), "stop", "Stopped.", "Nothing runs.")
    assert receipt.reply == "Stopped."
    assert [m.letter for m in await store.mail(lease.thread)] == [Stop("ann")]
    assert await store.stopping([lease.thread, "other"]) == [lease.thread]
    assert await store.stopping(["other"]) == []


async def test_stop_posts_a_stop_when_a_letter_waits(store: Store):
    await received(store)
    assert (await store.command(stop("e2"), "stop", "Stopped.", "Nothing runs.")).reply == "Stopped."


async def test_stop_posts_nothing_when_nothing_runs(store: Store):
    lease = await taken(store)
    await append(store, lease, release=True, state="resting")
    receipt = await store.command(stop("e2"), "stop", "Stopped.", "Nothing runs.")
    assert receipt.reply == "Nothing runs."
    assert await store.mail(lease.thread) == []


async def test_a_stop_that_is_sent_twice_lies_there_once(store: Store):
    lease = await taken(store)
    replies = [(await store.command(stop("e2"), "stop", "Stopped.")).reply for _ in range(2)]
    assert replies == ["Stopped.", "Stopped."]
    assert len(await store.mail(lease.thread)) == 1


CHOICE = Inbound(CHAT, "e2", Choose("fast", "ann"))


async def test_tell_puts_the_letter_into_the_inbox_and_answers_in_one(store: Store):
    lease = await taken(store)
    receipt = await store.command(CHOICE, "tell", "fast answers from now on.")
    assert receipt == Receipt(receipt.id, lease.thread, True, "fast answers from now on.")
    assert [m.letter for m in await store.mail(lease.thread)] == [Choose("fast", "ann")]
    assert [row.outbound.text for row in await store.due("test")] == ["fast answers from now on."]


async def test_a_letter_that_is_told_twice_lies_there_once(home: Home, store: Store):
    first = await store.command(CHOICE, "tell", "fast answers.")
    again = await (await home.connect()).command(CHOICE, "tell", "something else")
    assert again == Receipt(first.id, first.thread, False, "fast answers.")
    assert [m.letter for m in await store.mail(first.thread)] == [Choose("fast", "ann")]
    assert [row.outbound.text for row in await store.due("test")] == ["fast answers."]
    assert await store.due("test") == []


async def test_one_command_that_arrives_in_two_processes_at_once_is_told_once(home: Home):
    stores = [await home.connect(), await home.connect()]
    receipts = await asyncio.gather(*(each.command(CHOICE, "tell", "fast answers.") for each in stores * 5))
    assert sorted(receipt.fresh for receipt in receipts) == [False] * 9 + [True]
    assert len(await stores[0].mail(receipts[0].thread)) == 1


async def test_a_letter_that_was_told_waits_for_a_driver_and_ends_no_turn(store: Store):
    receipt = await store.command(CHOICE, "tell", "fast answers.")
    assert await store.waiting() == [receipt.thread]
    assert await store.unfinished(receipt.thread) == []
    assert await store.stopping([receipt.thread]) == []
    (mail,) = await store.mail(receipt.thread)
    lease = Lease(receipt.thread)
    await append(store, lease, ModelChosen("fast", "ann"), absorbed=[mail.id], release=True, state="resting")
    assert await store.read(receipt.thread) == [ModelChosen("fast", "ann")]
    assert (await store.mail(receipt.thread), await store.waiting()) == ([], [])


async def test_a_word_from_another_conversation_is_over_when_it_is_taken_in_and_is_queued_with_its_files(store: Store):
    menu = Media("file:ab", "text/plain", "menu.txt", "owner")
    word = Telling("lunch", (menu,), str(CHAT), "api:work", "ann", outside=True)
    receipt = await store.receive(Inbound(CHAT, "message:t:1:0", word))
    again = await store.receive(Inbound(CHAT, "message:t:1:0", word))
    assert (receipt.fresh, again.fresh, again.id) == (True, False, receipt.id)
    assert await store.mail(receipt.thread) == [Mail(receipt.id, word)]
    assert (await store.waiting(), await store.unfinished(receipt.thread)) == ([receipt.thread], [])
    told = AgentTold("lunch", (menu,), str(CHAT), "api:work", "ann", True, receipt.id)
    queued = structs.replace(answer("reply:1"), files=(Made(menu, 1),))
    lease, over = Lease(receipt.thread), {"absorbed": [receipt.id], "ended": [(receipt.id, 1)], "outbox": [queued]}
    await append(store, lease, told, **over, release=True, state="resting")
    assert await store.read(receipt.thread) == [told]
    assert (await store.mail(receipt.thread), await store.waiting(), await store.ended(receipt.id)) == ([], [], 1)
    assert await store.unshown(str(CHAT)) == [queued]


async def test_what_is_told_after_a_new_conversation_is_told_to_that(store: Store):
    old = await taken(store)
    new = await store.command(letter("e9", "/new"), "new", "A new conversation.")
    assert (await store.command(CHOICE, "tell", "fast answers.")).thread == new.thread
    assert await store.mail(old.thread) == []


# Committing


async def test_a_commit_appends_with_contiguous_seqs(home: Home, store: Store):
    lease = await taken(store)
    committed = await append(store, lease, ASKED, ANSWERED)
    assert (committed.head, committed.started, committed.released, committed.newest) == (3, False, False, 0)
    assert await store.read(lease.thread) == [heard(1), ASKED, ANSWERED]
    assert [seq for seq, _ in await log_of(home, lease.thread)] == [1, 2, 3]
    assert await store.mail(lease.thread) == []


async def test_a_log_is_read_from_any_place(store: Store):
    lease = await taken(store)
    await append(store, lease, ASKED, ANSWERED)
    assert await store.read(lease.thread, after=1) == [ASKED, ANSWERED]
    assert await store.read(lease.thread, after=1, limit=1) == [ASKED]
    opened = await store.open(lease.thread, after=2)
    assert (opened.first, opened.entries, opened.row.head) == (3, [ANSWERED], 3)


async def test_opening_starts_at_the_last_compaction(store: Store):
    lease = await taken(store)
    await append(store, lease, ASKED, ANSWERED)
    await append(store, lease, Compacted("so far"), ASKED)
    opened = await store.open(lease.thread)
    assert (opened.row.folded, opened.first, opened.entries) == (4, 4, [Compacted("so far"), ASKED])
    await append(store, lease, ANSWERED)
    assert (await store.open(lease.thread, after=4)).first == 5


async def test_a_free_thread_is_taken_by_the_first_commit(store: Store):
    lease = await taken(store)
    assert lease.epoch == 1
    assert (await store.open(lease.thread)).row.holder == store.holder


async def test_a_held_thread_is_not_taken_by_another_and_nothing_is_written(home: Home, store: Store):
    lease = await taken(store)
    await received(store, "e2")
    other, before = await home.connect(), await everything(home)
    with pytest.raises(Fenced):
        await append(
            other,
            Lease(lease.thread, 0, lease.head),
            ASKED,
            absorbed=[2],
            ended=[(2, 2)],
            outbox=[answer("k")],
            usage=[Spent(2, "m", Usage(1, 1))],
            timers=[Timer("t", 0, letter("timer"))],
        )
    assert await everything(home) == before


async def test_an_expired_lease_is_taken_with_the_next_epoch(home: Home, store: Store):
    lease = await taken(store)
    await expire(home)
    other = await home.connect()
    assert (await append(other, Lease(lease.thread, 0, 1), ASKED)).epoch == lease.epoch + 1


async def test_the_lease_of_a_lost_process_is_taken(home: Home, store: Store):
    lease = await taken(store)
    other = await home.connect()
    await home.lose(store)
    assert await other.waiting() == [lease.thread]
    assert (await append(other, Lease(lease.thread, 0, 1), ASKED)).epoch == lease.epoch + 1


async def test_a_process_may_take_its_own_lease_anew_and_fences_itself(store: Store):
    lease = await taken(store)
    anew = Lease(lease.thread, 0, lease.head)
    await append(store, anew)
    with pytest.raises(Fenced):
        await append(store, lease, ASKED)
    assert (await append(store, anew, ASKED)).head == 2


async def test_a_stale_holder_writes_nothing(home: Home, store: Store):
    lease = await taken(store)
    await expire(home)
    other = await home.connect()
    await append(other, Lease(lease.thread, 0, 1))
    before = await everything(home)
    with pytest.raises(Fenced):
        await append(store, lease, ASKED, outbox=[answer("k")])
    assert await everything(home) == before


@pytest.mark.parametrize("epoch", ["new", "held"])
async def test_a_head_that_has_moved_is_fenced_and_nothing_is_written(home: Home, store: Store, epoch: str):
    """A commit whose fate was unknown is tried again: it must not be appended twice."""
    lease = await taken(store)
    again = Lease(lease.thread, 0 if epoch == "new" else lease.epoch, lease.head)
    await append(store, lease, ASKED)
    before = await everything(home)
    with pytest.raises(Fenced):
        await append(store, again, ASKED)
    assert await everything(home) == before


async def test_a_commit_to_no_thread_is_fenced(home: Home, store: Store):
    with pytest.raises(Fenced):
        await append(store, Lease("nowhere"), ASKED)
    assert await home.rows("SELECT * FROM entries") == []


async def test_a_start_is_appended_after_the_entries(store: Store):
    lease = await taken(store)
    committed = await append(store, lease, ASKED, ANSWERED, starts=[START])
    assert (committed.started, committed.head) == (True, 4)
    assert await store.read(lease.thread, after=1) == [ASKED, ANSWERED, START]


async def test_nothing_starts_when_a_stop_lies_in_the_inbox_but_what_happened_is_kept(store: Store):
    lease = await taken(store)
    await store.command(stop("e2"), "stop", "Stopped.")
    committed = await append(store, lease, ASKED, ANSWERED, starts=[START])
    assert (committed.started, committed.head, committed.newest) == (False, 3, 3)
    assert await store.read(lease.thread, after=1) == [ASKED, ANSWERED]


async def test_a_stop_that_this_commit_takes_in_does_not_hold_the_start_back(store: Store):
    lease = await taken(store)
    await store.command(stop("e2"), "stop", "Stopped.")
    committed = await append(store, lease, Stopped("ann"), starts=[START], absorbed=[3])
    assert (committed.started, await store.mail(lease.thread)) == (True, [])


async def test_the_lease_is_given_back_when_no_newer_letter_has_come(store: Store):
    lease = await taken(store)
    await received(store, "e2")
    committed = await append(store, lease, ANSWERED, release=True, state="resting", seen=2)
    row = (await store.open(lease.thread)).row
    assert (committed.released, committed.newest, row.holder, row.state) == (True, 2, "", "resting")


async def test_the_lease_is_kept_when_a_newer_letter_has_come(store: Store):
    lease = await taken(store)
    await received(store, "e2")
    committed = await append(store, lease, ANSWERED, release=True, state="resting", seen=1)
    assert (committed.released, committed.newest, committed.head) == (False, 2, 2)
    assert (await store.open(lease.thread)).row.holder == store.holder
    assert (await append(store, lease, ASKED)).head == 3


async def test_a_released_lease_is_gone(store: Store):
    lease = await taken(store)
    await append(store, lease, release=True, state="resting")
    with pytest.raises(Fenced):
        await append(store, lease, ASKED)


async def test_a_thread_can_be_taken_and_released_in_one_commit(store: Store):
    receipt = await received(store)
    committed = await append(
        store, Lease(receipt.thread), heard(1), absorbed=[1], release=True, state="resting", seen=1
    )
    assert (committed.released, (await store.open(receipt.thread)).row.holder) == (True, "")


async def test_a_lease_that_ran_out_but_was_not_taken_lets_results_in_and_stays_expired(home: Home, store: Store):
    lease = await taken(store)
    await expire(home)
    assert (await append(store, lease, ASKED)).head == 2
    assert await home.rows("SELECT expires FROM threads") == [(1,)]


async def test_a_lease_that_ran_out_starts_nothing(home: Home, store: Store):
    lease = await taken(store)
    await expire(home)
    before = await everything(home)
    with pytest.raises(Fenced):
        await append(store, lease, ANSWERED, starts=[START])
    assert await everything(home) == before


async def test_a_commit_prolongs_a_lease_that_holds(home: Home, store: Store):
    lease = await taken(store)
    await home.write("UPDATE threads SET expires = expires - 20")
    before = await home.rows("SELECT expires FROM threads")
    await append(store, lease, ASKED)
    assert (await home.rows("SELECT expires FROM threads"))[0][0] > before[0][0] + 10


async def test_usage_is_kept_with_its_owner(home: Home, store: Store):
    receipt = await store.receive(letter("e1", owner="ann"))
    usage = Usage(10, 5, 3, 2, 4)
    await append(
        store,
        Lease(receipt.thread),
        ASKED,
        ANSWERED,
        usage=[Spent(2, "m", usage, 0.25), Spent(1, "local", usage)],
    )
    columns = "thread, seq, owner, model, input, output, cache_read, cache_write, reasoning, cost"
    assert await home.rows(f"SELECT {columns} FROM usage ORDER BY seq") == [
        (receipt.thread, 1, "ann", "local", 10, 5, 3, 2, 4, None),
        (receipt.thread, 2, "ann", "m", 10, 5, 3, 2, 4, 0.25),
    ]


async def test_every_row_carries_its_owner(home: Home, store: Store):
    receipt = await store.receive(letter("e1", owner="ann"))
    await append(
        store,
        Lease(receipt.thread),
        ASKED,
        outbox=[answer("k")],
        usage=[Spent(1, "m", Usage())],
        timers=[Timer("t", 60, letter("timer", owner="ann"))],
    )
    for table in ("sessions", "threads", "entries", "inbox", "outbox", "jobs", "usage"):
        assert await home.rows(f"SELECT DISTINCT owner FROM {table}") == [("ann",)], table


# A letter that begins its turn in one commit


def begun(event: str, address: Address = CHAT) -> Commit:
    return Commit([UserSaid(said("hello"), "ann", str(CHAT))], starts=[ASKED], letter=letter(event, address=address))


async def rested(store: Store) -> Lease:
    """A thread that has had one turn and rests."""
    lease = await taken(store)
    await append(store, lease, release=True, state="resting", ended=[(1, 1)])
    return Lease(lease.thread, 0, lease.head)


async def test_a_letter_for_a_resting_thread_begins_its_turn_in_one_commit(home: Home, store: Store):
    lease = await rested(store)
    committed = await store.commit(lease, begun("e2"))
    assert (committed.head, committed.started, committed.newest) == (3, True, 0)
    assert await store.read(lease.thread, after=1) == [heard(committed.mail), ASKED]
    assert await store.mail(lease.thread) == []
    assert await store.unfinished(lease.thread) == [committed.mail]
    assert await received(await home.connect(), "e2") == Receipt(committed.mail, lease.thread, False)
    assert (await home.rows(f"SELECT owner, kind FROM inbox WHERE id = {committed.mail}")) == [("owner", "said")]


async def test_a_letter_does_not_step_over_one_that_waits(home: Home, store: Store):
    lease = await rested(store)
    await received(store, "e2")
    await refused(home, store, lease, begun("e3"))


async def test_a_letter_does_not_go_into_a_thread_that_its_session_has_left(home: Home, store: Store):
    lease = await rested(store)
    await store.command(letter("e2", "/new"), "new", "A new conversation.")
    await refused(home, store, lease, begun("e3"))


async def test_a_letter_does_not_go_into_the_thread_of_another_session(home: Home, store: Store):
    await refused(home, store, await rested(store), begun("e2", Address("test", "other")))


async def test_a_letter_that_is_known_does_not_begin_a_second_turn(home: Home, store: Store):
    await refused(home, store, await rested(store), begun("e1"))


async def test_a_letter_does_not_go_into_a_thread_that_another_process_drives(home: Home, store: Store):
    lease = await rested(store)
    await store.commit(lease, begun("e2"))
    await refused(home, await home.connect(), Lease(lease.thread, 0, 3), begun("e3"))


async def refused(home: Home, store: Store, lease: Lease, commit: Commit) -> None:
    before = await everything(home)
    with pytest.raises(Fenced):
        await store.commit(lease, commit)
    assert await everything(home) == before


async def test_a_letter_that_begins_and_one_that_waits_keep_their_order(home: Home):
    """They come at once, in two processes: the one that waits is younger, or the other one has to wait too."""
    stores = [await home.connect(), await home.connect()]
    for n in range(20):
        address = Address("test", str(n))
        lease = await taken(stores[0], f"{n}", address)
        await append(stores[0], lease, release=True, state="resting", ended=[(1, 1)])
        lease.epoch = 0
        began, waits = await asyncio.gather(
            stores[0].commit(lease, begun(f"{n}/begins", address)),
            received(stores[1], f"{n}/waits", address),
            return_exceptions=True,
        )
        assert isinstance(waits, Receipt)
        assert isinstance(began, Fenced) or (isinstance(began, Committed) and began.mail < waits.id)


# Leases


async def test_what_is_ours_is_renewed(home: Home, store: Store):
    lease = await taken(store)
    await home.write("UPDATE threads SET expires = expires - 20")
    before = await home.rows("SELECT expires FROM threads")
    assert await store.renew([lease]) == Renewal(frozenset({lease.thread}), frozenset())
    assert (await home.rows("SELECT expires FROM threads"))[0][0] > before[0][0] + 10


async def test_an_expired_lease_is_never_renewed(home: Home, store: Store):
    lease, other = await taken(store), await taken(store, "e2", Address("test", "other"))
    await home.write(f"UPDATE threads SET expires = 1 WHERE id = '{lease.thread}'")
    assert await store.renew([lease, other]) == Renewal(frozenset({other.thread}), frozenset({lease.thread}))
    assert await home.rows(f"SELECT expires FROM threads WHERE id = '{lease.thread}'") == [(1,)]


async def test_a_lease_that_someone_else_took_is_lost(home: Home, store: Store):
    lease = await taken(store)
    await expire(home)
    await append(await home.connect(), Lease(lease.thread, 0, 1))
    assert await store.renew([lease]) == Renewal(frozenset(), frozenset({lease.thread}))


async def test_a_lease_that_is_given_back_is_free_and_leaves_no_trace_of_a_crash(home: Home, store: Store):
    lease = await taken(store)
    await store.give_back(lease)
    other = await home.connect()
    row = (await other.open(lease.thread)).row
    assert (row.holder, row.state, await other.waiting()) == ("", "running", [lease.thread])
    assert (await append(other, Lease(lease.thread, 0, 1), ASKED)).head == 2


async def test_a_lost_lease_cannot_be_given_back(home: Home, store: Store):
    lease, other = await taken(store), await home.connect()
    await expire(home)
    await append(other, Lease(lease.thread, 0, 1))
    await store.give_back(lease)
    assert (await store.open(lease.thread)).row.holder == other.holder


# Who has work


async def test_a_thread_waits_while_it_has_work_and_no_holder(home: Home, store: Store):
    receipt = await received(store)
    assert await store.waiting() == [receipt.thread]
    lease = Lease(receipt.thread)
    await append(store, lease, heard(1), absorbed=[1])
    assert await store.waiting() == []
    await expire(home)
    assert await store.waiting() == [receipt.thread]
    await append(store, lease, ANSWERED, release=True, state="resting")
    assert await store.waiting() == []


async def test_a_thread_that_waits_for_a_person_has_no_work_until_they_write(store: Store):
    lease = await taken(store)
    await append(store, lease, release=True, state="waiting")
    assert await store.waiting() == []
    await received(store, "e2")
    assert await store.waiting() == [lease.thread]


async def test_who_has_work_is_told_of_some_alone(store: Store):
    threads = {
        session: (await store.receive(letter(session, address=Address.parse(session), owner=owner))).thread
        for session, owner in (("api:a", "owner"), ("web:anna", "web:anna"), ("tele:1:2", "chat:tele/1"))
    }
    found = {
        whose: {session for session, thread in threads.items() if thread in await store.waiting(whose)}
        for whose in (
            *(None, Whose(()), Whose(("owner",)), Whose(("web:anna", "owner"))),
            *(Whose(("owner",), ("tele",)), Whose((), ("tele:1", "te", "nobody"))),
        )
    }
    assert list(found.values()) == [
        {*threads},
        set(),
        {"api:a"},
        {"api:a", "web:anna"},
        {"api:a", "tele:1:2"},
        set(),
    ]


async def test_it_is_known_where_the_turn_of_a_letter_ended(store: Store):
    lease = await taken(store)
    assert (await store.ended(1), await store.unfinished(lease.thread)) == (0, [1])
    await append(store, lease, ASKED, ANSWERED, ended=[(1, 3)])
    assert (await store.ended(1), await store.unfinished(lease.thread)) == (3, [])
    assert await store.ended(99) == 0


async def test_only_the_letters_of_people_are_unfinished(store: Store):
    lease = await taken(store)
    await store.command(stop("e2"), "stop", "Stopped.")
    last = await received(store, "e3")
    assert await store.unfinished(lease.thread) == [1, last.id]


# Outbox


async def queued(store: Store, *keys: str, chat: str = "chat") -> Lease:
    address = Address("test", chat)
    lease = await taken(store, f"letter for {keys[0]}", address)
    await append(store, lease, outbox=[answer(key, address) for key in keys])
    return lease


def keys_of(rows: list[OutboxRow]) -> list[str]:
    return [row.outbound.key for row in rows]


async def test_answers_leave_one_by_one_in_each_chat(store: Store):
    await queued(store, "a1", "a2", "a3", chat="a")
    await queued(store, "b1", "b2", chat="b")
    sent = []
    while rows := await store.due("test"):
        sent.append(keys_of(rows))
        for row in rows:
            await store.settle(row.id, "sent", "receipt")
    assert sent == [["a1", "b1"], ["a2", "b2"], ["a3"]]


async def test_a_claimed_row_says_what_to_send(store: Store):
    lease = await queued(store, "k")
    [row] = await store.due("test")
    assert (row.thread, row.outbound, row.attempts, row.unsure) == (lease.thread, answer("k"), 1, False)
    assert 0 <= row.age < 60


async def test_the_same_key_is_queued_once(store: Store):
    await queued(store, "k", "k")
    assert keys_of(await store.due("test")) == ["k"]


async def test_a_channel_gets_only_its_own(store: Store):
    await queued(store, "k")
    assert await store.due("other") == []


async def test_no_more_than_the_limit_are_claimed_and_the_rest_are_not_forgotten(store: Store):
    for chat in "abc":
        await queued(store, chat, chat=chat)
    assert [keys_of(await store.due("test", limit=2)) for _ in range(3)] == [["a", "b"], ["c"], []]


async def test_a_chat_that_has_to_wait_does_not_hold_up_the_others(store: Store):
    for chat in "abc":
        await queued(store, chat, chat=chat)
    for row in await store.due("test", limit=2):
        await store.settle(row.id, "pending", "down", again_in=60)
    assert keys_of(await store.due("test", limit=2)) == ["c"]


async def test_two_processes_never_claim_the_same_row(home: Home):
    stores = [await home.connect(), await home.connect()]
    for n in range(20):
        await queued(stores[0], f"k{n:02}", chat=str(n))
    claims = await asyncio.gather(*(store.due("test", 7) for store in stores * 3))
    assert sorted(key for claim in claims for key in keys_of(claim)) == [f"k{n:02}" for n in range(20)]


async def test_what_is_being_sent_holds_back_its_chat(store: Store):
    await queued(store, "k1", "k2")
    assert keys_of(await store.due("test")) == ["k1"]
    assert await store.due("test") == []


async def test_what_a_lost_process_was_sending_comes_back_unsure(home: Home, store: Store):
    await queued(store, "k")
    await store.due("test")
    other = await home.connect()
    assert await other.due("test") == []
    await home.lose(store)
    [row] = await other.due("test")
    assert (row.outbound.key, row.attempts, row.unsure) == ("k", 2, True)


async def test_a_send_that_never_came_back_may_be_tried_again_unsure(home: Home, store: Store):
    await queued(store, "k")
    await store.due("test")
    await home.write("UPDATE outbox SET due = 0")
    [row] = await store.due("test")
    assert (row.attempts, row.unsure) == (2, True)


async def test_only_the_claimer_settles(home: Home, store: Store):
    await queued(store, "k")
    [row] = await store.due("test")
    other = await home.connect()
    await other.settle(row.id, "sent", "not mine")
    assert await home.rows("SELECT state, receipt FROM outbox") == [("sending", "")]
    await store.settle(row.id, "sent", "mine")
    await store.settle(row.id, "failed", "too late")
    assert await home.rows("SELECT state, receipt FROM outbox") == [("sent", "mine")]


async def test_a_row_that_was_not_delivered_is_due_again_later(home: Home, store: Store):
    await queued(store, "k")
    [row] = await store.due("test")
    await store.settle(row.id, "pending", "down", again_in=60)
    assert await store.due("test") == []
    await home.write("UPDATE outbox SET due = 0")
    [again] = await store.due("test")
    assert (again.attempts, again.unsure) == (2, False)


async def test_a_doubt_stays(store: Store):
    await queued(store, "k")
    for state in ("unsure", "pending"):
        [row] = await store.due("test")
        await store.settle(row.id, state)
    [row] = await store.due("test")
    assert (row.attempts, row.unsure) == (3, True)


async def test_a_failed_row_lets_the_next_one_out(store: Store):
    await queued(store, "k1", "k2")
    [row] = await store.due("test")
    await store.settle(row.id, "failed", "no such chat")
    assert keys_of(await store.due("test")) == ["k2"]


async def test_what_was_shown_needs_not_be_sent(store: Store):
    await queued(store, "k1", "k2", "k3")
    await store.due("test")
    assert [shown.key for shown in await store.unshown("test:chat")] == ["k1", "k2", "k3"]
    await store.acknowledge(["k1", "k2"])
    assert [shown.key for shown in await store.unshown("test:chat")] == ["k3"]
    assert await store.unshown("test:other") == []
    assert keys_of(await store.due("test")) == ["k3"]


async def test_the_parts_that_have_arrived_are_known_to_the_next_sender(home: Home, store: Store):
    await queued(store, "k")
    [row] = await store.due("test")
    assert row.parts == ()
    assert await store.keep_parts(row.id, ["r0", "r1"])
    other = await home.connect()
    assert await other.due("test") == []  # there is time for the next part
    await home.write("UPDATE outbox SET due = 0")
    [again] = await other.due("test")
    assert (again.parts, again.unsure, again.attempts) == (("r0", "r1"), True, 2)
    assert not await store.keep_parts(row.id, ["r0", "r1", "r2"])
    assert await home.rows("SELECT parts FROM outbox") == [('["r0","r1"]',)]


async def test_where_a_channel_resumes_is_committed_with_its_letter(home: Home, store: Store):
    assert await store.resume("test") == ""
    for event, resume in (("e1", "1"), ("e2", "2")):
        assert (await store.receive(structs.replace(letter(event), resume=resume))).fresh
        assert await store.resume("test") == resume
    assert not (await store.receive(structs.replace(letter("e2"), resume="3"))).fresh
    assert (await store.command(structs.replace(letter("e4"), resume="4"), "none", "Help.")).fresh
    assert (await (await home.connect()).resume("test"), await store.resume("other")) == ("4", "")
    with pytest.raises(MailRefused):
        await store.receive(structs.replace(letter("e5"), resume="5", owner="eve"))
    assert await store.resume("test") == "4"


def from_there(event: str, there: str) -> Inbound:
    inbound = letter(event)
    return structs.replace(inbound, letter=structs.replace(inbound.letter, reply_to=ReplyTo(there)))


async def test_an_answer_goes_back_to_its_letter_and_anything_else_to_the_last_one(store: Store):
    first, second = [(await store.receive(from_there(event, event))).id for event in ("e1", "e2")]
    plain = (await store.receive(letter("e3"))).id
    out = answer("k")
    assert [
        await store.reply_to(structs.replace(out, mails=mails)) for mails in ((first,), (second,), (), (plain,))
    ] == [*("e1", "e2", "e2", "e2")]
    assert await store.reply_to(answer("k", Address("test", "elsewhere"))) == ""


async def test_what_was_given_up_is_listed_and_sent_again_or_dropped(home: Home, store: Store):
    await queued(store, "k1", "k2", "k3")
    assert await store.undelivered() == []
    for state in ("failed", "failed", "pending"):
        [row] = await store.due("test")
        await store.settle(row.id, state, f"{state} it", again_in=60)
    await home.write("UPDATE outbox SET at = 1000, due = 2000")
    found = await store.undelivered()
    assert [
        (each.channel, each.chat, each.state, each.attempts, each.queued, each.due, each.why) for each in found
    ] == [
        ("test", "test:chat", "failed", 1, 1000.0, 2000.0, "failed it"),
        ("test", "test:chat", "failed", 1, 1000.0, 2000.0, "failed it"),
        ("test", "test:chat", "pending", 1, 1000.0, 2000.0, "pending it"),
    ]
    one, two, three = (each.id for each in found)
    assert [await store.send_again(one), await store.send_again(three)] == [True, True]
    assert [await store.drop(two), await store.drop(two), await store.drop(one)] == [True, False, False]
    [row] = await store.due("test")
    assert (row.outbound.key, row.attempts, row.age > 1000, row.trying < 60) == ("k1", 1, True, True)
    assert (await store.deliveries(["k2"]))["k2"].state == "dropped"


async def test_when_a_letter_came_in_is_told(home: Home, store: Store):
    ids = [(await store.receive(letter(event))).id for event in ("e1", "e2")]
    await home.write("UPDATE inbox SET at = 1000 + id")
    assert await store.arrivals([*ids, 999]) == {id: 1000.0 + id for id in ids}
    assert await store.arrivals([]) == {}


async def test_what_became_of_an_answer_is_told_with_its_times(home: Home, store: Store):
    await queued(store, "failed", "sent", "shown", "waits")
    for state in ("failed", "sent"):
        [row] = await store.due("test")
        await store.settle(row.id, state)
    before = {key: each.settled for key, each in (await store.deliveries(["failed", "sent", "shown"])).items()}
    await store.acknowledge(["shown"])
    await home.write("UPDATE outbox SET at = 1000")
    told = await store.deliveries(["failed", "sent", "shown", "waits", "nothing"])
    found = [told.pop(key) for key in ("failed", "sent", "shown", "waits")]
    assert told == {}
    assert [(each.key, each.channel, each.state, each.queued, each.attempts) for each in found] == [
        ("failed", "test", "failed", 1000.0, 1),
        ("sent", "test", "sent", 1000.0, 1),
        ("shown", "test", "sent", 1000.0, 0),
        ("waits", "test", "pending", 1000.0, 0),
    ]
    settled = [each.settled for each in found]
    assert (settled[:2], settled[3], before["shown"]) == ([before["failed"], before["sent"]], None, None)
    assert settled[2] is not None
    assert before["sent"] is not None
    assert settled[2] >= before["sent"]


# Timers


async def test_a_due_timer_becomes_a_letter_once(home: Home, store: Store):
    lease = await taken(store)
    await append(store, lease, timers=[Timer("t", 0, letter("timer"))])
    stores = [store, await home.connect()]
    fired = await asyncio.gather(*(each.fire() for each in stores * 3))
    assert sorted(fired, key=len) == [[], [], [], [], [], [lease.thread]]
    assert [m.letter for m in await store.mail(lease.thread)] == [HELLO]


async def test_a_timer_waits_for_its_time(home: Home, store: Store):
    lease = await taken(store)
    await append(store, lease, timers=[Timer("t", 60, letter("timer"))])
    assert await store.fire() == []
    await home.write("UPDATE jobs SET due = due - 60")
    assert await store.fire() == [lease.thread]


async def test_the_timer_of_a_question_goes_to_its_own_thread_even_when_the_session_has_moved_on(store: Store):
    lease = await taken(store)
    expiry = Inbound(Address("timer", lease.thread), "t", Decision(lease.thread, 2, 0, "expired"))
    await append(store, lease, timers=[Timer("t", 0, expiry)])
    await store.command(letter("e2", "/new"), "new", "A new conversation.")
    assert await store.fire() == [lease.thread]


async def test_the_same_key_is_one_timer(home: Home, store: Store):
    lease = await taken(store)
    for event in ("first", "second"):
        await append(store, lease, timers=[Timer("t", 60, letter(event))])
    assert await home.rows("SELECT count(*) FROM jobs") == [(1,)]


# Secrets


async def test_a_box_is_given_back_as_it_was_kept_and_a_second_one_takes_its_place(store: Store):
    boxes = [bytes(range(256)), b"", b"\x00new"]
    for box in boxes:
        await store.keep_secret("ann", "key", box)
        assert await store.secret("ann", "key") == box
    assert await store.secrets("ann") == ["key"]


async def test_a_box_that_nobody_kept_is_none(store: Store):
    assert await store.secret("ann", "key") is None
    assert await store.secrets("ann") == []
    assert await store.forget_secret("ann", "key") is False


async def test_boxes_belong_to_their_owner(store: Store):
    await store.keep_secret("ann", "key", b"of ann")
    await store.keep_secret("bob", "key", b"of bob")
    await store.keep_secret("bob", "b", b"")
    await store.keep_secret("bob", "Z", b"")
    assert [await store.secret(owner, "key") for owner in ("ann", "bob", "cyd")] == [b"of ann", b"of bob", None]
    assert [await store.secrets(owner) for owner in ("ann", "bob", "cyd")] == [["key"], ["Z", "b", "key"], []]


async def test_a_forgotten_box_is_gone_and_no_other(home: Home, store: Store):
    for owner, name in (("ann", "a"), ("ann", "b"), ("bob", "a")):
        await store.keep_secret(owner, name, b"box")
    assert [await store.forget_secret("ann", "a") for _ in range(2)] == [True, False]
    assert await home.rows("SELECT owner, name FROM vault ORDER BY owner") == [("ann", "b"), ("bob", "a")]


async def test_a_box_is_seen_by_other_processes_and_knows_when_it_was_kept(home: Home, store: Store):
    await store.keep_secret("ann", "key", b"old")
    await home.write("UPDATE vault SET at = 1")
    await store.keep_secret("ann", "key", b"new")
    assert await (await home.connect()).secret("ann", "key") == b"new"
    (at,) = await home.rows("SELECT at FROM vault")
    assert at[0] > 1_600_000_000


# What was used

DAY = 86_400


async def spend(home: Home, store: Store, chat: str, *calls: tuple[float, str, Usage, float | None]) -> str:
    """A thread whose model calls were made at these times; its id."""
    lease = await taken(store, f"spend-{chat}", Address("test", chat))
    spent = [Spent(10 + n, model, usage, cost) for n, (_, model, usage, cost) in enumerate(calls)]
    await append(store, lease, ASKED, ANSWERED, usage=spent)
    for n, (at, *_) in enumerate(calls):
        await home.write(f"UPDATE usage SET at = {at} WHERE thread = '{lease.thread}' AND seq = {10 + n}")
    return lease.thread


async def test_where_nothing_was_used_nothing_is_told(store: Store):
    assert await store.spent() == []


async def test_what_was_used_is_told_by_day_and_model(home: Home, store: Store):
    one, two = Usage(10, 5, 3, 2, 1), Usage(100, 50)
    await spend(
        *(home, store, "a"),
        (3 * DAY + 10.5, "m/b", one, 0.25),
        (3 * DAY + 20, "m/b", two, 0.5),
        (3 * DAY + 30, "m/a", two, 0.0),
        (2 * DAY, "m/b", one, 1.0),
    )
    assert await store.spent() == [
        SpentRow(2, "m/b", 1, one, 1.0, 0),
        SpentRow(3, "m/a", 1, two, 0.0, 0),
        SpentRow(3, "m/b", 2, Usage(110, 55, 3, 2, 1), 0.75, 0),
    ]


async def test_calls_without_a_known_price_are_counted_and_not_taken_for_free(home: Home, store: Store):
    used = Usage(10, 5)
    await spend(home, store, "a", (0, "m", used, None), (1, "m", used, 0.5), (2, "m", used, 0.0), (3, "n", used, None))
    assert await store.spent() == [
        SpentRow(0, "m", 3, Usage(30, 15), 0.5, 1),
        SpentRow(0, "n", 1, used, 0.0, 1),
    ]


async def test_a_day_begins_where_the_person_lives(home: Home, store: Store):
    used = Usage(1, 1)
    await spend(home, store, "a", (10 * DAY - 1, "m", used, 0.5), (10 * DAY, "m", used, 0.5))

    async def days(offset: float) -> list[tuple[int, int]]:
        return [(row.day, row.calls) for row in await store.spent(offset=offset)]

    assert await days(0) == [(9, 1), (10, 1)]
    assert await days(2 * 3600) == [(10, 2)]
    assert await days(-5 * 3600) == [(9, 2)]
    assert await days(5.5 * 3600) == [(10, 2)]


async def test_what_was_used_is_told_of_one_thread_and_since_a_moment(home: Home, store: Store):
    used = Usage(1, 1)
    here = await spend(home, store, "a", (5 * DAY, "m", used, 0.5), (6 * DAY, "m", used, 0.5))
    await spend(home, store, "b", (6 * DAY, "m", used, 0.25))
    assert await store.spent(thread=here) == [SpentRow(day, "m", 1, used, 0.5, 0) for day in (5, 6)]
    assert await store.spent(since=6 * DAY) == [SpentRow(6, "m", 2, Usage(2, 2), 0.75, 0)]
    assert await store.spent(6 * DAY, here) == [SpentRow(6, "m", 1, used, 0.5, 0)]
    assert await store.spent(since=6 * DAY + 1) == await store.spent(thread="nowhere") == []


async def test_what_a_conversation_stands_for_was_used_before_it(home: Home, store: Store):
    """Through all that was replaced, one after the other; what nothing stands for is its own."""
    used = Usage(1, 1)
    first = await spend(home, store, "a", (5 * DAY, "m", used, 0.5), (6 * DAY, "m", used, 0.5))
    second = await spend(home, store, "b", (6 * DAY, "n", used, None))
    third = await spend(home, store, "c", (6 * DAY, "m", used, 0.25))
    await home.write(f"UPDATE threads SET replaced = '{second}' WHERE id = '{first}'")
    await home.write(f"UPDATE threads SET replaced = '{third}' WHERE id = '{second}'")
    assert await store.taken_back(third) == [
        SpentRow(0, "m", 2, Usage(2, 2), 1.0, 0),
        SpentRow(0, "n", 1, used, 0.0, 1),
    ]
    assert await store.taken_back(second) == [SpentRow(0, "m", 2, Usage(2, 2), 1.0, 0)]
    assert await store.taken_back(first) == []


async def test_very_many_tokens_are_added_up_exactly(home: Home, store: Store):
    many = Usage(2**40, 2**40, 2**40, 2**40, 2**40)
    await spend(home, store, "a", (0, "m", many, 0.5), (0, "m", many, 0.5))
    assert await store.spent() == [SpentRow(0, "m", 2, many + many, 1.0, 0)]


# Other processes


async def test_a_write_of_another_process_is_noticed(home: Home, store: Store):
    other = await home.connect()
    while await store.changed():  # a server has housekeeping of its own
        pass
    await received(other)
    assert await store.changed() is True


async def test_stores_have_names_of_their_own(home: Home):
    assert (await home.connect()).holder != (await home.connect()).holder


async def test_a_database_of_a_newer_everloop_is_refused(home: Home):
    newer = [*schema.MIGRATIONS, ["CREATE TABLE later(id TEXT)"]]
    await home.connect(migrations=newer)
    with pytest.raises(StoreNewer, match=f"schema {len(newer)}"):
        await home.connect()


async def test_an_older_database_is_brought_up_to_date_and_keeps_what_it_holds(home: Home):
    lease = await taken(await home.connect())
    newer = [*schema.MIGRATIONS, ["CREATE TABLE later(id TEXT, n {int})"], ["INSERT INTO later VALUES('x', 1)"]]
    stores = await asyncio.gather(*(home.connect(migrations=newer) for _ in range(3)))
    assert await home.rows("SELECT * FROM later") == [("x", 1)]
    assert await stores[0].read(lease.thread) == [heard(1)]


async def test_a_database_of_version_1_comes_up_with_its_rows_and_what_version_2_adds(home: Home):
    await home.connect(migrations=schema.MIGRATIONS[:1])
    await home.write(
        "INSERT INTO usage(thread, seq, owner, at, model, input, output, cache_read, cache_write, cost) "
        "VALUES('t', 1, 'ann', 7, 'm', 10, 5, 3, 2, 0.25)"
    )
    store = await home.connect()
    assert await home.rows("SELECT * FROM usage") == [(1, "t", 1, "ann", 7.0, "m", 10, 5, 3, 2, 0, 0.25, "", "", 0)]
    lease = await taken(store)
    await append(store, lease, ASKED, ANSWERED, usage=[Spent(3, "m", Usage(1, 2, 3, 4, 5))])
    await store.keep_secret("ann", "key", b"box")
    assert await home.rows("SELECT seq, reasoning FROM usage ORDER BY seq") == [(1, 0), (3, 5)]
    assert await store.secret("ann", "key") == b"box"


async def test_answers_of_a_database_without_parts_are_sent_by_the_version_that_has_them(home: Home):
    await home.connect(migrations=schema.MIGRATIONS[:7])
    body = '{"key":"k","address":{"channel":"test","chat":"chat","thread":""},"text":"hello","mails":[1]}'
    said = '{"type":"said","parts":[{"type":"text","text":"hi"}],"author":"ann","address":"test:chat"}'
    await home.write(
        "INSERT INTO outbox(key, thread, owner, channel, chat, body, at) "
        f"VALUES('k', 't', 'owner', 'test', 'test:chat', '{body}', 1000)"
    )
    await home.write(
        "INSERT INTO inbox(channel, event, thread, owner, kind, body, at) "
        f"VALUES('test', 'e1', 't', 'owner', 'said', '{said}', 1000)"
    )
    store = await home.connect()
    [row] = await store.due("test")
    assert (row.outbound.text, row.parts, row.attempts, row.trying == pytest.approx(row.age, abs=1)) == (
        *("hello", (), 1),
        True,
    )
    assert (await store.reply_to(row.outbound), await store.resume("test")) == ("", "")


async def test_a_migration_that_fails_leaves_nothing_behind(home: Home, store: Store):
    broken = [*schema.MIGRATIONS, ["CREATE TABLE later(id TEXT)", "INSERT INTO nowhere VALUES(1)"]]
    with pytest.raises(Exception, match="nowhere"):
        await home.connect(migrations=broken)
    with pytest.raises(Exception, match="later"):
        await home.rows("SELECT * FROM later")
    assert (await received(await home.connect())).fresh


# Together


async def test_two_hundred_letters_and_their_commits_keep_the_order_of_each_thread(home: Home):
    stores = [await home.connect(), await home.connect()]

    async def converse(n: int) -> Lease:
        address, lease = Address("test", str(n)), Lease("")
        for turn in range(10):
            receipt = await received(stores[turn % 2], f"{n}/{turn}", address)
            lease = lease if lease.thread else Lease(receipt.thread)
            await append(stores[0], lease, heard(receipt.id), absorbed=[receipt.id], outbox=[answer(f"{n}/{turn}")])
        return lease

    leases = await asyncio.gather(*map(converse, range(20)))
    for lease in leases:
        entries = await stores[1].read(lease.thread)
        mails = [entry.mail for entry in entries if isinstance(entry, UserSaid)]
        assert len(mails) == 10
        assert mails == sorted(mails)
        assert [seq for seq, _ in await log_of(home, lease.thread)] == list(range(1, 11))
    assert await home.rows("SELECT count(*) FROM outbox") == [(200,)]


async def test_a_fenced_commit_does_not_touch_those_it_meets(store: Store):
    leases = [await taken(store, str(n), Address("test", str(n))) for n in range(10)]
    for lease in leases[::2]:
        lease.epoch += 1
    results = await asyncio.gather(
        *(append(store, lease, ASKED, outbox=[answer(lease.thread)]) for lease in leases), return_exceptions=True
    )
    assert [isinstance(result, Fenced) for result in results] == [True, False] * 5
    assert [len(await store.read(lease.thread)) for lease in leases] == [1, 2] * 5
    assert len(await store.due("test")) == 1


WRITES = Commit([ANSWERED], starts=[ASKED])
RESTS = Commit(state="resting", release=True, seen=99)


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [(RESTS, WRITES, ("resting", 1)), (WRITES, RESTS, ("running", 3)), (WRITES, WRITES, ("running", 3))],
    ids=["it rests", "it writes", "both write"],
)
async def test_of_two_commits_of_one_thread_that_meet_the_first_counts(
    home: Home, store: Store, old: Commit, new: Commit, after: tuple[str, int]
):
    """As when a driver was cancelled whose last commit is still on its way."""
    lease = await taken(store)
    store.running = 5  # they are gathered
    first, second = await asyncio.gather(
        *(store.commit(Lease(lease.thread, lease.epoch, lease.head), commit) for commit in (old, new)),
        return_exceptions=True,
    )
    head = after[1]
    assert isinstance(first, Committed)
    assert (first.head, first.started, first.released) == (head, old is WRITES, old is RESTS)
    assert isinstance(second, Fenced)
    assert await home.rows("SELECT state, head FROM threads") == [after]
    again = await store.commit(Lease(lease.thread, 0, head), Commit([ANSWERED]))
    assert (again.head, [seq for seq, _ in await log_of(home, lease.thread)]) == (head + 1, list(range(1, head + 2)))


async def test_a_commit_that_meets_the_one_that_takes_its_lease_is_fenced(home: Home, store: Store):
    lease = await taken(store)
    store.running = 5
    first, second = await asyncio.gather(
        store.commit(Lease(lease.thread, 0, lease.head), WRITES),
        store.commit(Lease(lease.thread, lease.epoch, lease.head), RESTS),
        return_exceptions=True,
    )
    assert first == Committed(3, lease.epoch + 1, started=True, released=False, newest=0)
    assert isinstance(second, Fenced)
    assert await home.rows("SELECT state, head, epoch FROM threads") == [("running", 3, lease.epoch + 1)]
    again = await store.commit(Lease(lease.thread, first.epoch, 3), RESTS)
    assert (again.head, again.released, len(await log_of(home, lease.thread))) == (3, True, 3)


async def test_a_start_and_a_stop_that_meet_agree_on_who_was_first(home: Home):
    """Either the start was first, or the stop was and nothing started: never a start after a stop."""
    stores = [await home.connect(), await home.connect()]
    for n in range(30):
        address = Address("test", str(n))
        lease = await taken(stores[0], f"{n}", address)
        committed, receipt = await asyncio.gather(
            append(stores[0], lease, ANSWERED, starts=[START]),
            stores[1].command(stop(f"{n}/stop", address), "stop", "Stopped."),
        )
        assert receipt.reply == "Stopped."
        later = await append(stores[0], lease, starts=[START])
        assert later.started is False
        assert (await stores[0].read(lease.thread))[2:] == ([START] if committed.started else [])
        assert committed.started == (committed.newest == 0)


async def test_a_release_and_a_letter_that_meet_lose_nothing(home: Home):
    """Either the release saw the letter and kept the lease, or the thread is found waiting."""
    stores = [await home.connect(), await home.connect()]
    for n in range(30):
        address = Address("test", str(n))
        lease = await taken(stores[0], f"{n}", address)
        committed, receipt = await asyncio.gather(
            append(stores[0], lease, ANSWERED, release=True, state="resting", seen=10**9 if n % 3 == 0 else 0),
            received(stores[1], f"{n}/late", address),
        )
        assert [m.id for m in await stores[0].mail(lease.thread)] == [receipt.id]
        assert committed.released or committed.newest == receipt.id
        assert (lease.thread in await stores[1].waiting()) is committed.released


class Worker:
    """What a driver does with a thread, one small step at a time, from one of the two processes."""

    def __init__(self, store: Store, address: Address) -> None:
        self._store = store
        self._address = address
        self._lease: Lease | None = None
        self.said = 0

    async def step(self, name: str, number: int) -> None:
        try:
            await getattr(self, name)(number)
        except Fenced:
            self._lease = None

    async def say(self, number: int) -> None:
        await self._store.receive(letter(f"{self._address}/{number}", address=self._address))
        self.said += 1

    async def begin(self, number: int) -> None:
        """Say it straight into the thread, which works if that rests."""
        if not self._lease and (row := await self._store.session(str(self._address))):
            lease = Lease(row.id, 0, row.head)
            committed = await self._store.commit(lease, begun(f"{self._address}/{number}", self._address))
            self._lease = Lease(row.id, committed.epoch, committed.head)
            self.said += 1

    async def say_stop(self, number: int) -> None:
        await self._store.command(stop(f"{self._address}/{number}", self._address), "stop", "Stopped.")

    async def take(self, _: int) -> None:
        if row := await self._store.session(str(self._address)):
            opened = await self._store.open(row.id)
            lease = Lease(row.id, 0, opened.row.head)
            await self._absorb(lease, opened.mail)
            self._lease = lease

    async def absorb(self, _: int) -> None:
        if self._lease:
            await self._absorb(self._lease, await self._store.mail(self._lease.thread))

    async def start(self, _: int) -> None:
        if self._lease:
            await append(self._store, self._lease, ANSWERED, starts=[START])

    async def release(self, _: int) -> None:
        if self._lease:
            mail = await self._store.mail(self._lease.thread)
            seen = max((m.id for m in mail), default=0)
            committed = await append(self._store, self._lease, release=True, state="resting", seen=seen)
            self._lease = None if committed.released else self._lease

    async def give_back(self, _: int) -> None:
        if self._lease:
            await self._store.give_back(self._lease)
            self._lease = None

    async def renew(self, _: int) -> None:
        if self._lease and await self._store.renew([self._lease]):
            self._lease = None

    async def holds(self) -> bool:
        """Whether the lease is valid: it is still ours to renew."""
        return bool(self._lease) and not await self._store.renew([self._lease] if self._lease else [])

    async def _absorb(self, lease: Lease, mail: list[Mail]) -> None:
        entries: list[Entry] = [heard(m.id) if isinstance(m.letter, Said) else Stopped(f"{m.id}") for m in mail]
        await append(self._store, lease, *entries, absorbed=[m.id for m in mail])


def grant(id: str, user: str = "ann", runs: int = 2, until: float = 4e9) -> Grant:
    what = {"definition": "d", "argv": ("git", "push", "*"), "folder": "site", "ground": "1:2:3", "risk": "medium"}
    return Grant(id, user, "owner", "exec", **what, runs=runs, until=until)


async def test_what_was_allowed_ahead_is_kept_with_the_runs_that_are_left(store: Store):
    for each in (grant("g1"), grant("g2", "bob"), grant("g3", until=1.0), grant("g4", runs=1)):
        await store.keep_grant(each)
    assert [await store.use_grant(id) for id in ("g1", "g3", "g4", "g4", "nosuch")] == [True, False, True, False, False]
    assert await store.grants("ann") == [grant("g1", runs=1)]
    assert await store.grants() == [grant("g1", runs=1), grant("g2", "bob")]
    assert [await store.forget_grant("g2"), await store.forget_grant("g2")] == [True, False]
    assert await store.grants("bob") == []


async def test_a_grant_that_is_kept_again_is_as_it_was(store: Store):
    await store.keep_grant(grant("g1", runs=3))
    assert await store.use_grant("g1")
    await store.keep_grant(grant("g1", runs=3))
    assert await store.grants() == [grant("g1", runs=2)]


async def test_grants_of_an_older_everloop_hold_no_more(home: Home):
    """They were for anything of a tool, where nobody had said so."""
    await home.connect(migrations=schema.MIGRATIONS[:6])
    body = '{"id":"g","user":"ann","by":"owner","tool":"web_fetch","risk":"medium","runs":9,"until":4e9}'
    await home.write(f"INSERT INTO grants(id, owner, at, until, runs, body) VALUES('g', 'ann', 1, 4e9, 9, '{body}')")
    store = await home.connect()
    assert (await store.grants(), await home.rows("SELECT count(*) FROM grants")) == ([], [(0,)])


async def test_a_grant_is_used_no_more_often_than_it_says(pair: list[Store]):
    await pair[0].keep_grant(grant("g", runs=5))
    used = await asyncio.gather(*(store.use_grant("g") for store in pair for _ in range(6)))
    assert sum(used) == 5


async def test_threads_that_wait_for_a_person_are_found(store: Store):
    other = Address("test", "other")
    first, second = await store.receive(letter("e1")), await store.receive(letter("e2", address=other))
    for receipt in (first, second):
        taken = Commit(
            [UserSaid(said("hi"), "ann")], absorbed=[receipt.id], release=True, state="waiting", seen=receipt.id
        )
        assert (await store.commit(Lease(receipt.thread), taken)).released
    assert {row.id for row in await store.asking()} == {first.thread, second.thread}
    assert [row.id for row in await store.asking(str(other))] == [second.thread]
    assert [(row.session, row.state) for row in await store.asking("test:chat")] == [("test:chat", "waiting")]
    await store.commit(Lease(first.thread, 0, 1), Commit([Stopped("ann")], release=True, state="resting"))
    assert [row.id for row in await store.asking()] == [second.thread]


@pytest.fixture
async def pair(home: Home) -> list[Store]:
    """Two processes for all examples of a test: to open them for each would be most of the work."""
    return [await home.connect(), await home.connect()]


STEPS = [
    "say",
    "say",
    "begin",
    "say_stop",
    "take",
    "take",
    "absorb",
    "start",
    "release",
    "give_back",
    "renew",
    "expire",
]
ROUNDS = st.lists(st.tuples(st.sampled_from(STEPS), st.sampled_from(STEPS)), min_size=10, max_size=40)
_numbers = itertools.count()


@settings(examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(rounds=ROUNDS)
async def test_however_two_processes_meet_no_mail_is_lost_and_one_of_them_holds(
    home: Home, pair: list[Store], rounds: list[tuple[str, str]]
):
    address = Address("test", f"meeting-{next(_numbers)}")
    workers = [Worker(store, address) for store in pair]
    for names in rounds:
        steps: list[Awaitable[None]] = []
        for worker, name in zip(workers, names, strict=True):
            number = next(_numbers)
            steps.append(expire(home) if name == "expire" else worker.step(name, number))
        await asyncio.gather(*steps)
        assert sum([await worker.holds() for worker in workers]) <= 1
    if row := await pair[0].session(str(address)):
        rest = await pair[0].mail(row.id)
        entries = await log_of(home, row.id)
        assert [seq for seq, _ in entries] == list(range(1, row.head + 1))
        log = await pair[1].read(row.id)
        absorbed = [e.mail if isinstance(e, UserSaid) else int(e.by) for e in log if isinstance(e, UserSaid | Stopped)]
        spoken = sum(worker.said for worker in workers)
        letters = [*absorbed, *(m.id for m in rest)]
        assert letters == sorted(set(letters))
        assert sum(isinstance(e, UserSaid) for e in log) + sum(isinstance(m.letter, Said) for m in rest) == spoken


async def test_of_letters_with_numbered_events_the_last_is_found_and_whether_it_was_answered(
    store: Store,
):
    names = [f"once:a:{number:08x}" for number in (0, 9, 10)]
    receipts = [await store.receive(letter(name)) for name in ("once:9:00000000", *names, "once:b:00000000")]
    await store.receive(letter(f"{names[-1]}/stop"))  # as what a command of that event has posted is called
    newest = await store.newest("test", "once:a:00000000", "once:a:ffffffff")
    assert newest is not None
    assert (newest.event, newest.mail, newest.thread, newest.ended, newest.given) == (
        *(names[-1], receipts[3].id, receipts[3].thread),
        *(0, False),
    )
    await store.acknowledge([], given=[newest.mail])
    assert await store.newest("test", names[-1], names[-1]) == structs.replace(newest, given=True)
    assert await store.newest("test", "once:c:00000000", "once:c:ffffffff") is None
    assert await store.newest("other", "once:a:00000000", "once:a:ffffffff") is None


async def test_threads_of_clients_who_keep_the_conversation_themselves_are_archived_from_the_start(store: Store):
    addresses = [Address("openai", "one"), Address("api", "two"), Address("openaix", "three")]
    for address in addresses:
        spoken = Said(said("hi"), "owner", str(address))
        receipt = await store.receive(Inbound(address, f"e{address}", spoken))
        lease = Lease(receipt.thread)
        await store.commit(lease, Commit((UserSaid(said("hi"), "owner"),), release=True, state="resting"))
    other = await store.command(Inbound(Address("openai", "four"), "n", Said(said("/new"), "owner")), "new", "")
    await store.commit(Lease(other.thread), Commit((UserSaid(said("hi"), "owner"),), release=True, state="resting"))
    listed = await store.conversations("owner")
    kept = await store.conversations("owner", archived=True)
    assert {each.session for each in listed} == {"api:two", "openaix:three"}
    assert {each.session for each in kept} == {*map(str, addresses), "openai:four"}
