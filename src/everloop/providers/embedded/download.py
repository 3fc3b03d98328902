"""The one download of a model's weights in this process: whoever needs them joins it, whoever looks sees how far it is.

It is begun by somebody who asks for it, or by a message that needs the model. It goes on as long as anybody wants it,
and when it is left, what has come is kept: the next one goes on from there.
"""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from msgspec import Struct

from ...errors import ModelMissing, ProviderError
from ...ports import Http
from .weights import Weights, fetch, is_whole, partial_of

_OFTEN = 0.25  # seconds between two words about it
LEFT = (
    "The download of the embedded model was stopped. What has come is kept: ask again and it goes on, or connect "
    "another model."
)


class DownloadState(Struct, frozen=True):
    """Bytes, and the seconds that it may take yet, as far as can be told. `why` it failed the last time."""

    state: Literal["absent", "fetching", "ready", "failed"]
    done: int
    total: int
    what: str = ""
    left: float | None = None
    why: str = ""

    @property
    def words(self) -> str:
        """For one line."""
        percent = f" {100 * self.done // self.total} % of {self.total / 1e6:,.0f} MB" if self.done else ""
        return f"{self.what}{percent}{_left(self.left)}"


Told = Callable[[DownloadState], None]


class Download:
    def __init__(
        self,
        weights: Weights,
        folder: Path,
        http: Http | None = None,
        given: Path | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self.weights = weights
        self._folder, self._http, self._given, self._now = folder, http, given, now
        self._task: asyncio.Task[Path] | None = None
        self._listeners: list[Told] = []
        self._asked = False  # somebody wants it for later, and need not wait
        self._why = ""
        self._told = self._began = 0.0
        self._first: int | None = None
        self._state = DownloadState("absent", 0, weights.size)

    @property
    def is_here(self) -> bool:
        return self._given is not None or is_whole(self._folder / self.weights.file, self.weights)

    @property
    def promise(self) -> str:
        """What the first message will do, if that is so."""
        return "" if self.is_here else f"The first message fetches it: {self.weights.size / 1e9:.1f} GB, once."

    @property
    def state(self) -> DownloadState:
        if self._task:
            return self._state
        total = self.weights.size
        if self.is_here:
            return DownloadState("ready", total, total)
        try:
            done = partial_of(self._folder / self.weights.file).stat().st_size
        except OSError:
            done = 0
        return DownloadState("failed" if self._why else "absent", done, total, why=self._why)

    def start(self) -> None:
        """Have it fetched beside everything else."""
        self._asked = True
        if not self.is_here:
            self._begin()

    async def leave(self) -> None:
        """End it; whoever waits for it is told, and what has come stays."""
        self._asked = False
        if self._task:
            self._task.cancel()
            await asyncio.wait({self._task})

    async def join(self, tell: Told) -> Path:
        """The file, as soon as it is here. Raises ModelMissing. Without anybody who wants it, it ends."""
        task = self._begin()
        self._listeners.append(tell)
        if self._state.what:
            tell(self._state)  # it runs already, and may say nothing for a while
        try:
            await asyncio.wait({task})
        finally:
            self._listeners.remove(tell)
            if not self._listeners and not self._asked and not task.done():
                await self.leave()
        if task.cancelled():
            raise ModelMissing(LEFT)
        return task.result()

    def _begin(self) -> asyncio.Task[Path]:
        if self._task is None:
            self._why, self._first, self._told = "", None, 0.0
            self._state = DownloadState("fetching", self.state.done, self.weights.size)
            self._task = asyncio.create_task(self._fetch())
            self._task.add_done_callback(self._ended)
        return self._task

    async def _fetch(self) -> Path:
        return await fetch(self.weights, self._folder, http=self._http, given=self._given, progress=self._progress)

    def _ended(self, task: asyncio.Task[Path]) -> None:
        self._task, self._asked = None, False
        if not task.cancelled() and (error := task.exception()):
            self._why = str(error) if isinstance(error, ProviderError) else f"It failed: {error}"

    def _progress(self, done: int, total: int, what: str) -> None:
        now = self._now()
        if self._first is None or what != self._state.what:
            self._first, self._began = done, now
        elif now - self._told < _OFTEN and done < total:
            return
        self._told = now
        self._state = DownloadState("fetching", done, total, what, self._seconds_left(done, total, now))
        for tell in [*self._listeners]:
            tell(self._state)

    def _seconds_left(self, done: int, total: int, now: float) -> float | None:
        """By how fast it came so far; not before there is something to go by."""
        assert self._first is not None
        came, took = done - self._first, now - self._began
        return (total - done) * took / came if came > total // 100 and took > 1 else None


def _left(seconds: float | None) -> str:
    if seconds is None or seconds < 1:
        return ""
    return f", {seconds / 60:.0f} min left" if seconds >= 90 else f", {seconds:.0f} s left"
