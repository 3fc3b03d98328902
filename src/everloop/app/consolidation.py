"""Wires what makes conversations part of the memory: who is asked, who pays, and when one is due."""

from ..errors import ModelMissing
from ..memory.consolidation import Consolidation
from ..memory.learning import Changed
from ..memory.planning import EVERY, ConsolidationPlanner, PlanningRules
from ..ports import Clock, People, Store
from ..ports.jobs import CONSOLIDATE
from ..runtime.budgets import BudgetControl
from ..runtime.memory_calls import MemoryCalls
from ..runtime.models import Model
from ..runtime.own_keys import OwnKeys
from ..runtime.scheduler import LEASE, Worker
from .live import LiveHouse
from .redaction import redacted


class HouseConsolidation:
    """`run` it under a supervisor; `hint` it when a session goes on to another conversation."""

    def __init__(
        self,
        live: LiveHouse,
        store: Store,
        people: People,
        clock: Clock,
        budgets: BudgetControl,
        own_keys: OwnKeys,
        whose: str,
        changed: Changed,
    ) -> None:
        """`changed` is told whose memory was."""
        self._live = live
        self._clock = clock
        self._whose = whose
        calls = MemoryCalls(
            self._model,
            budgets,
            store,
            people,
            clock,
            per_day=lambda: live.now.settings.memory.tokens_per_day,
            own_keys=own_keys,
        )
        self._consolidation = Consolidation(
            store,
            people,
            clock,
            calls,
            enabled=lambda: live.now.settings.memory.enabled,
            redact=redacted,
            changed=changed,
        )
        self._planner = ConsolidationPlanner(store, people, clock, self._rules, whose, LEASE)
        self.hint = self._planner.hint

    async def leave(self, thread: str) -> None:
        """A session may go on to another conversation; what it leaves running is ended."""
        await self._live.now.toolset.leave(thread)
        self._planner.hint()

    async def run(self, workers: dict[str, Worker]) -> None:
        """What one person opens is mostly over in a moment: a model that is asked then would be paid for nothing."""
        if self._whose:
            await self._clock.sleep(EVERY)
        workers[CONSOLIDATE] = self._consolidation.work
        await self._planner.run()

    async def _model(self) -> Model:
        """The small one, else whoever answers. Raises ModelMissing."""
        return await self._live.small() or self._live.find("")

    def _rules(self) -> PlanningRules | None:
        settings = self._live.now.settings
        if not settings.memory.enabled or self._live.now.missing:
            return None
        # One who runs in this process would hold up people who wait for its answers.
        idle = None if self._is_embedded() else settings.memory.idle_minutes * 60.0
        return PlanningRules(settings.agents.defaults.memory_window, idle)

    def _is_embedded(self) -> bool:
        presets = self._live.now.presets
        try:
            return presets.find(presets.small).compact if presets else self._live.now.model.compact
        except ModelMissing:
            return False
