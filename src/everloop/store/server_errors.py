"""What is said when PostgreSQL cannot be reached or refuses. What a person reads never holds the password."""

import os
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qs, parse_qsl, urlsplit

import asyncpg

from ..errors import StoreError, StoreFull, StoreUnreachable
from .pooling import SHARED, tells_of_sharing

_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")


class ServerErrors:
    """With the server of this name."""

    def __init__(self, name: str) -> None:
        self._server = f"the database server {name}"

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Turn the driver's errors into ours, with a sentence that a person can act on."""
        try:
            yield
        except asyncpg.InvalidAuthorizationSpecificationError as error:
            raise StoreUnreachable(
                f"{self._server} does not let us in ({error}): check the user and the password, which stands in "
                "store.url, PGPASSWORD or ~/.pgpass"
            ) from error
        except asyncpg.InvalidCatalogNameError as error:
            raise StoreUnreachable(f"{self._server}: {error}. Create it first") from error
        except (asyncpg.InsufficientPrivilegeError, asyncpg.InvalidSchemaNameError) as error:
            raise StoreError(f"{self._refusal(error)}. Let the database belong to the user of store.url") from error
        except asyncpg.DiskFullError as error:
            raise StoreFull(f"the disk of {self._server} is full: nothing was written") from error
        except asyncpg.ReadOnlySQLTransactionError as error:
            raise StoreFull(f"{self._server} is read-only: nothing was written") from error
        except asyncpg.QueryCanceledError as error:
            raise StoreUnreachable(f"{self._server} took too long ({error})") from error
        except asyncpg.LockNotAvailableError as error:
            raise StoreUnreachable(
                f"{self._server} took too long ({error}): another session holds what was to be written"
            ) from error
        except asyncpg.ProtocolViolationError as error:
            raise StoreUnreachable(self._refusal(error)) from error
        except _SILENT as error:
            raise StoreUnreachable(self._silence(error)) from error
        except asyncpg.PostgresError as error:
            raise StoreError(self._refusal(error)) from error

    def in_tls(self, error: ssl.SSLError) -> StoreUnreachable:
        """When a connection was to be made."""
        if isinstance(error, ssl.SSLCertVerificationError):
            return StoreUnreachable(
                f"{self._server} is not trusted ({error.verify_message}): check sslrootcert, and that "
                "the host in the url is a name of its certificate"
            )
        if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return StoreUnreachable(self._silence(error))
        return StoreUnreachable(
            f"there is no TLS with {self._server} ({error}): check sslmode and the files that the url names"
        )

    def _silence(self, error: Exception) -> str:
        if tells_of_sharing(error):
            return self._refusal(error)
        if "rejected SSL upgrade" in str(error):
            return f"{self._server} has no TLS, and the url asks for it: check sslmode"
        reason = str(error) or type(error).__name__
        return f"{self._server} does not answer ({reason}): check that it runs and can be reached"

    def _refusal(self, error: Exception) -> str:
        if tells_of_sharing(error):
            return f"{self._server} refused ({_first_line(error)}): {SHARED}"
        return f"{self._server} refused: {error}"

    def plain(self, error: Exception) -> Exception:
        try:
            with self.plainly():
                raise error
        except Exception as plain:  # whatever it was, those who wait are told
            return plain


_SILENT = (
    OSError,
    TimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
)


def _first_line(error: Exception) -> str:
    """Without asyncpg's advice on how to write a program."""
    return str(error).partition("\n")[0]


def name_of(url: str) -> str:
    parts = urlsplit(url)
    _, _, place = parts.netloc.rpartition("@")
    if "@" in url and "@" not in parts.netloc:
        raise unreadable()
    return f"{place or parse_qs(parts.query).get('host', ['localhost'])[0]}{parts.path}"


def check_files(url: str) -> None:
    """What is not there may be the socket of the server, too, and the system does not say which."""
    for name, path in parse_qsl(urlsplit(url).query):
        if name in _FILES and not os.path.exists(path):
            raise StoreUnreachable(f"the url of the database says {name}={path}, and there is no such file") from None


def unusable_url(error: ValueError) -> StoreUnreachable | None:
    text = _first_line(error)
    if isinstance(error, asyncpg.ClientConfigurationError) and ("certificate" in text or "sslmode" in text):
        return StoreUnreachable(f"the url of the database asks for what cannot be had: {text}")
    return None


def unreadable() -> StoreUnreachable:
    return StoreUnreachable(
        "the url of the database cannot be read. It looks like postgresql://user:password@host:5432/name, "
        "and characters such as / @ # ? in the password are written as %2F %40 %23 %3F"
    )
