"""Who works out each slash command: loaded and made when somebody types it."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..core.mail import Inbound
from ..core.people import Role
from ..ports.permission import Grant
from ..runtime.typed_command import WorksOutCommand

if TYPE_CHECKING:
    from ..runtime.persona_commands import PersonaCommands
    from .house import House


class CommandTable:
    def __init__(self, house: "House") -> None:
        self._house = house

    def find(self, name: str) -> WorksOutCommand:
        return MADE_BY[name](self._house)

    async def keep(self, posted: Inbound, grant: Grant | None) -> None:
        """What an answer to a question allows ahead, now that it is posted."""
        await self._house.approvals.keep(posted, grant)


def _approvals(house: "House") -> WorksOutCommand:
    from ..runtime.approve_command import ApproveCommand

    return ApproveCommand(house.approvals, house.clock)


def _background(house: "House") -> WorksOutCommand:
    from ..runtime.background import BackgroundCommands
    from .subagents import task_limits

    return BackgroundCommands(house.store, house.sessions, lambda: task_limits(house.settings().agents))


def _budget(house: "House") -> WorksOutCommand:
    from ..runtime.budget_command import BudgetCommand

    return BudgetCommand(house.store, house.budgets)


def _compact(house: "House") -> WorksOutCommand:
    from ..runtime.compact_command import CompactCommand

    return CompactCommand(house.store)


def _cron(house: "House") -> WorksOutCommand:
    from ..runtime.cron_command import CronCommand

    return CronCommand(house.builder.schedules)


def _keys(house: "House") -> WorksOutCommand:
    from ..runtime.key_command import KeyCommand

    return KeyCommand(house.personal.names)


def _mcp(house: "House") -> WorksOutCommand:
    return house.mcp.command


def _members(house: "House") -> WorksOutCommand:
    from ..runtime.member_commands import MemberCommands
    from ..runtime.membership import Membership

    return MemberCommands(Membership(house.store))


def _memory(house: "House") -> WorksOutCommand:
    from ..runtime.memory_commands import MemoryCommands

    return MemoryCommands(house.memory)


def _model(house: "House") -> WorksOutCommand:
    from ..runtime.model_command import ModelCommand

    return ModelCommand(house.store, house.live, _persona(house))


def _persona(house: "House") -> "PersonaCommands":
    from ..runtime.persona_commands import PersonaCommands

    return PersonaCommands(house.store, lambda: house.live.now.personas)


def _sessions(house: "House") -> WorksOutCommand:
    from ..runtime.session_commands import SessionCommands

    return SessionCommands(house.store, house.sessions, house.deletions)


def _skill(house: "House") -> WorksOutCommand:
    from ..runtime.skill_command import SkillCommand

    return SkillCommand(house.skills)


def _status(house: "House") -> WorksOutCommand:
    from ..runtime.status_command import StatusCommand

    def servers(role: Role) -> str:
        return house.mcp.command.line(role) if house.builder.mcp.is_loaded else ""

    return StatusCommand(
        house.store,
        house.live,
        _persona(house),
        channels=lambda: sorted(house.builder.open_channels),
        heartbeat=house.heartbeat,
        mcp=servers,
    )


def _tasks(house: "House") -> WorksOutCommand:
    from ..runtime.task_commands import TaskCommands

    return TaskCommands(house.store, house.clock)


def _usage(house: "House") -> WorksOutCommand:
    from ..runtime.usage_command import UsageCommand

    return UsageCommand(house.store, house.clock)


# Without /new, /stop and /help, which need nobody (runtime/commands.py).
MADE_BY: dict[str, Callable[["House"], WorksOutCommand]] = {
    "/approve": _approvals,
    "/bg": _background,
    "/budget": _budget,
    "/compact": _compact,
    "/cron": _cron,
    "/deny": _approvals,
    "/fg": _background,
    "/fork": _sessions,
    "/keys": _keys,
    "/kill": _tasks,
    "/link": _members,
    "/mcp": _mcp,
    "/memory": _memory,
    "/model": _model,
    "/pair": _members,
    "/persona": _persona,
    "/resume": _sessions,
    "/session": _sessions,
    "/skill": _skill,
    "/status": _status,
    "/tasks": _tasks,
    "/tree": _sessions,
    "/undo": _sessions,
    "/usage": _usage,
}
