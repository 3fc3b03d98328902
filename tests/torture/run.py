"""The torture campaign: `python -m tests.torture.run --kills 1000 --store sqlite --seed 1`.

Real processes on real homes, killed, frozen, starved of disk; afterwards the world outside is checked. Progress goes
to stderr, a table of what happened to stdout, and the exit code is 1 if any promise was broken.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from .databases import Databases, databases
from .invariants import Report
from .kills import KILLS_PER_WORLD, torture_world
from .world import Model, model_server

JOBS = 3  # worlds at once; each sleeps most of the time


class Campaign(Struct):
    """What all parts of a run share."""

    folder: Path
    model: Model
    databases: Databases
    seed: int

    def kill(self, kills: int) -> Report:
        """Random kills, world after world, until there have been so many."""
        report, number, running = Report(), 0, set()
        with ThreadPoolExecutor(JOBS) as pool:
            while report.seen["kills"] < kills or running:
                while len(running) < JOBS and report.seen["kills"] + KILLS_PER_WORLD * len(running) < kills:
                    number += 1
                    folder, url = self.folder / f"kill{number}", self.databases.make(f"kill{number}")
                    left = min(KILLS_PER_WORLD, kills - report.seen["kills"])
                    running.add(pool.submit(torture_world, folder, self.model, self.seed + number, left, url))
                done = next(as_completed(running))
                running.remove(done)
                report.add(done.result())
                say(f"kills {report.seen['kills']}/{kills}, {len(report.wrong)} violations")
        return report


def say(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.torture.run", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="random kills")
    parser.add_argument("--store", choices=("sqlite", "postgres"), default="sqlite")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--keep", action="store_true", help="keep the worlds, even if all is well")
    return parser.parse_args()


def main() -> int:
    options = parse()
    folder = Path(tempfile.mkdtemp(prefix="everloop-torture-"))
    say(f"torture on {options.store}, seed {options.seed}, in {folder}")
    parts: dict[str, Callable[[Campaign], Report]] = {"kills": lambda campaign: campaign.kill(options.kills)}
    reports = {}
    with ExitStack() as stack:
        model = stack.enter_context(model_server(folder))
        places = stack.enter_context(databases(options.store, folder))
        campaign = Campaign(folder, model, places, options.seed)
        for name, part in parts.items():
            began = time.monotonic()
            reports[name] = part(campaign)
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
        lines.append(f"\n{name:<34}{'violations':>28} {len(report.wrong):>7,}")
        lines += [f"{'':<34}{what:>28} {number:>7,}" for what, number in report.seen.items()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.exit(main())
