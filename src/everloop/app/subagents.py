"""Sub-agents as the settings have them: who they are, what they are told, how many work at once."""

from collections.abc import Mapping

from msgspec.structs import replace

from ..core.briefing import Briefing, Situation
from ..core.personas import PersonaWish
from ..core.prompt import Terms
from ..ports import Briefer
from ..ports.budgets import money_of
from ..runtime.children import TaskLimits
from ..runtime.seats import SeatCaps
from ..settings import Agents, ProfileSection
from ..tools.spawn import AgentProfile
from .presets import TOOLS

BRIEFINGS = 100  # that are kept ready
TASK = (
    "You are a sub-agent of everloop. Another agent has handed one task on to you: the first message, which holds all "
    "that you are told of it. Work at it alone until it is done; nobody answers questions. Do what it asks and begin "
    "nothing else. Your last message is your report, which the other agent reads: what you have found or done, where "
    "it lies, and what is left undone. Be accurate and brief."
)
WHERE = " Your workspace is the folder {workspace}; file paths are relative to it."
WITH = f" Your tools: {TOOLS}."


def profiles_of(agents: Agents) -> dict[str, AgentProfile]:
    return {name: _profile(section) for name, section in agents.profiles.items()}


def plain_profile(agents: Agents) -> AgentProfile:
    """Who works at a task for which nobody is named."""
    return AgentProfile(steps=agents.tasks.steps)


def _profile(section: ProfileSection) -> AgentProfile:
    return AgentProfile(
        description=section.description,
        model=section.model,
        tools=section.tools,
        steps=section.steps,
        tokens=section.budget_tokens or None,
        money=money_of(section.budget_money) or None,
    )


def task_limits(agents: Agents) -> TaskLimits:
    return TaskLimits(depth=agents.tasks.depth, open=agents.tasks.open, rounds=agents.tasks.rounds)


def seat_caps(agents: Agents) -> SeatCaps:
    return SeatCaps(per_person=agents.tasks.per_person, house=agents.tasks.at_once)


class TaskBriefer:
    """The Briefer port: who works at a task is told that, and nothing of who they would be otherwise; of a persona what
    is the persona's own."""

    def __init__(self, plain: Briefer, personas: Briefer, profiles: Mapping[str, ProfileSection]) -> None:
        self._plain = plain
        self._personas = personas
        self._profiles = profiles
        self._told: dict[tuple[int, str], tuple[Briefing, Briefing]] = {}

    async def brief(self, situation: Situation) -> Briefing:
        terms = situation.terms
        if terms is None or terms.task is None:
            return await self._personas.brief(situation)
        agent = terms.task.agent
        profile = self._profiles.get(agent, ProfileSection())
        wish = PersonaWish(profile.persona, situation.person)
        asked = replace(situation, terms=Terms(terms.steps, terms.tools), wish=wish)
        usual = await self._plain.brief(asked)
        told = await self._personas.brief(asked) if profile.persona else usual
        made = self._told.get((id(told), agent))
        if made is None or made[0] is not told:
            if len(self._told) >= BRIEFINGS:
                self._told.clear()
            own = tuple(section for section in told.files if section not in usual.files)
            made = self._told[id(told), agent] = told, _for_task(told, profile, own)
        return made[1]


def _for_task(told: Briefing, profile: ProfileSection, files: tuple[object, ...]) -> Briefing:
    where = WHERE.format(workspace=told.place) if told.place else ""
    more = f"\n\n{profile.prompt.strip()}" if profile.prompt.strip() else ""
    return replace(told, identity=f"{TASK}{where}{WITH}{more}", brief=f"{TASK}{more}", files=files)
