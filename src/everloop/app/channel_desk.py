"""Channels as they are set up, tried and removed: by the command line, and by the page.

What is secret goes into the vault, and the settings file refers to it; all else stands there. Everything is checked
and, unless it is not wanted, tried with a real call before anything is written. A gateway that runs sees the change.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..errors import ChannelDown, ChannelRefused, EverloopError, SettingsError
from ..ports import Http
from ..ports.audit import line_of
from ..ports.channel import Probed, Probes, Setup, SetupField
from ..ports.listening import ChannelRow
from ..runtime.strangers import contained
from ..settings import Settings
from ..settings.edit import SettingChange
from ..settings.editor import SettingsDraft, SettingsEditor
from ..settings.shape import snake
from ..settings.unused import is_off
from .channel_packages import installed, login_of, setup_of
from .channel_status import ChannelStatus
from .channels import Unopened, expanded, is_secret, opened, references_in, table_of, values_of, without_secrets_of
from .models import network_of
from .opening import OpenHome, opened_home
from .secrets import VAULT, checked_secret, forget_secret, keep_secret, kept_secrets, take_out
from .settings_writing import write_noted

PROBING = 30.0  # seconds for a platform to say who we are


class ChannelAdded(Struct, frozen=True):
    """A channel that was set up: what its platform says of us, or None where it was not asked or cannot be."""

    row: ChannelRow
    probed: Probed | None = None


class ChannelDesk:
    def __init__(
        self,
        opened_home: OpenHome,
        book: SettingsEditor,
        http: Callable[[], Http],
        changed: Callable[[], Awaitable[None]],
    ) -> None:
        """`changed` is called when something was written, for whoever has channels open here."""
        self._home = opened_home
        self._book = book
        self._http = http
        self._changed = changed
        self._status = ChannelStatus(opened_home.home, opened_home.store, opened_home.vault)
        self._alone = asyncio.Lock()

    async def is_there(self, name: str) -> bool:
        """Whether there is such a channel, or one of that name is set. Raises SettingsError."""
        return name in installed() or table_of(await self._settings(), name) is not None

    async def rows(self) -> list[ChannelRow]:
        """Raises SettingsError, StoreError."""
        return await self._status.rows(await self._settings())

    async def row(self, name: str) -> ChannelRow:
        """Raises EverloopError."""
        for each in await self.rows():
            if each.name == name:
                return each
        setup_of(name)  # which says that there is none
        raise EverloopError(f"there is no channel {name[:50]!r}")

    def setup(self, name: str) -> Setup:
        """Raises EverloopError."""
        return setup_of(name)

    def login_fields(self, name: str) -> tuple[SetupField, ...]:
        """What is asked for a login; () where there is none. Raises EverloopError."""
        found = login_of(name)
        return found[0] if found else ()

    async def test(self, name: str) -> Probed | None:
        """As it is set: what its platform says of us. None where it cannot be asked. Raises EverloopError."""
        settings = await self._settings()
        if table_of(settings, name) is None:
            setup_of(name)
            raise EverloopError(f"the channel {name} is not set up: everloop channels add {name}")
        values = await expanded(settings, name, self._home.vault)
        if isinstance(values, Unopened):
            raise SettingsError(values.why)
        return await self._probe(name, values)

    async def add(self, name: str, given: Mapping[str, Any], *, test: bool = True) -> ChannelAdded:
        """Set it up with these settings, in the place of those that it asks for; any other stays as it was. Raises
        EverloopError, and nothing was written then."""
        setup = setup_of(name)
        fields = {field.name: field for field in setup.fields}
        given = {snake(key): value for key, value in given.items() if value != ""}
        for field in fields.values():
            if field.name not in given and not field.optional:
                raise SettingsError(f"channels.{name}.{field.name} is missing: {field.question}")
        async with self._alone:
            settings = await self._settings()
            before = _table_before(settings, name)
            secrets = {key: value for key, value in given.items() if _goes_to_vault(key, value, fields.get(key))}
            kept = {key: value for key, value in before.items() if snake(key) not in fields and snake(key) not in given}
            values = await self._checked(name, {**kept, **given}, secrets)
            probed = await self._tried(name, values) if test else None
            await self._write(name, before, kept, given, secrets)
        await self._changed()
        return ChannelAdded(replace(await self.row(name), title=setup.title), probed)

    async def log_in(self, name: str, answers: Mapping[str, str]) -> ChannelAdded:
        """Make settings of a login, and set it up with them. Raises EverloopError."""
        found = login_of(name)
        if found is None:
            raise EverloopError(f"{setup_of(name).title} has no login: everloop channels add {name} sets it up")
        fields, log_in = found
        for field in fields:
            if not answers.get(field.name) and not field.optional:
                raise SettingsError(f"{field.name} is missing: {field.question}")
        before = _table_before(await self._settings(), name)
        plain = {snake(key): str(value) for key, value in before.items() if not is_secret(key)}
        values = {**plain, **answers}
        try:
            with contained():
                kept = await log_in(values, self._http())
        except (ChannelDown, ChannelRefused, SettingsError) as error:
            raise type(error)(without_secrets_of(values, str(error))) from error
        except Exception as error:  # the border to the channel's own code
            raise ChannelDown(f"the login failed ({_named(values, error)})") from error
        return await self.add(name, kept)

    async def remove(self, name: str) -> list[str]:
        """Take it out of the settings, and what of the vault is its alone; returns the names of secrets that stay, as
        they were not made by `add`. Raises EverloopError, and nothing was changed then."""
        async with self._alone:
            settings = await self._settings()
            named = {ref.removeprefix(VAULT) for ref in _references(table_of(settings, name)) if ref.startswith(VAULT)}
            asked = {_secret_name(name, field.name) for field in _fields_of(name) if field.secret}
            kept = await kept_secrets(self._home.vault)
            own = sorted(each for each in {*named, *asked} if each in kept and each.startswith(f"{name}."))
            if table_of(settings, name) is None and not own:
                raise EverloopError(f"the channel {name[:50]} is not set up")
            is_set = table_of(settings, name) is not None
            draft = await self._drafted(name, [SettingChange(("channels", name), None)], None) if is_set else None
            await self._home.store.note(line_of("channel.removed", name, {"secrets": own}))
            if draft:
                await write_noted(self._book, draft, self._home.store)
            for each in own:
                await forget_secret(self._home.vault, each)
        await self._changed()
        return sorted(each for each in named if each in kept and each not in own)

    async def _settings(self) -> Settings:
        return await asyncio.to_thread(self._home.settings_now)

    async def _checked(self, name: str, table: Mapping[str, Any], secrets: Mapping[str, str]) -> dict[str, Any]:
        """What the channel would be given. Raises SettingsError."""
        for secret in secrets.values():
            checked_secret(secret)
        references = {key: value for key, value in table.items() if key not in secrets}
        named = [ref.removeprefix(VAULT) for ref in _references(references) if ref.startswith(VAULT)]
        known = {**os.environ, **await take_out(self._home.vault, named)}
        values = {**values_of(name, references, known), **secrets}
        opened(name, values, self._http(), self._home.state_of)
        return values

    async def _tried(self, name: str, values: Mapping[str, Any]) -> Probed | None:
        try:
            return await self._probe(name, values)
        except (ChannelDown, ChannelRefused) as error:
            raise type(error)(f"{str(error).rstrip('.')}. Nothing was written") from error

    async def _probe(self, name: str, values: Mapping[str, Any]) -> Probed | None:
        """Raises ChannelDown, ChannelRefused, SettingsError; none of them tells a secret."""
        channel = opened(name, values, self._http(), self._home.state_of)
        if not isinstance(channel, Probes):
            return None
        try:
            async with asyncio.timeout(PROBING):
                with contained():
                    return await channel.probe()
        except TimeoutError as error:
            raise ChannelDown(f"{name} has not answered within {PROBING:.0f} s") from error
        except (ChannelDown, ChannelRefused) as error:
            raise type(error)(without_secrets_of(values, str(error))) from error
        except Exception as error:  # the border to the channel's own code
            raise ChannelDown(f"{name} could not be tried ({_named(values, error)})") from error

    async def _write(
        self,
        name: str,
        before: Mapping[str, Any],
        kept: Mapping[str, Any],
        given: Mapping[str, Any],
        secrets: Mapping[str, str],
    ) -> None:
        """The vault first: settings that refer to nothing would be worse than a secret that nobody refers to."""
        written = {key: value for key, value in given.items() if key not in secrets}
        written |= {key: f"${{{VAULT}{_secret_name(name, key)}}}" for key in secrets}
        if is_off(dict(before)):
            written["enabled"] = True
            kept = {key: value for key, value in kept.items() if snake(key) not in ("enabled", "disabled")}
        gone = [key for key in before if key not in kept and snake(key) not in written]
        changes = [SettingChange(("channels", name, snake(key)), None) for key in gone]
        changes += [SettingChange(("channels", name, key), value) for key, value in written.items()]
        draft = await self._drafted(name, changes, {**{snake(key): value for key, value in kept.items()}, **written})
        for key, secret in secrets.items():
            await keep_secret(self._home.vault, _secret_name(name, key), secret)
        await self._home.store.note(line_of("channel.added", name, {"keys": sorted(written)}))
        await write_noted(self._book, draft, self._home.store)

    async def _drafted(
        self, name: str, changes: list[SettingChange], wanted: Mapping[str, Any] | None
    ) -> SettingsDraft:
        """Raises SettingsError where something lies over the file."""
        draft = await asyncio.to_thread(self._book.draft_changes, changes)
        table = table_of(draft.edition.settings, name)
        found = {snake(str(key)): value for key, value in table.items()} if isinstance(table, Mapping) else table
        if found != (None if wanted is None else dict(wanted)):
            raise SettingsError(
                f"channels.{name} is also set by the environment, or was given when the program was started; change it "
                "there"
            )
        return draft


def _secret_name(channel: str, key: str) -> str:
    return f"{channel}.{key}"


def _goes_to_vault(key: str, value: Any, field: SetupField | None) -> bool:
    """What refers to a variable or to the vault is no secret itself."""
    secret = field.secret if field else is_secret(key)
    return secret and isinstance(value, str) and not references_in(value)


def _table_before(settings: Settings, name: str) -> dict[str, Any]:
    table = table_of(settings, name)
    return {str(key): value for key, value in table.items()} if isinstance(table, Mapping) else {}


def _references(table: Any) -> list[str]:
    return [found for value in table.values() for found in references_in(value)] if isinstance(table, Mapping) else []


def _fields_of(name: str) -> tuple[SetupField, ...]:
    """Also of one whose package is gone, or cannot be loaded: then it asks for nothing."""
    try:
        return setup_of(name).fields
    except EverloopError:
        return ()


def _named(values: Mapping[str, Any], error: Exception) -> str:
    return without_secrets_of(values, " ".join(f"{type(error).__name__}: {error}".split()))


@asynccontextmanager
async def open_channel_desk(home: Path | None = None) -> AsyncIterator[ChannelDesk]:
    """For the command line: a gateway that runs sees the file change. Raises SettingsError, StoreError."""

    async def nobody_listens_here() -> None:
        pass

    async with opened_home(home) as opened_one, AsyncExitStack() as stack:
        http = cache(lambda: network_of(opened_one.settings, stack))
        book = SettingsEditor(opened_one.home, os.environ)
        yield ChannelDesk(opened_one, book, http, nobody_listens_here)
