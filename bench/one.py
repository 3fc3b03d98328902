"""One measure of one system in a process of its own; prints a JSON object. Called by run.py.

    python bench/one.py SYSTEM MEASURE BASE [STORE_URL]

SYSTEM is floor, floor-synced (which keeps what is said on the disk), everloop (embedded in a program on plain asyncio)
or everloop-own (in its own process, as the command `everloop` runs it). In everloop-person and everloop-person-own not
the owner speaks but a user with a persona and a budget of tokens and money for the month.
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
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp

HOMES = Path(__file__).parent / ".homes"  # on the disk, for /tmp may be memory, where nothing has to be synced
Ask = Callable[[str, str], Awaitable[object]]
PERSON = "web:anna"
_BOTH: Any = ("user", "assistant")


class System:
    """What is measured: `ask` for an answer, `watch` for an answer whose pieces reach a subscriber."""

    def __init__(self, ask: Ask, watch: Ask, agent: Any = None, home: str = "") -> None:
        self.ask, self.watch, self.agent, self.home = ask, watch, agent, home


@asynccontextmanager
async def opened(system: str, base: str, store: str = "") -> AsyncIterator[System]:
    HOMES.mkdir(exist_ok=True)
    if system.startswith("floor"):
        from floor import Floor, SyncedFloor

        with tempfile.NamedTemporaryFile(dir=HOMES) as file:
            floor = SyncedFloor(base, file.name) if system == "floor-synced" else Floor(base)
            yield System(floor.ask, floor.ask)
            await floor.close()
        return
    import everloop
    from everloop.core.people import Role
    from everloop.ports.budgets import Limit

    @everloop.tool(everloop.Effect.READ, local=True, polls=True)
    async def look() -> str:
        """Look."""
        return "seen"

    with tempfile.TemporaryDirectory(dir=HOMES) as home:
        os.mkdir(f"{home}/workspace")  # else it would be filled with files of which the floor tells its model nothing
        told = {"model": "custom/m", "context_window": 128_000, "system_prompt": "You are helpful."}
        settings = {
            "agents": {"defaults": told},
            "providers": {"custom": {"api_base": base}},
            "store": {"url": store},
            "prices": {"m": {"input": 1.0, "output": 2.0}},
            "tools": {"disabled": ["*"]},  # both send one tool: what is compared is what is done, not what is asked for
        }
        if system == "everloop-person":
            # As many words as the owner's prompt has, so that both send as much.
            settings["agents"] = {"defaults": {**told, "system_prompt": "You"}}
            settings["personas"] = {"helper": {"prompt": "are helpful.", "tools": ["look"], "places": ["default"]}}
        async with everloop.open(home=home, settings=settings, tools=[look], roles={PERSON: Role.USER}) as agent:
            ask = agent.ask
            if system == "everloop-person":
                await agent.budgets.assign(PERSON, "month", Limit(10**12, 10**15))
                ask = _asked_by(agent.user(PERSON))

            async def watch(text: str, session: str) -> None:
                async for _ in agent.stream(text, session):
                    pass

            yield System(ask, watch, agent, home)


def _asked_by(person: Any) -> Ask:
    """In sessions of theirs, whose names are not worked out anew: that is nothing of what is measured."""
    named = lru_cache(lambda session: f"{PERSON}:{session.partition(':')[2]}")
    return lambda text, session: person.ask(text, named(session))


async def turns(ask: Ask, count: int, session: str = "", warm: int = 10, things: int = 1000) -> dict[str, float]:
    """CPU and wall time of a warm turn; a session has 20 turns unless it is named. So many things are said in turn.

    A database is warm when its write-ahead log has reached its size and is written over: while a file grows, each
    fsync has the file's length to write as well. That takes about 400 turns of a new home.
    """
    for n in range(warm):
        await ask(f"warm up {n}", session or f"api:w{n // 20}")
    gc.collect()
    cpu, wall = time.process_time(), time.perf_counter()
    for n in range(count):
        await ask(f"message {n % things}", session or f"api:s{n // 20}")
    took = time.process_time() - cpu, time.perf_counter() - wall
    return {"cpu": took[0] / max(1, count), "wall": took[1] / max(1, count)}


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
    """A warm turn after 5,000 turns and after 10. Both histories end with the same summary and the same ten turns after
    it, and ten numbers are spoken of that both know, so that as much of it is recalled: both send the same request. And
    what it costs to make such a summary of 5,000 turns."""
    result: dict[str, float] = {}
    store = system.agent.store
    for past in (5000, 10):
        await _write_past(store, f"api:past{past}", past, condensed=True)
        await system.ask("first", f"api:past{past}")
    lengths = {await _length(store, f"api:past{past}") for past in (5000, 10)}
    (result["characters"],) = lengths  # or they are not alike
    for past in (5000, 10, 10, 5000) * 3:  # interleaved, the quickest of each counts
        cpu = (await turns(system.ask, 100, f"api:past{past}", things=10))["cpu"]
        result[f"cpu_{past}"] = min(cpu, result.get(f"cpu_{past}", cpu))
    await _write_past(store, "api:whole", 5000)
    began = time.process_time()
    await system.ask("/compact", "api:whole")
    await system.ask("first", "api:whole")
    result["compaction"] = time.process_time() - began
    return result


async def _length(store: Any, session: str) -> int:
    """The characters of the conversation as a model is shown it."""
    from everloop.core.thread import Thread

    row = await store.session(session)
    opened = await store.open(row.id)
    thread = Thread(row.id, opened.first - 1)
    thread.extend(opened.entries)
    return sum(len(message.text) for message in thread.transcript.messages)


async def opening(system: System, base: str) -> dict[str, float]:
    """`everloop agent -m` in a session of 100,000 entries, which are a summary but for the last, and in one of 100; and
    of that what it takes to read the session's entries and to fold them."""
    from everloop.core.thread import Thread

    result: dict[str, float] = {}
    store = system.agent.store
    for name, past in (("small", 33), ("large", 33_333)):
        await _write_past(store, f"api:{name}", past)
        await system.ask("/compact", f"api:{name}")
        await system.ask("first", f"api:{name}")
        thread = (await store.session(f"api:{name}")).id
        began = time.process_time()
        for _ in range(200):
            opened = await store.open(thread)
            Thread(thread, opened.first - 1).extend(opened.entries)
        result[f"read_{name}"] = (time.process_time() - began) / 200
    seconds: dict[str, list[float]] = {"small": [], "large": []}
    for name in ("small", "large") * 9:
        seconds[name].append(await _reply_once(system.home, base, f"api:{name}"))
    return result | {f"cpu_{name}": sorted(times)[len(times) // 2] for name, times in seconds.items()}


async def _reply_once(home: str, base: str, session: str) -> float:
    """The CPU seconds of a process that opens a session, says a word and ends."""
    environment = {
        "EVERLOOP_HOME": home,
        "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/m",
        "EVERLOOP_AGENTS__DEFAULTS__CONTEXT_WINDOW": "128000",
        "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": base,
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = (sys.executable, "-m", "everloop", "agent", "-s", session, "-m", "hello")
    nowhere = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *command, stdin=nowhere, stdout=nowhere, env={**os.environ, **environment}
    )
    assert await process.wait() == 0
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


async def _write_past(store: Any, session: str, past: int, condensed: bool = False) -> None:
    """So many turns; `condensed`, with a summary after them that keeps ten."""
    from everloop.core.log import Compacted, ModelCalled, ModelSaid, UserSaid
    from everloop.core.mail import Address, Inbound, Said
    from everloop.core.message import Message, said
    from everloop.ports.rows import Commit, Lease

    words = said("Something was said here, and it was neither long nor short.")
    receipt = await store.receive(Inbound(Address.parse(session), f"past-{session}", Said(words, "owner", session)))
    lease = Lease(receipt.thread)
    for first in range(0, past, 100):
        entries = [
            entry
            for n in range(first, min(first + 100, past))
            for entry in (
                UserSaid(said(f"In turn {n} this was said, neither long nor short."), "owner", session),
                ModelCalled("m"),
                ModelSaid(f"And this was the answer to what was said in turn {n}."),
            )
        ]
        if condensed and first + 100 >= past:
            kept = [Message(role, said(f"One of ten that stay: {n}")) for n in range(10) for role in _BOTH]
            entries.append(Compacted("What was said before. " * 100, tuple(kept), covers=(1, 3 * past)))
        taken: dict[str, Any] = {"absorbed": [receipt.id], "ended": [(receipt.id, 3)]} if first == 0 else {}
        last: dict[str, Any] = {"release": True, "seen": receipt.id} if first + 100 >= past else {}
        committed = await store.commit(lease, Commit(entries, state="resting", **taken, **last))
        lease.epoch, lease.head = committed.epoch, committed.head


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


async def person(base: str, owners: str = "", theirs: str = "") -> dict[str, float]:
    """Turns of the owner and of a person with persona and budget, forty of each in turn; the medians of the pairs."""
    pairs = []
    async with opened("everloop", base, owners) as plain, opened("everloop-person", base, theirs) as bounded:
        for system in (plain, bounded):
            await turns(system.ask, 0, warm=400)
        for _ in range(40):
            pairs.append([await turns(system.ask, 40, warm=0) for system in (plain, bounded)])
    found = {}
    for what in ("cpu", "wall"):
        found[what] = median(after[what] / before[what] for before, after in pairs)
        found[f"owner_{what}"], found[f"person_{what}"] = (median(each[n][what] for each in pairs) for n in (0, 1))
    return found


def _look_rarely() -> None:
    """Limits are looked up once a second, which is once in a thousand turns, and where instructions are counted, which
    takes fifty times as long, once in a few."""
    from everloop.runtime import budgets

    budgets.SECONDS = 3600.0


async def main() -> None:
    name, measure, base, *rest = sys.argv[1:]
    if measure == "person":
        print(json.dumps(await person(base, *rest)))
        return
    if "person" in name and measure.startswith("turns="):
        _look_rarely()
    async with opened(name.removesuffix("-own"), base, *rest) as system:
        match measure:
            case "turn":
                result = await turns(system.ask, 600, warm=600)
            case "pieces":
                result = await turns(system.ask, 40)
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
            case "opening":
                result = await opening(system, base)
            case "flat":
                result = await flat(system.ask, 10_000)
            case "soak":
                result = await flat(system.ask, 100_000)
            case _ if measure.startswith("turns="):  # for instructions.py, which counts from outside
                result = await turns(system.ask, int(measure.removeprefix("turns=")))
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
    if sys.argv[1].endswith("-own"):
        from everloop.cli.process import run

        run(main())
    else:
        asyncio.run(main())
