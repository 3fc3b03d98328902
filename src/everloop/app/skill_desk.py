"""Skills as people see, install and remove them: by the command line, the page and slash commands.

Everybody has their own. Those of the owner are the house's, of which the setting `skills.shared` may give to others.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from ..core.people import OWNER, Role
from ..errors import MailRefused
from ..memory.skills.shelf import FoundSkill
from ..memory.skills.skill import FILE
from ..ports import Audit
from ..ports.audit import line_of
from ..ports.directory import Person
from ..ports.permission import Held
from ..ports.skills import SkillReview, SkillRow, SkillShown
from ..readings.held import difference
from ..runtime.membership import Membership
from ..runtime.people import KnownPeople
from ..tools.home import Home
from .files import open_storage
from .opening import opened_home
from .prompt_files import watched_files
from .records import asking_a_sandbox
from .skills import HouseSkills, installed_in

if TYPE_CHECKING:  # what unpacks archives takes its time to load, and few install anything
    from ..memory.skills.install import FetchedSkill, InstalledSkills
    from ..memory.skills.unpack import Tree

CHANGED = "it is not any more as it was installed"
NO_PIN = "say with the pin which one you have looked at"


class SkillDesk:
    """The SkillInstaller port."""

    def __init__(self, home: Path, skills: HouseSkills, store: Audit) -> None:
        self._home = home
        self._skills = skills
        self._store = store

    async def rows(self, principal: str, role: Role) -> list[SkillRow]:
        found = await self._skills.found(principal, role)
        return await asyncio.to_thread(lambda: [self._row(principal, each) for each in found])

    async def show(self, principal: str, role: Role, name: str) -> SkillShown:
        found = await self._find(principal, role, name)
        held = await self._held(principal, name) if role >= Role.USER else None
        return await asyncio.to_thread(self._shown, principal, found, held)

    def _shown(self, principal: str, found: FoundSkill, held: Held | None) -> SkillShown:
        from ..memory.skills.review import asked_for, warnings_of

        tree = self._files(principal, found)
        return SkillShown(
            row=self._row(principal, found),
            text=tree[FILE].content.decode(errors="replace") if FILE in tree else "",
            files=list(tree),
            asks=asked_for(found.skill, tree),
            warnings=warnings_of(tree),
            change=difference(held) if held else "",
            held=held.id if held else "",
        )

    async def accept(self, principal: str, name: str, allow: bool, held: str = "") -> str:
        waiting = await self._held(principal, name)
        if waiting is None:
            raise MailRefused(f"nothing waits to be accepted of a skill {name[:64]!r}")
        if held and waiting.id != held:
            raise MailRefused(f"{name} has changed since it was shown; look at it again")
        told = await self._skills.decide(principal, waiting, allow)
        await self._store.note(
            line_of("file.accepted" if allow else "file.refused", waiting.name, {"change": waiting.id, "of": principal})
        )
        return told

    async def review(self, person: str, data: bytes, source: str, path: str = "") -> SkillReview:
        fetched = await asyncio.to_thread(_from_archive, data, source, path)
        return await self.review_fetched(person, fetched)

    async def install(
        self, person: str, data: bytes, source: str, path: str = "", *, pin: str, replace: bool = False
    ) -> str:
        fetched = await asyncio.to_thread(_from_archive, data, source, path)
        if not pin or fetched.pin.pin != pin:
            raise MailRefused(f"this is {fetched.pin.pin}, and not {pin or 'named'}: {NO_PIN}")
        return await self.put(person, fetched, replace=replace)

    async def fetch(self, source: str, path: str = "", sha256: str = "") -> "FetchedSkill":
        """What lies at a source: a folder, an archive, a repository. Raises MailRefused where it is not what the hash
        says."""
        fetched = await asyncio.to_thread(_from_disk, Path(source), path)
        if fetched is None:
            from ..memory.skills.git import fetched as git_fetched
            from ..memory.skills.git import git_source

            repository = git_source(source)
            if repository is None:
                raise MailRefused(f"{source[:200]!r} is no folder, no archive and no repository (https://…, ssh://…)")
            commit, data = await git_fetched(repository)
            fetched = await asyncio.to_thread(_from_archive, data, repository.url, path, f"git:{commit}")
        known = fetched.pin.pin.partition(":")
        if sha256 and (known[0] == "git" or known[2] != sha256.lower().removeprefix("sha256:").removeprefix("tree:")):
            raise MailRefused(f"this is {fetched.pin.pin}, and not {sha256}: nothing was installed")
        return fetched

    async def review_fetched(self, person: str, fetched: "FetchedSkill") -> SkillReview:
        return await asyncio.to_thread(self._of(person).review, fetched)

    async def put(self, person: str, fetched: "FetchedSkill", *, replace: bool = False) -> str:
        name, pin = fetched.skill.name, fetched.pin
        told = await asyncio.to_thread(lambda: self._of(person).put(fetched, person, replace=replace))
        await self._store.note(line_of("skill.installed", name, {"of": person, "pin": pin.pin, "source": pin.source}))
        return told

    async def remove(self, person: str, name: str) -> str:
        told = await asyncio.to_thread(self._of(person).remove, name)
        await self._store.note(line_of("skill.removed", name, {"of": person}))
        return told

    def _of(self, person: str) -> "InstalledSkills":
        return _installed(installed_in(self._home, person))

    def _row(self, principal: str, found: FoundSkill) -> SkillRow:
        if found.source != "installed":
            return found.row
        installed, name = self._of(principal), found.skill.name
        pin, row = installed.pin(name), found.row
        changed = CHANGED if pin and installed.is_changed(name) else ""
        why = "; ".join(filter(None, (row.why, changed)))
        return replace(row, pin=pin.pin if pin else "", origin=pin.source if pin else "", why=why)

    async def _find(self, principal: str, role: Role, name: str) -> FoundSkill:
        found = await self._skills.found(principal, role)
        for each in found:
            if each.skill.name == name:
                return each
        there = ", ".join(each.skill.name for each in found) or "none"
        raise MailRefused(f"there is no skill {name[:64]!r}; there is {there}")

    async def _held(self, principal: str, name: str) -> Held | None:
        held = await self._skills.held(principal)
        return next((each for each in held if each.name == f"skills/{name}/{FILE}"), None)

    def _files(self, principal: str, found: FoundSkill) -> "Tree":
        """Of one in a workspace what is accepted: all that models are told."""
        from ..memory.skills.unpack import SkillContent

        if found.source == "workspace":
            return {FILE: SkillContent(found.text)} if found.text else {}
        return _installed(Path(found.folder).parent).files(found.skill.name)


def _installed(folder: Path) -> "InstalledSkills":
    from ..memory.skills.install import InstalledSkills

    return InstalledSkills(folder)


def _from_archive(data: bytes, source: str, path: str, pin: str = "") -> "FetchedSkill":
    from ..memory.skills.install import from_archive

    return from_archive(data, source, path, pin)


def _from_disk(source: Path, path: str) -> "FetchedSkill | None":
    from ..memory.skills.install import from_file, from_folder

    if source.is_dir():
        return from_folder(source, path)
    return from_file(source, path) if source.is_file() else None


class SkillsAtHand(Struct, frozen=True):
    """For the command line: the desk, and who people are."""

    desk: SkillDesk
    members: Membership

    async def person(self, who: str) -> Person:
        """Raises MailRefused."""
        return Person(OWNER, OWNER, Role.OWNER) if who == OWNER else await self.members.find(who)


@asynccontextmanager
async def open_skills(home: Path | None = None) -> AsyncIterator[SkillsAtHand]:
    """For the command line: a gateway that runs sees the folders change. Raises what `open` raises."""
    async with opened_home(home) as opened:
        folder, settings, store = opened.home, opened.settings, opened.store
        storage = await open_storage(opened, KnownPeople(store))
        watched = watched_files(Home(folder), settings, store, storage.files, asking_a_sandbox(folder, settings))
        skills = HouseSkills(folder, lambda: watched, lambda: settings)
        yield SkillsAtHand(SkillDesk(folder, skills, store), Membership(store))
