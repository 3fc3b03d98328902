"""Logging in from a page: the authorization server sends the browser to an address of the gateway, and not to one of
the machine on which everloop runs.

A login that waits is known by the `state` of its address, which comes back with the code: whoever cannot name it has
begun none here. It is good for one time and for a while, in the process that has begun it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Protocol
from urllib.parse import parse_qs, urlsplit

from ...errors import EverloopError, McpDown
from ...ports.mcp import McpServer
from .callback import SECONDS

_MOST_WAITING = 20


class LogsIn(Protocol):
    """As McpLogins does."""

    async def log_in(
        self,
        server: McpServer,
        *,
        redirect: str,
        show_url: Callable[[str], Awaitable[None]],
        wait_for_code: Callable[[], Awaitable[str]],
    ) -> None: ...


class _Waiting:
    """A login between its address and what comes back."""

    def __init__(self, server: str) -> None:
        loop = asyncio.get_running_loop()
        self.server = server
        self.url: asyncio.Future[str] = loop.create_future()
        self.came: asyncio.Future[str] = loop.create_future()
        self.ended: asyncio.Future[None] = loop.create_future()
        self.ended.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody may wait for it

    async def show(self, url: str) -> None:
        self.url.set_result(url)

    async def hear(self) -> str:
        return await self.came

    @property
    def state(self) -> str:
        return parse_qs(urlsplit(self.url.result()).query)["state"][0]


class PageLogins:
    """Used as a context: what waits ends with it. `begin` and `finish` raise McpDown."""

    def __init__(self, logins: LogsIn, seconds: float = SECONDS) -> None:
        self._logins = logins
        self._seconds = seconds
        self._waiting: dict[str, _Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> "PageLogins":
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def begin(self, server: McpServer, redirect: str) -> str:
        """The address that a person opens; `redirect` is where the gateway hears what comes back."""
        if len(self._tasks) >= _MOST_WAITING:
            raise McpDown("Too many logins wait for somebody to finish them. Try again in some minutes.")
        waiting = _Waiting(server.name)
        task = asyncio.create_task(self._run(server, redirect, waiting))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.wait((waiting.url, waiting.ended), return_when=asyncio.FIRST_COMPLETED)
        if not waiting.url.done():
            await waiting.ended
        self._waiting[waiting.state] = waiting
        return waiting.url.result()

    async def finish(self, query: str) -> str:
        """What came back, as the query of the address that the browser has asked for; gives the server's name."""
        state = parse_qs(query).get("state", [""])[0]
        waiting = self._waiting.pop(state, None)
        if waiting is None or waiting.ended.done():
            raise McpDown("No login waits for this. It may have lapsed: begin it again.")
        waiting.came.set_result(query)
        await asyncio.shield(waiting.ended)
        return waiting.server

    async def _run(self, server: McpServer, redirect: str, waiting: _Waiting) -> None:
        """How it ends is told to whoever waits for that, and to nobody where nobody does."""
        try:
            async with asyncio.timeout(self._seconds):
                await self._logins.log_in(server, redirect=redirect, show_url=waiting.show, wait_for_code=waiting.hear)
            waiting.ended.set_result(None)
        except TimeoutError:
            waiting.ended.set_exception(McpDown(f"Nobody has logged in to {server.name} within {self._seconds:g} s."))
        except EverloopError as error:
            waiting.ended.set_exception(error)
        finally:
            waiting.ended.cancel()
            self._waiting = {state: each for state, each in self._waiting.items() if each is not waiting}
