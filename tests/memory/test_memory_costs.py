"""What remembering costs, who pays for it, and what happens when nobody can, or no model answers."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from everloop.app import open_desk
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.core.prompt import Usage
from everloop.errors import BadRequest, KeyRefused, Postponed, RateLimited
from everloop.memory.consolidation import Consolidation
from everloop.memory.extraction import prompt_for
from everloop.ports.budgets import Limit
from everloop.ports.jobs import Job, JobRow
from everloop.ports.memory import HISTORY
from everloop.runtime.budgets import BudgetControl
from everloop.runtime.memory_calls import SCOPE, MemoryCalls
from everloop.runtime.own_keys import AskedProvider
from everloop.runtime.people import KnownPeople
from everloop.testing import Call, Empty, Fail, Line, Say, ScriptedModel, Spend

from .makers import answer, excerpt_of, person
from .remembering import QuickClock, extractions, fact, pass_time, remembering, save, settled

FINE = (save("They talked.", fact("The user is a pilot", 1)), Spend(Usage(3000, 200)))
WORDS = "I am a pilot, by the way"


def in_order(lines: Sequence[Line]):
    left = list(lines)
    return remembering(lambda shown: left.pop(0) if len(left) > 1 else left[0])


async def results(agent: Any, owner: str = "owner") -> list[tuple[str, str]]:
    """Of all consolidations, when none is being worked on."""
    while True:
        rows = [row for row in await agent.store.jobs(owner) if row.job.kind == "consolidate"]
        if all(row.state != "working" for row in rows):
            return sorted((row.state, row.result.split(":")[0]) for row in rows)
        await asyncio.sleep(0.01)


async def test_it_is_told_as_memory_and_what_a_day_may_use_bounds_it(tmp_path: Path):
    model, clock = in_order([FINE]), QuickClock()
    settings = {"memory": {"tokens_per_day": 6000}}
    async with open_desk(tmp_path / "home", settings, provider=model, clock=clock) as agent:
        for session in ("page:one", "page:two"):
            await agent.ask(WORDS, session=session)
        await agent.ask("/new", session="page:one")
        await settled(agent.store)
        spent = [(row.purpose, row.calls, row.usage) for row in await agent.store.spent() if row.purpose]
        await agent.ask("/new", session="page:two")
        await pass_time(clock, 120)
        await pass_time(clock, 3600)
        refused, calls = await results(agent), len(extractions(model))
        await pass_time(clock, 86400)
        await settled(agent.store)
    assert spent == [("memory", 1, Usage(3000, 200))]
    assert refused == [("done", "consolidated in 1 part"), ("waiting", "there is no room in the budget")]
    assert (calls, len(extractions(model))) == (1, 2)


async def test_what_a_person_may_spend_bounds_it_too_and_later_is_not_never(tmp_path: Path):
    model, clock = remembering(lambda shown: FINE, lambda shown: (Say("fine"), Spend(Usage(9000, 0)))), QuickClock()
    async with open_desk(tmp_path / "home", provider=model, clock=clock, roles={"ann": Role.USER}) as agent:
        where = Address.parse("page:ann")
        await agent.store.set_limit("ann", "month", Limit(tokens=12_000))
        await agent.tell(Inbound(where, "e1", Said(said(WORDS), "ann", str(where)), "ann"))
        await model.called(1)
        await agent.finish(str(where))
        await pass_time(clock, 3600)
        await pass_time(clock, 3600)
        refused, calls = await results(agent, "ann"), len(extractions(model))
        await agent.budgets.assign("ann", "month", Limit(tokens=1_000_000))
        await pass_time(clock, 3700)
        await settled(agent.store, "ann")
        left = [row for row in await agent.store.spending(("ann",), ("", SCOPE)) if row.held_tokens]
    assert (refused, calls) == ([("waiting", "there is no room in the budget")], 0)
    assert (len(extractions(model)), left) == (1, [])


@pytest.mark.parametrize("bad", [Say("I would rather not."), Call("save_memory", "{"), Empty(), save("", fact("", 9))])
async def test_an_answer_that_cannot_be_used_is_asked_for_once_more_with_what_was_wrong(tmp_path: Path, bad: Line):
    model = in_order([bad, FINE])
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock()) as agent:
        await agent.ask(WORDS, session="page:one")
        await agent.ask("/new", session="page:one")
        await settled(agent.store)
        kept = [each.text for each in await agent.store.facts("owner")]
        calls = [row.calls for row in await agent.store.spent() if row.purpose]
    assert (kept, len(extractions(model)), calls) == (["The user is a pilot"], 2, [1])
    assert "could not be used" in extractions(model)[1].asked


ECHO = save(f"2026-11-18 00:58 the user: {WORDS} 2026-11-18 00:59 the agent: fine")


@pytest.mark.parametrize("bad", [Say("no"), Fail(BadRequest("no tools here")), ECHO])
async def test_what_no_model_can_tell_is_kept_as_it_was_said(tmp_path: Path, bad: Line):
    model = in_order([bad])
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock()) as agent:
        await agent.ask(WORDS, session="page:one")
        await agent.ask("/new", session="page:one")
        await settled(agent.store)
        history = (await agent.store.document("owner", HISTORY)).body
    assert history.splitlines()[-1].split("] ")[1].startswith(f"the user: {WORDS} (page:one ")
    assert len(extractions(model)) <= 2


@pytest.mark.parametrize("error", [RateLimited("busy"), KeyRefused("no")])
async def test_a_host_that_does_not_answer_is_asked_for_days_and_then_it_is_kept_as_it_was_said(tmp_path, error):
    model, clock = in_order([Fail(error)]), QuickClock()
    async with open_desk(tmp_path / "home", provider=model, clock=clock) as agent:
        await agent.ask(WORDS, session="page:one")
        await agent.ask("/new", session="page:one")
        for _ in range(11):
            await pass_time(clock, 6 * 3600)
            after_days = await results(agent)
        for _ in range(3):
            await pass_time(clock, 6 * 3600)
            await results(agent)
        await settled(agent.store)
        history = (await agent.store.document("owner", HISTORY)).body
    assert [result.split(" since ")[0] for _, result in after_days] == ["no answer"]
    assert WORDS in history
    assert len(extractions(model)) <= 20


async def test_who_has_a_key_of_their_own_pays_with_it_and_the_day_s_bound_holds_all_the_same(sqlite_store):
    usual, own = ScriptedModel([]), ScriptedModel(lambda shown: FINE)

    class Keys:
        def has(self, person: str) -> bool:
            return True

        async def asked(self, person: str, model: str, provider: Any) -> AskedProvider:
            return AskedProvider(own, own=True)

    class Small:
        name = key = model = "m"
        provider, window = usual, 100_000

        def price(self, usage: Usage) -> float:
            return 1.0

    async def find() -> Any:
        return Small()

    await sqlite_store.set_limit("ann", "month", Limit(tokens=1))
    people = KnownPeople(None, {"ann": Role.USER})
    budgets = BudgetControl(sqlite_store)
    calls = MemoryCalls(find, budgets, sqlite_store, people, QuickClock(), per_day=lambda: 9000, own_keys=Keys())
    found = await calls.ask("ann", "ann", "t", "k", prompt_for(excerpt_of(person("hi"), *answer("hello")), ()))
    assert found is not None
    assert found.spent.own
    assert (usual.calls, own.calls) == (0, 1)
    [day] = await sqlite_store.spending(("ann",), (SCOPE,))
    assert (day.tokens, day.held_tokens) == (3200, 0)


async def test_what_is_held_up_still_knows_since_when_no_model_has_answered():
    """Else one that never answers would be asked for ever."""
    nobody: Any = None
    work = Consolidation(nobody, nobody, nobody, nobody, enabled=lambda: False).work
    for result, kept in (("no answer since 5 (timeout)", True), ("", False)):
        row = JobRow(Job("consolidate:t:1", "consolidate", 0.0), result=result)
        with pytest.raises(Postponed, match="memory is switched off") as held:
            await work(row)
        assert ("no answer since 5" in str(held.value)) == kept
