"""Answers that a channel has given up, as the gateway leaves them behind."""

from everloop.core.log import ModelSaid
from everloop.core.mail import Address, Outbound
from everloop.ports import Store
from everloop.ports.rows import Commit, Lease
from tests.runtime.conftest import letter


async def give_up(store: Store, *texts: str) -> None:
    receipt = await store.receive(letter("hi", "e1", session="fake:room"))
    outbox = [Outbound(f"k:{text}", Address("fake", "room"), text) for text in texts]
    lease = Lease(receipt.thread, 0, 0)
    entries = [ModelSaid("x")]
    await store.commit(lease, Commit(entries, outbox=outbox, release=True, seen=receipt.id, state="resting"))
    for _ in texts:
        (row,) = await store.due("fake")
        await store.settle(row.id, "failed", "no such\x1b[2J room")
