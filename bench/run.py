"""everloop against the floor, interleaved in one run, as ratios: `make bench`, or `python bench/run.py [MEASURE …]`.

The floor is a bare aiohttp client (floor.py). Everything talks to one scripted model server on loopback, in a process
of its own. CPU is that of the client's process. Trust CPU more than wall time, and ratios more than either.
"""

import argparse
import compileall
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PYTHON = sys.executable
HOMES = HERE / ".homes"

Result = dict[str, float]
ONE_CHUNK: Any = {"by": "conversation", "lines": ["Hello from the model, this is a short answer."]}
TEN_TOOLS: Any = {"by": "conversation", "lines": [*[{"call": "look", "args": {}}] * 10, "I have looked ten times."]}
# As models speak: each piece is awaited. A thousand a second, or the bench would take an hour.
HUNDRED_PIECES: Any = {"by": "conversation", "lines": [{"say": ["word "] * 100}], "between": 0.001}
CHUNKS = 2000
BURST: Any = {"by": "conversation", "lines": [{"say": ["word "] * CHUNKS}]}
RUSHED: Any = {"by": "conversation", "lines": [{"say": ["word "] * 40}], "first": 0.05}
STREAMED: Any = {**RUSHED, "between": 0.1}  # ten words a second, so that two cores can keep up with 500 of them
SLOW_MODEL: Any = {**ONE_CHUNK, "first": 0.1}
# The 551st answer waits until the bench lets it go: 50 sessions say 11 things before it and 11 beside it.
ONE_SLOW: Any = {"lines": [*["quick"] * 550, [{"wait": "gate"}, "slow"], *["quick"] * 550]}


@contextmanager
def model(script: Any) -> Iterator[str]:
    """The scripted model server, with this script."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(script, file)
        file.flush()
        command = [PYTHON, "-m", "everloop.testing.model_server", "--port", "0", "--script", file.name]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert server.stdout is not None
        try:
            yield server.stdout.readline().split()[1]
        finally:
            server.terminate()
            server.wait()


def one(system: str, measure: str, base: str, *stores: str) -> Result:
    command = [PYTHON, str(HERE / "one.py"), system, measure, base, *filter(None, stores)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parent, timeout=900)
    if done.returncode:
        raise SystemExit(f"{system} {measure} failed:\n{done.stderr}")
    result: Result = json.loads(done.stdout)
    return result


def in_the_home() -> str:
    return ""


def rounds(
    systems: list[str], measure: str, base: str, times: int, store: Callable[[], str] = in_the_home
) -> dict[str, Result]:
    """Interleaved, and the median of each number. Each run has a store of its own, so that no history grows."""
    found: dict[str, list[Result]] = {system: [] for system in systems}
    for _ in range(times):
        for system in systems:
            found[system].append(one(system, measure, base, store() if system.startswith("everloop") else ""))
    return {
        system: {key: statistics.median(result[key] for result in results) for key in results[0]}
        for system, results in found.items()
    }


def say(name: str, ratio: float, bar: str, detail: str) -> None:
    print(f"| {name} | {ratio:.2f} | {bar} | {detail} |", flush=True)


SYSTEMS = ["floor", "everloop", "everloop-own"]  # embedded in a program, and in a process of its own


def measure_cpu(name: str, measure: str, script: Any, bar: str, store: Callable[[], str] = in_the_home) -> None:
    with model(script) as base:
        found = rounds(SYSTEMS, measure, base, 5, store)
    floor = found["floor"]["cpu"]
    for system in SYSTEMS[1:]:
        cpu = found[system]["cpu"]
        say(f"{name}, {system}", cpu / floor, bar, f"{cpu * 1e3:.2f} ms against {floor * 1e3:.2f} ms")


def measure_turn() -> None:
    measure_cpu("1-chunk turn, CPU", "turn", ONE_CHUNK, "≤ 3 ×")
    measure_cpu("turn of 100 pieces, CPU", "pieces", HUNDRED_PIECES, "≤ 1.5 ×")
    with model(ONE_CHUNK) as base:
        found = rounds(["floor", "floor-synced", "everloop-own"], "turn", base, 5)
    floor, synced, ours = (each["cpu"] for each in found.values())
    detail = f"{synced * 1e3:.2f} ms against {floor * 1e3:.2f} ms; everloop-own is {ours / synced:.2f} × that"
    say("the floor with two synced writes", synced / floor, "(none)", detail)


def measure_tools() -> None:
    measure_cpu("10-tool turn, CPU", "tools", TEN_TOOLS, "≤ 2.5 ×")


def measure_burst() -> None:
    with model(BURST) as base:
        many = rounds(SYSTEMS, "burst", base, 5)
    with model(ONE_CHUNK) as base:
        few = rounds(SYSTEMS, "burst", base, 5)
    each = {system: (many[system]["cpu"] - few[system]["cpu"]) / CHUNKS * 1e6 for system in SYSTEMS}
    for system in SYSTEMS[1:]:
        detail = f"{each[system]:.1f} µs against {each['floor']:.1f} µs"
        say(f"a chunk in a burst, to a subscriber, {system}", each[system] / each["floor"], "≤ 1 ×", detail)


def measure_growth() -> None:
    with model(ONE_CHUNK) as base:
        found = rounds(["everloop"], "growth", base, 5)["everloop"]
    ratio = found["cpu_5000"] / found["cpu_10"]
    size = f"both send a conversation of {found['characters'] / 1e3:.1f} kB"
    whole = f"to make a summary of 5,000 turns: {found['compaction'] * 1e3:.0f} ms"
    detail = f"{found['cpu_5000'] * 1e3:.2f} against {found['cpu_10'] * 1e3:.2f} ms; {size}; {whole}"
    say("turn after 5,000 turns against after 10", ratio, "≤ 1.1 ×", detail)


def measure_opening() -> None:
    with model(ONE_CHUNK) as base:
        found = one("everloop", "opening", base)
    read = f"of that to read it: {found['read_large'] * 1e3:.1f} against {found['read_small'] * 1e3:.1f} ms"
    detail = f"{found['cpu_large'] * 1e3:.0f} against {found['cpu_small'] * 1e3:.0f} ms; {read}"
    ratio = found["cpu_large"] / found["cpu_small"]
    say("one-shot reply in a session of 100,000 entries against one of 100", ratio, "≤ 1.5 ×", detail)


def measure_crowd(
    store: Callable[[], str] = in_the_home, bar: str = "≥ 0.7 ×", name: str = "500 sessions at once"
) -> None:
    with model(SLOW_MODEL) as base:
        found = rounds(SYSTEMS, "crowd", base, 5, store)
    floor = found["floor"]["turns_per_second"]
    for system in SYSTEMS[1:]:
        speed = found[system]["turns_per_second"]
        detail = (
            f"{speed:.0f} turns/s, p99 {found[system]['p99']:.2f} s; floor {floor:.0f}, {found['floor']['p99']:.2f} s"
        )
        say(f"{name}, {system}", speed / floor, bar, detail)


def measure_beside() -> None:
    with model(ONE_SLOW) as base:
        found = one("everloop", "beside", base)
    assert found["was_slow"]
    detail = f"p99 {found['beside'] * 1e3:.0f} ms beside it, {found['alone'] * 1e3:.0f} ms alone"
    say("50 quick sessions beside a slow one", found["beside"] / found["alone"], "unaffected", detail)


def measure_flat() -> None:
    with model(ONE_CHUNK) as base:
        found = one("everloop", "flat", base)
    say(
        "memory after 10,000 turns", found["growth"], "≤ 1.1 ×", f"{found['early']:.0f} MB, then {found['late']:.0f} MB"
    )


def measure_soak() -> None:
    with model(ONE_CHUNK) as base:
        found = one("everloop", "soak", base)
    say(
        "memory after 100,000 turns",
        found["growth"],
        "≤ 1.1 ×",
        f"{found['early']:.0f} MB, then {found['late']:.0f} MB",
    )


def cpu_of(command: list[str], times: int, **environment: str) -> tuple[float, float]:
    """Median CPU seconds and peak memory (MB) of a command."""
    seconds, peak = [], 0.0
    for _ in range(times):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env={**os.environ, **environment}
        )
        _, status, usage = os.wait4(process.pid, 0)
        assert status == 0, f"{command} failed"
        seconds.append(usage.ru_utime + usage.ru_stime)
        peak = max(peak, usage.ru_maxrss / 1024)
    return statistics.median(seconds), peak


def measure_version() -> None:
    everloop = str(Path(PYTHON).parent / "everloop")
    floor, _ = cpu_of([PYTHON, "-c", "pass"], 30)
    ours, _ = cpu_of([everloop, "--version"], 30)
    say("everloop --version, CPU", ours / floor, "≤ 2 ×", f"{ours * 1e3:.0f} ms against {floor * 1e3:.0f} ms")


def measure_oneshot() -> None:
    everloop = str(Path(PYTHON).parent / "everloop")
    with model(ONE_CHUNK) as base, tempfile.TemporaryDirectory(dir=HOMES) as home:
        environment = {
            "EVERLOOP_HOME": home,
            "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/m",
            "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": base,
        }
        pairs = []
        for _ in range(7):
            floor = cpu_of([PYTHON, str(HERE / "one.py"), "floor", "once", base], 1)
            ours = cpu_of([everloop, "agent", "-m", "hello"], 1, **environment)
            pairs.append((floor, ours))
    floor_cpu = statistics.median(floor[0] for floor, _ in pairs)
    our_cpu, our_peak = statistics.median(ours[0] for _, ours in pairs), max(ours[1] for _, ours in pairs)
    detail = f"{our_cpu * 1e3:.0f} ms against {floor_cpu * 1e3:.0f} ms; peak {our_peak:.0f} MB (bar 60)"
    say("one-shot reply, CPU", our_cpu / floor_cpu, "≤ 1.5 ×", detail)


def measure_dialects() -> None:
    """What a dialect takes to load, beyond the HTTP client that any provider needs."""
    client = "import everloop.net.trusted"
    load = client + "; from everloop.providers import dialects; dialects.load('{}')"
    floor, _ = cpu_of([PYTHON, "-c", client], 15)
    for name in ("openai_chat", "openai_responses", "anthropic_messages", "gemini"):
        ours, _ = cpu_of([PYTHON, "-c", load.format(name)], 15)
        detail = f"{(ours - floor) * 1e3:.0f} ms beyond the HTTP client (bar 60)"
        say(f"loading {name}, CPU against the HTTP client alone", ours / floor, "", detail)


@contextmanager
def floor_server(base: str, home: str, under: Sequence[str] = ()) -> Iterator[tuple[int, str, str]]:
    """Its process, where it is, and a token for it. `under` is the command of whoever counts what it does."""
    command = [*under, PYTHON, str(HERE / "gateway.py"), "floor", base]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.pid, server.stdout.readline().split()[1], ""
        finally:
            server.terminate()


@contextmanager
def gateway_server(base: str, home: str, under: Sequence[str] = ()) -> Iterator[tuple[int, str, str]]:
    """The same of `everloop gateway`, as people run it."""
    told = {"model": "custom/m", "context_window": 128_000, "system_prompt": "You are helpful."}
    settings = {
        "agents": {"defaults": told},
        "providers": {"custom": {"api_base": base}},
        "tools": {"disabled": ["*"]},
        "gateway": {"port": 0},
    }
    Path(home, "workspace").mkdir()
    Path(home, "config.json").write_text(json.dumps(settings))
    environment = {**os.environ, "EVERLOOP_HOME": home}
    command = [PYTHON, "-m", "everloop"]
    with subprocess.Popen([*under, *command, "gateway"], stderr=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stderr is not None
        try:
            url = server.stderr.readline().split()[-1]
            made = subprocess.run(
                [*command, "tokens", "create", "bench"], capture_output=True, text=True, env=environment, check=True
            )
            yield server.pid, url, made.stdout.strip()
        finally:
            server.terminate()


def cpu_so_far(pid: int) -> float:
    """Seconds, to the nanosecond; /proc counts in hundredths, of which four hundred turns take eight."""
    return time.clock_gettime((~pid << 3) | 2)  # as clock_getcpuclockid(3) does on Linux


def rss_of(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


Serving = Callable[[str, str], AbstractContextManager[tuple[int, str, str]]]


def load_of(serving: Serving, base: str, *clients: str) -> Result:
    """Clients at one server: CPU of the server for each turn, and what the clients saw."""
    with tempfile.TemporaryDirectory(dir=HOMES) as home, serving(base, home) as (pid, url, token):
        idle = rss_of(pid)
        kind, *more = clients
        command = [PYTHON, str(HERE / "gateway.py"), kind, url, token, *more]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as clients:
            assert clients.stdin is not None
            assert clients.stdout is not None
            cpu = []
            for word in ("begin", "end"):
                assert clients.stdout.readline().strip() == word, "the clients failed"
                cpu.append(cpu_so_far(pid))
                print(file=clients.stdin, flush=True)
            result: Result = json.loads(clients.stdout.readline())
        return result | {"cpu": (cpu[1] - cpu[0]) / result["turns"], "idle": idle, "rss": rss_of(pid)}


def measure_gateway() -> None:
    """Load against the floor, interleaved; then how soon it is ready, and its memory before anybody came."""
    for name, script in (("ten pieces a second", STREAMED), ("as quick as it goes", RUSHED)):
        floor, ours = beside_the_floor(script, "clients", "500")
        detail = f"{ours['cpu'] * 1e3:.2f} ms a turn against {floor['cpu'] * 1e3:.2f} ms"
        pieces = f"{ours['chunks']:.0f} frames of an answer against {floor['chunks']:.0f}"
        say(f"gateway: 500 clients streaming, {name}, CPU", ours["cpu"] / floor["cpu"], "≤ 3 ×", f"{detail}; {pieces}")
    waited = f"p99 {ours['p99']:.2f} s against {floor['p99']:.2f} s; memory {ours['rss']:.0f} MB"
    speed = f"{ours['turns_per_second']:.0f} against {floor['turns_per_second']:.0f}; {waited}"
    ratio = ours["turns_per_second"] / floor["turns_per_second"]
    say("gateway: the latter, turns a second", ratio, "≥ 0.7 ×", speed)
    started = [time_to_ready() for _ in range(7)]
    wall, cpu = (statistics.median(each) for each in zip(*started, strict=True))
    print(f"| gateway: ready, seconds | {wall:.2f} | ≤ 1 | {cpu:.2f} s of CPU; median of 7 |", flush=True)
    print(
        f"| gateway: idle memory, MB | {ours['idle']:.0f} | ≤ 70 | page and API on, before the first client |",
        flush=True,
    )


def measure_doors() -> None:
    """A streamed turn through each door that people use, and many at once."""
    for door in ("v1", "ws"):
        floor, ours = beside_the_floor(ONE_CHUNK, "one", door, "400")
        detail = f"{ours['cpu'] * 1e3:.2f} ms a turn against {floor['cpu'] * 1e3:.2f} ms"
        say(f"a streamed turn through /{door}, CPU of the server", ours["cpu"] / floor["cpu"], "≤ 3 ×", detail)
    floor, ours = beside_the_floor(ONE_CHUNK, "clients", "200")
    detail = f"{ours['turns_per_second']:.0f} against {floor['turns_per_second']:.0f}"
    ratio = ours["turns_per_second"] / floor["turns_per_second"]
    say("200 WebSocket clients at once, turns a second", ratio, "≥ 0.75 ×", detail)
    detail = f"{ours['cpu'] * 1e3:.2f} ms a turn against {floor['cpu'] * 1e3:.2f} ms"
    say("the same, CPU of the server, which depends less on what else runs", ours["cpu"] / floor["cpu"], "", detail)


def beside_the_floor(script: Any, *clients: str) -> tuple[Result, Result]:
    """The medians of three interleaved runs: the floor's, and ours."""
    systems: list[Serving] = [floor_server, gateway_server]
    found: list[list[Result]] = [[], []]
    with model(script) as base:
        for _ in range(3):
            for serving, results in zip(systems, found, strict=True):
                results.append(load_of(serving, base, *clients))
    floor, ours = ({key: statistics.median(each[key] for each in results) for key in results[0]} for results in found)
    return floor, ours


def time_to_ready() -> tuple[float, float]:
    """Seconds until /ready says so in a new home, and those of CPU."""
    with tempfile.TemporaryDirectory(dir=HOMES) as home:
        environment = {**os.environ, "EVERLOOP_HOME": home, "EVERLOOP_GATEWAY__PORT": "0"}
        environment |= {"EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/m"}
        environment |= {"EVERLOOP_PROVIDERS__CUSTOM__API_BASE": "http://127.0.0.1:9/v1"}
        began = time.perf_counter()
        command = [PYTHON, "-m", "everloop", "gateway"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as server:
            assert server.stderr is not None
            url = server.stderr.readline().split()[-1]
            with urllib.request.urlopen(f"{url}/ready") as answer:
                assert answer.status == 200
            taken = time.perf_counter() - began, cpu_so_far(server.pid)
            server.terminate()
        return taken


@contextmanager
def postgres_stores() -> Iterator[Callable[[], str]]:
    """Makes a new database, and gives its address, whenever it is called."""
    sys.path.insert(0, str(HERE.parent))
    from tests.torture.databases import databases

    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the server runs as a user of its own when we are root
        with databases("postgres", Path(folder)) as server:
            numbers = itertools.count()
            yield lambda: server.make(f"bench{next(numbers)}")


def measure_postgres() -> None:
    with postgres_stores() as anew:
        measure_cpu("PostgreSQL, 1-chunk turn, client CPU", "turn", ONE_CHUNK, "≤ 3 ×", anew)
        measure_crowd(anew, "≥ 0.6 ×", "PostgreSQL, 500 sessions at once")


def measure_person() -> None:
    """A turn of a user with a persona and a budget, against the owner's plain one."""
    _measure_person("SQLite", in_the_home)
    with postgres_stores() as anew:
        _measure_person("PostgreSQL", anew)


def _measure_person(name: str, store: Callable[[], str]) -> None:
    """Two houses in one process, which take turns: what is compared is a few hundredths of a millisecond, and two
    processes differ by more than that."""
    with model(ONE_CHUNK) as base:
        found = one("everloop-person-own", "person", base, store(), store())
    for what in ("cpu", "wall"):
        detail = f"{found[f'person_{what}'] * 1e3:.2f} ms against {found[f'owner_{what}'] * 1e3:.2f} ms"
        say(f"a turn with persona and budget against the owner's, {name}, {what}", found[what], "≤ 1.1 ×", detail)


MEASURES: dict[str, Callable[[], None]] = {
    "turn": measure_turn,
    "person": measure_person,
    "tools": measure_tools,
    "burst": measure_burst,
    "growth": measure_growth,
    "opening": measure_opening,
    "crowd": measure_crowd,
    "dialects": measure_dialects,
    "beside": measure_beside,
    "flat": measure_flat,
    "version": measure_version,
    "oneshot": measure_oneshot,
    "gateway": measure_gateway,
    "doors": measure_doors,
    "postgres": measure_postgres,
    "soak": measure_soak,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measures", nargs="*", metavar="MEASURE", help=f"of {', '.join(MEASURES)}; all but soak")
    chosen = parser.parse_args().measures or [name for name in MEASURES if name != "soak"]
    if unknown := [name for name in chosen if name not in MEASURES]:
        parser.error(f"there is no measure {unknown[0]}")
    HOMES.mkdir(exist_ok=True)
    compileall.compile_dir(HERE.parent / "src", quiet=2)  # as it is for everyone after the first start
    resource.setrlimit(resource.RLIMIT_NOFILE, (8192, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    print("| measure | × | bar | detail |\n|---|---|---|---|", flush=True)
    for name in chosen:
        MEASURES[name]()


if __name__ == "__main__":
    main()
