"""How far a reader has to walk: the source files that a message goes through, counted by a tracer.

    python bench/walks.py CHECKOUT …          a table with a column for each
    python bench/walks.py --list CHECKOUT     every function in the order in which it is first entered

A CHECKOUT is a folder with a `src/everloop` of any commit: `git worktree add /tmp/then 0384fab`. Two walks: the command
`everloop agent -m hi` from its first line to its last, and one message with one tool call through the WebSocket of a
gateway that has answered one before. Counted are functions that are called. What runs because a module is loaded is
not, nor is a coroutine that goes on. A change of file is one between a function and the next that is new to the reader.
"""

import argparse
import asyncio
import dis
import itertools
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import aiohttp

from everloop.testing import Call, Line, Say, Shown
from everloop.testing.model_server import ModelServer

_FUNCTION = 0x01  # CO_OPTIMIZED: neither a module's body nor a class's
_RESUME = dis.opmap["RESUME"]


class Walk:
    """Functions of the package in the order in which they are first entered, while `seeing`."""

    def __init__(self, package: Path) -> None:
        self.seeing = False
        self.steps: dict[CodeType, str] = {}
        self._package = f"{package}{os.sep}"
        self._loading = threading.local()  # how many modules are being loaded by this thread

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        if event not in ("call", "return"):
            return
        if frame.f_code.co_name == "<module>" and frame.f_globals["__name__"] != "__main__":
            self._loading.depth = getattr(self._loading, "depth", 0) + (1 if event == "call" else -1)
        elif event == "call" and self.seeing and not getattr(self._loading, "depth", 0):
            self._enter(frame)

    def _enter(self, frame: FrameType) -> None:
        code = frame.f_code
        if code in self.steps or not code.co_flags & _FUNCTION or not code.co_filename.startswith(self._package):
            return
        if code.co_name.startswith("<"):  # a comprehension stands where it is read
            return
        if is_begun(frame) and not code.co_filename.startswith(f"{self._package}testing{os.sep}"):
            self.steps[code] = f"{code.co_filename.removeprefix(self._package)}:{code.co_qualname}"


def is_begun(frame: FrameType) -> bool:
    """Whether a function begins here, and is not one that goes on after it has waited."""
    at, code = max(frame.f_lasti, 0), frame.f_code.co_code
    return code[at] != _RESUME or code[at + 1] & 3 == 0


def trace(package: Path, out: Path, arguments: list[str]) -> None:
    """Run everloop in this process; SIGUSR1 says from when on to look, SIGUSR2 until when."""
    walk = Walk(package)

    def begin(number: int, frame: FrameType | None) -> None:
        walk.steps.clear()
        walk.seeing = True

    def end(number: int, frame: FrameType | None) -> None:
        walk.seeing = False
        out.write_text(json.dumps(list(walk.steps.values())))
        print("traced", file=sys.stderr, flush=True)

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    sys.argv = ["everloop", *arguments]
    threading.setprofile(walk)
    sys.setprofile(walk)
    walk.seeing = arguments[0] == "agent"
    try:
        runpy.run_module("everloop", run_name="__main__", alter_sys=True)
    finally:
        sys.setprofile(None)
        if walk.seeing:
            end(0, None)


def line(shown: Shown) -> Line:
    if "look" in shown.asked and shown.step == 0:
        return Call("list_dir", {"path": "."})
    return Say("hello")


class House:
    """everloop of a checkout, in a home of its own."""

    def __init__(self, checkout: Path, home: Path, model: ModelServer) -> None:
        self.steps = home / "walk.json"
        self._package = checkout.resolve() / "src" / "everloop"
        self._environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self._package.parent),
            "EVERLOOP_HOME": str(home / "home"),
            "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/scripted",
            "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": model.url,
            "EVERLOOP_PROVIDERS__CUSTOM__API_KEY": "none",
            "EVERLOOP_GATEWAY__PORT": "0",
        }

    async def start(self, *arguments: str, traced: bool = True) -> asyncio.subprocess.Process:
        command = ["-m", "everloop", *arguments]
        if traced:
            command = [__file__, "--trace", str(self._package), str(self.steps), *arguments]
        pipe = subprocess.PIPE
        return await asyncio.create_subprocess_exec(
            sys.executable, *command, stdout=pipe, stderr=pipe, env=self._environment
        )

    async def command(self) -> list[str]:
        process = await self.start("agent", "-m", "hi")
        out, err = await process.communicate()
        assert out == b"hello\n", err.decode()
        return self._walked()

    async def message(self) -> list[str]:
        gateway = await self.start("gateway")
        assert gateway.stderr is not None
        try:
            url = (await gateway.stderr.readline()).split()[-1].decode()
            made, _ = await (await self.start("tokens", "create", "walk", traced=False)).communicate()
            await self._speak(gateway, url, made.decode().strip())
            while await gateway.stderr.readline() != b"traced\n":
                pass
            return self._walked()
        finally:
            gateway.terminate()
            await gateway.communicate()

    async def _speak(self, gateway: asyncio.subprocess.Process, url: str, token: str) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession(headers=headers) as client, client.ws_connect(f"{url}/ws") as wire:
            await answered(wire, "first", "hi")
            gateway.send_signal(signal.SIGUSR1)
            await answered(wire, "second", "look")
            gateway.send_signal(signal.SIGUSR2)

    def _walked(self) -> list[str]:
        steps: list[str] = json.loads(self.steps.read_text())
        return steps


async def answered(wire: aiohttp.ClientWebSocketResponse, id: str, content: str) -> None:
    await wire.send_json({"type": "message", "id": id, "session": "api:walk", "content": content})
    async for message in wire:
        told = json.loads(message.data)
        assert told["type"] != "error", told
        if told["type"] == "response":
            assert told["content"] == "hello", told
            return


def counted(steps: list[str]) -> dict[str, int]:
    files = [step.partition(":")[0] for step in steps]
    changes = sum(one != other for one, other in itertools.pairwise(files))
    return {"files entered": len(set(files)), "functions": len(steps), "changes of file": changes}


async def walks_of(checkout: Path) -> dict[str, list[str]]:
    walks = {}
    async with ModelServer(line) as model:
        for name, walk in (
            ("everloop agent -m hi", House.command),
            ("a WebSocket message, one tool call", House.message),
        ):
            with tempfile.TemporaryDirectory(prefix="everloop-walk-") as home:
                walks[name] = await walk(House(checkout, Path(home), model))
    return walks


async def main(checkouts: list[Path], listed: bool) -> None:
    found = [await walks_of(checkout) for checkout in checkouts]
    if listed:
        for name, steps in found[0].items():
            print(f"# {name}", *steps, sep="\n")
        return
    print(
        "| |",
        *(f" {checkout.resolve().name} |" for checkout in checkouts),
        *(" ratio |" for _ in checkouts[1:]),
        sep="",
    )
    print("|---" * (2 * len(checkouts)), "|", sep="")
    for name in found[0]:
        rows = [counted(walks[name]) for walks in found]
        for count in rows[0]:
            numbers = [row[count] for row in rows]
            ratios = [f"{number / numbers[0]:.2f} ×" for number in numbers[1:]]
            print("|", " | ".join([f"{name}: {count}", *map(str, numbers), *ratios]), "|")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--trace"]:
        trace(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--list", action="store_true", help="print the walks of the first checkout")
        parser.add_argument("checkouts", type=Path, nargs="+")
        wanted = parser.parse_args()
        asyncio.run(main(wanted.checkouts, wanted.list))
