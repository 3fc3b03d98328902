"""Turns of people with budgets: asked as far as they may spend, told why not, and nothing is lost in between."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.app import open_desk
from everloop.core.log import Compacted, GaveUp
from everloop.core.mail import Address, Inbound, Notice
from everloop.core.overrun import Account
from everloop.core.people import Role
from everloop.core.prompt import Prompt, Usage
from everloop.core.tool import Effect
from everloop.errors import BadRequest, StreamCut, TurnFailed
from everloop.ports.budgets import DOLLAR, GUESTS, HOUSE, Bound, Cost, Limit, Spending
from everloop.ports.events import AnswerGiven, Event, Warned
from everloop.runtime.budget_words import said_full, shown_money
from everloop.runtime.budgets import BudgetControl, Payer
from everloop.testing import Call, Fail, Say, ScriptedModel, Spend, Wait
from everloop.testing.clock import SimulatedClock
from everloop.testing.model_server import ModelServer
from everloop.tools.decorator import tool

ROOM = "api:room"
ANNA, BERT, ADMIN, GUEST = "discord:7", "discord:8", "discord:9", "discord:100"
OUTPUT = 1000  # tokens of an answer, at most
ROLES = {ANNA: Role.USER, BERT: Role.USER, ADMIN: Role.ADMIN}
# A dollar for a thousand tokens that a model says, and nothing for what it reads: so each call costs one at most.
PRICES = {"scripted": {"input": 0.0, "output": 1000.0}}
ONE = Spend(Usage(500, OUTPUT))


def dollars(amount: float) -> Limit:
    return Limit(None, int(amount * DOLLAR))


def costly(*said: Any) -> ScriptedModel:
    return ScriptedModel(lambda shown: (*(said or (Say("ok"),)), ONE))


def opened(home: Path, model: Any, clock: Any = None, tools: Any = (), **budgets: Any) -> Any:
    settings = {"agents": {"defaults": {"max_tokens": OUTPUT}}, "prices": PRICES, "users": {"budgets": budgets}}
    house: AbstractAsyncContextManager[everloop.Agent]
    house = everloop.open(home, settings, provider=model, roles=ROLES, clock=clock, tools=tools)
    return house


async def refused(agent: everloop.Agent, session: str = ROOM, author: str = ANNA) -> str:
    with pytest.raises(TurnFailed) as failure:
        await agent.ask("hello", session, author=author)
    assert failure.value.reason == "budget"
    return str(failure.value)


async def spent(agent: everloop.Agent, owner: str = ANNA) -> Spending:
    return (await agent.store.spending([owner]))[0]


def test_money_is_told_with_its_cents_and_no_zeros_behind_them():
    amounts = (0, 1, 500_000_000, 120_000_000, 12_345_000, 1_500_000_000, 40_000_000_000)
    assert [shown_money(each) for each in amounts] == [
        *("$0.00", "$0.00", "$0.50", "$0.12", "$0.012345", "$1.50", "$40.00")
    ]


async def test_of_a_hundred_turns_at_once_on_a_budget_of_ten_calls_ten_are_answered(tmp_path: Path):
    model = costly()
    async with opened(tmp_path, model) as agent:
        await agent.budgets.assign(ANNA, "month", dollars(10))
        asked = [agent.ask("hello", f"api:{n}", author=ANNA) for n in range(100)]
        came = await asyncio.gather(*asked, return_exceptions=True)
        left = await spent(agent)
        owner = (await agent.ask("hello", ROOM)).content
    answers = [each for each in came if not isinstance(each, BaseException)]
    reasons = {each.reason for each in came if isinstance(each, TurnFailed)}
    assert (len(answers), len(model.prompts) - 1, reasons, owner) == (10, 10, {"budget"}, "ok")
    assert (left.money, left.held_money, left.held_tokens) == (10 * DOLLAR, 0, 0)


async def test_who_is_refused_is_told_what_was_spent_of_how_much_and_until_when_and_no_model_is_asked(tmp_path: Path):
    model = costly()
    clock = SimulatedClock(tmp_path / "time")
    clock.set(1_800_000_000.0)
    async with opened(tmp_path / "home", model, clock) as agent:
        await agent.budgets.assign(ANNA, "month", dollars(1))
        await agent.ask("hello", ROOM, author=ANNA)
        told = [await refused(agent) for _ in range(2)]
        row = await agent.store.session(ROOM)
        entries = await agent.store.read(row.id)
        await agent.budgets.assign(ANNA, "month", dollars(2))
        raised = (await agent.ask("and now?", ROOM, author=ANNA)).content
        again = await refused(agent)
        clock.set(1_800_000_000.0 + 30 * 86_400)
        anew = (await agent.ask("a month later", ROOM, author=ANNA)).content
    sentence = (
        "You have spent $1.00 of $1.00 this month. It begins anew on 2027-02-14 08:00 UTC. The next answer may need up "
        "to $1.00. Whoever runs this can raise the limit."
    )
    assert told == [sentence] * 2
    assert [type(entry).__name__ for entry in entries[-4:]] == ["UserSaid", "GaveUp", "UserSaid", "GaveUp"]
    assert entries[-1] == GaveUp("budget", sentence)
    assert (raised, "$2.00 of $2.00" in again, anew, len(model.prompts)) == ("ok", True, "ok", 3)


async def test_who_has_no_limit_costs_the_store_nothing(tmp_path: Path):
    async with opened(tmp_path, costly()) as agent:
        await agent.ask("hello", ROOM)
        asked: list[str] = []
        for name in ("limits", "spending", "reserve", "charge"):
            there = getattr(agent.store, name)

            async def counted(*given: Any, _there: Any = there, _name: str = name) -> Any:
                asked.append(_name)
                return await _there(*given)

            setattr(agent.store, name, counted)
        await asyncio.gather(*(agent.ask("hello", f"api:{n}", author=who) for n, who in enumerate(("owner", ADMIN))))
        owner, asked[:] = [*asked], []
        await agent.ask("hello", ROOM, author=GUEST)
    assert set(owner) <= {"limits"}  # once a second at most
    assert "spending" in asked  # as the control has it


async def test_an_answer_may_be_as_long_as_is_left_and_is_not_asked_for_where_nothing_would_fit(tmp_path: Path):
    limits: list[int] = []

    class Longest(ScriptedModel):
        async def reply(self, prompt: Prompt, show: Any) -> Any:
            limits.append(prompt.max_tokens)
            return await super().reply(prompt, show)

    def lines(shown: Any) -> Any:
        return Say("ok"), Spend(Usage(0, 400))

    async with opened(tmp_path, Longest(lines)) as agent:
        await agent.budgets.assign(ANNA, "month", dollars(1.5))
        for _ in range(3):
            await agent.ask("hello", ROOM, author=ANNA)
        left = await spent(agent)
        await agent.budgets.assign(ANNA, "month", Limit(5))
        few = await refused(agent)
    assert limits == [1000, 1000, 700]
    assert (left.money, left.tokens) == (int(1.2 * DOLLAR), 1200)
    assert few.startswith("You have spent 1,200 of 5 tokens this month.")


async def test_a_guest_has_a_small_budget_all_of_them_one_together_and_others_none(tmp_path: Path):
    async with opened(tmp_path, costly(), guest_money=2.0, guests_money=3.0) as agent:
        for _ in range(2):
            await agent.ask("hello", ROOM, author=GUEST)
        own = await refused(agent, author=GUEST)
        await agent.ask("hello", ROOM, author="discord:101")
        together = await refused(agent, author="discord:102")
        for who in (ANNA, ADMIN, "owner"):
            await agent.ask("hello", ROOM, author=who)
        row = await spent(agent, GUESTS)
    assert own.startswith("You have spent 3,000 of 200,000 tokens and $2.00 of $2.00 this month.")
    assert together.startswith("What all guests together may spend here is used up. It begins anew on ")
    assert "$" not in together
    assert row.money == 3 * DOLLAR


async def test_the_budget_of_the_house_holds_for_everyone_and_only_who_runs_it_is_told_numbers(tmp_path: Path):
    async with opened(tmp_path, costly()) as agent:
        await agent.budgets.assign(HOUSE, "month", dollars(1))
        await agent.ask("hello", ROOM)
        told = [await refused(agent, author=who) for who in ("owner", ANNA, GUEST)]
    assert told[0].startswith("Everyone together has spent $1.00 of $1.00 this month.")
    assert all(each.startswith("What everyone together may spend here is used up.") for each in told[1:])


async def test_in_a_group_the_one_who_asks_pays_and_usage_says_who_it_was(tmp_path: Path):
    async with opened(tmp_path, costly()) as agent:
        for who in (ANNA, BERT):
            await agent.budgets.assign(who, "month", dollars(1))
        for who in (ANNA, BERT, "owner"):
            await agent.ask("hello", ROOM, author=who)
        told = [await refused(agent, author=who) for who in (ANNA, BERT)]
        rows = await agent.store._ask("SELECT owner, requester FROM usage ORDER BY seq")
    assert all("$1.00 of $1.00" in each for each in told)
    assert [tuple(row) for row in rows] == [("owner", ANNA), ("owner", BERT), ("owner", "owner")]


async def test_where_others_read_along_no_numbers_and_no_model_are_told(tmp_path: Path):
    payers = [Payer("p", role, in_group=in_group) for role in (Role.ADMIN, Role.GUEST) for in_group in (True, False)]
    mine, house = (Bound(Account(who, "month"), Limit(777), Spending(Account(who, "month"), 5)) for who in ("p", HOUSE))
    cost = Cost(1000, 1000, None)
    told = [[said_full(bound, payer.reader, cost) for bound in (mine, house)] for payer in payers]
    assert [["777" in each for each in both] for both in told] == [
        [False, False],
        [True, True],
        [False, False],
        [True, False],
    ]
    limited = (Bound(Account("p", "month"), Limit(None, 1), Spending(Account("p", "month"))),)
    control = BudgetControl(None)
    plans = [control.plan(payer, limited, "k", "secret/model", lambda usage: None, Usage(1, 1)) for payer in payers]
    assert ["secret" in plan.text for plan in plans] == [False, True, False, False]


def test_the_owner_is_told_how_a_limit_is_raised_and_others_that_it_can_be():
    full = Bound(Account("p", "month"), Limit(7), Spending(Account("p", "month"), 7))
    told = [said_full(full, Payer("p", role).reader, Cost(1, 1, None)) for role in (Role.OWNER, Role.USER)]
    ends = ["`everloop users budget` raises the limit.", "Whoever runs this can raise the limit."]
    assert [text.rpartition("tokens. ")[2] for text in told] == ends


async def test_a_day_and_a_conversation_can_have_limits_of_their_own(tmp_path: Path):
    async with opened(tmp_path, costly()) as agent:
        await agent.budgets.assign(ANNA, "session", dollars(1))
        await agent.budgets.assign(ANNA, "day", dollars(2))
        await agent.ask("hello", "api:a", author=ANNA)
        session = await refused(agent, "api:a")
        await agent.ask("hello", "api:b", author=ANNA)
        day = await refused(agent, "api:c")
    assert session.startswith("You have spent $1.00 of $1.00 in this conversation. The next answer")
    assert day.startswith("You have spent $2.00 of $2.00 today. It begins anew on ")


async def test_a_run_of_a_job_has_a_limit_of_its_own(tmp_path: Path):
    @tool(Effect.READ)
    async def look() -> str:
        """Look."""
        return "seen"

    def notice(n: int) -> Inbound:
        told = Notice("look", "cron", "owner", "api:jobs", unattended=True)
        return Inbound(Address.parse("api:jobs"), f"job:{n}", told)

    model = ScriptedModel(lambda shown: (Call("look", {}), ONE))
    async with opened(tmp_path, model, tools=[look]) as agent:
        await agent.budgets.assign("owner", "job", dollars(2))
        for n in range(2):
            await agent.tell(notice(n))
            await agent.finish("api:jobs")
        row = await agent.store.session("api:jobs")
        gave = [entry for entry in await agent.store.read(row.id) if isinstance(entry, GaveUp)]
    assert [each.text.partition(".")[0] for each in gave] == ["You have spent $2"] * 2
    assert ("in this run" in gave[0].text, len(model.prompts)) == (True, 4)


async def test_each_step_of_a_turn_is_paid_for_and_what_was_done_stays_done(tmp_path: Path):
    ran: list[str] = []

    @tool(Effect.READ, permission=Role.USER)
    async def look() -> str:
        """Look."""
        ran.append("look")
        return f"seen {len(ran)}"

    async with opened(tmp_path, ScriptedModel(lambda shown: (Call("look", {}), ONE)), tools=[look]) as agent:
        await agent.budgets.assign(ANNA, "month", dollars(3))
        told = await refused(agent)
    assert (len(ran), "$3.00 of $3.00" in told) == (3, True)


async def test_what_failed_before_anything_came_costs_nothing_and_what_broke_off_costs_what_came(tmp_path: Path):
    lines: list[Any] = [Fail(BadRequest("no")), [Say("x" * 300), Fail(StreamCut("gone"))]]
    async with opened(tmp_path, ScriptedModel(lambda shown: lines[0])) as agent:
        await agent.budgets.assign(ANNA, "month", dollars(5))
        with pytest.raises(TurnFailed):
            await agent.ask("hello", ROOM, author=ANNA)
        refused_ = await spent(agent)
        lines.pop(0)
        with pytest.raises(TurnFailed):
            await agent.ask("hello", ROOM, author=ANNA)
        broken = await spent(agent)
    assert (refused_.tokens, refused_.money, refused_.held_money) == (0, 0, 0)
    assert broken.money > 0
    assert broken.money % (DOLLAR // 10) == 0  # a hundred tokens for each time that it was tried
    assert broken.held_money == 0


async def test_what_was_said_when_a_turn_was_stopped_is_charged_and_no_more(tmp_path: Path):
    gate = asyncio.Event()
    model = ScriptedModel(lambda shown: (Say("x" * 300), Wait(gate), Say("more")))
    async with opened(tmp_path, model) as agent:
        await agent.budgets.assign(ANNA, "month", dollars(5))
        asking = asyncio.create_task(agent.ask("hello", ROOM, author=ANNA))
        await model.called(1)
        held = await spent(agent)
        async for event in agent.stream("/stop", ROOM, author=ANNA):
            assert isinstance(event, Event | AnswerGiven)
        with pytest.raises(TurnFailed):
            await asking
        await agent.finish(ROOM)
        after = await spent(agent)
    assert (held.held_money, held.money) == (DOLLAR, 0)
    assert (after.held_money, after.money <= DOLLAR // 10) == (0, True)


async def test_a_model_without_a_price_is_not_asked_under_a_limit_of_money_and_is_under_one_of_tokens(tmp_path: Path):
    model = costly()
    async with everloop.open(tmp_path, provider=model, roles=ROLES) as agent:
        await agent.budgets.assign(ANNA, "month", Limit(None, DOLLAR))
        told = await refused(agent)
        await agent.budgets.assign(ANNA, "month", Limit(100_000))
        answer = (await agent.ask("hello", ROOM, author=ANNA)).content
    assert told == (
        "Nobody knows what scripted costs, and there is a limit on money here, so it was not asked. Whoever runs this "
        "can say what it costs in the settings (prices), or choose another model."
    )
    assert (answer, len(model.prompts)) == ("ok", 1)


async def test_who_has_spent_most_of_it_is_told_once(tmp_path: Path):
    told: list[str] = []
    async with opened(tmp_path, costly()) as agent:
        await agent.budgets.assign(ANNA, "month", dollars(10))
        for n in range(10):
            async for event in agent.stream("hello", ROOM, author=ANNA):
                if isinstance(event, Warned):
                    told.append(f"{n} {event.reason} {event.text.partition(' It ')[0]}")
    assert told == ["7 spent You have spent $8.00 of $10.00 this month."]


@pytest.mark.parametrize("limit", [3, 50], ids=["not enough for a summary", "control: enough"])
async def test_a_summary_that_may_not_be_paid_for_is_written_plainly_and_the_turn_goes_on(tmp_path: Path, limit: int):
    long = "the quick brown fox jumps over the lazy dog and so on " * 55
    model = ScriptedModel(lambda shown: Say("ok"))
    settings = {"agents": {"defaults": {"context_window": 16_000}}, "prices": PRICES}
    async with everloop.open(tmp_path, settings, provider=model) as agent:
        await agent.budgets.assign("owner", "month", dollars(limit))
        answers = {(await agent.ask(f"{n} {long}", "api:long")).content for n in range(16)}
        row = await agent.store.session("api:long")
        [summary] = [entry for entry in await agent.store.read(row.id) if isinstance(entry, Compacted)]
        left, rows = await spent(agent, "owner"), await agent.store.spent()
    asked = [shown for shown in model.prompts if shown.system.startswith("You summarise")]
    assert (answers, bool(summary.summary), left.held_money) == ({"ok"}, True, 0)
    assert (summary.model, len(asked)) == (("", 0) if limit == 3 else ("scripted", 2))
    assert left.tokens == sum(row.usage.input + row.usage.output for row in rows)


async def test_a_summary_is_paid_by_who_has_asked_for_it(tmp_path: Path):
    long = "the quick brown fox jumps over the lazy dog and so on " * 55
    async with opened(tmp_path, costly()) as agent:
        for who in (ANNA, BERT):
            await agent.budgets.assign(who, "month", dollars(50))
        for n in range(4):
            await agent.ask(f"{n} {long}", ROOM, author=ANNA)
        before = (await spent(agent)).money
        await agent.ask("/compact", ROOM, author=BERT)
        await agent.ask("and now?", ROOM)  # which is answered after that
        thread = (await agent.store.session(ROOM)).id
        made = any(isinstance(entry, Compacted) and entry.model for entry in await agent.store.read(thread))
        after = (await spent(agent)).money, (await spent(agent, BERT)).money
    assert (made, after) == (True, (before, DOLLAR))


async def test_a_house_that_was_closed_while_a_model_was_asked_holds_nothing_afterwards(tmp_path: Path):
    gate = asyncio.Event()
    model = ScriptedModel(
        lambda shown: (Say("x" * 30), Wait(gate), ONE) if len(model.prompts) == 1 else (Say("ok"), ONE)
    )
    async with opened(tmp_path, model) as agent:
        await agent.budgets.assign(ANNA, "month", dollars(5))
        asking = asyncio.create_task(agent.ask("hello", ROOM, author=ANNA))
        await model.called(1)
        asking.cancel()
        await agent._lanes.stop(0)
    async with opened(tmp_path, model) as agent:
        await agent.finish(ROOM)
        after = await spent(agent)
    assert (after.held_money, after.held_tokens) == (0, 0)
    assert after.money == DOLLAR + DOLLAR // 100  # of the one that was broken off what had come: ten tokens


async def test_what_is_left_of_an_account_is_shown_as_it_is(tmp_path: Path):
    async with opened(tmp_path, costly()) as agent:
        await agent.ask("hello", ROOM, author=GUEST)
        [line] = await agent.budgets.of(GUEST, Role.GUEST)
        owner = await agent.budgets.of("owner", Role.OWNER)
    assert (line.per, line.tokens, line.money, line.spent_tokens, line.set) == ("month", 200_000, None, 1500, False)
    assert (line.held_tokens, line.resets > 0, owner) == (0, True, [])


@pytest.mark.parametrize("cheaper_at", [0.5, 0.0], ids=["from half on", "control: never"])
async def test_when_little_is_left_a_cheaper_model_answers_and_then_nobody_does(tmp_path: Path, cheaper_at: float):
    async with ModelServer(lambda shown: (Say("ok"), ONE), models=("large", "little")) as server:
        settings = {
            "agents": {"defaults": {"model": "custom/large", "small_model": "custom/little", "max_tokens": OUTPUT}},
            "prices": {
                "custom/large": {"input": 0.0, "output": 1000.0},
                "custom/little": {"input": 0.0, "output": 250.0},
            },
            "providers": {"custom": {"api_base": server.url, "api_key": "sk-canary"}},
            "users": {"budgets": {"cheaper_at": cheaper_at}},
        }
        async with everloop.open(tmp_path, settings, roles=ROLES) as agent:
            await agent.budgets.assign(ANNA, "month", dollars(4))
            for _ in range(2 + (8 if cheaper_at else 2)):
                await agent.ask("hello", ROOM, author=ANNA)
            told = await refused(agent)
            left = await spent(agent)
        asked = [request.body["model"] for request in server.requests]
    assert asked == ["large"] * 2 + (["little"] * 8 if cheaper_at else ["large"] * 2)
    assert (left.money, left.held_money, "$4.00 of $4.00" in told) == (4 * DOLLAR, 0, True)


async def test_a_model_is_not_tried_out_where_the_owner_may_spend_no_more(tmp_path: Path):
    model = costly()
    async with open_desk(tmp_path, {"prices": PRICES}, provider=model) as desk:
        await desk.budgets.assign(HOUSE, "month", dollars(0.5))
        _, refused_ = await desk.live_settings.try_model("")
        await desk.budgets.assign(HOUSE, "month", dollars(50))
        calls = len(model.prompts)
    async with open_desk(tmp_path, {"prices": PRICES}, provider=model) as desk:
        _, tried = await desk.live_settings.try_model("")
        left = await spent(desk, HOUSE)
    assert [(each.ok, each.why.partition(" has")[0]) for each in refused_] == [(False, "Everyone together")] * 2
    assert (calls, tried[0].ok, len(model.prompts)) == (0, True, 2)
    assert (left.money, left.held_money) == (2 * DOLLAR, 0)


async def test_what_is_spent_in_this_conversation_is_told_in_it_and_in_no_other(tmp_path: Path):
    async with opened(tmp_path, costly()) as agent:
        await agent.budgets.assign(ANNA, "session", Limit(15_000))
        anna = agent.user(ANNA)
        before = (await anna.ask("/budget")).content
        await anna.ask("hello")
        after = (await anna.ask("/budget")).content
        (elsewhere,) = await agent.budgets.of(ANNA, Role.USER)
    assert before == "You may spend 15,000 tokens in each conversation."
    assert after == "You have spent 1,500 of 15,000 tokens in this conversation."
    assert (elsewhere.spent_tokens, elsewhere.spent_money, elsewhere.tokens) == (None, None, 15_000)


async def test_what_everyone_may_spend_together_is_told_and_numbers_only_to_who_runs_it(tmp_path: Path):
    async with opened(tmp_path, costly()) as agent:
        free = (await agent.ask("/budget")).content
        await agent.budgets.assign(HOUSE, "month", Limit(777))
        told = [(await agent.ask("/budget")).content, (await agent.user(ANNA).ask("/budget")).content]
    assert free == "No limit is set."
    assert told == [
        "Everyone together has spent 0 of 777 tokens this month.",
        "What everyone together may spend here is limited, too.",
    ]
