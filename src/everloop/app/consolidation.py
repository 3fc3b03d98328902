"""Wires what makes conversations part of the memory: who is asked, who pays, and when one is due.

What it takes is loaded when it begins: a process that is over in a moment never needs it.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ..errors import ModelMissing
from ..ports import Clock, People, Store
from ..ports.jobs import CONSOLIDATE
from ..runtime.budgets import BudgetControl
from ..runtime.models import Model
from ..runtime.own_keys import OwnKeys
from ..runtime.scheduler import LEASE, Worker
from .live import LiveHouse

if TYPE_CHECKING:
    from ..memory.consolidation import Consolidation
    from ..memory.planning import ConsolidationPlanner, PlanningRules


class HouseConsolidation:
    """`run` it under a supervisor; let it know when a session is to `leave` a conversation."""

    def __init__(
        self,
        live: LiveHouse,
        store: Store,
        people: People,
        clock: Clock,
        budgets: BudgetControl,
        own_keys: OwnKeys,
        whose: str,
        changed: Callable[[str], Awaitable[None]],
    ) -> None:
        """`changed` is told whose memory was."""
        self._live = live
        self._store = store
        self._people = people
        self._clock = clock
        self._budgets = budgets
        self._own_keys = own_keys
        self._whose = whose
        self._changed = changed
        self._planner: ConsolidationPlanner | None = None  # until it has begun

    async def leave(self, thread: str) -> None:
        """A session may go on to another conversation; what it leaves running is ended."""
        await self._live.now.toolset.leave(thread)
        if self._planner:
            self._planner.hint()

    async def run(self, workers: dict[str, Worker]) -> None:
        from ..memory.planning import ConsolidationPlanner

        workers[CONSOLIDATE] = self._worker().work
        planner = ConsolidationPlanner(self._store, self._people, self._clock, self._rules, self._whose, LEASE)
        self._planner = planner
        await planner.run()

    def _worker(self) -> "Consolidation":
        from ..memory.consolidation import Consolidation
        from ..runtime.memory_calls import MemoryCalls
        from .redaction import redacted

        calls = MemoryCalls(
            self._model,
            self._budgets,
            self._store,
            self._people,
            self._clock,
            per_day=lambda: self._live.now.settings.memory.tokens_per_day,
            own_keys=self._own_keys,
        )
        return Consolidation(
            self._store,
            self._people,
            self._clock,
            calls,
            enabled=lambda: self._live.now.settings.memory.enabled,
            redact=redacted,
            changed=self._changed,
        )

    async def _model(self) -> Model:
        """The small one, else whoever answers. Raises ModelMissing."""
        return await self._live.small() or self._live.find("")

    def _rules(self) -> "PlanningRules | None":
        from ..memory.planning import PlanningRules

        settings = self._live.now.settings
        # The model in this process repeats what it reads, and calls that what matters: others are waited for.
        if not settings.memory.enabled or self._live.now.missing or self._is_embedded():
            return None
        return PlanningRules(settings.agents.defaults.memory_window, settings.memory.idle_minutes * 60.0)

    def _is_embedded(self) -> bool:
        presets = self._live.now.presets
        try:
            return presets.find(presets.small).compact if presets else self._live.now.model.compact
        except ModelMissing:
            return False
