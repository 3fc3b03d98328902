"""`/status`: who answers in a conversation, how full it is, what it has cost, and what goes on beside it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from ..core.mail import Inbound, Said
from ..core.people import Role
from ..core.thread import Thread
from ..errors import ModelMissing
from ..ports import Archive, Ledger, Log
from ..ports.schedules import Schedules
from ..ports.tasks import Tasks
from .heartbeat_desk import HeartbeatDesk
from .models import Model, Models
from .persona_commands import PersonaCommands
from .typed_command import CommandEffect, TypedCommand
from .usage_command import price_of


class StatusStore(Archive, Log, Ledger, Tasks, Schedules, Protocol):
    """What there is to be told of."""


class StatusCommand:
    def __init__(
        self,
        store: StatusStore,
        models: Models,
        personas: PersonaCommands,
        channels: Callable[[], Sequence[str]],
        heartbeat: HeartbeatDesk,
        mcp: Callable[[Role], str],
    ) -> None:
        """`channels` says how each stands that is open here, `mcp` what there is of servers for a role."""
        self._store = store
        self._models = models
        self._personas = personas
        self._channels = channels
        self._heartbeat = heartbeat
        self._mcp = mcp

    async def work_out(self, typed: TypedCommand) -> CommandEffect:
        usual = await self._personas.model(typed.inbound, typed.letter, typed.role)
        return typed.told(await self.tell(typed.inbound, typed.letter, typed.role, usual))

    async def tell(self, inbound: Inbound, letter: Said, role: Role, usual: str) -> str:
        """`usual` is the model that answers here where nobody has chosen; "" is the one of the settings."""
        row = await self._store.session(str(inbound.address))
        lines = []
        if row is None:
            lines.append(f"Model: {(await self._model(usual)).name}. Nothing has been said here yet.")
        else:
            opened = await self._store.open(row.id)
            thread = Thread(row.id, opened.first - 1)
            thread.extend(opened.entries)
            lines.append(await _answers(await self._model(thread.choice or usual), thread))
            lines.append(f"State: {row.state}. {await self._cost(row.id)}")
            tasks = await self._store.tasks(row.owner, under=row.id)
            lines.append(f"Tasks: {sum(task.is_open for task in tasks)} open, {len(tasks)} in all.")
        to_come = [each for each in await self._store.schedules(letter.author) if each.enabled and not each.over]
        lines.append(f"Schedules of yours that are to come: {len(to_come)}.")
        if not letter.principal and (line := await self._heartbeat.line(letter.author)):
            lines.append(line)
        if role >= Role.ADMIN and not letter.principal:
            lines.append(f"Channels: {', '.join(self._channels()) or 'none is open here'}.")
        if not letter.principal and (told := self._mcp(role)):
            lines.append(told)
        return "\n".join(lines)

    async def _model(self, name: str) -> Model:
        try:
            return await self._models.look(name) if name else self._models.find("")
        except ModelMissing:
            return self._models.find("")

    async def _cost(self, thread: str) -> str:
        store = self._store
        rows = [*await store.spent(thread=thread), *await store.taken_back(thread), *await store.inherited(thread)]
        calls = sum(row.calls for row in rows)
        price = price_of(sum(row.cost for row in rows), sum(row.unpriced for row in rows))
        return f"{calls} model call(s), {price}." if calls else "No model has been asked yet."


async def _answers(model: Model, thread: Thread) -> str:
    if model.assumed and model.should_measure(0, 0, looking=True):  # as after a restart, when nothing was asked yet
        await model.measure_window()
    if model.assumed:
        return f"Model: {model.name}; about {thread.tokens:,} tokens are used. It is assumed to read {model.window:,}."
    share = f"{min(1.0, thread.tokens / model.window):.0%} of its {model.window:,} tokens are used"
    return f"Model: {model.name}; {share}."
