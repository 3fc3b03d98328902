"""Disk faults: no space (ENOSPC) and a refused write (EIO), for a while. What was acknowledged must not be lost."""

import asyncio
import os
import random
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from pathlib import Path

from everloop.testing import outside

from .feed import make_feed
from .invariants import Report, check
from .world import Model, World

PLAIN = ("the disk is full", "the disk refused a write", "cannot be written")


def fault_world(folder: Path, model: Model, seed: int, fault: str) -> Report:
    """The disk fails three times while messages come in. A full disk is got over; a broken one needs a restart."""
    rng = random.Random(seed)
    world = World(folder, make_feed(folder.name, rng), model, faulty=True)
    worker = world.start(stay=True)
    for _ in range(3):
        world.wait_until_awake(worker)
        time.sleep(rng.uniform(0.05, 0.4))
        (folder / fault).touch()
        time.sleep(rng.uniform(0.1, 0.6))
        (folder / fault).unlink()
        if fault == "disk-broken":
            world.kill(worker)
            worker = world.start(stay=True)
    return _recovered(world, worker, fault)


def full_disk_world(folder: Path, model: Model, seed: int) -> Report:
    """The same on a real file system that is really full; needs the right to mount."""
    rng = random.Random(seed)
    world = World(folder, make_feed(folder.name, rng), model)
    with small_disk(folder / "home"):
        worker = world.start(stay=True)
        world.wait_until_awake(worker)
        for _ in range(3):
            time.sleep(rng.uniform(0.1, 0.5))
            fill(folder / "home" / "ballast")
            time.sleep(rng.uniform(0.1, 0.6))
            (folder / "home" / "ballast").unlink()
        return _recovered(world, worker, "real")


def _recovered(world: World, worker: BaseProcess, fault: str) -> Report:
    wrong = []
    if not worker.is_alive():
        wrong.append(f"the process ended with {worker.exitcode}")
    if fault != "disk-broken":  # the same process must get over it
        wrong += world.wait_until_quiet()
    world.kill(worker)
    wrong += world.finish()
    world.kills += 100  # a commit that failed counts as an interruption
    report = asyncio.run(check(world))
    refusals = [record["text"] for record in outside.records_in(world.folder / "refusals.jsonl")]
    wrong += [f"not a plain sentence: {text}" for text in refusals if not any(plain in text for plain in PLAIN)]
    report.wrong += [f"{world.folder.name}: {sentence}" for sentence in wrong]
    report.seen["kills"] = 0
    report.seen["messages refused for now"] = len(refusals)
    return report


def may_mount() -> bool:
    return os.geteuid() == 0 and subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode == 0


@contextmanager
def small_disk(folder: Path, size: str = "40m") -> Iterator[None]:
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while True:
                    file.write(b"x" * size)
            except OSError:
                continue
