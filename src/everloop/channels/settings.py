"""What the settings of all channels have in common: how they are read, and what is said of those that are wrong. No
value is ever repeated: it may be a secret."""

import re
from collections.abc import Mapping
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from ..errors import SettingsError

EVERY = ", and what every channel has (enabled, allow_from, groups, …)"
HERE = ("127.0.0.1", "::1", "localhost")
Chosen = TypeVar("Chosen", bound=Struct)


def check_names(channel: str, values: Mapping[str, Any], form: type[Struct]) -> None:
    """Raises SettingsError for one that means nothing."""
    known = form.__struct_fields__
    if unknown := [name for name in values if name not in known]:
        place = f"channels.{channel}.{unknown[0][:50]}"
        raise SettingsError(f"there is no setting {place}; the keys here are {', '.join(known)}{EVERY}")


def read_settings(channel: str, values: Mapping[str, Any], form: type[Chosen]) -> Chosen:
    """What they say. Raises SettingsError."""
    check_names(channel, values, form)
    try:
        return msgspec.convert(values, form, strict=False)  # what comes from the environment is text
    except msgspec.ValidationError as error:
        said, _, where = str(error).partition(" - at ")
        place = f".{where.strip('`').removeprefix('$.')}" if where else ""
        choice = _choice(form, place.removeprefix("."))
        wrong = f" is {choice}" if choice else f": {said.partition(', got')[0]}"
        if missing := re.fullmatch(r"Object missing required field `(\w+)`", said):
            wrong = f".{missing[1]} is missing"
        raise SettingsError(f"channels.{channel}{place}{wrong}") from None


def _choice(form: type[Struct], name: str) -> str:
    """What can be chosen there; "" where it is no choice."""
    hints = get_type_hints(form)
    if hints.get(name) is bool:
        return "true or false"
    choices = get_args(hints[name]) if name in hints and get_origin(hints[name]) is Literal else ()
    return f"one of {', '.join(each for each in choices if each)}" if choices else ""


def check_address(place: str, url: str, safe: str = "https", bare: str = "http") -> None:
    """That what is sent there is encrypted, unless it stays on this machine. Raises SettingsError."""
    try:
        parts = urlsplit(url)
        is_good = bool(parts.hostname) and (parts.scheme == safe or (parts.scheme == bare and parts.hostname in HERE))
    except ValueError:
        is_good = False
    if not is_good:
        raise SettingsError(f"{place} must begin with {safe}:// ({bare}:// only for this machine itself)")


def needs_extra(place: str, error: ImportError) -> SettingsError:
    return SettingsError(f"{place} needs the extra [channels]: pip install 'everloop[channels]' ({error})")
