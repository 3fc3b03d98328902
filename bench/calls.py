"""Calls of Python functions that a turn makes, which hardly depend on what else the machine does.

    python bench/calls.py [--src DIR] [--by file] [--top COUNT] [SYSTEM …]
    python bench/calls.py … --postgres [SYSTEM …]     the same, of a client of PostgreSQL
    python bench/calls.py … --clients COUNT           of a server, for WebSocket clients that speak at once
    python bench/calls.py … --door v1|ws              of a server, for one client

SYSTEM is one of one.py's. A coroutine that goes on after a wait counts as called again. A process that makes some turns
is counted, and one that makes more; the difference is what the turns took. With `--src` the turns are those of another
checkout.
"""

import argparse
import atexit
import collections
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

FEW, MANY = 100, 300
ROUNDS = 1, 5  # in each of which every client says something

Calls = collections.Counter[str]


def count(target: str, script: str) -> None:
    """Run a script, or a module, as its process, and keep what was called in it."""
    called: collections.Counter[CodeType | str] = collections.Counter()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            called[frame.f_code] += 1
        elif event == "c_call":
            called["C"] += 1

    def keep() -> None:
        sys.setprofile(None)
        names: Calls = collections.Counter()
        for code, times in called.items():
            names[code if isinstance(code, str) else _name(code)] += times
        Path(target).write_text(json.dumps(names))

    atexit.register(keep)
    sys.setprofile(note)
    if script == "-m":
        runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = str(Path(script).parent)
        runpy.run_path(script, run_name="__main__")


def _name(code: CodeType) -> str:
    return f"{'/'.join(Path(code.co_filename).parts[-3:])}:{code.co_firstlineno} {code.co_qualname}"


def under(target: str) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), "--counting", target]


def counted(run: Callable[[list[str]], object]) -> Calls:
    """What is called in the process that is run under this command."""
    with tempfile.NamedTemporaryFile("r") as kept:
        run(under(kept.name))
        return collections.Counter(json.load(kept))


def turns(system: str, base: str, many: int, store: Sequence[str], command: list[str]) -> None:
    asked = [sys.executable, str(Path(__file__).with_name("one.py")), system, f"turns={many}", base, *store]
    subprocess.run([*command, *asked], check=True, stdout=subprocess.DEVNULL)


def served(base: str, clients: Sequence[str], command: list[str]) -> None:
    from run import gateway_server, load_of

    load_of(partial(gateway_server, under=command), base, *clients)


def tell(name: str, few: Calls, many: Calls, turns: int, chosen: argparse.Namespace) -> None:
    more = many - few
    native = more.pop("C", 0)
    print(f"{name}: {more.total() / turns:.0f} calls of Python functions in a turn, and {native / turns:.0f} of C")
    grouped: Calls = collections.Counter()
    for called, times in more.items():
        grouped[called.partition(":")[0] if chosen.by == "file" else called] += times
    for called, times in grouped.most_common(chosen.top):
        print(f"{times / turns:8.2f}  {called}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("systems", nargs="*", default=["everloop-own"])
    parser.add_argument("--src", default="")
    parser.add_argument("--by", choices=("file", "function"), default="function")
    parser.add_argument("--top", type=int, default=0)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--clients", type=int, default=0)
    parser.add_argument("--door", choices=("v1", "ws"))
    chosen = parser.parse_args()
    if chosen.src:
        os.environ["PYTHONPATH"] = str(Path(chosen.src).resolve())
    from run import HOMES, ONE_CHUNK, model, postgres_stores

    HOMES.mkdir(exist_ok=True)
    with model(ONE_CHUNK) as base:
        if chosen.clients:
            few, many = (counted(partial(served, base, ("clients", str(chosen.clients), str(n)))) for n in ROUNDS)
            tell(f"{chosen.clients} clients", few, many, (ROUNDS[1] - ROUNDS[0]) * chosen.clients, chosen)
        elif chosen.door:
            few, many = (counted(partial(served, base, ("one", chosen.door, str(n)))) for n in (FEW, MANY))
            tell(f"/{chosen.door}", few, many, MANY - FEW, chosen)
        elif chosen.postgres:
            with postgres_stores() as anew:
                for system in chosen.systems:
                    few, many = (counted(partial(turns, system, base, n, [anew()])) for n in (FEW, MANY))
                    tell(f"{system}, PostgreSQL", few, many, MANY - FEW, chosen)
        else:
            for system in chosen.systems:
                few, many = (counted(partial(turns, system, base, n, ())) for n in (FEW, MANY))
                tell(system, few, many, MANY - FEW, chosen)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--counting"]:
        _, _, target, _, script, *sys.argv[1:] = sys.argv
        count(target, script)
    else:
        main()
