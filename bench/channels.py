"""What channels cost: the memory of a gateway with all of them idle, and how fast one takes in what people say.

python bench/channels.py
"""

import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.cli.person import Person
from tests.cli.test_gateway_command import Running, start
from tests.ports import free_port
from tests.torture.channel_platforms import PLATFORMS, TorturedPlatform
from tests.torture.channels import lines

from everloop.testing.model_server import ModelServer

IDLE = 6.0  # seconds until what is done at the start is done
MANY = 2000


def rss_of(process: int) -> float:
    """In MB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


async def opened(stack: AsyncExitStack, names: Sequence[str], chats: int) -> tuple[Running, list[TorturedPlatform]]:
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    person = Person(folder, await stack.enter_async_context(ModelServer(lines)))
    stack.push_async_callback(person.leave)
    person.environment |= {
        "EVERLOOP_USERS__STRANGERS": "guest",
        "EVERLOOP_USERS__BUDGETS__GUEST_TOKENS": "0",
        "EVERLOOP_USERS__BUDGETS__GUESTS_TOKENS": "0",
    }
    platforms = [await stack.enter_async_context(PLATFORMS[name](chats)) for name in names]
    for each in platforms:
        for name, value in each.settings.items():
            person.environment[f"EVERLOOP_CHANNELS__{each.name.upper()}__{name.upper()}"] = str(value)
    gateway = await start(person, free_port())
    for each in platforms:
        each.gateway = gateway.url
        await each.is_ready()
    return gateway, platforms


async def memory(names: Sequence[str]) -> float:
    async with AsyncExitStack() as stack:
        gateway, _ = await opened(stack, names, 1)
        await asyncio.sleep(IDLE)
        found = rss_of(gateway.process.pid)
        await gateway.stop()
    return found


async def intake(name: str, chats: int = 50) -> tuple[float, float]:
    """Messages a second into one channel, until the last is answered; and the seconds after which a message on another
    channel, said in the middle of it, was answered."""
    async with AsyncExitStack() as stack:
        gateway, (busy, quiet) = await opened(stack, [name, "webhook"], chats)
        for chat in range(chats):
            await busy.say(chat, f"first-{chat}")
        while len(busy.seen()) < chats:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        began = time.monotonic()

        async def ask_elsewhere() -> float:
            await asyncio.sleep(0.2)
            at = time.monotonic()
            await quiet.say(0, "elsewhere")
            while not quiet.seen():  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            return time.monotonic() - at

        elsewhere = asyncio.ensure_future(ask_elsewhere())
        for number in range(MANY):
            await busy.say(number % chats, f"more-{number}")
        while _letters(gateway) < MANY + chats:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        took = time.monotonic() - began
        found = MANY / took, await elsewhere
        await gateway.kill()
    return found


def _letters(gateway: Running) -> int:
    """That are committed."""
    (home,) = Path(f"/proc/{gateway.process.pid}/environ").read_bytes().split(b"EVERLOOP_HOME=")[1].split(b"\0")[:1]
    with sqlite3.connect(Path(home.decode()) / "everloop.db") as store:
        return int(store.execute("SELECT count(*) FROM inbox WHERE channel <> 'webhook'").fetchone()[0])


async def main() -> None:
    print("| measure | found | bar |\n|---|---|---|")
    alone, all_of_them = await memory([]), await memory([*PLATFORMS])
    print(f"| a gateway alone | {alone:.1f} MB | |")
    print(f"| with {len(PLATFORMS)} channels, idle | {all_of_them - alone:+.1f} MB | ≤ 15 MB |")
    for name in ("telegram", "slack", "discord"):
        rate, elsewhere = await intake(name)
        print(f"| {name}: messages a second | {rate:,.0f} | ≥ 1,000 |")
        print(f"| a message elsewhere meanwhile, until its answer | {elsewhere:.2f} s | |", flush=True)


if __name__ == "__main__":
    asyncio.run(main())
