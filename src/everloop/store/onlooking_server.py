"""As onlooking.py, of a store on a PostgreSQL server: what would write is refused by the server."""

from msgspec import Struct

from .postgres import PostgresStore
from .server import Connection, Server

_FACTS = (
    "SELECT current_setting('server_version_num')::int, current_setting('server_version'), "
    "current_setting('synchronous_commit'), current_setting('fsync'), current_setting('full_page_writes'), "
    "coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), false), "
    "extract(epoch from clock_timestamp())::float8, "
    "current_user::text, current_database()::text, "
    "coalesce(has_schema_privilege(current_schema(), 'CREATE'), false)"
)


class ServerFacts(Struct, frozen=True):
    """What a server says of itself; `now` is its time, `tls` whether we speak with it by TLS, `may_make` whether this
    user makes tables in this database."""

    number: int
    version: str
    synchronous_commit: str
    fsync: str
    full_page_writes: str
    tls: bool
    now: float
    user: str
    database: str
    may_make: bool


async def look_at_postgres(url: str, lease_seconds: float = 30.0) -> tuple[PostgresStore, int] | None:
    """As look_at_sqlite; None where nobody has begun with it yet. Raises StoreError."""
    server = Server(url)
    server.only_read()
    pool = await server.pool()
    try:
        with server.plainly():
            async with pool.acquire() as connection:
                version = await _version(connection)
    except BaseException:
        pool.terminate()
        raise
    if version is None:
        pool.terminate()
        return None
    return PostgresStore(server, pool, lease_seconds), version


async def facts_of(url: str) -> ServerFacts:
    """Raises StoreError."""
    server = Server(url)
    server.only_read()
    connection = await server.connect()
    try:
        with server.plainly():
            return ServerFacts(*await connection.fetchrow(_FACTS))
    finally:
        connection.terminate()


async def _version(connection: Connection) -> int | None:
    if await connection.fetchval("SELECT to_regclass('everloop_schema') IS NULL"):
        return None
    return int(await connection.fetchval("SELECT version FROM everloop_schema"))
