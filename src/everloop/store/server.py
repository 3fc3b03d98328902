"""The way to a PostgreSQL server: where it is, how it is reached, and what is said when it is not.

What a person reads never holds the password.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import asyncpg

from ..core.errors import StoreError, StoreFull, StoreNewer, StoreUnreachable
from ..core.failpoint import reach
from . import schema
from .schema import Migrations

Connection = Any  # asyncpg has no types
Pool = Any

READERS = 4
CONNECT_SECONDS = 5.0
MIGRATION_SECONDS = 3600.0
ANSWER_SECONDS = 10.0  # after which we no longer wait for the server; it gives up a little earlier by itself

_OPTIONS = {
    "timeout": CONNECT_SECONDS,
    "command_timeout": ANSWER_SECONDS,
    "target_session_attrs": "primary",
    "server_settings": {
        "application_name": "everloop",
        "synchronous_commit": "on",
        "statement_timeout": "8s",
        "idle_in_transaction_session_timeout": "3s",  # a frozen process must not hold the locks of a command
        "jit": "off",
        "enable_seqscan": "off",  # plans are kept, and one made for a small table would be slow when it has grown
    },
}


class Server:
    def __init__(self, url: str) -> None:
        self._url = url
        self.name = _name(url)

    async def connect(self) -> Connection:
        return await self._reach(asyncpg.connect)

    async def pool(self) -> Pool:
        return await self._reach(asyncpg.create_pool, min_size=1, max_size=READERS, reset=_leave_as_it_is)

    async def _reach(self, connect: Callable[..., Awaitable[Any]], **options: Any) -> Any:
        with self.plainly():
            try:
                return await connect(self._url, **_OPTIONS, **options)
            except ValueError:  # its text may quote a piece of the password
                raise _unreadable() from None

    async def migrate(self, connection: Connection, migrations: Migrations) -> None:
        """Bring the schema up to date, one process after the other. Raises StoreNewer."""
        target = len(migrations)
        async with connection.transaction():
            await connection.execute("SET LOCAL statement_timeout = 0")
            await connection.execute(
                "SELECT pg_advisory_xact_lock(hashtext('everloop ' || current_schema()))", timeout=MIGRATION_SECONDS
            )
            if await connection.fetchval("SELECT to_regclass('everloop_schema') IS NULL"):
                await connection.execute("CREATE TABLE everloop_schema(version BIGINT NOT NULL)")
                await connection.execute("INSERT INTO everloop_schema VALUES(0)")
            version = await connection.fetchval("SELECT version FROM everloop_schema")
            self._check(version, target)
            for statement in schema.statements("postgres", migrations[version:]):
                await connection.execute(statement, timeout=MIGRATION_SECONDS)
                reach("store.migrating")
            if version < target:
                await connection.execute("UPDATE everloop_schema SET version = $1", target)

    def _check(self, version: int, known: int) -> None:
        if version > known:
            raise StoreNewer(schema.newer(f"the database {self.name}", version, known))

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Turn the driver's errors into ours, with a sentence that a person can act on."""
        try:
            yield
        except asyncpg.InvalidAuthorizationSpecificationError as error:
            raise StoreUnreachable(
                f"the database server {self.name} does not let us in ({error}): check the user and the password"
            ) from error
        except asyncpg.InvalidCatalogNameError as error:
            raise StoreUnreachable(f"the database server {self.name}: {error}. Create it first") from error
        except asyncpg.DiskFullError as error:
            raise StoreFull(f"the disk of the database server {self.name} is full: nothing was written") from error
        except asyncpg.ReadOnlySQLTransactionError as error:
            raise StoreFull(f"the database server {self.name} is read-only: nothing was written") from error
        except asyncpg.QueryCanceledError as error:
            raise StoreUnreachable(f"the database server {self.name} took too long ({error})") from error
        except _SILENT as error:
            raise StoreUnreachable(
                f"the database server {self.name} does not answer ({str(error) or type(error).__name__}): "
                "check that it runs and can be reached"
            ) from error
        except asyncpg.PostgresError as error:
            raise StoreError(f"the database server {self.name} refused: {error}") from error


_SILENT = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
)


async def _leave_as_it_is(connection: Connection) -> None:
    """Our sessions keep no state, and asyncpg's way to clear it would be a second round trip for each read."""


def _name(url: str) -> str:
    parts = urlsplit(url)
    _, _, place = parts.netloc.rpartition("@")
    if "@" in url and "@" not in parts.netloc:
        raise _unreadable()
    return f"{place or parse_qs(parts.query).get('host', ['localhost'])[0]}{parts.path}"


def _unreadable() -> StoreUnreachable:
    return StoreUnreachable(
        "the url of the database cannot be read. It looks like postgresql://user:password@host:5432/name, "
        "and characters such as / @ # ? in the password are written as %2F %40 %23 %3F"
    )
