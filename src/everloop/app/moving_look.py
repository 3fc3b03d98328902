"""The hand that touches nothing: what a move would leave as it is here, as far as files tell. The store stays shut."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..errors import SettingsError
from ..moving.values import ForeignConversation, ForeignJob, ForeignSkill, ForeignText
from ..settings import workspace_of
from ..settings.edit import SettingChange, spelled
from ..settings.editor import Edition, SettingsEditor
from ..tools.bootstrap import FILES
from .moving_settings import ForeignSetting

IS_SET = "it is set here already, and stays as it is"
DIFFERS = "there is another {name} already, which stays as it is; theirs is not copied"


class LookingHand:
    """The Hand of a dry run."""

    writes = False

    def __init__(self, home: Path, book: SettingsEditor) -> None:
        """Raises SettingsError."""
        self._book = book
        self._workspace = workspace_of(book.read().settings, home)

    async def conversation(self, found: ForeignConversation, thread: str) -> str:
        return ""

    async def memory(self, name: str, lines: str) -> str:
        return ""

    async def text(self, found: ForeignText) -> str:
        return await asyncio.to_thread(_look, found, self._workspace)

    async def skill(self, found: ForeignSkill) -> str:
        return ""

    async def job(self, found: ForeignJob) -> str:
        return ""

    async def settings(self, found: Sequence[ForeignSetting]) -> dict[str, str]:
        edition = await asyncio.to_thread(self._book.read)
        whys = {each.key: hindrance(self._book, edition, each) for each in found if each.value is not None}
        return {key: why for key, why in whys.items() if why}

    async def end(self, counts: Mapping[str, int]) -> None:
        pass


def _look(found: ForeignText, workspace: Path) -> str:
    target = workspace / found.name
    try:
        return difference(found.name, target, found.read()) if is_someones(found.name, target) else ""
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def is_someones(name: str, target: Path) -> bool:
    """Whether something stands there that somebody has written; what a new workspace begins with gives way. Raises
    OSError."""
    if target.is_symlink() or not target.is_file():
        return os.path.lexists(target)
    return name not in FILES or target.read_bytes() != FILES[name].encode()


def difference(name: str, target: Path, data: bytes) -> str:
    """Why a file stays as it is; "" where it holds the same. Raises OSError."""
    same = target.is_file() and not target.is_symlink() and target.read_bytes() == data
    return "" if same else DIFFERS.format(name=name)


def hindrance(book: SettingsEditor, edition: Edition, found: ForeignSetting) -> str:
    """Why a setting stays as it is; "" where it can be taken, or was by somebody who was killed then."""
    there = standing(edition.data, found.path)
    if there is not None or any(path[: len(found.path)] == found.path for path in edition.origins):
        return "" if there == found.value else IS_SET
    try:
        book.draft_changes(changes_of(found))
    except SettingsError as error:
        return str(error)
    return ""


def changes_of(found: ForeignSetting) -> list[SettingChange]:
    if isinstance(found.value, dict):
        return [SettingChange((*found.path, key), value) for key, value in found.value.items()]
    return [SettingChange(found.path, found.value)]


def standing(data: bytes, path: tuple[str, ...]) -> Any:
    """What the settings file says there, also where nobody checks it, as of channels; None where it says nothing."""
    import tomllib

    try:
        tree: Any = tomllib.loads(data.decode())
    except (ValueError, UnicodeError):
        tree = msgspec.json.decode(data) if data.strip() else {}
    for part in spelled(tree, path):
        tree = tree.get(part) if isinstance(tree, dict) else None
    return tree
