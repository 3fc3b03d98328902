"""Names looked up (DNS), in threads of their own and once for all who ask at the same time.

The event loop's own way shares its threads with files and passwords: a name server that is silent would stop those.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any

_KEPT_SECONDS = 30.0
_MOST_NAMES = 256
_THREADS = 8

Addresses = list[Any]  # as getaddrinfo gives them
Look = Callable[[str, int], Addresses]


def look_up(host: str, port: int) -> Addresses:
    """All addresses of a name, as the system knows them. Raises OSError."""
    return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)


class Resolver:
    """Keeps what was found for a while, and nothing of what was not.

    For the owner's hosts only. A name that a stranger may have aimed is looked up anew each time: `resolve`.
    """

    def __init__(self, look: Look = look_up, now: Callable[[], float] = time.monotonic) -> None:
        self._look = look
        self._now = now
        self._threads: ThreadPoolExecutor | None = None
        self._found: dict[tuple[str, int], tuple[float, Addresses]] = {}  # and until when; the oldest first
        self._sought: dict[tuple[str, int], asyncio.Future[Addresses]] = {}

    async def find(self, host: str, port: int) -> Addresses:
        """Raises OSError, and UnicodeError for what cannot be a name."""
        until, addresses = self._found.get((host, port), (0.0, []))
        if self._now() < until:
            return addresses
        sought = self._sought.get((host, port)) or self._seek(host, port)
        return await asyncio.shield(sought)  # who stops waiting does so for themselves alone

    def forget(self, host: str, port: int) -> None:
        """Where it led, nobody was found."""
        self._found.pop((host, port), None)

    def close(self) -> None:
        if self._threads:
            self._threads.shutdown(wait=False)
            self._threads = None

    def _seek(self, host: str, port: int) -> "asyncio.Future[Addresses]":
        self._threads = self._threads or _new_threads()
        sought = asyncio.get_running_loop().run_in_executor(self._threads, self._look, host, port)
        self._sought[host, port] = sought
        sought.add_done_callback(partial(self._keep, (host, port)))
        return sought

    def _keep(self, name: tuple[str, int], sought: "asyncio.Future[Addresses]") -> None:
        del self._sought[name]
        self._found.pop(name, None)
        if sought.cancelled() or sought.exception():
            return
        self._found[name] = self._now() + _KEPT_SECONDS, sought.result()
        if len(self._found) > _MOST_NAMES:
            del self._found[next(iter(self._found))]


async def resolve(host: str, port: int) -> list[str]:
    """All addresses of a name that is not the owner's; nothing is kept. Raises OSError."""
    found = await asyncio.get_running_loop().run_in_executor(_threads_for_strangers(), look_up, host, port)
    return [str(each[4][0]) for each in found]


@cache
def _threads_for_strangers() -> ThreadPoolExecutor:
    """Others than for the owner's hosts, whom nobody else's names keep waiting."""
    return _new_threads()


def _new_threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_THREADS, thread_name_prefix="resolver")
