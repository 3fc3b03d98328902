"""What is sent in one go is one turn, and what is changed or taken back in time was never said otherwise."""

import asyncio

import pytest

from everloop.core.mail import ReplyTo
from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.ports.channel import Delivered
from everloop.readings.amendments import CHANGED, TAKEN_BACK
from everloop.runtime.reception import ANSWERED
from everloop.testing import Call, Say, ScriptedModel, Wait
from tests.runtime.standing_clock import StandingClock
from tests.runtime.test_reception import Heard, Showing, incoming

GATHERS = {"channels": {"fake": {"gather": 0.1}}}


def answering() -> ScriptedModel:
    return ScriptedModel(lambda shown: Say("answered"))


def people_said(model: ScriptedModel) -> list[list[str]]:
    """Of each call to the model, what people have said in the conversation."""
    return [[message.text for message in prompt.messages if message.role == "user"] for prompt in model.prompts]


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.mark.parametrize("steering", ["steer", "queue", "interrupt"])
async def test_three_lines_in_one_go_are_one_turn_and_each_is_acknowledged_at_once(house, clock, steering):
    channel, model = Heard(), answering()
    settings = {**GATHERS, "agents": {"defaults": {"steering": steering}}}
    async with house(model, channels=[channel], settings=settings, clock=clock) as agent:
        deliver = await channel.listens.get()
        came = [await deliver(incoming(f"e{n}", text=f"line {n}", reply_to=ReplyTo(f"r{n}")), str(n)) for n in range(3)]
        assert await agent.store.resume("fake") == "2"
        assert model.prompts == []
        clock.time += 0.2
        await channel.sent(1)
        row = await agent.store.session("fake:room")
        assert await agent.store.unfinished(row.id) == []
    assert came == [Delivered()] * 3
    assert people_said(model) == [["line 0", "line 1", "line 2"]]
    assert [(part.text, part.reply_to) for part in channel.parts] == [("answered", "r2")]


async def test_without_gathering_the_same_lines_are_more_than_one_call(house):
    channel, gate = Heard(), asyncio.Event()
    model = ScriptedModel(lambda shown: (Wait(gate), Say("answered")))
    async with house(model, channels=[channel]):
        deliver = await channel.listens.get()
        await deliver(incoming("e0"))
        await model.called(1)
        for n in (1, 2):
            await deliver(incoming(f"e{n}"))
        gate.set()
        await channel.sent(2)
    assert len(model.prompts) == 2


async def test_lines_of_two_people_in_a_group_are_a_turn_for_each(house, clock):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=GATHERS, clock=clock):
        deliver = await channel.listens.get()
        for event, who in (("e1", "anna"), ("e2", "bob"), ("e3", "anna"), ("e4", "bob")):
            await deliver(incoming(event, account=who, text=event, direct=False, name=who.title()))
        clock.time += 0.2
        await channel.sent(2)
    last = people_said(model)[-1]
    assert [text.partition("\n")[2] for text in last] == ["e1", "e3", "e2", "e4"]
    assert [text.partition(" #")[0] for text in last] == ['⟦guest "Anna"'] * 2 + ['⟦guest "Bob"'] * 2


async def test_an_album_is_one_turn_also_where_nothing_else_is_gathered(house, clock):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], clock=clock):
        deliver = await channel.listens.get()
        for n in range(3):
            await deliver(incoming(f"e{n}", text=f"picture {n}", album="a1"))
        clock.time += 1.1
        await channel.sent(1)
    assert people_said(model) == [["picture 0", "picture 1", "picture 2"]]


async def test_what_lies_gathered_in_the_inbox_is_answered_by_the_next_process(house, clock):
    async with house(ScriptedModel([]), channels=[channel := Heard()], settings=GATHERS, clock=clock):
        deliver = await channel.listens.get()
        for n in range(2):
            await deliver(incoming(f"e{n}", text=f"line {n}"))
    clock.time += 0.2
    model = answering()
    async with house(model, channels=[channel := Heard()], settings=GATHERS, clock=clock):
        await channel.sent(1)
    assert people_said(model) == [["line 0", "line 1"]]


async def test_a_stop_is_for_what_still_waits(house, clock):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=GATHERS, clock=clock) as agent:
        deliver = await channel.listens.get()
        await deliver(incoming("e1"))
        await deliver(incoming("e2", text="/stop"))
        await channel.sent(1)
        row = await agent.store.session("fake:room")
        while await agent.store.unfinished(row.id):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await deliver(incoming("e3", text="go on"))
        clock.time += 1
        await channel.sent(2)
        assert await agent.store.unfinished(row.id) == []
    assert [part.text for part in channel.parts] == ["⏹ Stopped 1 task(s).", "answered"]
    assert len(model.prompts) == 1


async def test_what_is_changed_before_a_turn_has_taken_it_is_said_as_it_stands_now(house, clock):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=GATHERS, clock=clock) as agent:
        deliver = await channel.listens.get()
        await deliver(incoming("e1", text="first"))
        await deliver(incoming("e2", text="second"))
        changed = [await deliver(incoming("e1/edit", text="the first", replaces="e1"), "7") for _ in range(2)]
        assert await agent.store.resume("fake") == "7"
        clock.time += 0.2
        await channel.sent(1)
    assert changed == [Delivered(), Delivered(fresh=False)]
    assert people_said(model) == [["the first", "second"]]


async def test_what_is_taken_back_before_a_turn_has_taken_it_was_never_said(house, clock):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=GATHERS, clock=clock) as agent:
        deliver = await channel.listens.get()
        await deliver(incoming("e1", text="my secret"))
        assert await deliver(incoming("e1/gone", text="", replaces="e1", withdrawn=True)) == Delivered()
        row = await agent.store.session("fake:room")
        while await agent.store.mail(row.id):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        assert await agent.store.unfinished(row.id) == []
        await deliver(incoming("e2", text="hello"))
        clock.time += 0.2
        await channel.sent(1)
        kept = [str(entry) for entry in await agent.store.read(row.id)]
    assert people_said(model) == [["hello"]]
    assert not any("my secret" in each for each in kept)


@pytest.mark.parametrize(
    "change",
    [{"account": "bob"}, {"chat": "other"}, {"account": "bob", "withdrawn": True, "text": ""}, {"replaces": "e9"}],
    ids=["another", "elsewhere", "another's deletion", "unknown"],
)
async def test_nobody_changes_what_somebody_else_has_written_nor_from_another_chat(house, clock, change):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=GATHERS, clock=clock):
        deliver = await channel.listens.get()
        await deliver(incoming("e1", text="mine", direct=False))
        tried = {"text": "not mine", "replaces": "e1", "direct": False, **change}
        assert await deliver(incoming("x", **tried)) == Delivered(refused=ANSWERED)
        clock.time += 0.2
        await channel.sent(1)
    assert [text.partition("\n")[2] for (text,) in people_said(model)] == ["mine"]


async def test_what_is_changed_while_its_turn_runs_is_a_further_word_to_it(house, gated):
    channel = Heard()
    model = ScriptedModel(lambda shown: Call("look") if len(shown.messages) == 1 else Say("done"))
    tools = [gated.make("look", Effect.READ, permission=Role.GUEST)]
    async with house(model, channels=[channel], tools=tools):
        deliver = await channel.listens.get()
        await deliver(incoming("e1", text="first"))
        await gated.begun.wait()
        await deliver(incoming("e1/edit", text="the first", replaces="e1"))
        gated.gate.set()
        await channel.sent(1)
    assert people_said(model) == [["first"], ["first", f"{CHANGED}\nthe first"]]
    assert len(channel.parts) == 1


async def test_to_take_back_all_that_a_turn_has_been_asked_stops_it(house):
    channel, gate = Heard(), asyncio.Event()
    model = ScriptedModel(lambda shown: (Wait(gate), Say("too late")) if shown.asked == "first" else Say("answered"))
    async with house(model, channels=[channel]) as agent:
        deliver = await channel.listens.get()
        await deliver(incoming("e1", text="first"))
        await model.called(1)
        row = await agent.store.session("fake:room")
        assert await deliver(incoming("e1/gone", text="", replaces="e1", withdrawn=True)) == Delivered()
        while await agent.store.unfinished(row.id):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await deliver(incoming("e2", text="second"))
        await channel.sent(1)
        gate.set()
    assert [part.text for part in channel.parts] == ["answered"]


async def test_to_take_back_one_of_several_messages_tells_the_turn_so(house, gated, clock):
    channel = Heard()
    model = ScriptedModel(lambda shown: Call("look") if len(shown.messages) == 2 else Say("done"))
    tools = [gated.make("look", Effect.READ, permission=Role.GUEST)]
    async with house(model, channels=[channel], settings=GATHERS, clock=clock, tools=tools):
        deliver = await channel.listens.get()
        await deliver(incoming("e1", text="first"))
        await deliver(incoming("e2", text="second"))
        clock.time += 0.2
        await gated.begun.wait()
        await deliver(incoming("e1/gone", text="", replaces="e1", withdrawn=True))
        gated.gate.set()
        await channel.sent(1)
    assert people_said(model)[-1] == ["first", "second", TAKEN_BACK]


async def test_of_a_change_of_what_was_not_for_us_nothing_is_fetched_or_counted(house):
    channel = Showing()
    settings = {"channels": {"fake": {"groups": "mention", "per_minute": 1}}}
    async with house(answering(), channels=[channel], settings=settings) as agent:
        deliver = await channel.listens.get()
        await deliver(incoming("e1", direct=False, text="between ourselves"))
        change = incoming("e2", direct=False, text="still", files=("away",), replaces="e1")  # which cannot be fetched
        assert await deliver(change, "7") == Delivered(refused=ANSWERED)
        assert await deliver(incoming("e3", direct=False, mentioned=True)) == Delivered()
        assert await agent.store.resume("fake") == "7"


@pytest.mark.parametrize("withdrawn", [False, True])
async def test_what_is_changed_after_its_answer_changes_nothing_and_costs_nothing(house, withdrawn):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel]) as agent:
        deliver = await channel.listens.get()
        await deliver(incoming("e1"))
        await channel.sent(1)
        changed = await deliver(incoming("e1/edit", text="other", replaces="e1", withdrawn=withdrawn), "7")
        assert await agent.store.resume("fake") == "7"
    assert changed == Delivered(refused=ANSWERED)
    assert len(model.prompts) == 1
