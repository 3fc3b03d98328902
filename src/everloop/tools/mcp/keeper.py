"""Keeps the connection to one server: begun when somebody needs it, by one task, which alone opens and leaves it.

What fails is begun again when it is next needed, each time a little later (exponential backoff with jitter). Whoever
comes in the meantime is told at once what was wrong. A command that nobody has called for a while is ended.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence

import anyio
from msgspec import Struct

from ...errors import EverloopError, McpDown, McpLogin
from ...ports import Clock
from ...ports.mcp import McpHealth, McpOffer, McpServer, McpState, McpWires
from ...readings.visible import in_one_line
from .answering import ServersQuestions
from .connection import McpConnection, Mode, in_log, reason_of
from .running import RunningCall

_log = logging.getLogger("everloop.mcp")

FIRST, LONGEST = 0.5, 60.0  # seconds before it is begun again: after the first failure, and at most
CALM = 60.0  # seconds that it has to run for the failures before to be forgotten
WORTH_WAITING = 2.0  # seconds until it is begun again, for which a caller waits
ENDING = 20.0  # seconds that a wire may take to end
DEBOUNCE = 0.2  # seconds after a list has changed in which more of it may
RELIST = 1.0  # seconds between two looks at a list that changes; twice as long after each
LONGEST_RELIST = 60.0

QuestionsOf = Callable[[Callable[[], Sequence[RunningCall]]], ServersQuestions]


class Upkeep(Struct, frozen=True):
    """What keepers need beside their server. `on_offer` hears what a server offers, by its name; `idle` is after how
    many seconds a command that nobody calls is ended."""

    wires: McpWires
    clock: Clock
    spread: Callable[[], float]
    on_offer: Callable[[str, McpOffer], None]
    idle: float


class Keeper:
    """Of one server, as long as it is set up in the same way."""

    def __init__(self, server: McpServer, upkeep: Upkeep, questions: QuestionsOf) -> None:
        self._server = server
        self._upkeep = upkeep
        self._clock = upkeep.clock
        self._questions = questions
        self._task: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[McpConnection | McpDown] | None = None
        self._scope = anyio.CancelScope()
        self._mode: Mode = "auto"
        self._health = McpHealth("idle", self._clock.now())
        self._failure: McpDown | None = None  # the last
        self._failures = 0
        self._retry_at = 0.0
        self._used_at = 0.0
        self._is_over = False

    @property
    def health(self) -> McpHealth:
        return self._health

    def serves(self, server: McpServer) -> bool:
        """Whether a connection to this one would be the same."""
        now = self._server
        same = (server.seconds, server.sampling) == (now.seconds, now.sampling)
        return server is now or (same and server.setup == now.setup)

    async def connection(self, call: RunningCall) -> McpConnection:
        """One that is open. Raises McpDown, McpLogin."""
        while not self._is_over:
            self._used_at = self._clock.now()
            if self._task is None or self._task.done():
                await self._wait_for_its_turn(call)
                self._begin()
            found = await self._opened(call)
            if isinstance(found, McpDown):
                raise type(found)(found.message, found.said)
            if found is not None:
                return found
        raise McpDown(f"the MCP server {self._server.name} is set up in another way by now; call again")

    def used(self) -> None:
        self._used_at = self._clock.now()

    async def end(self) -> None:
        """When it returns, nothing of it runs any more, unless its wire cannot be ended, which is logged."""
        self._is_over = True
        if self._task is None or self._task.done():
            return
        self._scope.cancel()
        await asyncio.wait({self._task}, timeout=ENDING)
        if not self._task.done():
            _log.error("the connection to %s cannot be ended", self._server.name)
            self._task.cancel()

    async def _wait_for_its_turn(self, call: RunningCall) -> None:
        pause = self._retry_at - self._clock.now()
        if pause > min(WORTH_WAITING, call.left):
            assert self._failure is not None
            kind = McpLogin if isinstance(self._failure, McpLogin) else McpDown
            raise kind(f"{self._failure.message}; it is tried again in {math.ceil(pause)} s", self._failure.said)
        if pause > 0:
            await self._clock.sleep(pause)

    def _begin(self) -> None:
        """Another caller may have done so while this one waited."""
        if self._is_over or (self._task and not self._task.done()):
            return
        restarts = self._health.restarts + (self._failures > 0)
        self._ready = asyncio.get_running_loop().create_future()
        self._be("starting", self._health.why, restarts)
        self._task = asyncio.create_task(self._live(self._ready), name=f"everloop-mcp-{self._server.name}")

    async def _opened(self, call: RunningCall) -> McpConnection | McpDown | None:
        """None: one that was there is at its end, and another can be begun."""
        if self._ready is None or self._task is None:
            return None
        waits_for = self._task if self._ready.done() and self._is_lost else self._ready
        await asyncio.wait({waits_for}, timeout=max(call.left, 0))
        if not waits_for.done():
            raise self._silent(call.seconds)
        if not self._ready.done() or self._is_lost:
            return None
        return self._ready.result()

    @property
    def _is_lost(self) -> bool:
        if self._ready is None or not self._ready.done():
            return False
        found = self._ready.result()
        return isinstance(found, McpConnection) and found.is_lost

    async def _live(self, ready: "asyncio.Future[McpConnection | McpDown]") -> None:
        """Opens the connection, keeps it, and leaves it."""
        began = self._clock.now()
        failure: McpDown | None = None
        try:
            failure = await self._kept_open(ready)
        finally:
            if not ready.done():
                ready.set_result(failure or self._down("its connection was ended"))
            self._settle(failure, began)

    async def _kept_open(self, ready: "asyncio.Future[McpConnection | McpDown]") -> McpDown | None:
        """Why it has ended; None: because it was to."""
        why = said = ""
        self._scope = anyio.CancelScope(deadline=anyio.current_time() + self._server.seconds)
        try:
            with self._scope:
                connection = self._connection()
                try:
                    async with connection.opened():
                        self._scope.deadline = math.inf
                        self._be("running")
                        ready.set_result(connection)
                        await self._hold(connection)
                finally:
                    why, said = connection.why, connection.said
        # The border to the SDK and to a stranger: what is said there can make anything fail.
        except (Exception, BaseExceptionGroup) as error:
            return self._read(_leaf(error), why)
        return None if self._is_over else self._why_ended(why, said, was_open=ready.done())

    def _connection(self) -> McpConnection:
        """Raises McpDown."""
        wire = self._upkeep.wires.open(self._server)
        return McpConnection(self._server, wire, self._questions, on_offer=self._tell, mode=self._mode)

    def _why_ended(self, why: str, said: str, was_open: bool) -> McpDown | None:
        if was_open:
            return self._down(why, said) if why else None
        # Some older servers say nothing at all to what they do not know, as the newer handshake is to them.
        self._mode = "legacy" if self._mode == "auto" else "auto"
        return self._silent(self._server.seconds)

    async def _hold(self, connection: McpConnection) -> None:
        """Until it is lost, or idle."""
        async with anyio.create_task_group() as beside:
            beside.start_soon(connection.follow)
            beside.start_soon(self._list_again, connection)
            if self._server.transport == "stdio":
                beside.start_soon(self._retire, connection)
            await connection.until_lost()
            beside.cancel_scope.cancel()

    async def _retire(self, connection: McpConnection) -> None:
        idle = self._upkeep.idle
        while connection.is_busy or self._clock.now() - self._used_at < idle:
            await self._clock.sleep(max(idle - (self._clock.now() - self._used_at), 1.0))
        connection.retire()

    async def _list_again(self, connection: McpConnection) -> None:
        """When it says that its list has changed; the oftener it says so, the later."""
        pause = RELIST
        while True:
            since = anyio.current_time()
            await connection.lists_changed.wait()
            pause = RELIST if anyio.current_time() - since > LONGEST_RELIST else pause
            await anyio.sleep(DEBOUNCE)
            connection.lists_changed.clear()
            try:
                await connection.offer(RunningCall(None, self._server.seconds, 0.0))
            except McpDown as error:
                _log.info("%s", error)
            await anyio.sleep(pause)
            pause = min(pause * 2, LONGEST_RELIST)

    def _tell(self, offer: McpOffer) -> None:
        self._upkeep.on_offer(self._server.name, offer)

    def _read(self, error: BaseException, why: str) -> McpDown:
        if isinstance(error, McpDown):
            return error
        _log.info("%s cannot be spoken with: %s", self._server.name, in_log(error))
        if why:
            return self._down(why)
        return self._down(f"it does not speak MCP as it should: {reason_of(error)}")

    def _settle(self, failure: McpDown | None, began: float) -> None:
        if failure is None:
            self._failures = 0
            self._be("idle", "")
            return
        self._failure = failure
        self._failures = 1 if self._clock.now() - began >= CALM else self._failures + 1
        pause = min(LONGEST, FIRST * 2 ** min(self._failures - 1, 16)) * (0.5 + self._upkeep.spread() / 2)
        self._retry_at = self._clock.now() + pause
        _log.warning("%s", in_one_line(str(failure)))
        self._be("login" if isinstance(failure, McpLogin) else "waiting", str(failure))

    def _be(self, state: McpState, why: str | None = None, restarts: int | None = None) -> None:
        before = self._health
        self._health = McpHealth(
            state,
            self._clock.now(),
            before.why if why is None else why,
            before.restarts if restarts is None else restarts,
        )

    def _silent(self, seconds: float) -> McpDown:
        """What it says elsewhere may tell why, as that it waits for something, or listens at a port."""
        said = self._upkeep.wires.last_said(self._server)
        return self._down(f"it did not start, or did not answer, within {seconds:g} s", said)

    def _down(self, why: str, said: str = "") -> McpDown:
        return McpDown(f"the MCP server {self._server.name} cannot be used now: {why}", said)


def _leaf(error: BaseException) -> BaseException:
    """What went wrong, out of the groups that the SDK's tasks put around it."""
    while isinstance(error, BaseExceptionGroup):
        told = [each for each in error.exceptions if isinstance(each, EverloopError | BaseExceptionGroup)]
        error = (told or error.exceptions)[0]
    return error
