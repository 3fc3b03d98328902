"""A settings file to begin with: what people look for first, each with what it is for, and as it comes."""

from collections.abc import Iterable, Mapping
from typing import Any

from .edit import Path, SettingChange, edited_toml, value_text
from .rows import leaves_of
from .words import ABOUT

HEAD = """\
# The settings of everloop. A line that begins with # says how it comes; take the # away to set it.
# All settings: everloop config list --all, or docs/reference.md. At a terminal: everloop config set KEY VALUE.
# Keys and tokens are not here but in the vault: everloop models key set NAME, everloop secrets set NAME.
"""
SHOWN: tuple[Path, ...] = (
    ("agents", "defaults", "model"),
    ("agents", "defaults", "fallbacks"),
    ("agents", "defaults", "small_model"),
    ("agents", "defaults", "max_tokens"),
    ("tools", "approvals"),
    ("tools", "exec", "network"),
    ("gateway", "host"),
    ("gateway", "port"),
    ("schedules", "timezone"),
    ("heartbeat", "enabled"),
    ("memory", "enabled"),
)


def begun_file(changes: Iterable[SettingChange] = ()) -> str:
    """A new config.toml with these changes in it."""
    said = {change.path: change.value for change in changes}
    shown = _tables(said)
    return edited_toml(shown, [SettingChange(path, value) for path, value in said.items() if path not in SHOWN])


def _tables(said: Mapping[Path, Any]) -> str:
    usual = {leaf.path: leaf.default for leaf in leaves_of()}
    text = HEAD
    table: Path = ()
    for path in SHOWN:
        if path[:-1] != table:
            table = path[:-1]
            text += f"\n[{'.'.join(table)}]\n"
        mark = "" if path in said else "# "
        text += f"# {ABOUT['.'.join(path)]}\n{mark}{path[-1]} = {value_text(said.get(path, usual[path]))}\n"
    return text
