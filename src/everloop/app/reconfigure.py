"""Settings are changed while the house is open, keys kept, models tried, and the next turn knows.

A change builds all anew and, once it is known to be good and the file is written, puts that in the place of what there
was. Turns that run end with what they began with.
"""

import asyncio
import os
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..errors import EverloopError, ModelMissing
from ..ports import Audit
from ..providers.catalog import HOSTS
from ..providers.keys import checked_key, keyed_host, notes_on
from ..providers.offered import rank, takes_key
from ..settings import Preset, Settings
from ..settings.edit import Path, path_of
from ..settings.editor import SettingsEditor, changes_of
from ..settings.rows import SettingsRow, value_at
from ..settings.scopes import scopes_for
from .build import Builder, Built
from .destinations import check_destinations
from .live import LiveHouse, taken_over
from .settings_writing import write_noted
from .trial import Trials, TriedOut, trials_of, trials_with


class Looked(Struct, frozen=True):
    """The settings as the file and all that lies over it have them. `waiting` are in force after the next start."""

    version: str
    file: str
    rows: list[SettingsRow]
    waiting: list[str]


class KeyRow(Struct, frozen=True):
    """A provider: `where` its key is found, "" where there is none; `variable` could hold it. `login`: it has none."""

    name: str
    where: str
    variable: str
    login: bool
    in_vault: bool
    problem: str = ""
    needs_key: bool = False


class LiveSettings:
    """What the gateway asks for where settings are shown and changed."""

    def __init__(self, book: SettingsEditor, builder: Builder, live: LiveHouse, audit: Audit) -> None:
        self.book = book
        self._audit = audit
        self._builder = builder
        self._live = live
        self._vault = builder.vault

    @property
    def _now(self) -> Built:
        return self._live.now

    async def look(self) -> Looked:
        """Raises SettingsError when the file has been spoiled meanwhile."""
        edition = await asyncio.to_thread(self.book.read)
        waiting = waiting_in(edition.rows, edition.settings, self._now.settings)
        return Looked(edition.version, edition.file.name, edition.rows, waiting)

    def scopes_for(self, asked: Mapping[str, Any]) -> set[str]:
        """What a change needs beside `admin`. Raises SettingsError for what is no setting."""
        return scopes_for(change.path for change in changes_of(asked))

    async def change(self, asked: Mapping[str, Any], version: str = "") -> Looked:
        """Change settings: in the file and, as far as it can be done, in the open house.

        Raises SettingsError, which names the setting, SettingsMoved and HomeError; then nothing has changed.
        """
        async with self._live.changing():
            draft = await asyncio.to_thread(self.book.draft, asked, version)
            wanted = draft.edition.settings
            await asyncio.to_thread(self._builder.check, wanted)
            before = (await asyncio.to_thread(self.book.read)).settings
            check_destinations(before, wanted, await self._builder.keys(wanted), os.environ)
            made = await self._builder.make(taken_over(self._now.settings, wanted))
            await write_noted(self.book, draft, self._audit)
            self._live.take(made, wanted)
        return await self.look()

    async def keys(self) -> list[KeyRow]:
        kept = await self._vault.names()
        accounts = self._now.settings.providers.accounts
        return [self._key_row(name, kept) for name in sorted({*HOSTS, *accounts}, key=rank)]

    async def keep_key(self, name: str, key: str) -> list[str]:
        """Keep the key of a provider in the vault, and tell what is to be known about it. Raises EverloopError."""
        host, key = keyed_host(name, self._now.settings.providers.accounts), checked_key(key)
        await self._vault.set(f"key:{host.name}", key)
        await self._live.renew()
        return notes_on(host, key, self._now.library.keys) if self._now.library else []

    async def forget_key(self, name: str) -> None:
        """Raises EverloopError when there is none in the vault."""
        if not await self._vault.forget(f"key:{name}"):
            raise EverloopError(f"the key of {name} is not in the vault")
        await self._live.renew()

    async def try_model(self, name: str) -> tuple[str, list[TriedOut]]:
        """Ask a model for an answer and a tool call; its name, and how that went. Raises ModelMissing."""
        trials = await self._trials(name)
        return trials.model, [await run(lambda progress: None) for run in trials.run]

    async def _trials(self, name: str) -> Trials:
        now = self._now
        if now.library is not None and now.presets is not None:
            return await trials_of(name, now.presets, now.library.models, self._builder.budgets)
        if name:
            raise ModelMissing("this program has one model, which was handed over to it")
        return trials_with(now.model, Preset(now.model.name), self._builder.budgets)

    def _key_row(self, name: str, kept: list[str]) -> KeyRow:
        host, keys = HOSTS.get(name), self._now.library.keys if self._now.library else None
        variable = (host.key_variables or ("",))[0] if host else ""
        row = KeyRow(name, "", variable, bool(host and host.login), f"key:{name}" in kept, needs_key=takes_key(name))
        if host is None or keys is None:
            return row
        try:
            found = keys.find(host)
        except ModelMissing as error:
            return replace(row, where="file", problem=str(error))
        return replace(row, where=found.where if found else "", problem=keys.locked(host))


def waiting_in(rows: list[SettingsRow], wanted: Settings, now: Settings) -> list[str]:
    """The keys whose values are not those in force."""
    return [row.key for row in rows if not row.is_pattern and _differ(path_of(row.key), wanted, now)]


def _differ(path: Path, wanted: Settings, now: Settings) -> bool:
    return bool(value_at(wanted, path) != value_at(now, path))
