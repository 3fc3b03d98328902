"""The channels that the settings name, made from the rows that they have there.

A channel's package has a function `open_channel(values, http)`, which checks its own settings. Ours are named here;
other packages bring theirs as entry points of the group `everloop.channels`, which is looked through only for names
that are not ours.
"""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import SettingsError
from ..ports import Channel, Http
from ..ports.channel import DOORS, Traits
from ..settings import Settings, place_in_file
from ..settings.shape import snake
from ..settings.unused import switched_on
from .secrets import SECRET_NAME, VAULT, UnknownSecret

PLUGINS = "everloop.channels"
OURS = {
    "webhook": "everloop.channels.webhook",
    "email": "everloop.channels.email",
}
TAKEN = (*DOORS, "chat", "owner", "timer")  # names that session keys and principals begin with already
_REFERENCE = re.compile(rf"\$\{{([A-Za-z_]\w*|{VAULT}{SECRET_NAME})\}}")

Open = Callable[[Mapping[str, Any], Http], Channel]


def known(settings: Settings) -> frozenset[str]:
    """Those of the channels that are set which somebody brings."""
    wanted = switched_on(settings.channels)
    return frozenset(name for name in wanted if name in OURS) | _plugged_in(name for name in wanted if name not in OURS)


def traits_in(channels: Iterable[Channel]) -> Mapping[str, Traits]:
    """Of these and of the house's own doors, which no stranger can speak for."""
    return {**{channel.manifest.name: channel.manifest.traits for channel in channels}, **DOORS}


def secrets_named(settings: Settings) -> frozenset[str]:
    """What of the vault those that are switched on refer to."""
    tables = [table for name in switched_on(settings.channels) if isinstance(table := settings.channels[name], Mapping)]
    references = [found for table in tables for value in table.values() for found in _references_in(value)]
    return frozenset(found.removeprefix(VAULT) for found in references if found.startswith(VAULT))


def channels_of(
    settings: Settings, http: Callable[[], Http], environ: Mapping[str, str] = os.environ
) -> tuple[Channel, ...]:
    """What is set and switched on; what nobody brings is left out. In `environ` stands what `${…}` is looked up in:
    variables, and what the vault holds. Raises SettingsError."""
    names = [name for name in switched_on(settings.channels) if name in known(settings)]
    return tuple(_opened(name, settings.channels[name], http(), environ) for name in names)


def check(settings: Settings, home: Path, environ: Mapping[str, str] = os.environ) -> None:
    """Also where no channel is opened: raises SettingsError, with its place, for what is wrong in those of ours. What
    refers to a variable that only the gateway may have is looked at there."""
    for name in (name for name in switched_on(settings.channels) if name in OURS):
        try:
            _check(name, settings.channels[name], environ)
        except SettingsError as error:
            key = re.search(rf"channels\.{name}\.([\w-]+)", str(error))
            table = settings.channels[name] if isinstance(settings.channels[name], Mapping) else ()
            written = [each for each in table if key and snake(str(each)) == snake(key[1])]
            place = place_in_file(home, ("channels", name, *map(str, written[:1])))
            raise SettingsError(f"{place}: {error}" if place else str(error)) from error


def _check(name: str, values: Any, environ: Mapping[str, str]) -> None:
    values = _table(name, values)
    ours = import_module(OURS[name])
    if all(reference in environ for value in values.values() for reference in _references_in(value)):
        ours.check_settings(_expanded_table(name, values, environ))
    else:
        ours.check_keys({snake(str(key)): value for key, value in values.items()})


def _references_in(value: Any) -> list[str]:
    return _REFERENCE.findall(value) if isinstance(value, str) else []


def _table(name: str, values: Any) -> Mapping[str, Any]:
    if not isinstance(values, Mapping):
        raise SettingsError(f"channels.{name} must be a table of settings")
    return values


def _expanded_table(name: str, values: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, Any]:
    return {snake(str(key)): _expanded(f"channels.{name}.{key}", value, environ) for key, value in values.items()}


def _opened(name: str, values: Any, http: Http, environ: Mapping[str, str]) -> Channel:
    if name in TAKEN:
        raise SettingsError(f"channels.{name}: this name is taken by a door of the house itself")
    channel = _loaded(name)(_expanded_table(name, _table(name, values), environ), http)
    if channel.manifest.name != name:
        raise SettingsError(f"channels.{name}: the channel calls itself {channel.manifest.name!r}")
    return channel


def _expanded(place: str, value: Any, environ: Mapping[str, str]) -> Any:
    def look_up(reference: re.Match[str]) -> str:
        name = reference[1]
        if name in environ:
            return environ[name]
        if name.startswith(VAULT):
            raise UnknownSecret(place, name.removeprefix(VAULT))
        raise SettingsError(f"{place} needs the environment variable {name}, which is not set")

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
