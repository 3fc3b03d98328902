"""The torture campaign: `python -m tests.torture.run --kills 1000 --store sqlite --seed 1`.

Real processes on real homes are killed, frozen and starved of disk, and their lines and databases are troubled; then
the world outside is checked.
Progress goes to stderr, a table of what happened to stdout, and the exit code is 1 if any promise was broken.
"""

import argparse
import asyncio
import itertools
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from .chaos import FAULTS, PACE, chaos_world
from .databases import Databases, databases
from .failpoints import ACTIONS, actions_at, names, times_reached, torture_point
from .faults import fault_world, full_disk_world, may_mount
from .freeze import FREEZES_PER_WORLD, freeze_world
from .invariants import Report
from .kills import KILLS_PER_WORLD, torture_world
from .redelivery import redeliver
from .together import share_home
from .world import Model, model_server

JOBS = 3  # worlds at once; each sleeps most of the time
MOSTLY_IDLE = 4  # at once of those that sleep even more

Job = Callable[[], Report]


class Campaign(Struct):
    """What all parts of a run share."""

    folder: Path
    model: Model
    databases: Databases
    seed: int
    tell: Callable[[str], None]
    store: str = "sqlite"

    def kill(self, kills: int) -> Report:
        """Random kills."""

        def world(number: int, left: int) -> Report:
            return torture_world(*self.place(f"kill{number}"), min(KILLS_PER_WORLD, left))

        return self.repeat("kills", kills, world, KILLS_PER_WORLD, JOBS)

    def bring_chaos(self, faults: int) -> Report:
        """Trouble on all lines, and every other time on those to the database alone: there nothing is excused."""

        def world(number: int, left: int) -> Report:
            name, alone = f"chaos{number}", number % 2 == 0
            hands, most = ("database", FAULTS // 3) if alone else ("host,database", FAULTS)
            return chaos_world(self.folder / name, slow, self.seed_of(name), self.store, min(most, left), hands=hands)

        with model_server(self.folder, PACE) as slow:
            return self.repeat("faults", faults, world, FAULTS * 2 // 3, MOSTLY_IDLE)

    def reach_failpoints(self, limit: int, others: int = len(ACTIONS) - 1) -> Report:
        """Every failpoint of the source with a kill and with so many other actions, up to `limit` different times that
        it is reached."""
        folder, model, _, url = self.place("undisturbed")
        reached = times_reached(folder, model, url)
        report = self.spread(
            "failpoints",
            (
                lambda name=name, nth=nth, action=action: self.meet(name, nth, action)
                for place, name in enumerate(names())
                for nth in range(1, min(limit, reached[name] // 2 + 1) + 1)
                for action in actions_at(place, others)
            ),
        )
        report.wrong += [f"no scenario reaches the failpoint {name}" for name in names() if not reached[name]]
        report.seen["failpoints in the source"] = len(names())
        return report

    def meet(self, name: str, nth: int, action: str) -> Report:
        folder, model, _, url = self.place(f"{name.replace('.', '-')}-{nth}-{action}")
        return torture_point(folder, model, name, nth, action, url)

    def freeze(self, freezes: int) -> Report:
        worlds = range(-(-freezes // FREEZES_PER_WORLD))
        return self.spread("freezes", (lambda n=n: freeze_world(*self.place(f"freeze{n}")) for n in worlds), jobs=6)

    def share(self, worlds: int) -> Report:
        return self.spread("together", (lambda n=n: share_home(*self.place(f"together{n}")) for n in range(worlds)))

    def redeliver(self, events: int) -> Report:
        folder, _, seed, url = self.place("redelivery")
        return asyncio.run(redeliver(folder, events, seed, url))

    def fail_disks(self, worlds: int) -> Report:
        jobs: list[Job] = []
        for n in range(worlds):
            for fault in ("disk-full", "disk-broken"):
                jobs.append(lambda n=n, fault=fault: fault_world(*self.place(f"{fault}{n}")[:3], fault))
            if may_mount():
                jobs.append(lambda n=n: full_disk_world(*self.place(f"real-disk-full{n}")[:3]))
        return self.spread("disk faults", jobs)

    def place(self, name: str) -> tuple[Path, Model, int, str]:
        """Where a world is, its model, its seed, its store's address."""
        return self.folder / name, self.model, self.seed_of(name), self.databases.make(name)

    def seed_of(self, name: str) -> int:
        return self.seed + sum(name.encode())

    def repeat(self, what: str, number: int, world: Callable[[int, int], Report], each: int, jobs: int) -> Report:
        """World after world, until there has been so much of it. Each holds about `each`, and is told what is left."""
        report, numbers = Report(), itertools.count(1)
        running: set[Future[Report]] = set()
        with ThreadPoolExecutor(jobs) as pool:
            while report.seen[what] < number or running:
                while len(running) < jobs and (left := number - report.seen[what] - each * len(running)) > 0:
                    running.add(pool.submit(world, next(numbers), left))
                done = next(as_completed(running))
                running.remove(done)
                report.add(done.result())
                self.tell(f"{what} {report.seen[what]}/{number}, {len(report.wrong)} violations")
        return report

    def spread(self, what: str, work: Iterable[Job], jobs: int = JOBS) -> Report:
        report = Report()
        with ThreadPoolExecutor(jobs) as pool:
            running = [pool.submit(job) for job in work]
            for number, done in enumerate(as_completed(running), 1):
                report.add(done.result())
                self.tell(f"{what} {number}/{len(running)}, {len(report.wrong)} violations")
        return report


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.run", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--kills", type=int, default=None, help="random kills (1,000; on PostgreSQL 200)")
    parser.add_argument("--points", type=int, default=2, help="different times at which each failpoint is met")
    parser.add_argument("--freezes", type=int, default=500, help="holders frozen past their lease")
    parser.add_argument("--together", type=int, default=10, help="worlds that three processes share")
    parser.add_argument("--events", type=int, default=10_000, help="events that are delivered five times each")
    parser.add_argument("--disks", type=int, default=10, help="worlds with a full and with a broken disk (SQLite)")
    parser.add_argument("--faults", type=int, default=1000, help="of the lines to the model's host and the database")
    parser.add_argument("--only", default="", help="run these parts, with commas: kills,failpoints,freezes,…")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="keep the worlds even if all is well")
    return parser.parse_args()


def main() -> int:
    options = parse()
    kills = options.kills if options.kills is not None else {"sqlite": 1000, "postgres": 200}[options.store]
    parts: dict[str, Callable[[Campaign], Report]] = {
        "kills": lambda campaign: campaign.kill(kills),
        "failpoints": lambda campaign: campaign.reach_failpoints(options.points),
        "freezes": lambda campaign: campaign.freeze(options.freezes),
        "together": lambda campaign: campaign.share(options.together),
        "redelivery": lambda campaign: campaign.redeliver(options.events),
    }
    if options.store == "sqlite":
        parts["disks"] = lambda campaign: campaign.fail_disks(options.disks)
    parts["chaos"] = lambda campaign: campaign.bring_chaos(options.faults)
    wanted = options.only.split(",") if options.only else list(parts)
    folder = Path(tempfile.mkdtemp(prefix="everloop-torture-"))
    say(f"torture on {options.store}, seed {options.seed}, in {folder}")
    reports = {}
    with ExitStack() as stack:
        model = stack.enter_context(model_server(folder))
        places = stack.enter_context(databases(options.store, folder))
        campaign = Campaign(folder, model, places, options.seed, say, options.store)
        for name in wanted:
            began = time.monotonic()
            reports[name] = parts[name](campaign)
            reports[name].seen["seconds"] = round(time.monotonic() - began)
    wrong = [sentence for report in reports.values() for sentence in report.wrong]
    sys.stdout.write(table(reports))
    sys.stdout.write("".join(f"VIOLATION {sentence}\n" for sentence in wrong))
    if not wrong and not options.keep:
        shutil.rmtree(folder)
    return 1 if wrong else 0


def table(reports: dict[str, Report]) -> str:
    lines = []
    for name, report in reports.items():
        lines.append(f"\n{name:<12}{'violations':>28} {len(report.wrong):>8,}")
        lines += [f"{'':<12}{what:>28} {number:>8,}" for what, number in report.seen.items() if number]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
