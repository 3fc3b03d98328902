"""Everybody's skills: what of them stands in prompts, and where tools and commands find their files."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ..core.briefing import Situation
from ..core.people import OWNER, Role
from ..core.prompt import Section
from ..memory.skills.shelf import Found, Requirements, SkillShelf, WorkspaceSkill
from ..memory.skills.told import sections_of
from ..ports.permission import Held
from ..ports.skills import SkillPlace
from ..settings import Settings, workspace_of
from ..tools.house_prompt_files import HousePromptFiles
from ..tools.prompt_files import WatchedFiles
from ..tools.sandbox.view import environment, has_program
from ..tools.skill_files import is_skill_file, skill_name
from ..tools.tainted import place_of
from .workspaces import principals_folder, workspace_for

FOLDER = "skills"
PEOPLE = 500  # whose sections are kept ready
Accepted = Mapping[str, WorkspaceSkill]


def installed_in(home: Path, principal: str) -> Path:
    """Where the skills lie that somebody has installed; the owner's are the house's."""
    return home / FOLDER if principal == OWNER else home / "people" / principals_folder(principal) / FOLDER


class HouseSkills:
    """The SectionSource and SkillFolders ports."""

    def __init__(
        self, home: Path, files: Callable[[], HousePromptFiles | None], settings: Callable[[], Settings]
    ) -> None:
        """`files` are those that stand in prompts, `settings` those that are in force; both are made later."""
        self._home = home
        self._files = files
        self._settings = settings
        self._shelf: tuple[object, SkillShelf] | None = None
        self._places: dict[str, str] = {}  # workspaces, as they are called in taints
        self._accepted: dict[str, tuple[object, object, Accepted]] = {}
        self._sections: dict[tuple[str, bool], tuple[Found, tuple[Section, ...]]] = {}

    async def found(self, principal: str, role: Role) -> Found:
        """All that somebody has, also what cannot be used; the same tuple while it is the same. Raises StoreError."""
        workspace = await self._workspace(principal) if role >= Role.USER else {}
        return self._shelf_now().of(principal, role, workspace)

    async def sections(self, situation: Situation) -> tuple[Section, ...]:
        found = await self.found(situation.principal, situation.role)
        key = situation.principal, situation.role < Role.USER
        told = self._sections.get(key)
        if told is None or told[0] is not found:
            if len(self._sections) >= PEOPLE:
                self._sections.clear()
            told = self._sections[key] = found, sections_of(found)
        return told[1]

    async def places(self, principal: str, role: Role) -> Mapping[str, SkillPlace]:
        found = await self.found(principal, role)
        return {each.skill.name: each.place for each in found if each.is_told}

    async def held(self, principal: str) -> list[Held]:
        """Changes of skills in somebody's workspace that wait for a person. Raises StoreError."""
        watched = self._watched(principal)
        await watched.look()
        return [each for each in await watched.held() if is_skill_file(each.name)]

    async def decide(self, principal: str, held: Held, allow: bool) -> str:
        """Raises MailRefused, StoreError."""
        return await self._watched(principal).decide(held, allow)

    def _watched(self, principal: str) -> WatchedFiles:
        files = self._files()
        assert files is not None  # they are made with the first tools
        if principal not in self._places:
            if len(self._places) >= PEOPLE:
                self._places.clear()
            owners = workspace_of(self._settings(), self._home)
            self._places[principal] = place_of(workspace_for(principal, self._home, owners))
        return files.at(self._places[principal])

    async def _workspace(self, principal: str) -> Accepted:
        """What is accepted of the skills in a workspace; the same mapping while nothing has changed."""
        watched = self._watched(principal)
        await watched.look()
        before = self._accepted.get(principal)
        if before is None or before[0] is not watched.accepted or before[1] != watched.names:
            if len(self._accepted) >= PEOPLE:
                self._accepted.clear()
            held = set(watched.names)
            made = {
                skill_name(name): WorkspaceSkill(state.content, name in held)
                for name, state in watched.accepted.items()
                if is_skill_file(name) and (state.content or state.link or name in held)
            }
            before = self._accepted[principal] = watched.accepted, watched.names, made
        return before[2]

    def _shelf_now(self) -> SkillShelf:
        settings = self._settings()
        key = settings.skills, settings.tools.exec.env
        if self._shelf is None or self._shelf[0] != key:
            env = environment(os.environ, settings.tools.exec.env)
            needs = Requirements(has_program, frozenset(env), lambda name: name in os.environ)
            shelf = SkillShelf(lambda principal: installed_in(self._home, principal), settings.skills.shared, needs)
            self._shelf = key, shelf
        return self._shelf[1]
