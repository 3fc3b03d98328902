"""What a test hears that is not its own: told of what an earlier one of the same process has left to the collector."""

import logging
from collections.abc import Iterable

VENDORS = "AsyncClient.aclose()"  # the clients of SDKs, which close themselves in whatever loop runs when they go


def without_strays(records: Iterable[logging.LogRecord]) -> list[logging.LogRecord]:
    return [each for each in records if VENDORS not in each.getMessage()]


def told_by(name: str, records: Iterable[logging.LogRecord]) -> list[str]:
    """What the loggers of a package have said, and no other."""
    return [each.getMessage() for each in records if each.name.partition(".")[0] == name]
