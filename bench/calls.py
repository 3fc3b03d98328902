"""Calls of Python functions that a turn makes, which do not depend on what else the machine does.

    python bench/calls.py [--src DIR] [--by file|function] [--top COUNT] [SYSTEM [STORE_URL]]

SYSTEM is one of one.py's; a coroutine that goes on after a wait counts as called again. With `--src` the turns are
those of another checkout.
"""

import argparse
import asyncio
import collections
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

TURNS = 200

Counts = collections.Counter[CodeType]


async def counted(system: str, base: str, *store: str) -> tuple[Counts, int]:
    """How often each function of Python was called in so many warm turns, and how often one of C."""
    from one import opened, turns

    called: Counts = collections.Counter()
    native = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal native
        if event == "call":
            called[frame.f_code] += 1
        elif event == "c_call":
            native += 1

    async with opened(system, base, *store) as house:
        await turns(house.ask, 0, warm=100)
        sys.setprofile(note)
        await turns(house.ask, TURNS, warm=0)
        sys.setprofile(None)
    return called, native


def tell(called: Counts, native: int, by: str, top: int) -> None:
    print(f"calls of Python functions in a turn: {called.total() / TURNS:.0f}; of C: {native / TURNS:.0f}\n")
    grouped: collections.Counter[str] = collections.Counter()
    for code, times in called.items():
        file = "/".join(Path(code.co_filename).parts[-3:])
        grouped[file if by == "file" else f"{file}:{code.co_firstlineno} {code.co_qualname}"] += times
    for name, times in grouped.most_common(top):
        print(f"{times / TURNS:8.2f}  {name}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("system", nargs="?", default="everloop-own")
    parser.add_argument("store", nargs="*")
    parser.add_argument("--src", default="")
    parser.add_argument("--by", choices=("file", "function"), default="function")
    parser.add_argument("--top", type=int, default=60)
    chosen = parser.parse_args()
    if chosen.src:
        sys.path.insert(0, str(Path(chosen.src).resolve()))
    from run import ONE_CHUNK, model

    with model(ONE_CHUNK) as base:
        counting = counted(chosen.system.removesuffix("-own"), base, *chosen.store)
        if chosen.system.endswith("-own"):
            from everloop.cli.process import run

            called, native = run(counting)
        else:
            called, native = asyncio.run(counting)
    tell(called, native, chosen.by, chosen.top)


if __name__ == "__main__":
    main()
