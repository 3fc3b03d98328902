"""The hand that touches nothing: what a move would leave as it is here, as far as files tell. The store stays shut."""

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..core.people import OWNER
from ..errors import SettingsError
from ..memory.skills.install import FetchedSkill, from_folder
from ..memory.views import LONGEST
from ..moving.values import SET_ASIDE, ForeignConversation, ForeignJob, ForeignSkill, ForeignText
from ..ports.schedules import Schedule
from ..providers.catalog import HOSTS
from ..runtime.schedule_desk import drafted
from ..settings import workspace_of
from ..settings.edit import SettingChange, spelled
from ..settings.editor import Edition, SettingsEditor
from ..store.schedule import next_due, next_ones
from ..tools.bootstrap import FILES
from .moving_settings import ForeignSetting
from .schedules import rules_of

DIRECT = "cli:direct"
IS_SET = "it is set here already, and stays as it is"
ELSEWHERE = (
    "it goes to another address there than this provider has here: keep it by hand if it may be sent to this one"
)
DIFFERS = "there is another {name} already, which stays as it is; theirs is not copied"


class LookingHand:
    """The Hand of a dry run."""

    writes = False

    def __init__(self, home: Path, book: SettingsEditor, kind: str) -> None:
        """Raises SettingsError."""
        settings = book.read().settings
        self._book = book
        self._kind = kind
        self._rules = rules_of(settings)
        self._workspace = workspace_of(settings, home)

    async def conversation(self, found: ForeignConversation, thread: str) -> str:
        return ""

    async def memory(self, name: str, lines: str) -> str:
        return too_long(name, lines)

    async def text(self, found: ForeignText) -> str:
        return await asyncio.to_thread(_look, found, self._workspace)

    async def skill(self, found: ForeignSkill) -> str:
        folder = self._workspace / SET_ASIDE.format(kind=self._kind)
        return (await asyncio.to_thread(skill_at, found, folder))[2] or ""

    async def job(self, found: ForeignJob) -> str:
        begun = Schedule(
            id="", owner=OWNER, name="", does="turn", text="", session=found.session, zone=self._rules.zone
        )
        drafted(begun, fields_of(found), rules=self._rules, times=_Times(), now=time.time())
        return ""

    async def settings(self, found: Sequence[ForeignSetting]) -> dict[str, str]:
        edition = await asyncio.to_thread(self._book.read)
        whys = {each.key: hindrance(self._book, edition, each) for each in found if each.value is not None}
        left = {key: why for key, why in whys.items() if why}
        return left | misdirected(found, left, edition)

    async def end(self, counts: Mapping[str, int]) -> None:
        pass


class _Times:
    """As the store tells them, which stays shut."""

    def next_times(self, rule: str, first: float, count: int) -> list[float]:
        return next_ones(rule, first, count)

    def first_time(self, rule: str, after: float) -> float:
        return next_due(rule, after, after) or after


def fields_of(found: ForeignJob) -> dict[str, Any]:
    fields = {"when": found.when, "text": found.text, "name": found.name, "session": found.session or DIRECT}
    return {**fields, "zone": found.zone} if found.zone else fields


def too_long(name: str, text: str) -> str:
    """Why a memory cannot be so; "" where it can."""
    if len(text.encode()) <= LONGEST[name]:
        return ""
    return f"{name} would have more than {LONGEST[name]:,} bytes: shorten theirs, then run this again"


def skill_at(found: ForeignSkill, folder: Path) -> tuple[FetchedSkill, Path, str | None]:
    """Where it goes, and why it stays ("": it is there already), None where it can be copied. Raises MailRefused."""
    fetched = from_folder(found.folder)
    target = folder / fetched.skill.name
    if not target.exists() and not target.is_symlink():
        return fetched, target, None
    same = target.is_dir() and from_folder(target).pin.tree == fetched.pin.tree
    return fetched, target, "" if same else DIFFERS.format(name=f"skill {fetched.skill.name}")


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


def misdirected(found: Sequence[ForeignSetting], left: Mapping[str, str], edition: Edition) -> dict[str, str]:
    """Keys and headers that would go to another address here than there, for that of their provider is left."""
    accounts = edition.settings.providers.accounts
    ours = {name: account.api_base for name, account in accounts.items() if account.api_base}
    taken = {each.path[1]: str(each.value) for each in found if each.path[2:] == ("api_base",) and each.key not in left}

    def address_of(name: str, written: str) -> str:
        return (written or (HOSTS[name].base if name in HOSTS else "")).rstrip("/")

    return {
        each.key: ELSEWHERE
        for each in found
        if each.address is not None
        and address_of(name := each.path[1], each.address) != address_of(name, ours.get(name) or taken.get(name, ""))
    }


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
