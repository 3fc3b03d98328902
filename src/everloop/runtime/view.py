"""What the next prompt of a session would be, for whoever wants to look at it."""

from msgspec import Struct

from ..core.briefing import Situation
from ..core.decide import used
from ..core.log import ModelCalled
from ..core.people import OWNER
from ..core.thread import Thread
from ..errors import ModelMissing
from ..ports import Briefer, People
from ..ports.memory import FactTeller
from ..readings.contents import Contents, pieces_of
from ..readings.sections import changed_parts
from .models import Briefed, Models
from .recalling import recalled_for
from .sessions import SessionStore


class View(Struct, frozen=True):
    """A house that is looked into: nobody speaks in it, and nothing in it goes on."""

    store: SessionStore
    models: Models
    briefer: Briefer
    people: People
    held: tuple[str, ...] = ()  # files whose changes are held back
    facts: FactTeller | None = None  # that are remembered

    async def contents(self, session: str) -> Contents:
        """What the next prompt of this session holds. Raises ModelMissing."""
        row = await self.store.session(session)
        thread = await self._thread(row.id) if row else Thread()
        thread.address = thread.address or session
        briefed = await self._briefed(thread)
        model, context, rules = briefed.model, briefed.context, briefed.rules
        called = await self._prefixes(row.id) if row else []
        (_, before), (at, after) = called[-2:] if len(called) > 1 else [(0, ""), (0, "")]
        return Contents(
            session=session,
            thread=thread.id,
            model=model.name,
            window=model.window,
            limit=rules.limit,
            used=used(thread, rules),
            counted=thread.measured and rules.prefix == thread.prefix,
            pieces=pieces_of(
                sections=context.sections,
                tools=context.tools,
                thread=thread,
                tail=context.tail(thread, wrap=False),
                recalled=await self._recall(thread, briefed),
            ),
            changed=tuple(changed_parts(before, after)),
            changed_at=at,
            coming=tuple(changed_parts(thread.prefix, rules.prefix)),
            held=self.held,
            assumed=model.assumed,
            persona=briefed.briefing.persona,
        )

    async def _recall(self, thread: Thread, briefed: Briefed) -> str:
        """What came back for what was said last, as the driver finds it; the next message has its own."""
        messages = thread.transcript.messages
        first = 1 if thread.condensed else 0  # the summary
        spoken = [at for at in range(first, len(messages)) if messages[at].role == "user"]
        if not spoken:
            return ""
        conversation = "\n".join(message.text for message in messages[: spoken[-1] + 1])
        return await recalled_for(
            thread,
            thread.said_now() or [messages[spoken[-1]].text],
            principal=thread.turn.principal or thread.turn.requester or OWNER,
            shown=lambda: f"{briefed.context.system}\n{conversation}",
            limit=briefed.rules.limit,
            teller=self.facts,
            store=self.store,
        )

    async def _thread(self, id: str) -> Thread:
        opened = await self.store.open(id)
        thread = Thread(id, opened.first - 1)
        thread.extend(opened.entries)
        return thread

    async def _briefed(self, thread: Thread) -> Briefed:
        """Who would answer, and what it would be told, as the driver finds it."""
        person, turn = thread.turn.requester or OWNER, thread.turn
        role = await self.people.role(person)
        situation = Situation(
            person=person,
            role=role,
            principal=turn.principal or person,
            address=thread.address,
            thread=thread.id,
            terms=turn.terms,
            wish=thread.persona,
            server=thread.server,
            covered=thread.covered,
        )
        briefing = await self.briefer.brief(situation)
        try:
            model = await self.models.look(thread.choice or briefing.model)
        except ModelMissing:
            model = await self.models.look("")
        briefed = Briefed(model, briefing)
        if briefed.should_measure(0, looking=True):
            await model.measure_window()
            briefed.fit_again()
        return briefed

    async def _prefixes(self, id: str) -> list[tuple[int, str]]:
        """Where the prefix was another one than before, and what it was from there on."""
        history = await self.store.history(id)
        called = ((each.seq, each.entry) for each in history)
        return [(seq, entry.prefix) for seq, entry in called if isinstance(entry, ModelCalled) and entry.prefix]
