"""The way to a PostgreSQL server: how it is reached, and what each session of ours is told first."""

import logging
import re
import ssl
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from urllib.parse import parse_qsl, urlencode

import asyncpg

from ..errors import StoreError, StoreNewer
from ..ports.failpoint import reach
from . import schema
from .keepalive import keep_alive
from .pooling import SHARED, share_sessions
from .schema import Migrations
from .server_errors import ServerErrors, check_files, name_of, unreadable, unusable_url

Connection = Any  # asyncpg has no types
Pool = Any

READERS = 4
CONNECT_SECONDS = 5.0
MIGRATION_SECONDS = 3600.0
ANSWER_SECONDS = 10.0  # after which we no longer wait for the server; it gives up a little earlier by itself
WAIT_SECONDS = 8.0  # for what others hold
LOCK_SECONDS = 2.0  # of them at a time: who waits on a connection keeps others from it

_OPTIONS = {
    "timeout": CONNECT_SECONDS,
    "command_timeout": ANSWER_SECONDS,
    "target_session_attrs": "primary",
    "server_settings": {"application_name": "everloop"},
}
# Not among the parameters of a new connection, for those a pooler may refuse.
_SETTINGS = {
    "synchronous_commit": "on",
    "statement_timeout": "8s",
    "lock_timeout": "2s",
    "idle_in_transaction_session_timeout": "3s",  # a frozen process must not hold the locks of a command
    "jit": "off",
    "enable_seqscan": "off",  # plans are kept, and one made for a small table would be slow when it has grown
}


# Without effect where a pooler stands between: it has numbers of its own for its connections.
_SET = (
    "SELECT set_config(s.name, s.value, false) FROM unnest($1::text[], $2::text[]) AS s(name, value) "
    "WHERE $3 IN (0, pg_backend_pid())"
)


_REFUSED_PARAMETER = re.compile(r"unsupported startup parameter: (\w+)")


class Server:
    def __init__(self, url: str) -> None:
        self._url = url
        self._settings = dict(_SETTINGS)
        self.name = name_of(url)
        self._errors = ServerErrors(self.name)

    def search_before_the_catalog(self, schema: str) -> None:
        """Find what lies in a schema before PostgreSQL's own, on the connections that are made from now on."""
        self._settings["search_path"] = f"{schema}, pg_catalog"

    def only_read(self) -> None:
        """Have the server refuse every write, on the connections that are made from now on."""
        self._settings["default_transaction_read_only"] = "on"

    async def connect(self) -> Connection:
        return await self._reach(self._connect)

    async def pool(self) -> Pool:
        logging.getLogger("asyncpg.pool").addFilter(_is_news)
        return await self._reach(
            asyncpg.create_pool, min_size=1, max_size=READERS, init=self._begin, reset=_leave_as_it_is
        )

    async def _reach(self, connect: Callable[..., Awaitable[Any]], **options: Any) -> Any:
        with self.plainly():
            while True:
                try:
                    return await connect(self._url, **_OPTIONS, **options)
                except asyncpg.ProtocolViolationError as error:
                    if not self._set_later(error):
                        raise
                except FileNotFoundError:
                    check_files(self._url)
                    raise
                except ssl.SSLError as error:
                    raise self._errors.in_tls(error) from error
                except ValueError as error:  # its text may quote a piece of the password
                    raise unusable_url(error) or unreadable() from None

    async def _connect(self, url: str, **options: Any) -> Connection:
        connection = await asyncpg.connect(url, **options)
        try:
            await self._begin(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _set_later(self, error: asyncpg.ProtocolViolationError) -> bool:
        """A parameter of the url that a pooler does not take is set when the connection is there."""
        refused = _REFUSED_PARAMETER.search(str(error))
        base, _, query = self._url.partition("?")
        values = dict(parse_qsl(query))
        if refused is None or refused[1] not in values or refused[1] == "options":
            return False
        self._settings[refused[1]] = values.pop(refused[1])
        self._url = f"{base}?{urlencode(values)}"
        return True

    async def _begin(self, connection: Connection) -> None:
        keep_alive(connection)
        if not await self._set(connection, connection.get_server_pid()):
            await self._check_pooler(connection)
            await self._set(connection, 0)

    async def _set(self, connection: Connection, session: int) -> Sequence[Any]:
        rows: Sequence[Any] = await connection.fetch(_SET, list(self._settings), list(self._settings.values()), session)
        return rows

    async def _check_pooler(self, connection: Connection) -> None:
        """Before anything is set: it would stay with a session that is others', too."""
        other = await asyncpg.connect(self._url, **_OPTIONS)
        try:
            if await share_sessions(connection, other):
                raise StoreError(f"the database server {self.name} cannot be used: {SHARED}")
        finally:
            other.terminate()

    async def migrate(self, connection: Connection, migrations: Migrations) -> None:
        """Bring the schema up to date, one process after the other. Raises StoreNewer."""
        target = len(migrations)
        async with connection.transaction():
            await connection.execute("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0")
            await connection.execute(
                "SELECT pg_advisory_xact_lock(hashtext('everloop ' || current_schema()))", timeout=MIGRATION_SECONDS
            )
            if await connection.fetchval("SELECT to_regclass('everloop_schema') IS NULL"):
                await connection.execute("CREATE TABLE everloop_schema(version BIGINT NOT NULL)")
                await connection.execute("INSERT INTO everloop_schema VALUES(0)")
            version = await connection.fetchval("SELECT version FROM everloop_schema")
            self._check(version, target)
            for statement in schema.statements("postgres", migrations[version:]):
                try:
                    await connection.execute(statement, timeout=MIGRATION_SECONDS)
                except asyncpg.PostgresError as error:
                    raise StoreError(
                        f"the database {self.name} could not be brought from schema {version} to {target} ({error}). "
                        "It was left as it was, for it is one transaction, and the everloop of before goes on with it"
                    ) from error
                reach("store.migrating")
            if version < target:
                await connection.execute("UPDATE everloop_schema SET version = $1", target)

    def _check(self, version: int, known: int) -> None:
        if version > known:
            raise StoreNewer(schema.newer(f"the database {self.name}", version, known))

    def plainly(self) -> AbstractContextManager[None]:
        """Turn the driver's errors into ours, with a sentence that a person can act on."""
        return self._errors.plainly()

    def plain(self, error: Exception) -> Exception:
        """The same for one that was not raised."""
        return self._errors.plain(error)


async def _leave_as_it_is(connection: Connection) -> None:
    """Our sessions keep no state, and asyncpg's way to clear it would be a second round trip for each read."""


def _is_news(record: logging.LogRecord) -> bool:
    """While the server is away, the pool tells with a traceback of each try to reach it. Whoever asks is told, too."""
    return not record.exc_info
