"""The settings, and how they are read.

They come in layers: the defaults of the shape, `config.toml` or `config.json` in the home, environment variables
(`EVERLOOP_AGENTS__DEFAULTS__MODEL`), and what a programmer gives to `open()`. Each layer is checked against the shape
on its own; then they are laid on top of each other.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from ..errors import SettingsError
from .check import built, checked_section, lay_over
from .shape import (
    AccountSection,
    Agents,
    Defaults,
    EmbeddedSection,
    Exec,
    GatewaySection,
    MemorySection,
    Net,
    PersonaSection,
    PolicyRuleSection,
    Preset,
    PriceSection,
    ProfileSection,
    Providers,
    Search,
    Settings,
    Stance,
    StoreSection,
    Telemetry,
    TerminalSection,
    Tools,
    WebSection,
    without_secrets,
)
from .sources import file_of, layers, read_bytes, read_layer
from .unused import unused


def home_of(environ: Mapping[str, str]) -> Path:
    """`EVERLOOP_HOME`, or `.everloop` in the person's own folder."""
    person, home = Path(environ.get("HOME") or Path.home()), environ.get("EVERLOOP_HOME") or "~/.everloop"
    try:
        return path_in(Path() if _is_whole(home) else Path.cwd(), home, person)
    except FileNotFoundError as error:
        raise SettingsError(
            "the folder that you are in is gone, and EVERLOOP_HOME begins there: go elsewhere"
        ) from error


def _is_whole(path: str) -> bool:
    return path == "~" or path.startswith(("/", "~/"))


def path_in(folder: Path, text: str, person: Path | None = None) -> Path:
    """A path as people write it: absolute, from `~`, or else inside `folder`."""
    if text == "~" or text.startswith("~/"):
        return (person or Path.home()) / text[2:]
    return folder / text


def workspace_of(settings: Settings, home: Path) -> Path:
    return path_in(home, settings.workspace or "workspace")


def load(home: Path, environ: Mapping[str, str], overrides: Mapping[str, Any] = {}) -> Settings:
    """Read the settings of a home. Raises SettingsError, which says where the mistake is and what is expected there."""
    tree: dict[str, Any] = {}
    for layer in layers(home, environ, overrides, tree):
        lay_over(tree, checked_section(layer, Settings, layer.values, ()))
    return cast(Settings, built(Settings, tree))


def place_in_file(home: Path, keys: tuple[str, ...]) -> str:
    """Where a setting stands in the file, for what is checked by whoever it belongs to; "" if it is not from there."""
    path = file_of(home)
    layer = read_layer(path, read_bytes(path), {}) if path else None
    found: Any = layer.values if layer else {}
    for key in keys:
        found = found.get(key) if isinstance(found, Mapping) else None
    return layer.place(keys) if layer and found is not None else ""


__all__ = [
    "AccountSection",
    "Agents",
    "Defaults",
    "EmbeddedSection",
    "Exec",
    "GatewaySection",
    "MemorySection",
    "Net",
    "PersonaSection",
    "PolicyRuleSection",
    "Preset",
    "PriceSection",
    "ProfileSection",
    "Providers",
    "Search",
    "Settings",
    "Stance",
    "StoreSection",
    "Telemetry",
    "TerminalSection",
    "Tools",
    "WebSection",
    "home_of",
    "load",
    "path_in",
    "unused",
    "without_secrets",
    "workspace_of",
]
