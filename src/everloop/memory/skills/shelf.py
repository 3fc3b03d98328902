"""Which skills somebody has: those of their workspace, their own installed ones, those that the owner shares, ours.

The first of a name counts. Skills belong to a principal: nobody is told another's, and guests have what the setting
`skills.shared` names and nothing else.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ...core.people import OWNER, Role, is_chat
from ...ports.skills import SkillPlace, SkillRow, SkillSource
from .skill import BYTES, FILE, Skill, parse

BUILT_IN = Path(__file__).with_name("builtin")
NONE: dict[str, Skill] = {}
MOST = 200  # folders that are looked at in one place
_FRESH = 1_000_000_000  # ns: what was changed so lately may change again without a later time to show for it
HELD = "it was changed where strangers' words had been read or by a command: it waits for a person to accept it"
HELD_PARTLY = "a change of it waits for a person to accept it; until then it is told as before"


class WorkspaceSkill(Struct, frozen=True):
    """The SKILL.md of one in a workspace: what is accepted of it (None: nothing yet), and whether a change is held."""

    accepted: bytes | None
    held: bool = False


class FoundSkill(Struct, frozen=True):
    """A skill, where it lies, and what keeps it from being used: `missing` programs and variables, or that it is
    `held`. `hides` is where another of its name lies."""

    skill: Skill
    source: SkillSource
    folder: str
    text: bytes = b""
    missing: tuple[str, ...] = ()
    held: str = ""
    hides: str = ""

    @property
    def is_told(self) -> bool:
        """Whether models are told of it."""
        return not self.skill.wrong and self.held != HELD

    @property
    def row(self) -> SkillRow:
        skill = self.skill
        held = self.held == HELD
        state = "wrong" if skill.wrong else "held" if self.held else "missing" if self.missing else "available"
        why = skill.wrong or self.held or (f"missing: {', '.join(self.missing)}" if self.missing else "")
        return SkillRow(
            name=skill.name,
            description="" if held else skill.description,
            source=self.source,
            state=state,  # type: ignore[arg-type]  # one of four words
            why=why,
            always=skill.always and not held,
            hides=self.hides,
        )

    @property
    def place(self) -> SkillPlace:
        return SkillPlace(self.skill.name, self.folder, self.source == "workspace", self.text)


Found = tuple[FoundSkill, ...]
Stamp = tuple[int, int, int, int] | None
Sources = tuple[object, object, object]


class SkillFolder:
    """A folder of skills that is looked at by the times of its files, and read when one has changed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._above: Stamp = None
        self._seen: dict[str, Stamp] = {}
        self._fresh = True
        self._skills: dict[str, Skill] = {}

    def skills(self) -> dict[str, Skill]:
        """By name; the same mapping while nothing has changed."""
        if self._is_stale():
            self._above = _stamp(os.fspath(self._folder))  # first: what changes after that is seen the next time
            self._seen = self._stamps(_names_in(self._folder))
            stamps = [self._above, *self._seen.values()]
            self._fresh = any(each and abs(time.time_ns() - each[0]) < _FRESH for each in stamps)
            found = {name: parse(name, self._read(name)) for name in self._seen}
            self._skills = self._skills if found == self._skills else found
        return self._skills

    def _is_stale(self) -> bool:
        if self._above is None and not os.access(self._folder, os.F_OK):
            return False
        above = _stamp(os.fspath(self._folder))
        return self._fresh or above != self._above or self._stamps(self._seen) != self._seen

    def _stamps(self, names: Iterable[str]) -> dict[str, Stamp]:
        return {name: _stamp(f"{self._folder}/{name}/{FILE}") for name in names}

    def _read(self, name: str) -> bytes | None:
        """A link may lead to what can be changed from elsewhere: it is not read."""
        try:
            fd = os.open(f"{self._folder}/{name}/{FILE}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        with open(fd, "rb") as file:
            return file.read(BYTES)


def _names_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            found = [each.name for each in entries if each.is_dir(follow_symlinks=False) and each.name[:1] != "."]
    except OSError:
        return []
    return sorted(found)[:MOST]


def _stamp(path: str) -> Stamp:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns


@cache
def built_in() -> Mapping[str, Skill]:
    """Ours, which are read once."""
    return {name: parse(name, (BUILT_IN / name / FILE).read_bytes()) for name in _names_in(BUILT_IN)}


class Requirements(Struct, frozen=True):
    """What commands of the agent have: `has_program` as their PATH says, `env` their variables; `unseen` are set where
    everloop runs, but not given to commands."""

    has_program: Callable[[str], bool]
    env: Collection[str] = ()
    unseen: Callable[[str], bool] = lambda name: False

    def missing(self, skill: Skill) -> tuple[str, ...]:
        programs = [f"program {name}" for name in skill.bins if not self.has_program(name)]
        return (*programs, *(self._variable(name) for name in skill.env if name not in self.env))

    def _variable(self, name: str) -> str:
        named = " (set, but not given to commands: name it in tools.exec.env)" if self.unseen(name) else ""
        return f"variable {name}{named}"


class SkillShelf:
    """`installed` is the folder of what somebody has installed, `shared` the names that the owner shares."""

    def __init__(self, installed: Callable[[str], Path], shared: Collection[str], needs: Requirements) -> None:
        self._installed = installed
        self._shared = frozenset(shared)
        self._needs = needs
        self._folders: dict[str, SkillFolder] = {}
        self._made: dict[tuple[str, bool], tuple[Sources, Found]] = {}

    def of(self, principal: str, role: Role, workspace: Mapping[str, WorkspaceSkill]) -> Found:
        """All that somebody has; the same tuple while it is the same. `workspace` are those of the workspace."""
        guest = role < Role.USER
        own = NONE if guest or is_chat(principal) else self._in(principal)
        house = self._in(OWNER) if self._shared and principal != OWNER else NONE
        sources = (tuple(workspace.items()) if not guest else (), own, house)
        key = principal if not guest else "", guest
        made = self._made.get(key)
        if made is None or not _same(made[0], sources):
            if len(self._made) > MOST:
                self._made.clear()
            found = self._join(principal, guest, workspace if not guest else {}, own, house)
            if made and made[1] == found:
                found = made[1]
            made = self._made[key] = sources, found
        return made[1]

    def _in(self, principal: str) -> dict[str, Skill]:
        if principal not in self._folders:
            if len(self._folders) > MOST:
                self._folders.clear()
            self._folders[principal] = SkillFolder(self._installed(principal))
        return self._folders[principal].skills()

    def _join(
        self,
        principal: str,
        guest: bool,
        workspace: Mapping[str, WorkspaceSkill],
        own: Mapping[str, Skill],
        house: Mapping[str, Skill],
    ) -> Found:
        shared = {name: skill for name, skill in house.items() if name in self._shared}
        ours = {name: skill for name, skill in built_in().items() if not guest or name in self._shared}
        found: dict[str, FoundSkill] = {}
        for name, state in workspace.items():
            found[name] = self._of_workspace(name, state)
        for source, skills, folder in (
            ("installed", own, self._installed(principal)),
            ("shared", shared, self._installed(OWNER)),
            ("built-in", ours, BUILT_IN),
        ):
            for name, skill in skills.items():
                missing = self._needs.missing(skill)
                each = FoundSkill(skill, source, f"{folder}/{name}", missing=missing)  # type: ignore[arg-type]
                found[name] = _above(found[name], each) if name in found else each
        return tuple(found[name] for name in sorted(found))

    def _of_workspace(self, name: str, state: WorkspaceSkill) -> FoundSkill:
        held = (HELD_PARTLY if state.accepted is not None else HELD) if state.held else ""
        skill = Skill(name) if held == HELD else parse(name, state.accepted)
        missing = self._needs.missing(skill)
        return FoundSkill(skill, "workspace", f"skills/{name}", state.accepted or b"", missing, held)


def _above(first: FoundSkill, other: FoundSkill) -> FoundSkill:
    """The one that counts. What waits to be accepted takes nothing away."""
    if first.held == HELD:
        return replace(other, held=HELD_PARTLY)
    return first if first.hides else replace(first, hides=other.source)


def _same(one: Sources, other: Sources) -> bool:
    """The mappings of folders are the same ones while nothing has changed in them."""
    return one[0] == other[0] and one[1] is other[1] and one[2] is other[2]
