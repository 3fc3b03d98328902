"""What was sent, with what its channel calls it, and what was used beside turns: the same over both databases."""

from everloop.core.log import ModelSaid
from everloop.core.mail import Address, Inbound, Outbound, Said
from everloop.core.message import said
from everloop.core.prompt import Usage
from everloop.ports import Store
from everloop.ports.outbox import SentAnswer
from everloop.ports.rows import Commit, Lease, Spent, SpentRow


async def test_an_answer_that_was_sent_has_the_receipts_of_all_its_parts(store: Store):
    there = Address("fake", "room")
    receipt = await store.receive(Inbound(there, "e1", Said(said("hi"), "owner", str(there))))
    row = (await store.open(receipt.thread)).row
    outbox = [Outbound(f"k{n}", there, f"answer {n}") for n in range(3)]
    lease = Lease(receipt.thread, 0, row.head)
    await store.commit(lease, Commit([ModelSaid("x")], outbox=outbox, release=True, seen=receipt.id, state="resting"))
    (first,) = await store.due("fake")
    assert await store.keep_parts(first.id, ["p0", "p1"])
    await store.settle(first.id, "sent", "p2")
    (second,) = await store.due("fake")
    await store.settle(second.id, "sent", "p3")
    found = await store.sent_answers(["k0", "k1", "k2", "none"])
    assert sorted(found, key=lambda each: each.key) == [
        SentAnswer("k0", there, "answer 0", ("p0", "p1", "p2")),
        SentAnswer("k1", there, "answer 1", ("p3",)),
    ]


async def test_what_was_used_beside_turns_is_counted_for_who_has_asked(store: Store):
    await store.add_spent("anna", "", Spent(0, "m/voice", Usage(121), 0.25, requester="anna"), "voice")
    await store.add_spent("ben", "", Spent(0, "m/voice", Usage(10), requester="ben"), "voice")
    (row,) = await store.spent(who="anna")
    assert row == SpentRow(row.day, "m/voice", 1, Usage(121), 0.25, 0, "voice")
    assert [(each.calls, each.unpriced) for each in await store.spent()] == [(2, 1)]
