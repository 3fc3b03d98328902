"""The settings file of a restored home: that of then, but for where the original keeps its rows and its workspace."""

import os
from pathlib import Path

from ..errors import SettingsError
from ..settings.edit import SettingChange, edited_json, edited_toml
from ..settings.sources import FILES, file_of, read_bytes, read_layer
from .backup_making import WORKSPACE

NEW_URL = "store.url in its settings is the new one."
UNREAD = (
    "Its settings cannot be read, and lie in {names} now: {why}. If you bring them back, leave out `store.url` and "
    "`workspace`, which are the original's."
)


def own_settings(home: Path, store: str) -> list[str]:
    """What has to be told of it. Settings that cannot be read keep nobody from what else is in a backup."""
    try:
        return _changed(home, store)
    except SettingsError as error:
        return [_set_aside(home, error), *_keep_url(home, store)]


def _changed(home: Path, store: str) -> list[str]:
    path = file_of(home)
    if path is None:
        return _keep_url(home, store)
    data = read_bytes(path)
    said = read_layer(path, data, {}).values
    table = said.get("store")
    changes, notes = list[SettingChange](), list[str]()
    if store or (isinstance(table, dict) and table.get("url")):
        changes.append(SettingChange(("store", "url"), store or None))
        notes.append(NEW_URL if store else "store.url in its settings was removed: it has SQLite.")
    if said.get("workspace"):
        changes.append(SettingChange(("workspace",), WORKSPACE))  # one of nanobot's has its own elsewhere in the file
        notes.append(f"workspace in its settings is now that of this home, {home / WORKSPACE}.")
    edit = edited_toml if path.suffix == ".toml" else edited_json
    if changes:
        path.write_text(edit(data.decode("utf-8-sig"), changes))
    return notes


def _set_aside(home: Path, error: SettingsError) -> str:
    found = [home / name for name in FILES if os.path.lexists(home / name)]
    for path in found:
        path.rename(path.with_name(f"{path.name}.unread"))
    names = " and ".join(f"{path.name}.unread" for path in found)
    return UNREAD.format(names=names, why=str(error).rstrip("."))


def _keep_url(home: Path, store: str) -> list[str]:
    if not store:
        return []
    (home / "config.toml").write_text(edited_toml("", [SettingChange(("store", "url"), store)]))
    os.chmod(home / "config.toml", 0o600)
    return [NEW_URL]
