"""A sandbox that is made, and loaded, when it is first used: most days nobody runs a command."""

from collections.abc import Callable
from pathlib import Path

from ...ports.tools import CallContext
from .port import CommandSpec, OnOutput, Outcome, Sandbox, be_silent


class LaterSandbox:
    """The Sandbox that `make` makes. `spool` is where it keeps what commands say; before there is one, none ran."""

    def __init__(self, spool: Path, make: Callable[[], Sandbox]) -> None:
        self._spool = spool
        self._make = make
        self._made: Sandbox | None = None

    def _sandbox(self) -> Sandbox:
        self._made = self._made or self._make()
        return self._made

    async def run(self, context: CallContext, job: CommandSpec, on_output: OnOutput = be_silent) -> Outcome:
        return await self._sandbox().run(context, job, on_output)

    async def find(
        self, context: CallContext, background: bool = False, on_output: OnOutput = be_silent
    ) -> Outcome | None:
        return await self._sandbox().find(context, background, on_output)

    def name(self, context: CallContext, background: bool = False) -> str:
        return self._sandbox().name(context, background)

    async def output(self, thread: str, name: str, offset: int, count: int, wait: float) -> tuple[Outcome, int]:
        return await self._sandbox().output(thread, name, offset, count, wait)

    async def input(self, thread: str, name: str, text: str) -> None:
        await self._sandbox().input(thread, name, text)

    async def ended(self, thread: str, name: str) -> float | None:
        return await self._sandbox().ended(thread, name) if self._spool.exists() else 0.0

    async def stop(self, thread: str, name: str = "") -> int:
        return await self._sandbox().stop(thread, name) if self._spool.exists() else 0

    async def forget(self, thread: str, name: str = "") -> None:
        if self._spool.exists():
            await self._sandbox().forget(thread, name)

    async def close(self) -> None:
        if self._made:
            await self._made.close()
