"""Letters that their authors change or take back, and what is known of the last ones, on both databases."""

import asyncio
from random import Random

import pytest
from tests.runtime.test_gathering_properties import ALL_DEEDS, Deed, check, live
from tests.store.conftest import Home

from everloop.core.log import UserSaid
from everloop.core.mail import Address, Amendment, Inbound, Mail, Said
from everloop.core.message import said
from everloop.ports import Store
from everloop.ports.rows import Commit, Lease, Receipt, RecentLetter

CHAT = Address("test", "chat")


def letter(text: str, author: str = "ann", address: Address = CHAT) -> Said:
    return Said(said(text) if text else (), author, str(address))


def change(text: str, event: str, author: str = "ann", address: Address = CHAT, resume: str = "") -> Inbound:
    return Inbound(address, event, Amendment(0, letter(text, author, address), not text), author, resume)


async def write(store: Store, event: str = "e1", text: str = "hi") -> Receipt:
    return await store.receive(Inbound(CHAT, event, letter(text), "ann"))


async def take(store: Store, written: Receipt, *, ended: bool) -> None:
    """Let a turn take it, and end."""
    entries = (UserSaid(said("hi"), "ann", str(CHAT), written.id),)
    over = ((written.id, 1),) if ended else ()
    await store.commit(Lease(written.thread), Commit(entries=entries, absorbed=(written.id,), ended=over, seen=9**9))


async def test_a_change_lies_in_the_inbox_behind_the_letter_that_it_names(home: Home):
    store = await home.connect()
    written = await write(store)
    receipt = await store.amend(change("hello", "e2", resume="7"), "e1")
    again = await store.amend(change("hello", "e2", resume="8"), "e1")
    assert receipt == Receipt(receipt.id, written.thread, True)
    assert again == Receipt(receipt.id, written.thread, False)
    assert await store.mail(written.thread) == [
        Mail(written.id, letter("hi")),
        Mail(receipt.id, Amendment(written.id, letter("hello"))),
    ]
    assert await store.resume("test") == "8"


async def test_what_is_taken_back_before_a_turn_has_taken_it_leaves_no_text_behind(home: Home):
    store = await home.connect()
    written = await write(store, text="my secret")
    receipt = await store.amend(change("", "e2"), "e1")
    assert await store.mail(written.thread) == [
        Mail(written.id, letter("")),
        Mail(receipt.id, Amendment(written.id, letter(""), True)),
    ]
    assert not [row for row in await home.rows("SELECT body FROM inbox") if "secret" in row[0]]


async def test_what_a_turn_has_taken_can_be_changed_until_it_is_over(home: Home):
    store = await home.connect()
    written = await write(store)
    await take(store, written, ended=False)
    receipt = await store.amend(change("", "e2"), "e1")
    assert await store.mail(written.thread) == [Mail(receipt.id, Amendment(written.id, letter(""), True))]
    [[body]] = await home.rows(f"SELECT body FROM inbox WHERE id = {written.id}")
    assert '"hi"' in body  # it is in the log already


async def test_nothing_is_kept_of_a_change_that_comes_too_late(home: Home):
    store = await home.connect()
    written = await write(store)
    await take(store, written, ended=True)
    assert await store.amend(change("hello", "e2", resume="7"), "e1") is None
    assert (await store.came("test", "e2"), await store.resume("test")) == (False, "")


@pytest.mark.parametrize(
    "inbound, event",
    [
        (change("hello", "e2", author="bob"), "e1"),
        (change("hello", "e2", address=Address("test", "other")), "e1"),
        (change("hello", "e2", address=Address("else", "chat")), "e1"),
        (change("hello", "e2"), "e9"),
        (change("hello", "e3"), "e2"),
    ],
    ids=["another's", "another chat", "another channel", "unknown", "a command"],
)
async def test_only_who_wrote_a_letter_changes_it_and_only_where_it_was_written(home: Home, inbound, event):
    store = await home.connect()
    written = await write(store)
    if event == "e2":
        await store.command(Inbound(CHAT, "e2", letter("/help"), "ann"), "none", "help")
    assert await store.amend(inbound, event) is None
    assert await store.mail(written.thread) == [Mail(written.id, letter("hi"))]


async def test_in_another_thread_of_the_same_chat_it_is_the_same_letter(home: Home):
    store = await home.connect()
    written = await write(store)
    receipt = await store.amend(change("hello", "e2", address=Address("test", "chat", "7")), "e1")
    assert receipt == Receipt(receipt.id, written.thread, True)


async def test_a_change_and_the_turn_that_takes_the_letter_come_one_after_the_other(home: Home):
    store, other = await home.connect(), await home.connect()
    for n in range(10):
        chat = Address("test", f"chat{n}")
        written = await store.receive(Inbound(chat, f"e{n}", letter("hi", address=chat), "ann"))
        receipt, _ = await asyncio.gather(
            other.amend(change("", f"c{n}", address=chat), f"e{n}"), take(store, written, ended=True)
        )
        [[body, ended]] = await home.rows(f"SELECT body, ended FROM inbox WHERE id = {written.id}")
        assert ended == 1
        assert ('"hi"' not in body) <= (receipt is not None)  # the text is gone only where the change came first


async def test_whatever_is_said_changed_and_taken_back_is_in_one_turn_or_in_none(home: Home):
    chance, store = Random(7), await home.connect()
    for steering in ("steer", "queue", "interrupt"):
        for _ in range(10):
            deeds = [Deed(chance.choice(ALL_DEEDS), chance.randrange(6)) for _ in range(14)]
            await check(await live(store, deeds, steering))


async def test_the_last_letters_of_a_channel_are_told_the_oldest_first(home: Home):
    store = await home.connect()
    await write(store, "e1")
    await store.receive(Inbound(Address("else", "chat"), "x", letter("hi", address=Address("else", "chat")), "ann"))
    await store.command(Inbound(CHAT, "e2", letter("/help"), "ann"), "none", "help")
    await store.command(Inbound(CHAT, "e3", letter(""), "ann"), "none", "slower")
    found = await store.recent("test", 100)
    assert [RecentLetter(each.event, each.author, each.chat, 0.0, each.told) for each in found] == [
        RecentLetter("e1", "ann", "chat", 0.0, False),
        RecentLetter("e2", "ann", "chat", 0.0, False),
        RecentLetter("e3", "ann", "chat", 0.0, True),
    ]
    assert [each.event for each in await store.recent("test", 2)] == ["e2", "e3"]
    await home.write("UPDATE inbox SET at = at - 4000 WHERE event = 'e3'")
    assert [each.event for each in await store.recent("test", 2)] == ["e2"]
