"""The worker's side of the sandbox: asks the runner, and reads from the spool what commands say."""

import asyncio
import codecs
import logging
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from ...errors import ToolError
from ...ports.tools import CallContext
from .choose import Confinement, choose_way
from .door import Door, Line, RunnerAway, Talk
from .elsewhere import Elsewhere
from .outlet import Outlet, outlet_folder
from .port import CommandSpec, OnOutput, Outcome, be_silent
from .spool import ended_at, forget_folder, read_all, read_output

_log = logging.getLogger("everloop.sandbox")
_STEP = 1 << 16
_TO_END = 10.0  # seconds in which a command that was told to end should be gone


class SandboxedCommands:
    """The Sandbox of one home: what its commands say is kept in `spool`.

    With `elsewhere`, other machines may drive the same threads, and a command that is unknown here may have been begun
    there. Through `outlet` go those that may reach some hosts.
    """

    def __init__(
        self,
        spool: Path,
        choose: Callable[[], Awaitable[Confinement]] = choose_way,
        elsewhere: Elsewhere | None = None,
        door: Door | None = None,
        outlet: Outlet | None = None,
    ) -> None:
        self._spool = spool
        self._choose = choose
        self._elsewhere = elsewhere
        self._door = door or Door(spool)
        self._outlet = outlet
        self._way: Confinement | None = None
        self._said = False

    async def way(self) -> Confinement:
        """How commands are confined, found out at the first use. Raises ToolError if they cannot be."""
        self._way = self._way or await self._choose()
        return self._way

    def name(self, context: CallContext, background: bool = False) -> str:
        return f"{'b' if background else ''}{'-'.join(map(str, _place(context)))}"

    async def run(self, context: CallContext, job: CommandSpec, on_output: OnOutput = be_silent) -> Outcome:
        where = self._where(context.thread, self.name(context, job.background))
        order = {
            "do": "start",
            **where,
            "answer": _place(context)[0],
            "env": dict(job.env),
            "limits": to_builtins(job.limits),
            "script": job.script,
            "background": job.background,
            "workspace": _real(job.view.workspace),
            **(await self.way()).order(job, self._folder(where)),
        }
        if self._elsewhere:
            await self._elsewhere.note()
        if self._outlet and job.view.network:
            await self._outlet.open(outlet_folder(self._spool, job.view.network))
        try:
            async with self._door.talk(order) as talk:
                await self._say_how()
                if job.background:
                    await talk.hear()
                    return Outcome("running")
                return await self._follow(where, talk, on_output)
        except asyncio.CancelledError:
            await self._end(where)
            raise

    async def find(
        self, context: CallContext, background: bool = False, on_output: OnOutput = be_silent
    ) -> Outcome | None:
        where = self._where(context.thread, self.name(context, background))
        async with self._door.talk({"do": "find", **where}) as talk:
            line = await talk.hear()
            if "never" in line and not (self._elsewhere and await self._elsewhere.is_possible()):
                return None
            if background and "began" in line:
                return Outcome("running")
            return await self._follow(where, talk, on_output, line)

    async def output(self, thread: str, name: str, offset: int, count: int, wait: float) -> tuple[Outcome, int]:
        where = self._where(thread, name)
        async with self._door.talk({"do": "find", **where}) as talk:
            line = await talk.hear()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    while "began" in line or "size" in line:
                        if line.get("size", 0) > offset:
                            break
                        line = await talk.hear()
            if "began" not in line and "size" in line:  # a hint, which does not tell what of it is stderr
                talk.ask({"do": "find", **where})
                while "began" not in line and "size" in line:
                    line = await talk.hear()
        _refuse_if_unknown(line, name)
        data, begin = read_output(str(self._folder(where)), offset, count)
        errors = line.get("end", line).get("errors", [])
        text, stderr = told_apart([(begin, data)], errors, begin)
        gone = f"[{begin - offset} bytes are no longer kept]\n" if begin > offset else ""
        end = line.get("end", {"why": "running", "code": 0, "seconds": 0.0})
        return _outcome(end, gone + text, stderr), begin + len(data)

    async def input(self, thread: str, name: str, text: str) -> None:
        async with self._door.talk({"do": "input", **self._where(thread, name), "text": text}) as talk:
            await talk.hear()

    async def ended(self, thread: str, name: str) -> float | None:
        where = self._where(thread, name)
        if (at := ended_at(str(self._folder(where)))) is not None:
            return at
        try:
            async with self._door.talk({"do": "find", "quiet": True, **where}) as talk:
                return None if "began" in await talk.hear() else time.time()
        except ToolError:  # nobody runs it
            return time.time()

    async def stop(self, thread: str, name: str = "") -> int:
        where = self._where(thread, name)
        if not self._folder(where).exists():  # then no runner need be started to say so
            return 0
        return await self._stop(where)

    async def forget(self, thread: str, name: str = "") -> None:
        where = self._where(thread, name)
        if self._folder(where).exists():
            await self._end(where)
            await asyncio.to_thread(forget_folder, str(self._folder(where)))

    async def close(self) -> None:
        self._door.close()
        if self._outlet:
            await self._outlet.close()

    def _where(self, thread: str, name: str) -> dict[str, str]:
        return {"thread": sha256(thread.encode()).hexdigest()[:32], "name": name}

    def _folder(self, where: dict[str, str]) -> Path:
        return self._spool / where["thread"] / where["name"]

    async def _follow(
        self, where: dict[str, str], talk: Talk, on_output: OnOutput, line: Line | None = None
    ) -> Outcome:
        """Show what the command says until it ends. Raises ToolError if it could not begin, or is not known."""
        show = _Show(str(self._folder(where)), on_output)
        told = line or await talk.hear()
        while "end" not in told:
            _refuse_if_unknown(told, where["name"])
            show.until(told.get("size", 0))
            told = await talk.hear()
        talk.over = True
        end = told["end"]
        runs = read_all(str(self._folder(where)), end["size"])
        both, _ = told_apart(runs, [])
        show.rest(both, end["size"])
        if end["why"] == "failed":
            raise ToolError(f"the sandbox could not be started: {both.strip() or 'it said nothing'}")
        return _outcome(end, *told_apart(runs, end.get("errors", [])))

    async def _say_how(self) -> None:
        """Once, for people who read the log."""
        if not self._said:
            self._said = True
            _log.info("commands are confined by %s, their limits %s", (await self.way()).name, self._door.limits)

    async def _stop(self, where: dict[str, str]) -> int:
        async with self._door.talk({"do": "stop", **where}) as talk:
            running: int = (await talk.hear())["done"]
            left = running
            while left:
                left -= "end" in await talk.hear()
            return running

    async def _end(self, where: dict[str, str]) -> None:
        """End a command that nobody waits for any more, and see it gone."""
        with suppress(RunnerAway, ToolError, TimeoutError):
            async with asyncio.timeout(_TO_END):
                await self._stop(where)


class _Show:
    """Hands on what a command says, once and in order, as text."""

    def __init__(self, folder: str, on_output: OnOutput) -> None:
        self._folder = folder
        self._on_output = on_output
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._at = 0

    def until(self, size: int) -> None:
        while self._at < size and self._on_output is not be_silent:
            data, begin = read_output(self._folder, self._at, min(_STEP, size - self._at))
            if not data:
                return
            self._at = begin + len(data)
            self._on_output(self._decode(data))

    def rest(self, text: str, size: int) -> None:
        if self._at:
            self.until(size)
        elif text:
            self._on_output(text)


def _real(path: Path) -> str:
    return os.path.realpath(path)


def _refuse_if_unknown(line: Line, name: str) -> None:
    if "never" in line:
        raise ToolError(f"there is no command {name} here")
    if "swept" in line:
        raise ToolError(f"the command {name} ended too long ago; what it said is no longer kept")
    if "lost" in line:
        raise ToolError(f"the command {name} was cut off with the process that ran it; it may have done a part")


def _outcome(end: dict[str, Any], text: str, stderr: str) -> Outcome:
    return Outcome(end["why"], end["code"], text, end["seconds"], stderr)


def told_apart(runs: list[tuple[int, bytes]], errors: list[list[int]], at: int = 0) -> tuple[str, str]:
    """What was said on stdout and on stderr, of runs of both that begin at `at` or later.

    `errors` is where stderr is. Each tells what of it is missing.
    """
    texts, missing = (bytearray(), bytearray()), [0, 0]
    for begin, data in runs:
        for error, start, end in _pieces(at, begin, errors):
            missing[error] += end - start
        at = begin + len(data)
        for error, start, end in _pieces(begin, at, errors):
            texts[error].extend(_left_out(missing[error]) + data[start - begin : end - begin])
            missing[error] = 0
    out, err = ((text + _left_out(count)).decode(errors="replace") for text, count in zip(texts, missing, strict=True))
    return out, err


def _pieces(begin: int, end: int, errors: list[list[int]]) -> Iterator[tuple[bool, int, int]]:
    """A run, cut where it changes between stdout and stderr."""
    for start, stop in errors:
        if stop <= begin or start >= end:
            continue
        if start > begin:
            yield False, begin, start
        yield True, max(start, begin), min(stop, end)
        begin = min(stop, end)
    if begin < end:
        yield False, begin, end


def _left_out(count: int) -> bytes:
    return f"\n… [{count} bytes left out] …\n".encode() if count else b""


def _place(context: CallContext) -> tuple[int, str]:
    """The answer and the place in it of a call. A key of another kind counts as a whole."""
    *_, answer, place = ("", "", *context.key.split(":"))
    if answer.isdigit() and place.isdigit():
        return int(answer), place
    return 0, sha256(context.key.encode()).hexdigest()[:12]
