"""The chat at a terminal, in one run and in turns: how soon its prompt is there, and what a streamed answer costs.

    python bench/terminal.py [--rounds 7]

The prompt against the start of a one-shot (from the process to its first request at the model), and 2,000 pieces of an
answer in the rich chat against the plain one, in CPU of the process, both with a scripted model on this machine.
"""

import argparse
import asyncio
import os
import pty
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from everloop.testing import Say
from everloop.testing.model_server import ModelServer

PIECES = 2000
WORDS = "Some *words* of an answer, with `code` in it. "


class Ran(Struct):
    seen: float  # seconds until what was waited for
    cpu: float


async def run(environment: dict[str, str], arguments: list[str], drive: Callable[["At"], object]) -> Ran:
    began = time.monotonic()
    process, terminal = pty.fork()
    if process == 0:
        os.execve(sys.executable, [sys.executable, "-m", "everloop", *arguments], environment)
    at = At(terminal, began)
    try:
        await drive(at)  # type: ignore[misc]
        while at.is_open:
            try:
                await at.more(2)
            except TimeoutError:
                at.type(b"\x04")  # it came between two who read, and neither was meant
    finally:
        os.close(terminal)
    usage = (await asyncio.to_thread(os.wait4, process, 0))[2]
    return Ran(at.seen, usage.ru_utime + usage.ru_stime)


class At:
    def __init__(self, terminal: int, began: float) -> None:
        self._terminal = terminal
        self._began = began
        self._text = b""
        self.is_open = True
        self.seen = 0.0
        os.set_blocking(terminal, False)

    async def more(self, patience: float = 60) -> None:
        loop, ready = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._terminal, ready.set)
        try:
            await asyncio.wait_for(ready.wait(), patience)
        finally:
            loop.remove_reader(self._terminal)
        try:
            data = os.read(self._terminal, 65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self.is_open = bool(data)
        self._text += data

    async def sees(self, text: bytes) -> None:
        while text not in self._text and self.is_open:
            await self.more()
        if text not in self._text:
            raise SystemExit(f"{text!r} was never shown: {self._text[-500:]!r}")
        self._text = self._text.partition(text)[2]
        self.seen = time.monotonic() - self._began

    def type(self, keys: bytes) -> None:
        with suppress(OSError):
            os.write(self._terminal, keys)


async def prompt(at: At) -> None:
    await at.sees(b">")
    at.type(b"\x04")


async def answer(at: At) -> None:
    await at.sees(b"Ctrl-D")
    at.type(b"hi\r")
    await at.sees(b"the end")
    at.type(b"\x04")


async def measure(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer() as model:
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": folder,
                "TERM": "xterm-256color",
                "EVERLOOP_HOME": str(Path(folder) / "home"),
                "EVERLOOP_AGENTS__DEFAULTS__MODEL": "custom/scripted",
                "EVERLOOP_PROVIDERS__CUSTOM__API_BASE": model.url,
            }
            asked: list[float] = []

            def short(shown: object) -> Say:
                asked.append(time.monotonic())
                return Say("ok")

            def long(shown: object) -> list[Say]:
                return [*(Say(WORDS + ("\n\n" if number % 5 == 4 else "")) for number in range(PIECES)), Say("the end")]

            async def once(at: At) -> None:
                pass

            prompts, starts, wholes, rich, plain = [], [], [], [], []
            for _ in range(rounds + 1):  # the first warms up
                model.play(short)
                began = time.monotonic()
                await run(environment, ["agent", "-m", "hi", "-s", "cli:once"], once)
                wholes.append(time.monotonic() - began)
                starts.append(asked[-1] - began)
                prompts.append((await run(environment, ["-s", "cli:prompt"], prompt)).seen)
                model.play(long)
                rich.append((await run(environment, ["-s", f"cli:rich{_}"], answer)).cpu)
                plain.append((await run(environment, ["--plain", "-s", f"cli:plain{_}"], answer)).cpu)
            middle = [statistics.median(each[1:]) for each in (prompts, starts, wholes, rich, plain)]
            seen, start, whole, drawn, written = middle
            print(f"prompt {seen * 1000:.0f} ms; one-shot: asks {start * 1000:.0f} ms, ends {whole * 1000:.0f} ms")
            print(f"prompt / start of a one-shot: {seen / start:.2f} (bar 1.5)")
            print(f"{PIECES:,} pieces: rich {drawn:.2f} s of CPU, plain {written:.2f} s: {drawn / written:.2f} (bar 3)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    asyncio.run(measure(parser.parse_args().rounds))
