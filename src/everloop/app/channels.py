"""The channels that the settings name, made from the rows that they have there.

A channel's package has a function `open_channel(values, http)`, which checks its own settings; one that has a parameter
`state` besides is given what the channel remembers (ports/channel_state.py). Ours are named here;
other packages bring theirs as entry points of the group `everloop.channels`, which is looked through only for names
that are not ours. One that cannot be opened keeps nothing else from starting, and is told (`Unopened`).
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from inspect import signature
from pathlib import Path
from typing import Any

from msgspec import Struct

from ..errors import SettingsError, VaultLocked
from ..ports import Channel, Http, Vault
from ..ports.channel import DOORS, Traits
from ..ports.channel_state import ChannelRecords
from ..settings import Settings, place_in_file
from ..settings.channel_policy import split
from ..settings.shape import snake
from ..settings.unused import no_channel, switched_on
from .secrets import SECRET_NAME, VAULT, UnknownSecret, take_out

PLUGINS = "everloop.channels"
_TEXT, _SOCKETS = "markdown_it", "websockets"
NEEDED = {  # by those of ours, from the extra `channels`
    "discord": (_TEXT, _SOCKETS),
    "email": (_TEXT,),
    "matrix": (_TEXT,),
    "slack": (_TEXT, _SOCKETS),
    "telegram": (_TEXT,),
    "webhook": (),
}
OURS = {name: f"everloop.channels.{name}" for name in NEEDED}
TAKEN = (*DOORS, "chat", "owner", "timer")  # names that session keys and principals begin with already
_REFERENCE = re.compile(rf"\$\{{([A-Za-z_]\w*|{VAULT}{SECRET_NAME})\}}")
_SECRET = re.compile(r"token|secret|password|passphrase|key|credential", re.IGNORECASE)
SHORTEST_HIDDEN = 4  # characters: what is shorter is a word rather than a secret

Open = Callable[..., Channel]


class UnknownVariable(SettingsError):
    """A setting refers to a variable that this process does not have."""


class Unopened(Struct, frozen=True):
    """A channel that is set and does not listen, and a sentence that says why. `maybe`: a variable is missing, which
    another process may have. `is_there` says whether somebody brings such a channel at all."""

    name: str
    why: str
    maybe: bool = False
    is_there: bool = True

    @property
    def sentence(self) -> str:
        """With what to do."""
        if not self.is_there:
            return self.why
        return (
            f"{self.why.rstrip('.')}. Nothing listens at the channel {self.name} until that is mended: "
            f"everloop channels add {self.name}, or in the settings file"
        )


def known(settings: Settings) -> frozenset[str]:
    """Those of the channels that are set which somebody brings."""
    wanted = switched_on(settings.channels)
    return frozenset(name for name in wanted if name in OURS) | _plugged_in(name for name in wanted if name not in OURS)


def traits_in(channels: Iterable[Channel]) -> dict[str, Traits]:
    """Of these and of the house's own doors, which no stranger can speak for."""
    return {**{channel.manifest.name: channel.manifest.traits for channel in channels}, **DOORS}


def secrets_named(settings: Settings, names: Iterable[str] | None = None) -> frozenset[str]:
    """What of the vault those that are switched on refer to, or those of these names."""
    wanted = switched_on(settings.channels) if names is None else names
    tables = [table for name in wanted if isinstance(table := table_of(settings, name), Mapping)]
    references = [found for table in tables for value in table.values() for found in references_in(value)]
    return frozenset(found.removeprefix(VAULT) for found in references if found.startswith(VAULT))


def table_of(settings: Settings, name: str) -> Any:
    """What the settings say of a channel; None: nothing."""
    return settings.channels.get(name) if isinstance(settings.channels, Mapping) else settings.channels


async def expanded(
    settings: Settings, name: str, vault: Vault, environ: Mapping[str, str] = os.environ
) -> dict[str, Any] | Unopened:
    """The settings that a channel is opened with, what they refer to being looked up. Raises StoreError."""
    if name not in known(settings):
        return Unopened(name, no_channel(name), is_there=False)
    try:
        kept = await take_out(vault, secrets_named(settings, [name]))
        return values_of(name, table_of(settings, name), {**environ, **kept})
    except (SettingsError, VaultLocked) as error:
        return Unopened(name, str(error), isinstance(error, UnknownVariable))


def opened(
    name: str, values: Mapping[str, Any], http: Http, state_of: Callable[[str], ChannelRecords] | None = None
) -> Channel:
    """A channel, of values that were looked up. Raises SettingsError, which quotes no secret."""
    if name in TAKEN:
        raise SettingsError(f"channels.{name}: this name is taken by a door of the house itself")
    try:
        open_channel = _loaded(name)
        remembered = {"state": state_of(name)} if state_of and "state" in signature(open_channel).parameters else {}
        channel = open_channel(values, http, **remembered)
    except SettingsError as error:
        raise SettingsError(without_secrets_of(values, str(error))) from error
    except BaseException as error:  # a stranger's code runs here, and may try to end the program
        why = without_secrets_of(values, " ".join(f"{type(error).__name__}: {error}".split()))
        raise SettingsError(f"channels.{name} cannot be opened ({why})") from error
    if channel.manifest.name != name:
        raise SettingsError(f"channels.{name}: the channel calls itself {channel.manifest.name!r}")
    return channel


def is_secret(key: str) -> bool:
    """Whether a setting looks like one that nobody may see, where its channel does not say."""
    return bool(_SECRET.search(key))


def without_secrets_of(values: Mapping[str, Any], text: str) -> str:
    """What a channel says of these values, with no secret of theirs in it."""
    secrets = [value for key, value in values.items() if is_secret(key) and isinstance(value, str)]
    for secret in sorted((each for each in secrets if len(each) >= SHORTEST_HIDDEN), key=len, reverse=True):
        text = text.replace(secret, "…")
    return text


def wrong_in(settings: Settings, home: Path, environ: Mapping[str, str] = os.environ) -> tuple[Unopened, ...]:
    """Where no channel is opened: what is wrong in those of ours, with its place. What refers to a variable or a secret
    that only the gateway may have is looked at there."""
    names = [name for name in switched_on(settings.channels) if name in OURS]
    found = [(name, _wrong(name, table_of(settings, name), environ)) for name in names]
    return tuple(Unopened(name, placed(settings, home, name, why)) for name, why in found if why)


def placed(settings: Settings, home: Path, name: str, why: str) -> str:
    """A sentence about the settings of a channel, after the line of the file that it is about."""
    key = re.search(rf"channels\.{re.escape(name)}\.([\w-]+)", why)
    table = table_of(settings, name)
    written = [each for each in (table if isinstance(table, Mapping) else ()) if key and snake(str(each)) == key[1]]
    place = place_in_file(home, ("channels", name, *map(str, written[:1])))
    return f"{place}: {why}" if place else why


def _wrong(name: str, values: Any, environ: Mapping[str, str]) -> str:
    try:
        values = _table(name, values)
        ours = import_module(OURS[name])
        if all(reference in environ for value in values.values() for reference in references_in(value)):
            ours.check_settings(_expanded_table(name, values, environ))
        else:
            ours.check_keys(split(name, values).own)
    except SettingsError as error:
        return str(error)
    return ""


def references_in(value: Any) -> list[str]:
    return _REFERENCE.findall(value) if isinstance(value, str) else []


def _table(name: str, values: Any) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise SettingsError(f"channels.{name} must be a table of settings")
    return values


def values_of(name: str, table: Any, environ: Mapping[str, str]) -> dict[str, Any]:
    """What a channel is given of what the settings say. In `environ` stands what `${…}` is looked up in: variables, and
    what the vault holds. Raises SettingsError."""
    return _expanded_table(name, _table(name, table), environ)


def _expanded_table(name: str, values: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    own = split(name, values).own  # what holds for every channel is not the channel's
    return {key: _expanded(f"channels.{name}.{key}", value, environ) for key, value in own.items()}


def _expanded(place: str, value: Any, environ: Mapping[str, str]) -> Any:
    def look_up(reference: re.Match[str]) -> str:
        name = reference[1]
        if name in environ:
            return environ[name]
        if name.startswith(VAULT):
            raise UnknownSecret(place, name.removeprefix(VAULT))
        raise UnknownVariable(f"{place} needs the environment variable {name}, which is not set")

    return _REFERENCE.sub(look_up, value) if isinstance(value, str) else value


def _loaded(name: str) -> Open:
    if name in OURS:
        ours: Open = import_module(OURS[name]).open_channel
        return ours
    from importlib.metadata import entry_points

    (point, *others) = entry_points(group=PLUGINS, name=name)
    if others:
        raise SettingsError(f"channels.{name} comes from two packages; uninstall one of them")
    try:
        theirs: Open = point.load()
    except BaseException as error:  # a stranger's code runs here, and may try to end the program
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise SettingsError(f"channels.{name} cannot be loaded ({why})") from error
    return theirs


def _plugged_in(names: Iterable[str]) -> frozenset[str]:
    wanted = frozenset(names)
    if not wanted:
        return wanted
    from importlib.metadata import entry_points

    return wanted & {point.name for point in entry_points(group=PLUGINS)}
