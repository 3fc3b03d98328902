"""The lines of the log: what is told of what went wrong, and read again by people."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from msgspec import Struct

LEVELS = ("debug", "info", "warning", "error", "critical")
FOLDER, FILE = "logs", "everloop.log"  # in the home; what was put aside has a number behind it


class LogLine(Struct, frozen=True, omit_defaults=True):
    """`error` is the id that a person was told, `detail` what Python said of it."""

    time: str
    level: str
    logger: str
    message: str
    process: int = 0
    error: str = ""
    session: str = ""
    thread: str = ""
    turn: int = 0
    detail: str = ""


class LogWatch(Protocol):
    """The log of all processes of this home, as it is written."""

    def follow(self, last: int) -> AsyncGenerator[Sequence[LogLine]]:
        """The `last` lines, then those that come, for as long as somebody listens; () at each look that finds
        nothing new. Raises EverloopError where it cannot be read."""
        ...
