"""Whether the settings file, or a file that it names for a key, may say something else than when it was read.

Files are looked at by time, size and number, and none is opened.
"""

import os
import time
from pathlib import Path

from ..settings import Settings, path_in

MOMENT = 0.1  # seconds, in which turns that begin beside each other look once
FRESH = 50_000_000  # nanoseconds, in which a file may change twice and bear the same time
SETTLED = 2.0  # seconds after which a file that is gone or empty is meant to be so
NAMES = ("config.toml", "config.json")

Stamp = tuple[int, int, int]


class SettingsFiles:
    """Make it, or let it `see`, before the files are read: what changes after that is found the next time.

    Turns look here, so it does little: of the settings file, one look; where there is none, whether one has come."""

    def __init__(self, home: Path, settled: float = SETTLED) -> None:
        self._settled = settled
        self._places = tuple(os.path.join(home, name) for name in NAMES)
        self._home = home
        self._seen: dict[str, Stamp | None] = {}
        self._keys: dict[str, Stamp | None] = {}  # files that hold one
        self._fresh = False
        self.see()
        self._says = self._says_something()  # whether there are settings at all
        self._emptied: float | None = None  # since when there are none any more

    def see(self) -> bool:
        """The files are about to be read. Whether one that holds a key has changed."""
        self._looked = time.monotonic()
        before, self._keys = self._keys, {path: _stamp(path) for path in self._keys}
        self._seen = {path: stamp for path in self._places if (stamp := _stamp(path))}
        stamps = (*self._seen.values(), *self._keys.values())
        self._fresh = any(stamp and abs(time.time_ns() - stamp[0]) < FRESH for stamp in stamps)
        return before != self._keys

    def is_being_written(self) -> bool:
        """Whether what was just read may be half of a file that somebody writes: it has changed since it was looked at,
        or is gone or empty and was not so a moment ago. To go by nothing would lift every limit that it sets."""
        if self._says_something() or not self._says:
            self._says, self._emptied = self._says_something(), None
        else:
            self._emptied = self._emptied or time.monotonic()
            if time.monotonic() - self._emptied < self._settled:
                return True
            self._says, self._emptied = False, None
        return {path: stamp for path in self._places if (stamp := _stamp(path))} != self._seen

    def _says_something(self) -> bool:
        return any(stamp[1] for path in self._places if (stamp := _stamp(path)))

    def follow(self, settings: Settings) -> None:
        """Look also at the files of keys that these name, which are read after this."""
        named = [account.api_key_file for account in settings.providers.accounts.values() if account.api_key_file]
        paths = [str(path_in(self._home, name)) for name in named]
        self._keys = {path: self._keys[path] if path in self._keys else _stamp(path) for path in paths}

    def is_stale(self, crowded: bool = False) -> bool:
        """Where it is crowded, a look of a moment ago counts."""
        now = time.monotonic()
        if crowded and now - self._looked < MOMENT:
            return False
        self._looked = now
        if self._fresh or self._emptied:
            return True
        for path in () if self._seen else self._places:
            if os.access(path, os.F_OK):
                return True
        seen = self._seen | self._keys
        return [*map(_stamp, seen)] != [*seen.values()]


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
