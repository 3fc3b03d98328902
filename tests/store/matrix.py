"""One way through the store on each event loop, by each kind of wire, on each server whose address is given:
`python -m tests.store.matrix ADDRESS …`, with the asyncpg that is found first. Prints a line for each that worked."""

import asyncio
import secrets
import sys
from collections.abc import Callable
from typing import Any

import asyncpg
import uvloop

from everloop.core.log import ModelCalled
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.errors import StoreError
from everloop.ports.rows import Commit, Lease
from everloop.store.fetching import FetchingWire, wire_over
from everloop.store.postgres import PostgresStore
from everloop.store.wire import Wire

LOOPS: dict[str, Callable[[], Any]] = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
WIRES: dict[type[Any], Any] = {Wire: wire_over, FetchingWire: FetchingWire}
CHAT = Address("test", "chat")


def letter(event: str) -> Inbound:
    return Inbound(CHAT, event, Said(said("hello"), "ann"))


async def walk(address: str, kind: type[Any]) -> None:
    home = f"home_{secrets.token_hex(6)}"
    beside = await asyncpg.connect(address)
    await beside.execute(f"CREATE SCHEMA {home}")
    store: Any = await PostgresStore.connect(f"{address}&search_path={home}", over=WIRES[kind])
    await write(store, kind)
    await beside.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'everloop'")
    await go_on(store)
    await store.close()
    await beside.execute(f"DROP SCHEMA {home} CASCADE")
    await beside.close()


async def write(store: Any, kind: type[Any]) -> None:
    receipts = await asyncio.gather(*(store.receive(letter(str(n))) for n in range(300)))
    assert type(store._writer._sender.wire) is kind
    thread = receipts[0].thread
    assert (await store.commit(Lease(thread), Commit([ModelCalled("m")]))).head == 1
    refused, kept = await asyncio.gather(
        store.receive(letter("a\0")), store.receive(letter("b")), return_exceptions=True
    )
    assert isinstance(refused, StoreError)
    assert kept.fresh
    text = "“long” \n" * 20_000
    assert (await store.command(letter("c"), "none", text)).reply == text
    assert (await store.receive(letter("c"))).reply == text
    assert len(await store.mail(thread)) == 301
    assert await store.read(thread) == [ModelCalled("m")]


async def go_on(store: Any) -> None:
    """All its connections were ended; one that has not noticed yet is told so."""
    for event in ("d", "d"):
        try:
            await store.receive(letter(event))
        except StoreError:
            continue
    assert (await store.receive(letter("d"))).fresh is False
    assert (await store.receive(letter("e"))).fresh is True


def main() -> None:
    for number, address in enumerate(sys.argv[1:]):
        for name, loop in LOOPS.items():
            for kind in WIRES:
                with asyncio.Runner(loop_factory=loop) as runner:
                    runner.run(walk(address, kind))
                print(asyncpg.__version__, number, name, kind.__name__)  # noqa: T201


if __name__ == "__main__":
    main()
