"""What jobs cost that are not due: an idle gateway with 1,000 schedules beside one with none, in one run.

python bench/jobs.py [SECONDS]

Both run at the same time, so that whatever else the machine does is the same for both. A second pair is the noise: two
gateways with none.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from everloop.app.records import open_records
from everloop.ports.schedules import Schedule

JOBS = 1000
SETTLING = 15.0  # seconds until what is done at the start is done
DAY = 86_400.0


def settings() -> dict[str, object]:
    return {
        "agents": {"defaults": {"model": "custom/m", "context_window": 128_000}},
        "providers": {"custom": {"api_base": "http://127.0.0.1:9/v1"}},
        "gateway": {"port": 0},
    }


async def fill(home: Path, jobs: int) -> None:
    async with open_records(home) as records:
        now = time.time()
        for n in range(jobs):
            given = {"owner": "owner", "name": f"n{n}", "does": "turn", "text": "look", "session": f"test:c{n % 50}"}
            schedule = Schedule(id=f"s{n}", rule=f"cron UTC {n % 60} {n % 24} * * *", zone="UTC", **given)
            assert await records.store.add_schedule(schedule, now + DAY + n, 2 * JOBS)


@contextmanager
def gateway(jobs: int) -> Iterator[int]:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        (home / "workspace").mkdir()
        (home / "config.json").write_text(json.dumps(settings()))
        asyncio.run(fill(home, jobs))
        environment = {**os.environ, "EVERLOOP_HOME": folder}
        command = [sys.executable, "-m", "everloop", "gateway"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment) as server:
            try:
                assert server.stderr is not None
                server.stderr.readline()
                yield server.pid
            finally:
                server.terminate()


def cpu_of(pid: int) -> float:
    """Nanoseconds, as the scheduler counts them: ticks are too coarse for who does next to nothing."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def rss_of(pid: int) -> float:
    """In MB."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def measure(seconds: float) -> None:
    with ExitStack() as stack:
        pids = [stack.enter_context(gateway(jobs)) for jobs in (0, JOBS, 0)]
        time.sleep(SETTLING)
        before = [cpu_of(pid) for pid in pids]
        time.sleep(seconds)
        cpu = [(cpu_of(pid) - was) / seconds / 1e6 for pid, was in zip(pids, before, strict=True)]
        rss = [rss_of(pid) for pid in pids]
    for name, unit, (none, many, other) in (("CPU", "ms a second", cpu), ("memory", "MB", rss)):
        noise = f"{other / none:.3f} of one with none beside another"
        print(
            f"| {name} | {many / none:.3f} × | ≤ 1.05 × | {many:.2f} {unit} against {none:.2f}; {noise} |", flush=True
        )


if __name__ == "__main__":
    measure(float(sys.argv[1]) if len(sys.argv) > 1 else 60.0)
