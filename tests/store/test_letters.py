"""Letters that name their thread themselves find it, on both databases."""

from tests.store.conftest import Home

from everloop.core.mail import Address, Decision, Inbound, Mail, Said
from everloop.core.message import said
from everloop.ports.rows import Receipt

CHAT = Address("test", "chat")


async def test_a_decision_that_is_typed_goes_to_the_thread_that_asked_and_not_to_the_session_s_next_one(home: Home):
    store = await home.connect()
    asks = (await store.receive(Inbound(CHAT, "e1", Said(said("hi"), "ann")))).thread
    now = (await store.command(Inbound(CHAT, "e2", Said(said("/new"), "ann")), "new", "new")).thread
    decision = Decision(asks, 2, 0, "allowed", "ann")
    receipt = await store.command(Inbound(CHAT, "e3", decision), "tell", "allowed")
    assert receipt == Receipt(receipt.id, asks, True, "allowed")
    assert [mail.letter for mail in await store.mail(asks)][1:] == [decision]
    assert await store.mail(now) == []


async def test_any_other_letter_that_is_typed_goes_to_the_thread_that_the_session_is_at(home: Home):
    store = await home.connect()
    await store.receive(Inbound(CHAT, "e1", Said(said("hi"), "ann")))
    now = (await store.command(Inbound(CHAT, "e2", Said(said("/new"), "ann")), "new", "new")).thread
    told = Said(said("go on"), "ann")
    receipt = await store.command(Inbound(CHAT, "e3", told), "tell", "told")
    assert receipt == Receipt(receipt.id, now, True, "told")
    assert await store.mail(now) == [Mail(receipt.id + 1, told)]
