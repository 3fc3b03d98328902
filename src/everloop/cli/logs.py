"""Where the details go that no user needs to see: one file in the home, and one older beside it."""

import logging
from pathlib import Path

LARGEST = 5_000_000


def keep_logs(home: Path) -> None:
    """Write what our loggers and asyncio's say to `logs/everloop.log`; where that cannot be, keep silent."""
    handler = _handler(home)
    for name in ("everloop", "asyncio"):
        logger = logging.getLogger(name)
        logger.propagate = False
        logger.addHandler(handler)


def _handler(home: Path) -> logging.Handler:
    path = home / "logs" / "everloop.log"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.parent.mkdir(exist_ok=True)
        if path.exists() and path.stat().st_size > LARGEST:
            path.replace(path.with_suffix(".log.1"))
    except OSError:
        return logging.NullHandler()
    handler = logging.FileHandler(path, encoding="utf-8", delay=True)  # the file is made when there is something to say
    handler.setFormatter(logging.Formatter("%(asctime)s %(process)d %(levelname)s %(name)s: %(message)s"))
    handler.handleError = lambda record: None  # type: ignore[method-assign]  # a full disk is reported by the store
    return handler
