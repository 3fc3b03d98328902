"""The torture campaign: `python -m tests.torture.run --kills 1000 --store sqlite --seed 1`.

Real processes on real homes are killed, frozen and starved of disk; afterwards the world outside is checked.
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

from .databases import Databases, databases
from .failpoints import ACTIONS, names, times_reached, torture_point
from .faults import fault_world, full_disk_world, may_mount
from .freeze import FREEZES_PER_WORLD, freeze_world
from .invariants import Report
from .kills import KILLS_PER_WORLD, torture_world
from .redelivery import redeliver
from .together import share_home
from .world import Model, model_server

JOBS = 3  # worlds at once; each sleeps most of the time

Job = Callable[[], Report]


class Campaign(Struct):
    """What all parts of a run share."""

    folder: Path
    model: Model
    databases: Databases
    seed: int
    tell: Callable[[str], None]

    def kill(self, kills: int) -> Report:
        """Random kills, world after world, until there have been so many."""
        report, numbers = Report(), itertools.count(1)
        running: set[Future[Report]] = set()
        with ThreadPoolExecutor(JOBS) as pool:
            while report.seen["kills"] < kills or running:
                while (
                    len(running) < JOBS and (left := kills - report.seen["kills"] - KILLS_PER_WORLD * len(running)) > 0
                ):
                    place = self.place(f"kill{next(numbers)}")
                    running.add(pool.submit(torture_world, *place, min(KILLS_PER_WORLD, left)))
                done = next(as_completed(running))
                running.remove(done)
                report.add(done.result())
                self.tell(f"kills {report.seen['kills']}/{kills}, {len(report.wrong)} violations")
        return report

    def reach_failpoints(self, limit: int) -> Report:
        """Every failpoint of the source with every action, up to `limit` different times that it is reached."""
        folder, model, _, url = self.place("undisturbed")
        reached = times_reached(folder, model, url)
        report = self.spread(
            "failpoints",
            (
                lambda name=name, nth=nth, action=action: self.meet(name, nth, action)
                for name in names()
                for nth in range(1, min(limit, reached[name] // 2 + 1) + 1)
                for action in ACTIONS
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
        seed = self.seed + sum(name.encode())
        return self.folder / name, self.model, seed, self.databases.make(name)

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
    parser.add_argument("--faults", type=int, default=10, help="worlds with a full and with a broken disk (SQLite)")
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
        parts["faults"] = lambda campaign: campaign.fail_disks(options.faults)
    wanted = options.only.split(",") if options.only else list(parts)
    folder = Path(tempfile.mkdtemp(prefix="everloop-torture-"))
    say(f"torture on {options.store}, seed {options.seed}, in {folder}")
    reports = {}
    with ExitStack() as stack:
        model = stack.enter_context(model_server(folder))
        places = stack.enter_context(databases(options.store, folder))
        campaign = Campaign(folder, model, places, options.seed, say)
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
