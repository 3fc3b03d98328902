"""Settings as people name them at a terminal: `agents.defaults.maxTokens`, `providers.openai`, or nearly so."""

from typing import Any

import msgspec

from ..errors import SettingsError
from .check import is_section, kind_of_sections
from .edit import Path, path_of
from .editor import shape_at
from .mcp import TABLE
from .rows import NAME, leaves_of
from .shape import AccountSection, EmbeddedSection, Providers, Settings, snake

CHANNELS = "channels"  # whose tables belong to whoever brings a channel


def path_named(key: str) -> Path:
    """The path of a setting, or of a table of them. Raises SettingsError, with the one that may have been meant."""
    path = spelled_by_shape(path_of(key))
    if path[0] != CHANNELS:
        try:
            shape_at(path)
        except SettingsError as error:
            told = str(error).partition("; ")[0]  # without a list of all keys that there are
            raise SettingsError(f"{told}{_near(path)}") from error
    return path


def hint_of(path: Path) -> Any:
    """The type of what stands there; None for a table of settings. Raises SettingsError."""
    hint = shape_at(path)
    return None if is_section(hint) or kind_of_sections(hint) else hint


def spelled_by_shape(path: Path) -> Path:
    """With our names for the keys: maxTokens is max_tokens. Names that the owner gives stay as they are."""
    if snake(path[0]) == TABLE:  # as the files of other clients have it
        path = ("tools", *path)
    found: list[str] = []
    hint: Any = Settings
    for part in path:
        fields = _fields(hint)
        found.append(snake(part) if snake(part) in fields else part)
        if hint is Providers:
            hint = EmbeddedSection if part == "embedded" else AccountSection
        else:
            hint = fields.get(found[-1]) or kind_of_sections(hint)
    return tuple(found)


def _fields(shape: Any) -> dict[str, Any]:
    """What a table has by names of ours."""
    if shape is Providers or not is_section(shape):
        return {}
    return {field.name: field.type for field in msgspec.structs.fields(shape)}


def _near(path: Path) -> str:
    """The whole key that was meant, where only its end was written, or another table."""
    from difflib import get_close_matches  # only a mistake needs it

    keys = [".".join(leaf.path) for leaf in leaves_of() if NAME not in leaf.path]
    written = ".".join(path)
    ends = [key for key in keys if key.endswith(f".{written}")]
    close = ends or get_close_matches(written, keys, 1, 0.7)
    if not close:
        return "; all of them: everloop config list --all"
    return f"; did you mean {' or '.join(close[:3])}?"
