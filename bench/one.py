"""One measure of one system in a process of its own; prints a JSON object. Called by run.py.

    python bench/one.py SYSTEM MEASURE BASE [STORE_URL]

SYSTEM is floor, everloop (embedded in a program on plain asyncio) or everloop-own (in its own process, as the command
`everloop` runs it).
"""

import asyncio
import gc
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

HOMES = Path(__file__).parent / ".homes"  # on the disk, for /tmp may be memory, where nothing has to be synced
Ask = Callable[[str, str], Awaitable[object]]


class System:
    """What is measured: `ask` for an answer, `watch` for an answer whose pieces reach a subscriber."""

    def __init__(self, ask: Ask, watch: Ask, agent: Any = None) -> None:
        self.ask, self.watch, self.agent = ask, watch, agent


@asynccontextmanager
async def opened(system: str, base: str, store: str = "") -> AsyncIterator[System]:
    if system == "floor":
        from floor import Floor

        floor = Floor(base)
        yield System(floor.ask, floor.ask)
        await floor.close()
        return
    import everloop

    @everloop.tool(everloop.Effect.READ, local=True)
    async def look() -> str:
        """Look."""
        return "seen"

    HOMES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=HOMES) as home:
        os.mkdir(f"{home}/workspace")  # else it would be filled with files of which the floor tells its model nothing
        told = {"model": "custom/m", "context_window": 128_000, "system_prompt": "You are helpful."}
        settings = {
            "agents": {"defaults": told},
            "providers": {"custom": {"api_base": base}},
            "store": {"url": store},
            "tools": {"disabled": ["*"]},  # both send one tool: what is compared is what is done, not what is asked for
        }
        async with everloop.open(home=home, settings=settings, tools=[look]) as agent:

            async def watch(text: str, session: str) -> None:
                async for _ in agent.stream(text, session):
                    pass

            yield System(agent.ask, watch, agent)


async def turns(ask: Ask, count: int, session: str = "", warm: int = 10) -> dict[str, float]:
    """CPU and wall time of a warm turn; a session has 20 turns unless it is named.

    A database is warm when its write-ahead log has reached its size and is written over: while a file grows, each
    fsync has the file's length to write as well. That takes about 400 turns of a new home.
    """
    for n in range(warm):
        await ask(f"warm up {n}", session or f"api:w{n // 20}")
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    for n in range(count):
        await ask(f"message {n}", session or f"api:s{n // 20}")
    return {"cpu": (time.process_time() - cpu) / count, "wall": (time.perf_counter() - wall) / count}


async def crowd(ask: Ask, sessions: int, rounds: int) -> dict[str, float]:
    """Many sessions at once: turns a second, and how long the slowest hundredth waited."""
    times: list[float] = []

    async def talk(n: int) -> None:
        for k in range(rounds):
            began = time.perf_counter()
            await ask(f"message {k}", f"api:c{n}")
            times.append(time.perf_counter() - began)

    await asyncio.gather(*(ask("warm up", f"api:c{n}") for n in range(sessions)))
    cpu, wall = time.process_time(), time.perf_counter()
    await asyncio.gather(*(talk(n) for n in range(sessions)))
    wall = time.perf_counter() - wall
    times.sort()
    return {
        "turns_per_second": len(times) / wall,
        "p99": times[int(len(times) * 0.99)],
        "cpu": (time.process_time() - cpu) / len(times),
    }


async def beside(ask: Ask, base: str) -> dict[str, float]:
    """Fifty quick sessions, first alone and then beside one whose model takes its time."""
    alone = await crowd(ask, 50, 10)
    slow = asyncio.ensure_future(ask("slow", "api:slow"))
    async with aiohttp.ClientSession() as http:
        await http.get(f"{base.removesuffix('/v1')}/_calls?at_least=551")
        together = await crowd(ask, 50, 10)
        waited = not slow.done()
        await http.post(f"{base.removesuffix('/v1')}/_open?gate=gate")
    await slow
    return {"alone": alone["p99"], "beside": together["p99"], "was_slow": float(waited)}


async def growth(system: System) -> dict[str, float]:
    """A warm turn after 10 and after 5,000 turns of history, both compacted alike, and the first, cold one."""
    result: dict[str, float] = {}
    for past in (10, 5000):
        session = f"api:past{past}"
        await _write_past(system.agent.store, session, past)
        began = time.process_time()
        await system.ask("first", session)
        result[f"cold_{past}"] = time.process_time() - began
    for past in (10, 5000, 10, 5000):  # interleaved, the later pair counts
        result[f"cpu_{past}"] = (await turns(system.ask, 100, f"api:past{past}"))["cpu"]
    return result


async def _write_past(store: Any, session: str, past: int) -> None:
    from everloop.core.log import Compacted, ModelCalled, ModelSaid, UserSaid
    from everloop.core.mail import Address, Inbound, Said
    from everloop.core.message import said
    from everloop.core.ports import Commit, Lease

    words = said("Something was said here, and it was neither long nor short.")
    receipt = await store.receive(Inbound(Address.parse(session), f"past-{past}", Said(words, "owner", session)))
    lease = Lease(receipt.thread)
    turn = [
        UserSaid(words, "owner", session, receipt.id),
        ModelCalled("m"),
        ModelSaid("And this was the answer to it."),
    ]
    for n in range(0, past, 10):
        first = {"absorbed": [receipt.id], "ended": [(receipt.id, 3)]} if n == 0 else {}
        committed = await store.commit(lease, Commit(turn * min(10, past), state="resting", **first))
        lease.epoch, lease.head = committed.epoch, committed.head
    last = Commit([Compacted("Much was said before.")], state="resting", release=True, seen=receipt.id)
    await store.commit(lease, last)


async def flat(ask: Ask, count: int) -> dict[str, float]:
    """Memory after many turns against memory after the first tenth of them."""
    for n in range(count // 10):
        await ask("message", f"api:f{n // 50}")
    early = _rss()
    for n in range(count // 10, count):
        await ask("message", f"api:f{n // 50}")
    return {"early": early, "late": _rss(), "growth": _rss() / early}


def _rss() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


async def profile(ask: Ask) -> dict[str, float]:
    import cProfile
    import pstats

    await turns(ask, 50)
    with cProfile.Profile() as profiled:
        result = await turns(ask, 300)
    pstats.Stats(profiled, stream=sys.stderr).sort_stats("tottime").print_stats(50)
    return result


async def main() -> None:
    name, measure, base, *rest = sys.argv[1:]
    async with opened(name.removesuffix("-own"), base, *rest) as system:
        match measure:
            case "turn":
                result = await turns(system.ask, 600, warm=600)
            case "tools":
                result = await turns(system.ask, 40)
            case "burst":
                result = await turns(system.watch, 20)
            case "crowd":
                result = await crowd(system.ask, 500, 3)
            case "beside":
                result = await beside(system.ask, base)
            case "growth":
                result = await growth(system)
            case "flat":
                result = await flat(system.ask, 10_000)
            case "soak":
                result = await flat(system.ask, 100_000)
            case "once":
                result = {"length": float(len(str(await system.ask("hello", "api:once"))))}
            case "profile":
                result = await profile(system.ask)
            case _:
                raise SystemExit(f"there is no measure {measure}")
    result["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if sys.argv[1] == "everloop-own":
        from everloop.process import run

        run(main())
    else:
        asyncio.run(main())
