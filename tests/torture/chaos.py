"""Bad lines and a database that is away, under load: what a world sees of that is a moment, and no call is paid twice.

Two hands make trouble at once while messages come in. One works on the line to the model's host, the other on the
database: on PostgreSQL its lines, and the server itself (restarted, paused, failed over to a standby); on SQLite a
process that holds the write lock, and a slow or full disk. The database is given time to breathe after each, unless
it is away for longer than a lease on purpose.
"""

import asyncio
import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import apsw

from .feed import make_feed
from .invariants import Report, check
from .postgres import Pair
from .proxy import TOXICS, Network, Proxy
from .world import Model, Sabotage, Troubles, World

FAULTS = 36  # in a world
PACE = 1.5  # seconds that the model takes at most before it says anything
LONG = 0.02  # of the outages are longer than a lease
CALM = 2.5  # seconds after an outage, in which all leases are renewed


class Database(Protocol):
    """What can be done to a world's database."""

    url: str
    lease_seconds: float
    kinds: tuple[str, ...]
    can_be_long: tuple[str, ...]

    def trouble(self, kind: str, seconds: float) -> None:
        """Returns when all is well again."""
        ...

    def nudge(self) -> None:
        """Let as much time pass as those need who wait for someone who sends no more."""
        ...

    def close(self) -> None: ...


class SqliteFile:
    url = ""
    lease_seconds = 8.0
    kinds = ("lock", "lock", "disk-slow", "disk-full")
    can_be_long = ("lock",)

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def trouble(self, kind: str, seconds: float) -> None:
        if kind != "lock":
            (self._folder / kind).touch()
            time.sleep(seconds)
            (self._folder / kind).unlink()
            return
        with closing(apsw.Connection(str(self._folder / "home" / "everloop.db"))) as other:
            other.set_busy_timeout(10_000)
            other.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            other.execute("ROLLBACK")

    def nudge(self) -> None:
        """On one machine everybody sees who is dead."""

    def close(self) -> None:
        """The file stays where it is."""


class PostgresPair:
    """A primary and a standby of the world's own, each behind a proxy."""

    lease_seconds = 12.0
    kinds = (*TOXICS, "restart-fast", "restart-immediate", "pause", "fail-over")
    can_be_long = ("hole", "refuse", "pause")

    def __init__(self, network: Network) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="everloop-pair-", dir="/tmp"))  # pytest closes its own to others
        self._network = network
        self._pair = Pair(self._folder / "pair")
        self._proxies = [network.proxy(node.port) for node in (self._pair.primary, self._pair.standby)]
        self._pair.primary.sql("CREATE TABLE beats(at TIMESTAMPTZ)")
        places = ",".join(f"127.0.0.1:{proxy.port}" for proxy in self._proxies)
        self.url = f"postgresql://postgres@{places}/postgres"

    def trouble(self, kind: str, seconds: float) -> None:
        primary = self._pair.primary
        if kind == "pause":
            paused = primary.pause()
            time.sleep(seconds)
            primary.resume(paused)
        elif kind == "fail-over":
            self._pair.fail_over()
        elif kind.startswith("restart"):
            primary.stop("fast" if kind == "restart-fast" else "immediate")
            primary.start()
        else:
            for toxic in TOXICS:
                if toxic == kind:
                    with self._network.toxic(toxic, *self._proxies):
                        time.sleep(seconds)
        self._pair.primary.sql("INSERT INTO beats VALUES(now())")

    def repair(self) -> None:
        """After a fail-over: the new primary has no standby until then."""
        self._pair.repair()

    def nudge(self) -> None:
        self._pair.primary.sql("UPDATE outbox SET due = 0 WHERE state = 'sending'")

    def close(self) -> None:
        self._pair.close()
        shutil.rmtree(self._folder)


class Conductor:
    """Makes so many faults, or fewer if all is answered before."""

    def __init__(self, world: World, troubles: Troubles, faults: int, rng: random.Random) -> None:
        self._world = world
        self._troubles = troubles
        self._left = faults
        self._lock = threading.Lock()
        self._rng = rng

    def trouble_host(self, network: Network, proxy: Proxy) -> None:
        rng = random.Random(self._rng.random())
        while self._may_go_on():
            toxic = rng.choice(TOXICS)
            with network.toxic(toxic, proxy):
                time.sleep(rng.uniform(0.02, 0.3) if toxic == "refuse" else rng.uniform(0.05, 1.2))
            self._troubles.faults[f"host: {toxic}"] += 1
            time.sleep(rng.uniform(0.1, 0.8))

    def trouble_database(self, database: Database, kinds: tuple[str, ...]) -> None:
        rng = random.Random(self._rng.random())
        while self._may_go_on():
            kind, seconds = rng.choice(kinds), rng.uniform(0.1, database.lease_seconds / 4)
            if rng.random() < LONG and kinds == database.kinds:
                kind, seconds = rng.choice(database.can_be_long), database.lease_seconds * 1.1
            began = time.monotonic()
            database.trouble(kind, seconds)
            self._troubles.away = max(self._troubles.away, time.monotonic() - began)
            self._troubles.faults[f"database: {kind}"] += 1
            time.sleep(CALM)
            if kind == "fail-over" and isinstance(database, PostgresPair):
                database.repair()

    def _may_go_on(self) -> bool:
        with self._lock:
            self._left -= 1
            return self._left >= 0 and not (self._world.folder / "quiet").exists()


def chaos_world(
    folder: Path,
    model: Model,
    seed: int,
    store: str,
    faults: int,
    *,
    messages: int = 16,
    hands: str = "host,database",
    kinds: tuple[str, ...] = (),
    sabotage: Sabotage | None = None,
) -> Report:
    """Trouble one world with so many faults, let it come to rest, and look at it from outside."""
    with ExitStack() as stack:
        rng, network = random.Random(seed), Network(seed)
        stack.callback(network.close)
        address = urlsplit(model.url)
        proxy = network.proxy(address.port or 80)
        database: Database = PostgresPair(network) if store == "postgres" else SqliteFile(folder)
        stack.callback(database.close)
        world = World(
            folder,
            make_feed(folder.name, rng, sessions=12, messages=messages),
            model,
            url=database.url,
            host=f"http://127.0.0.1:{proxy.port}{address.path}",
            lease_seconds=database.lease_seconds,
            faulty=store == "sqlite",
            sabotage=sabotage,
        )
        world.troubles = Troubles(Counter())
        workers = [world.start(stay=True) for _ in range(1 if sabotage else rng.choice((1, 1, 2)))]
        for worker in workers:
            stack.callback(worker.kill)
            world.wait_until_awake(worker)
        conductor = Conductor(world, world.troubles, faults, rng)
        deeds: dict[str, Callable[[], None]] = {
            "host": lambda: conductor.trouble_host(network, proxy),
            "database": lambda: conductor.trouble_database(database, kinds or database.kinds),
        }
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(deeds[hand]) for hand in hands.split(",")]:
                done.result()
        return _looked_at(world, workers, database, proxy)


def _looked_at(world: World, workers: list[BaseProcess], database: Database, proxy: Proxy) -> Report:
    wrong = [f"a process ended with {worker.exitcode}" for worker in workers if not worker.is_alive()]
    wrong += _wait_until_quiet(world, database)
    for worker in workers:
        world.kill(worker)
    assert world.troubles is not None
    world.troubles.broken = proxy.broken
    faults = world.troubles.faults
    world.kills = 1000 * faults.total()  # a first commit of unknown fate counts as an interruption
    report = asyncio.run(check(world))
    report.wrong += [f"{world.folder.name}: {sentence}" for sentence in wrong]
    report.seen["kills"] = 0
    report.seen.update({"faults": faults.total(), **faults})
    return report


def _wait_until_quiet(world: World, database: Database) -> list[str]:
    for _ in range(20):
        if not world.wait_until_quiet(6.0):
            return []
        with suppress(apsw.Error):
            database.nudge()
    return world.wait_until_quiet(1.0)
