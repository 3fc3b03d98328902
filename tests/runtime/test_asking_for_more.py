"""Where a budget is used up somebody may be asked whether a turn may go beyond it: once, durably, and by who may."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import everloop
from everloop.core.decide import GiveUp, Rest, Rules, admit, decide
from everloop.core.log import (
    Answered,
    Asked,
    Compacted,
    GaveUp,
    ModelCalled,
    ModelFailed,
    ModelSaid,
    Resumed,
    UserSaid,
)
from everloop.core.mail import Address, Decision, Inbound, Mail, Said
from everloop.core.message import said
from everloop.core.overrun import CALLS, OVERRUN, Account, Overrun
from everloop.core.people import Role
from everloop.core.thread import Thread
from everloop.core.tool import Effect
from everloop.errors import MailRefused, TurnFailed
from everloop.ports.budgets import DOLLAR, HOUSE
from everloop.ports.permission import Approval
from everloop.readings.keys import escaped
from everloop.testing import Call, Say, ScriptedModel
from everloop.testing.clock import SimulatedClock
from everloop.tools.decorator import tool
from tests.runtime.test_budgets import ADMIN, ANNA, BERT, GUEST, ONE, ROOM, costly, dollars, opened, refused, spent

STARTS = "This turn goes beyond a budget. "
ENDS = f" The next answer may need up to $1.00. Go on? A yes lets this one turn ask the model up to {CALLS} times more."


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    """Wait for what another turn commits; the test's own time limit ends it."""
    while not await holds():  # noqa: ASYNC110 (what is waited for stands in the store)
        await asyncio.sleep(0.01)


async def waiting(agent: everloop.Agent, count: int = 1, but: str = "") -> list[Approval]:
    """What waits for an answer, as soon as it is so much."""
    found: list[Approval] = []

    async def holds() -> bool:
        found[:] = [each for each in await agent.approvals() if each.id != but]
        return len(found) >= count

    await until(holds)
    return found


async def entries_in(agent: everloop.Agent, session: str = ROOM) -> list[Any]:
    row = await agent.store.session(session)
    return list(await agent.store.read(row.id))


@pytest.fixture
def asking(tmp_path: Path) -> Any:
    """A house in which administrators are asked, and Anna may spend a dollar, which is what a call costs."""

    def open_with(model: Any, **more: Any) -> Any:
        return opened(tmp_path, model, ask=more.pop("ask", "admins"), **more)

    return open_with


async def asked_of(agent: everloop.Agent, who: str = ANNA, amount: float = 0) -> tuple[Any, Approval]:
    """A turn of somebody who has nothing left, and the question that it waits for."""
    await agent.budgets.assign(who, "month", dollars(amount))
    turn = asyncio.ensure_future(agent.ask("hello", ROOM, author=who, attended=True))
    return turn, (await waiting(agent))[0]


async def test_a_yes_lets_this_turn_through_and_the_next_asks_again(asking: Any):
    model = costly()
    async with asking(model) as agent:
        turn, approval = await asked_of(agent)
        before = len(model.prompts)
        await agent.decide(approval.id, True)
        answer = (await turn).content
        again = asyncio.ensure_future(agent.ask("and now?", ROOM, author=ANNA, attended=True))
        (other,) = await waiting(agent)
        await agent.decide(other.id, False)
        with pytest.raises(TurnFailed) as failure:
            await again
        paid = (await spent(agent)).money
    assert (approval.kind, approval.tool, approval.requester, approval.choices) == ("budget", "budget", ANNA, ())
    assert approval.text == f"{STARTS}{ANNA} has spent $0.00 of $0.00 this month.{ENDS}"
    assert (before, answer, len(model.prompts), other.id != approval.id, paid) == (0, "ok", 1, True, DOLLAR)
    assert str(failure.value).startswith("You have spent $1.00 of $0.00 this month. It begins anew on ")
    assert failure.value.reason == "budget"


async def test_nobody_is_asked_unless_the_settings_say_so_nor_where_nobody_is_there_nor_for_guests(asking: Any):
    async with asking(costly(), ask="never") as agent:
        await agent.budgets.assign(ANNA, "month", dollars(0))
        with pytest.raises(TurnFailed):
            await agent.ask("hello", ROOM, author=ANNA, attended=True)
    async with asking(costly(), guest_money=0.1) as agent:
        await refused(agent)  # unattended
        with pytest.raises(TurnFailed):
            await agent.ask("hello", "api:guest", author=GUEST, attended=True)
        assert await agent.approvals() == []


async def test_nobody_is_asked_for_guests_whom_somebodys_bot_brings_at_whose_expense_it_is(asking: Any):
    async with asking(costly()) as agent:
        await agent.budgets.assign(BERT, "month", dollars(0))
        place = f"platform:{escaped(f'{escaped(BERT)}/discord')}//@9"
        for author, asked in ((GUEST, 0), (ANNA, 1)):  # the second is the control
            await agent.tell(Inbound(Address.parse(place), author, Said(said("hi"), author, place), BERT))
            await agent.finish(place)
            assert len(await agent.approvals()) == asked


async def test_a_turn_of_many_steps_is_asked_about_again_only_when_the_calls_of_a_yes_are_used_up(asking: Any):
    @tool(Effect.READ, permission=Role.USER, polls=True)
    async def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel(lambda shown: (Call("look", {}), ONE) if len(model.prompts) <= CALLS else (Say("ok"), ONE))
    async with asking(model, tools=[look]) as agent:
        turn, first = await asked_of(agent)
        await agent.decide(first.id, True)
        (second,) = await waiting(agent, but=first.id)
        calls = len(model.prompts)
        await agent.decide(second.id, True)
        assert (calls, (await turn).content, len(model.prompts)) == (CALLS, "ok", CALLS + 1)


@pytest.mark.parametrize(
    ("whose", "by", "allowed"),
    [
        *((ANNA, by, allowed) for by, allowed in ((ADMIN, True), ("owner", True), (ANNA, False), (BERT, False))),
        *((whose, by, by == "owner") for whose in (ADMIN, HOUSE) for by in (ADMIN, "owner")),
        (ANNA, GUEST, False),
    ],
)
async def test_who_may_answer_is_who_may_raise_the_limit(asking: Any, whose: str, by: str, allowed: bool):
    async with asking(costly()) as agent:
        await agent.budgets.assign(whose, "month", dollars(0))
        turn = asyncio.ensure_future(agent.ask("hello", ROOM, author=ANNA if whose == HOUSE else whose, attended=True))
        (approval,) = await waiting(agent)
        if not allowed:
            with pytest.raises(MailRefused):
                await agent.decide(approval.id, True, by)
        assert [each.id for each in await agent.approvals()] == [approval.id]
        await agent.decide(approval.id, True, by if allowed else "owner")
        assert (await turn).content == "ok"


async def test_a_requester_answers_for_their_own_budget_where_the_settings_let_them_and_not_for_the_house(
    asking: Any,
):
    async with asking(costly(), ask="requester") as agent:
        turn, approval = await asked_of(agent)
        with pytest.raises(MailRefused):
            await agent.decide(approval.id, True, BERT)
        told = (await agent.ask("/approve", ROOM, author=ANNA)).content
        hidden = (await agent.ask("/approve", ROOM, author=BERT)).content
        yes = (await agent.ask(f"/approve {approval.id}", ROOM, author=ANNA)).content
        assert yes == "Going beyond the budget is allowed."
        assert (await turn).content == "ok"
        await agent.budgets.assign(HOUSE, "month", dollars(0))
        turn = asyncio.ensure_future(agent.ask("more", ROOM, author=ANNA, attended=True))
        (both,) = await waiting(agent)
        with pytest.raises(MailRefused):
            await agent.decide(both.id, True, ANNA)
        assert " What everyone together may spend here is used up, too. Go on?" in both.text
        await agent.decide(both.id, False)
        with pytest.raises(TurnFailed):
            await turn
    assert approval.text == f"{STARTS}{ANNA} has spent $0.00 of $0.00 this month.{ENDS}"
    assert (told.startswith(STARTS), hidden) == (True, "Nothing waits for permission here.")


async def test_what_is_said_meanwhile_joins_the_turn_and_a_stop_ends_it(asking: Any):
    model = costly()
    async with asking(model) as agent:
        turn, approval = await asked_of(agent)
        more = asyncio.ensure_future(agent.ask("and this", ROOM, author=ANNA, attended=True))

        async def both_are_heard() -> bool:
            return sum(isinstance(each, UserSaid) for each in await entries_in(agent)) == 2

        await until(both_are_heard)
        assert [each.id for each in await agent.approvals()] == [approval.id]
        await agent.decide(approval.id, True)
        answers = {(await each).content for each in (turn, more)}
        asks = len(model.prompts)
        turn = asyncio.ensure_future(agent.ask("again", ROOM, author=ANNA, attended=True))
        (late,) = await waiting(agent)
        await agent.ask("/stop", ROOM, author=ANNA)
        with pytest.raises(TurnFailed):
            await turn
        with pytest.raises(MailRefused):
            await agent.decide(late.id, True)
    assert (answers, asks, len(model.prompts)) == ({"ok"}, 1, 1)


async def test_a_question_outlives_the_process_and_a_yes_counts_in_the_next(asking: Any):
    model = costly()
    async with asking(model) as agent:
        turn, approval = await asked_of(agent)
        turn.cancel()
        await asyncio.wait({turn})
    async with asking(model) as agent:
        assert [each.id for each in await agent.approvals()] == [approval.id]
        await agent.decide(approval.id, True)
        await agent.finish(ROOM)
        kinds = [type(each).__name__ for each in await entries_in(agent)]
        paid = await spent(agent)
    assert kinds == ["UserSaid", "Asked", "Answered", "ModelCalled", "ModelSaid"]
    assert (len(model.prompts), paid.money, paid.held_money) == (1, DOLLAR, 0)


async def test_of_a_hundred_turns_that_ask_those_are_answered_that_were_allowed(asking: Any):
    model = costly()
    async with asking(model) as agent:
        await agent.budgets.assign(ANNA, "month", dollars(10))
        turns = [asyncio.ensure_future(agent.ask("hello", f"api:{n}", author=ANNA, attended=True)) for n in range(100)]
        found = await waiting(agent, 90)
        before = len(model.prompts)
        for n, approval in enumerate(found):
            await agent.decide(approval.id, n < 5)
        came = await asyncio.gather(*turns, return_exceptions=True)
        paid = await spent(agent)
    answers = [each for each in came if not isinstance(each, BaseException)]
    assert (before, len(answers), len(model.prompts), paid.money) == (10, 15, 15, 15 * DOLLAR)
    assert {each.reason for each in came if isinstance(each, TurnFailed)} == {"budget"}


async def test_the_log_and_the_audit_tell_what_was_asked_and_who_allowed_it(asking: Any):
    async with asking(costly()) as agent:
        turn, approval = await asked_of(agent)
        await agent.decide(approval.id, True, ADMIN)
        await turn
        asked, answered = (await entries_in(agent))[1:3]
        lines = [line for line in await agent.store.audit() if line.deed.startswith("approval.")]
    assert isinstance(asked, Asked)
    assert asked.overrun == Overrun(
        accounts=(Account(ANNA, "month"),),
        question=approval.text,
        refusal="You have spent $0.00 of $0.00 this month. The next answer may need up to $1.00. "
        "Whoever runs this can raise the limit.",
        least=Role.ADMIN,
    )
    assert answered == Answered(asked.answer, OVERRUN, "allowed", ADMIN)
    assert [(line.deed, line.actor) for line in lines] == [("approval.allowed", ADMIN)]


def test_each_call_of_a_yes_is_used_up_by_its_intent_also_when_the_process_dies_with_it():
    account = Account(ANNA, "month")
    asked = Asked(1, OVERRUN, overrun=Overrun((account,), "?", "no", calls=3))
    allowed = (UserSaid(said("hello"), ANNA, ROOM), asked, Answered(1, OVERRUN, "allowed", ADMIN))
    lost = Thread.of(*allowed, ModelCalled("m"), Resumed("dead"), ModelCalled("m"))
    summed_up = Thread.of(Compacted("what was said", standing=lost.standing))
    done = Thread.of(*allowed, ModelCalled("m"), ModelSaid("ok"), UserSaid(said("more"), ANNA, ROOM))
    refused = Thread.of(*allowed[:2], Answered(1, OVERRUN, "denied", ADMIN))
    waits = Thread.of(*allowed[:2])
    told = [(each.turn.overruns, each.turn.calls_left) for each in (lost, summed_up, done, refused, waits)]
    assert told == [((account,), 1), ((account,), 1), ((), 0), ((), 0), ((), 0)]
    assert [decide(each, Rules()) for each in (waits, refused)] == [
        Rest(),
        GiveUp("budget", ModelFailed("budget", "no")),
    ]


def test_a_yes_for_one_budget_prolongs_no_yes_that_was_said_for_another():
    """Or whoever may answer for themselves would have the house's budget opened for as long as they like."""
    mine, house = Account(ANNA, "month"), Account(HOUSE, "month")

    def after(*yeses: tuple[Account, ...], calls: int) -> tuple[tuple[Account, ...], int]:
        """What the turn may do after these, with so many calls after each but the last."""
        thread = Thread.of(UserSaid(said("hello"), ANNA, ROOM))
        for n, accounts in enumerate(yeses):
            thread.extend([ModelCalled("m")] * calls if n else ())
            asked = Asked(thread.seq, OVERRUN, overrun=Overrun(accounts, "?", "no", calls=3))
            thread.extend((asked, Answered(asked.answer, OVERRUN, "allowed", ADMIN)))
        return thread.turn.overruns, thread.turn.calls_left

    assert after((house,), (mine,), calls=2) == ((house, mine), 1)
    assert after((house,), (mine,), calls=3) == ((mine,), 3)  # the owner's yes is used up
    assert after((mine,), (mine,), calls=2) == ((mine,), 3)
    assert after((mine,), (mine, house), calls=2) == ((mine, house), 3)  # who is asked about both answers for both


def test_an_answer_counts_for_the_question_that_was_shown_alone():
    overrun = Overrun((Account(ANNA, "month"),), "?", "no", least=Role.ADMIN)
    thread = Thread("t")
    thread.extend((UserSaid(said("hello"), ANNA, ROOM), Asked(1, OVERRUN, overrun.digest, overrun=overrun)))
    yes = Decision("t", 1, OVERRUN, "allowed", ADMIN, overrun.digest)
    others = [{"thread": "u"}, {"answer": 0}, {"place": 0}, {"digest": "x"}, {"by": ANNA}, {"by": ""}]
    roles = {ADMIN: Role.ADMIN, ANNA: Role.USER}
    counted = [admit(thread, Mail(1, structs.replace(yes, **each)), roles=roles).entries for each in ({}, *others)]
    assert counted == [(Answered(1, OVERRUN, "allowed", ADMIN),), *[()] * len(others)]


async def test_silence_is_a_no(asking: Any, tmp_path: Path):
    clock = SimulatedClock(tmp_path / "time")
    clock.set(1_800_000_000.0)
    async with asking(costly(), clock=clock) as agent:
        turn, _ = await asked_of(agent)
        clock.set(1_800_000_000.0 + 25 * 3600)
        with pytest.raises(TurnFailed) as failure:
            await turn
        last = (await entries_in(agent))[-1]
    assert isinstance(last, GaveUp)
    assert (failure.value.reason, last.text) == ("budget", str(failure.value))
