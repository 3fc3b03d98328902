"""One measure of one system in a process of its own; prints a JSON object. Called by run.py."""

import asyncio
import gc
import json
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

Ask = Callable[[str, str], Awaitable[object]]


@asynccontextmanager
async def opened(system: str, base: str, **settings):
    if system == "floor":
        from floor import Floor

        floor = Floor(base)
        yield floor.ask
        await floor.close()
        return
    import everloop

    @everloop.tool(everloop.Effect.READ, local=True)
    async def look() -> str:
        """Look."""
        return "seen"

    store = {"url": settings["store"]} if settings.get("store") else {}
    with tempfile.TemporaryDirectory() as home:
        chosen = {
            "agents": {"defaults": {"model": "custom/m"}},
            "providers": {"custom": {"api_base": base}},
            "store": store,
        }
        async with everloop.open(home=home, settings=chosen, tools=[look]) as agent:
            yield agent.ask


async def turns(ask: Ask, count: int) -> dict[str, float]:
    """CPU and wall time of a warm turn."""
    for n in range(10):
        await ask(f"warm up {n}", f"api:warm{n % 3}")
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    for n in range(count):
        await ask(f"message {n}", f"api:s{n // 20}")
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


async def main() -> None:
    system, measure, base, *rest = sys.argv[1:]
    store = rest[0] if rest else ""
    async with opened(system.removesuffix("-uvloop"), base, store=store) as ask:
        match measure:
            case "turn":
                result = await turns(ask, 300)
            case "tools":
                result = await turns(ask, 40)
            case "burst":
                result = await turns(ask, 20)
            case "crowd":
                result = await crowd(ask, 500, 3)
            case "profile":
                import cProfile
                import pstats

                await turns(ask, 50)
                with cProfile.Profile() as profile:
                    result = await turns(ask, 300)
                pstats.Stats(profile, stream=sys.stderr).sort_stats(sys.argv[5] if len(sys.argv) > 5 else "tottime").print_stats(70)
            case _:
                raise SystemExit(f"there is no measure {measure}")
    result["rss"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps(result))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    if sys.argv[1].endswith("uvloop"):
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())
    else:
        asyncio.run(main())
