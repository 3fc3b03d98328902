"""A wire's questions by asyncpg's public way to ask, for when its inner parts are not those that wire.py knows.

It does the same for more: a task, a timer and some rounds of the event loop for each question.
"""

import asyncio
import functools
import logging
from typing import Any, Generic, Protocol, TypeVar

from .server import ANSWER_SECONDS, Connection
from .wire import REST_SECONDS, Heard, Question, Row, Statement, Wire

_log = logging.getLogger(__name__)

Asked = TypeVar("Asked", contravariant=True)


class AnyWire(Protocol[Asked, Row]):
    """As Wire says."""

    def ask(self, question: Asked, heard: Heard[Row]) -> None: ...

    def is_closed(self) -> bool: ...

    def close(self) -> None: ...


class FetchingWire(Generic[Question, Row]):
    def __init__(self, connection: Connection, prepared: Any, statement: Statement[Question, Row]) -> None:
        self._connection = connection
        self._prepared = prepared
        self._statement = statement
        self._loop = asyncio.get_running_loop()
        self._asked = self._loop.time()
        self._task: asyncio.Task[list[Row]] | None = None

    def ask(self, question: Question, heard: Heard[Row]) -> None:
        self._asked = self._loop.time()
        self._task = self._loop.create_task(self._fetch(question), name="everloop-fetch")
        self._task.add_done_callback(lambda task: heard(self._answer_of(task)))

    def is_closed(self) -> bool:
        return bool(self._connection.is_closed()) or self._loop.time() - self._asked >= REST_SECONDS

    def close(self) -> None:
        self._connection.terminate()

    async def _fetch(self, question: Question) -> list[Row]:
        values = (*self._statement.same, *self._statement.plain(question))
        return [self._statement.row(*row) for row in await self._prepared.fetch(*values, timeout=ANSWER_SECONDS)]

    def _answer_of(self, task: "asyncio.Task[list[Row]]") -> list[Row] | Exception:
        if task.cancelled():  # what the server was doing is not known
            self.close()
            return TimeoutError("the question was broken off")
        error = task.exception()
        return error if isinstance(error, Exception) else task.result()


def wire_over(connection: Connection, prepared: Any, statement: Statement[Question, Row]) -> AnyWire[Question, Row]:
    """The quick way where asyncpg allows it."""
    try:
        return Wire(connection, statement)
    except AttributeError as error:
        _tell_once(str(error))
        return FetchingWire(connection, prepared, statement)


@functools.cache
def _tell_once(reason: str) -> None:
    _log.info(
        "this asyncpg is new to us (%s): PostgreSQL is written to by its public interface, which is slower", reason
    )
