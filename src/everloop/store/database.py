"""What the statements that are written once ask of a database, be it SQLite or PostgreSQL.

A statement has its values as $1, $2 … and the words in which the databases differ in braces (schema.DIALECTS). Work of
several statements is a coroutine that only ever waits for them. On PostgreSQL it is awaited, and takes its locks in the
order of batch_function.py: session, then threads by id. On SQLite, where a statement answers at once, it is run to its
end in one go (`run_at_once`), inside the writer's transaction.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, ClassVar, Protocol, TypeVar

Result = TypeVar("Result")
Ask = Callable[..., Awaitable[Sequence[Any]]]


class Does(Protocol):
    def __call__(self, work: Callable[[Ask], Coroutine[Any, Any, Result]]) -> Awaitable[Result]:
        """Do a piece of work in one transaction."""
        ...


class Database(ABC):
    SEES_HOLDERS: ClassVar[bool]  # whether a process that is gone is known to be, before its leases run out

    holder: str  # this process's name on leases and claims

    @abstractmethod
    async def _ask(self, statement: str, *values: object) -> Sequence[Any]:
        """Read."""
        ...

    async def _glance(self, statement: str, *values: object) -> Sequence[Any]:
        """Read a row or two, for whoever asks with every message."""
        return await self._ask(statement, *values)

    @abstractmethod
    async def _change(self, statement: str, *values: object) -> Sequence[Any]:
        """Write, by one statement, which may return rows."""
        ...

    @abstractmethod
    async def _do(self, work: Callable[[Ask], Coroutine[Any, Any, Result]]) -> Result:
        """Do a piece of work in one transaction."""
        ...

    @abstractmethod
    def _alive(self, holder: str) -> bool:
        """False when a process is surely gone, so that its leases need not run out."""
        ...

    async def _changed_one(self, statement: str, *values: object) -> bool:
        """Whether a statement that returns what it has changed has changed anything."""
        return bool(await self._change(statement, *values))


def run_at_once(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that never has to wait."""
    try:
        work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    raise RuntimeError("work of the store has waited for something else than its statements")
