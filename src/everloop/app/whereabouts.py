"""Where the gateway of a home can be reached, for the commands that print a link into its page, and whether it runs.

A gateway holds a lock on the file that says where it is, so that after a kill nobody takes it for running.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from ..ports.house_status import RunningGateway
from ..settings import Settings

FILE = "run/.gateway"  # holds the address at which one listens, and the number of its process


@contextmanager
def listening_at(home: Path, url: str) -> Iterator[None]:
    """As long as the block lasts, others learn that a gateway is there. After a kill it is where the last one was."""
    told = home / FILE
    told.parent.mkdir(exist_ok=True)
    with told.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # several gateways may hold it, and who looks does so for a moment
        file.write(f"{url}\n{os.getpid()}\n")
        file.flush()
        try:
            yield
        finally:
            told.unlink(missing_ok=True)


def running_gateway(home: Path) -> RunningGateway:
    """The one that began last, on this machine."""
    try:
        with _opened(home / FILE) as file:
            url, _, pid = file.read().partition("\n")
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return RunningGateway(True, url, int(pid) if pid.strip().isdecimal() else 0)
    except OSError:
        pass
    return RunningGateway(False)


def page_address(home: Path, settings: Settings) -> str:
    """Where the page is, as far as this machine knows: what others call it, where it listens, where it would."""
    place = settings.gateway
    if place.allowed_hosts:
        return f"https://{place.allowed_hosts[0]}"
    with suppress(FileNotFoundError), _opened(home / FILE) as file:
        if url := file.read().partition("\n")[0]:
            return url
    host = f"[{place.host}]" if ":" in place.host else place.host
    return f"{'https' if place.tls_cert else 'http'}://{host}:{place.port}"


def _opened(path: Path) -> TextIO:
    """To be read, without waiting for a writer where somebody has put a pipe."""
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), errors="replace")
