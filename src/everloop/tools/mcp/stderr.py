"""What a server says on stderr: the end of it is kept, and each line is logged, with nothing in it that is secret."""

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping

from ...readings.visible import in_one_line
from ..redaction import redacted

_log = logging.getLogger("everloop.mcp")
_KEPT = 64 << 10
_LONGEST = 500  # letters of a line that is logged
_LINES, _SECONDS = 60, 60.0  # so many lines in so many seconds are logged; a server must not fill the disk


class ErrorTail:
    """The last of what the server `name` said; the values of `secrets` are never shown."""

    def __init__(self, name: str, secrets: Mapping[str, str], clock: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._secrets = secrets
        self._clock = clock
        self._kept = bytearray()
        self._line = b""
        self._logged: deque[float] = deque(maxlen=_LINES)
        self._left_out = 0

    def add(self, data: bytes) -> None:
        self._kept += data
        if len(self._kept) > 2 * _KEPT:
            del self._kept[:-_KEPT]
        *lines, rest = (self._line + data).split(b"\n")
        self._line = rest[-_KEPT:]
        for line in lines:
            self._tell(line)

    def last(self, lines: int = 5) -> str:
        """Its last lines, each as one can be shown."""
        said = [line for line in self._kept[-_KEPT:].decode(errors="replace").splitlines() if line.strip()]
        return "\n".join(map(self._shown, said[-lines:]))

    def _tell(self, line: bytes) -> None:
        now = self._clock()
        if len(self._logged) == _LINES and now - self._logged[0] < _SECONDS:
            self._left_out += 1
            return
        if self._left_out:
            _log.info("%s: … %d lines of stderr were left out", self._name, self._left_out)
            self._left_out = 0
        self._logged.append(now)
        _log.info("%s: %s", self._name, self._shown(line.decode(errors="replace")))

    def _shown(self, line: str) -> str:
        return in_one_line(redacted(line.strip()[: 4 * _LONGEST], self._secrets))[:_LONGEST]
