"""Checks: what runs with this home, what was left by what ran, jobs that are late, and what the log says."""

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from ...core.people import OWNER
from ...errors import EverloopError
from ...ports.doctor import Diagnosis, RemoveStale
from ...ports.jobs import JobRow
from ...ports.log_lines import FILE, FOLDER
from ...store.holders import names_in, start_time
from ...store.onlooking import Onlooker
from ..log_tail import read_since, too_large_in
from .check import Check, Patient, advice, aside, broken, fine, found_or_fine, many, skipped
from .network import unreachable
from .processes import command_of, is_stopped, listener_at, runners_of

LATE = 600.0  # seconds that a job may be overdue
DAY = 86_400.0
ANSWER = 10.0  # seconds for a gateway: one that is busy, on a machine that is, is not broken
BUSY = ".busy-"


async def look_at_run(patient: Patient) -> Sequence[Diagnosis]:
    return await aside(_left_in, patient.home / "run")


def _left_in(folder: Path) -> Sequence[Diagnosis]:
    if not folder.is_dir():
        return fine("nothing runs with this home")
    holders = Onlooker(folder)
    stale = [folder / name for name in holders.dead()]
    stale += [path for path in folder.glob(f"{BUSY}*") if not _is_alive(path.name.removeprefix(BUSY))]
    alive = [name for name in names_in(folder) if holders.alive(name)]
    found = []
    if stale:
        found.append(
            advice(
                f"{many(len(stale), 'file')} in {folder}, left by processes that are gone",
                "The next start looks the database through and removes them, as everloop doctor --fix does",
                *(RemoveStale(str(path)) for path in stale),
            )
        )
    for pid in sorted({int(name.partition("-")[0]) for name in alive if name.partition("-")[0].isdigit()}):
        if is_stopped(pid):
            found.append(
                broken(
                    f"process {pid} ({command_of(pid)}) is frozen: what it holds nobody else gets",
                    f"Let it go on with kill -CONT {pid}, or end it with kill -KILL {pid}",
                )
            )
    if not alive and (left := runners_of(folder.with_name("spool"))):
        found.append(
            advice(
                f"commands of the agent still run in the background (process {left[0]}), and no everloop does",
                f"everloop agent goes on with them; kill {left[0]} ends them",
            )
        )
    return found_or_fine(found, f"processes with this home: {len(alive)}")


def _is_alive(who: str) -> bool:
    """`pid-start`."""
    pid, _, started = who.partition("-")
    return pid.isdigit() and start_time(int(pid)) == started


async def look_at_port(patient: Patient) -> Sequence[Diagnosis]:
    """A gateway of ours answers there with its health, and has its file in `run/`."""
    place = patient.chosen.gateway
    host = "127.0.0.1" if place.host in ("", "0.0.0.0", "::") else place.host
    if not place.port:
        return skipped("the gateway takes any port that is free")
    if patient.tasks is not None:
        return fine("the gateway listens, and is asked right now")
    if await unreachable(host, place.port):
        return fine(f"the gateway does not run; port {place.port} is free")
    pid = await aside(listener_at, place.port)
    who = f" (process {pid}, {command_of(pid)})" if pid else ""
    ours = {name.partition("-")[0] for name in await aside(_running, patient.home / "run")}
    if not await _is_gateway(patient, f"{'https' if place.tls_cert else 'http'}://{host}:{place.port}/health"):
        if str(pid) in ours:
            return [
                broken(f"the gateway of this home does not answer{who}", f"Restart it: kill {pid}, everloop gateway")
            ]
        return [
            broken(
                f"port {place.port} of the gateway is taken by another program{who}",
                f"End it, or choose another: gateway.port in the settings, or everloop gateway --port {place.port + 1}",
            )
        ]
    if pid and str(pid) not in ours and not patient.chosen.store.url:
        return [
            advice(
                f"the gateway at port {place.port} runs with another home{who}",
                f"Start one for {patient.home} at another port: everloop gateway --port {place.port + 1}",
            )
        ]
    return fine(f"the gateway runs at port {place.port}")


def _running(folder: Path) -> list[str]:
    return [name for name in names_in(folder) if Onlooker(folder).alive(name)] if folder.is_dir() else []


async def _is_gateway(patient: Patient, url: str) -> bool:
    try:
        async with patient.http().request("GET", url, seconds=ANSWER) as answer:
            return answer.status == 200 and b'"status"' in await answer.read(1000)
    except EverloopError:
        return False


async def look_at_tasks(patient: Patient) -> Sequence[Diagnosis]:
    if patient.tasks is None:
        return skipped("a gateway tells this of itself: Manage, Doctor on its page")
    found = [
        (broken if task.state == "failed" else advice)(
            f"{task.name} has failed, {task.restarts} times so far: {task.error}",
            "It is begun again by itself; the log has more: everloop logs --level warning"
            if task.state != "failed"
            else "Restart the gateway when the cause is mended; the log has more: everloop logs",
        )
        for task in patient.tasks()
        if task.state in ("failed", "waiting") and task.error
    ]
    return found_or_fine(found, f"{many(len(patient.tasks()), 'task')} of the gateway, none of which has failed")


async def look_at_jobs(patient: Patient) -> Sequence[Diagnosis]:
    store, now = patient.house.store, time.time()
    owners = dict.fromkeys((OWNER, *(person.id for person in await store.people())))
    rows = [row for owner in owners for row in await store.jobs(owner)]
    is_copy = await store.restored() is not None  # where jobs wait until it is adopted
    found = [*(() if is_copy else _late(rows, now)), *_failed(rows)]
    return found_or_fine(found, f"{many(len(rows), 'job')} to come")


def _late(rows: Sequence[JobRow], now: float) -> Iterator[Diagnosis]:
    late = [row for row in rows if row.state == "waiting" and now - row.job.due > LATE]
    if late:
        kinds = ", ".join(sorted({row.job.kind for row in late}))
        oldest = (now - min(row.job.due for row in late)) / 60
        yield advice(
            f"overdue: {many(len(late), 'job')} ({kinds}), the oldest for {oldest:,.0f} minutes",
            "They run while everloop gateway does: start it",
        )


def _failed(rows: Sequence[JobRow]) -> Iterator[Diagnosis]:
    failed = [row for row in rows if row.state == "failed"]
    if failed:
        last = failed[-1]
        yield advice(
            f"failed for good: {many(len(failed), 'job')}; the last ({last.job.kind}): {last.result}",
            "everloop cron list shows schedules; everloop logs has more of the others",
        )


async def look_at_log(patient: Patient) -> Sequence[Diagnosis]:
    since, folder = time.time() - DAY, patient.home / FOLDER
    if large := await aside(too_large_in, patient.home):
        return [
            advice(
                f"{large[0]} takes {large[0].stat().st_size / 1e6:,.0f} MB, which everloop lets none of them grow to",
                f"Something else writes there, or it was copied: rm {large[0]}",
            )
        ]
    if not await aside(os.path.isfile, folder / FILE):
        return fine("nothing was written into a log")
    if not os.access(folder / FILE, os.R_OK):
        return skipped(f"{folder / FILE} may not be read, see folders")
    lines = [line for line in await aside(read_since, patient.home, since) if line.level in ("error", "critical")]
    if not lines:
        return fine("the log of the last day holds no error")
    return [
        advice(
            f"the log of the last day holds {many(len(lines), 'error')}; the last: {lines[-1].message[:200]}",
            "everloop logs --level error --since 1d shows them",
        )
    ]


CHECKS = (
    Check(
        "running",
        "frozen processes, commands that nobody waits for, and files that dead processes left in `run/`",
        look_at_run,
    ),
    Check("gateway-port", "whether the gateway's port is free, taken by another, or serves another home", look_at_port),
    Check("tasks", "what runs for as long as the gateway, and has failed", look_at_tasks),
    Check("jobs", "jobs that are overdue or have failed for good", look_at_jobs, "store"),
    Check("log", "errors in the log of the last day", look_at_log),
)
