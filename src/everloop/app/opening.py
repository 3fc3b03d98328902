"""The one way into a home: its settings are read, its store is opened, its vault stays shut until somebody asks it."""

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..errors import HomeError
from ..ports import Clock, Store, Vault
from ..ports.channel_state import ChannelRecords
from ..settings import Settings, home_of, load
from .restore_marker import RESTORING, marker_beside
from .settings_files import SettingsFiles

HALF = (
    "the home {home} is half restored: a restore was cut off. Run `everloop backup restore` again with the same file, "
    "or remove the folder"
)
MOVED = (
    "the home {home} is half restored: a restore was cut off, and what was there before lies in {aside}, whole. Run "
    "`everloop backup restore` again with the same file, or remove {home} and rename {aside} to it"
)


class OpenHome(Struct, frozen=True):
    """A home that is open. `given` is what the program has set, which lies over the file."""

    home: Path
    settings: Settings
    store: Store
    vault: Vault
    links: Vault  # where the key lies by which links to files are signed
    vault_of: Callable[[str], Vault]  # of what is a person's alone
    files: SettingsFiles
    state_of: Callable[[str], ChannelRecords]  # of a channel
    given: Mapping[str, Any] = {}

    def settings_now(self) -> Settings:
        """As the file has them by now. Raises SettingsError."""
        return _loaded(self.home, self.given)


@asynccontextmanager
async def opened_home(
    home: str | os.PathLike[str] | None = None, given: Mapping[str, Any] = {}, clock: Clock | None = None
) -> AsyncIterator[OpenHome]:
    """Raises SettingsError, HomeError, StoreError."""
    from ..store.channel_state import SealedChannelRecords
    from ..store.vault import EncryptedVault, key_of

    folder = Path(home) if home is not None else home_of(os.environ)
    check_whole(folder)
    files = SettingsFiles(folder)
    settings = _loaded(folder, given)
    files.follow(settings)
    with _in_use(folder, settings):
        store = await _connected(folder, settings, clock)
        try:
            key = key_of(folder, os.environ)
            state_of = partial(SealedChannelRecords, store, key)
            vault, links = EncryptedVault(store, key), EncryptedVault(store, key, "gateway")
            yield OpenHome(
                folder, settings, store, vault, links, partial(EncryptedVault, store, key), files, state_of, given
            )
        finally:
            await store.close()


@contextmanager
def _in_use(home: Path, settings: Settings) -> Iterator[None]:
    """SQLite says by itself that a home is in use. Where rows lie in PostgreSQL the files of a home are used as well,
    and no restore is to move them away beneath a process."""
    if not settings.store.url or not os.access(home, os.W_OK):  # what cannot be written is moved away by nobody
        yield
        return
    from ..store.holders import Holders

    holders = Holders(home / "run")
    holders.bury(holders.dead())
    try:
        yield
    finally:
        holders.close()


def check_whole(home: Path) -> None:
    """Raises HomeError."""
    if said := half_restored(home):
        raise HomeError(said)


def half_restored(home: Path) -> str:
    """What is wrong where a restore was cut off; "" where none was. A home that was moved aside for it is known also
    before anything is in its place."""
    beside = marker_beside(home)
    if not os.path.exists(home / RESTORING) and not os.path.exists(beside):
        return ""
    from .new_home import aside_of

    if aside := aside_of(home):
        return MOVED.format(home=home, aside=aside)
    return HALF.format(home=home) if os.path.exists(home / RESTORING) else ""


def _loaded(home: Path, given: Mapping[str, Any]) -> Settings:
    """Those of channels are looked at by whoever opens them, or tells of them. Raises SettingsError."""
    return load(home, os.environ, given)


async def _connected(home: Path, settings: Settings, clock: Clock | None) -> Store:
    """On PostgreSQL the time is the server's, the same for all machines, unless a clock is handed over."""
    if settings.store.url and clock is not None:
        from ..store.clocked import ClockedPostgresStore

        return await ClockedPostgresStore.connect_by(clock, settings.store.url, settings.store.lease_seconds)
    if settings.store.url:
        from ..store.postgres import PostgresStore

        return await PostgresStore.connect(settings.store.url, settings.store.lease_seconds)
    from ..store.sqlite import SqliteStore

    return await SqliteStore.connect(home, settings.store.lease_seconds, clock=clock)
