"""Which files of a workspace are strangers': by their kind, or because they were written where strangers had a say.

What was written in a conversation that had read strangers' words is known by when: its ctime lies in a taint. So a copy
of it, or what an archive of theirs was unpacked to, is known as well, whichever way it came there.
"""

import asyncio
import math
import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from .kinds import is_strange_kind
from .tainted import SLACK, Tainted

Times = Sequence[tuple[float, float]]
_MOST = 200_000  # files that are looked at before a command's output is believed
_SECONDS = 2.0


class Marks:
    """`tainted` is None where nothing is known of the past."""

    def __init__(self, tainted: Tainted | None = None) -> None:
        self.tainted = tainted
        self._found = ""  # the file that a look beneath a folder has found
        self._clean: Times = ()  # the times of which none was found: nothing can be written in the past

    async def origin_of(self, path: str, status: os.stat_result, head: bytes) -> str:
        """Whose words a file holds, if they are a stranger's."""
        strange = is_strange_kind(path, head) or await self.is_tainted(status)
        return path if strange else ""

    async def is_tainted(self, status: os.stat_result) -> bool:
        return self.tainted is not None and await self.tainted.holds(status.st_ctime)

    async def times(self) -> Times:
        """When strangers had a say in what was written here."""
        if self.tainted is None:
            return []
        found = await self.tainted.all()
        return [(taint.began - SLACK, end + SLACK if end else math.inf) for taint, end in found]

    async def found_beneath(self, folder: Path) -> str:
        """A file that holds what strangers had a say in; "" if there is none. What is too much to look through holds
        one."""
        times = await self.times()
        if not times or times == self._clean:
            return ""
        if not self._found or not lies_in(_changed(folder / self._found), times):
            self._found = await asyncio.to_thread(_look, folder, times)
        if not self._found and all(ended < math.inf for _, ended in times):
            self._clean = times
        return self._found


MARKS = Marks()
_SPEAKING = 5  # words of a name that could be an order


def speaks(name: str) -> bool:
    """Whether a name is long enough to tell a model something."""
    return len(name) > 80 or len(re.findall(r"[^\W\d_]{2,}", name)) >= _SPEAKING


def lies_in(at: float, times: Times) -> bool:
    return any(began <= at <= ended for began, ended in times)


def _changed(file: Path) -> float:
    try:
        return os.lstat(file).st_ctime
    except OSError:
        return 0.0  # gone meanwhile


def _look(folder: Path, times: Times) -> str:
    seen, until = 0, time.monotonic() + _SECONDS
    for above, _, files in os.walk(folder):
        for name in files:
            seen += 1
            if seen > _MOST or time.monotonic() > until:
                return "more files than can be looked at"
            file = Path(above, name)
            if lies_in(_changed(file), times):
                return str(file.relative_to(folder))
    return ""
