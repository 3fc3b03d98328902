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
from typing import NamedTuple

from .kinds import is_strange_kind
from .tainted import SLACK, Tainted
from .walk import SKIPPED

Times = Sequence[tuple[float, float]]
_MOST = 50_000  # files that are looked at before a command's output is believed
_SECONDS = 2.0
_LOOKED_INTO = frozenset({".git"})  # what a command tells of it are people's words, and others'


class Marks(NamedTuple):
    """`tainted` is None where nothing is known of the past."""

    tainted: Tainted | None = None

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
        return await asyncio.to_thread(_look, folder, times) if times else ""


MARKS = Marks()
_SPEAKING = 5  # words of a name that could be an order


def speaks(name: str) -> bool:
    """Whether a name is long enough to tell a model something."""
    return len(name) > 80 or len(re.findall(r"[^\W\d_]{2,}", name)) >= _SPEAKING


def lies_in(at: float, times: Times) -> bool:
    return any(began <= at <= ended for began, ended in times)


def _look(folder: Path, times: Times) -> str:
    seen, until = 0, time.monotonic() + _SECONDS
    for above, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in SKIPPED or name in _LOOKED_INTO]
        for name in files:
            seen += 1
            if seen > _MOST or time.monotonic() > until:
                return "more files than can be looked at"
            try:
                status = os.lstat(os.path.join(above, name))
            except OSError:
                continue  # gone meanwhile
            if lies_in(status.st_ctime, times):
                return os.path.relpath(os.path.join(above, name), folder)
    return ""
