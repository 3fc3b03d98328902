"""What can be named behind a slash command: conversations, branches, snapshots, models, personas, skills and tasks."""

from pathlib import Path

from ...app.agent import Agent
from ...core.people import OWNER, Role
from ...ports.tasks import TaskRow
from ...readings.commands import SKILL
from ...readings.family import family
from ...readings.last_words import LOOKED, last_words
from ...readings.task_lines import line_of, numbered
from ...readings.used import GROUPINGS
from ...readings.visible import in_one_line
from ..times import clock
from .completion import Named, NameSources

LISTED = 200  # conversations that are offered


class KnownNames:
    def __init__(self, agent: Agent, session: str) -> None:
        self._agent = agent
        self._session = session

    def sources(self, folders: tuple[Path, ...]) -> NameSources:
        names = {
            "/resume": self._sessions,
            "/session resume": self._sessions,
            "/session delete": self._sessions,
            "/session restore": self._snapshots,
            "/tree": self._branches,
            "/model": self._models,
            "/persona": self._personas,
            SKILL: self._skills,
            f"{SKILL} show": self._skills,
            "/fg": self._background,
            "/kill": self._tasks,
            "/tasks show": self._tasks,
            "/tasks stop": self._tasks,
            "/usage": self._groupings,
        }
        return NameSources(lambda: self._agent.commands_for(Role.OWNER), names, folders)

    async def _sessions(self) -> list[Named]:
        rows = await self._agent.store.conversations(OWNER, limit=LISTED)
        return [_named(each.id, each.title, each.active, each.messages) for each in rows]

    async def _snapshots(self) -> list[Named]:
        return [Named(each.name, clock(each.at)) for each in await self._agent.store.snapshots(OWNER)]

    async def _branches(self) -> list[Named]:
        row = await self._agent.store.session(self._session)
        rows = await self._agent.store.conversations(OWNER, archived=True)
        here = next((each for each in rows if row and each.id == row.id), None)
        named = []
        for _, one in family(here, rows) if here else ():
            last = last_words(await self._agent.store.read(one.id, after=max(0, one.head - LOOKED)))
            is_here = "here: " if here and one.id == here.id else ""
            named.append(_named(one.id, f"{is_here}“{last or one.title}”", one.active, one.messages))
        return named

    async def _models(self) -> list[Named]:
        presets = [Named(name, "a preset") for name in self._agent.model_names()]
        return [*presets, Named("default", "as the settings say"), Named(self._agent.model)]

    async def _personas(self) -> list[Named]:
        names = self._agent.persona_names(Role.OWNER)
        return [*map(Named, names), Named("default", "itself, without a persona")] if names else []

    async def _skills(self) -> list[Named]:
        rows = await self._agent.skills.rows(OWNER, Role.OWNER)
        return [Named(f"{each.name} ", each.description) for each in rows]

    async def _tasks(self) -> list[Named]:
        now = self._agent.clock.now()
        lines = {number: line_of(number, task, now) for number, task in (await self._numbered()).items()}
        return [Named(str(number), line.partition(". ")[2]) for number, line in lines.items()]

    async def _background(self) -> list[Named]:
        return [Named(str(number), task.title) for number, task in (await self._numbered()).items() if task.number]

    async def _numbered(self) -> dict[int, TaskRow]:
        row = await self._agent.store.session(self._session)
        return numbered(await self._agent.store.tasks(OWNER, under=row.id)) if row else {}

    async def _groupings(self) -> list[Named]:
        return [Named(each) for each in GROUPINGS]


def _named(id: str, title: str, active: float, messages: int) -> Named:
    many = f"{messages} message{'' if messages == 1 else 's'}"
    return Named(id[:12], f"{clock(active)}, {many}: {in_one_line(title)}")
