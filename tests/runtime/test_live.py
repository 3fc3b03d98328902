"""Drafts while a turn runs become its answer; what becomes none is taken away, and no answer is lost or doubled."""

import asyncio

import pytest

from everloop.core.mail import Address, Outbound, ReplyTo, reply_key
from everloop.core.turn import Finished
from everloop.ports.channel import OutgoingPart
from everloop.ports.events import AnswerBegan, AnswerPiece, ToolCalled, TurnBegan, TurnEnded
from everloop.ports.rows import OutboxRow, Receipt
from everloop.runtime.live import Live
from everloop.runtime.sketch import Sketch
from everloop.testing import Say, ScriptedModel, Trouble, Wait
from tests.runtime.drafting import Drafting, incoming


async def answered(house, channel: Drafting, gate: asyncio.Event, trouble=None, sends: int = 1) -> list[str]:
    """Have a draft shown, then the answer sent; returns what people see at the end."""
    model = ScriptedModel([(Say("Once upon"), Wait(gate), Say(" a time"))])
    async with house(model, channels=[channel]):
        deliver = await channel.listens.get()
        await deliver(incoming("e1"))
        await channel.until("Once upon")
        if trouble:
            channel.trouble(trouble, times=1)
        gate.set()
        await channel.sent(sends)
    return list(channel.visible.values())


async def test_a_draft_becomes_the_answer(house):
    channel = Drafting()
    assert await answered(house, channel, asyncio.Event()) == ["Once upon a time"]
    assert [part.draft for part in channel.parts] == ["draft 1"]
    assert "" not in [text for _, text in channel.drafts]
    assert channel.signals == ["typing", "done"]


async def test_an_answer_that_could_not_be_sent_at_first_still_takes_the_place_of_its_draft(house):
    channel = Drafting()
    assert await answered(house, channel, asyncio.Event(), Trouble.DOWN) == ["Once upon a time"]
    assert [part.draft for part in channel.parts] == ["draft 1", "draft 1"]


async def test_a_draft_that_may_have_become_the_answer_is_not_taken_away(house):
    channel = Drafting(once=False)
    seen = await answered(house, channel, asyncio.Event(), Trouble.ACK_LOST)
    assert seen == ["(may be repeated) Once upon a time"]
    assert "" not in [text for _, text in channel.drafts]


async def test_only_the_first_part_has_the_draft(house):
    channel, gate = Drafting(), asyncio.Event()
    model = ScriptedModel([(Say("one"), Wait(gate), Say("\ftwo"))])
    async with house(model, channels=[channel]):
        deliver = await channel.listens.get()
        await deliver(incoming("e1"))
        await channel.until("one")
        gate.set()
        await channel.sent(2)
    assert [(part.text, part.draft) for part in channel.parts] == [("one", "draft 1"), ("two", "")]


async def test_the_draft_of_a_turn_that_is_stopped_is_taken_away(house):
    channel, gate = Drafting(), asyncio.Event()
    async with house(ScriptedModel([(Say("Once upon"), Wait(gate))]), channels=[channel]):
        deliver = await channel.listens.get()
        await deliver(incoming("e1"))
        await channel.until("Once upon")
        await deliver(incoming("e2", text="/stop"))
        await channel.sent(1)
        stopped = [*channel.parts]
    assert "Once upon" not in channel.visible.values()
    assert stopped


async def test_what_a_draft_was_of_is_taken_away_when_everloop_ends_before_the_answer(house):
    channel, gate = Drafting(), asyncio.Event()
    async with house(
        ScriptedModel([(Say("Once upon"), Wait(gate))]),
        channels=[channel],
        settings={"agents": {"shutdown_seconds": 0}},
    ):
        deliver = await channel.listens.get()
        await deliver(incoming("e1"))
        await channel.until("Once upon")
    assert (channel.drafts[-1], channel.visible) == (("draft 1", ""), {})


async def test_an_answer_whose_sending_was_broken_off_is_sent_once_more_under_its_key_and_not_lost(house):
    class Hanging(Drafting):
        async def send(self, part: OutgoingPart) -> str:
            receipt = await super().send(part)
            if len(self.parts) == 1:
                await asyncio.Event().wait()  # nobody hears that it has arrived
            return receipt

    channel, gate = Hanging(), asyncio.Event()
    await answered(house, channel, gate)
    async with house(ScriptedModel([]), channels=[channel]):
        await channel.sent(2)
    first, second = channel.parts
    assert (first.draft, second.draft, second.key) == ("draft 1", "", first.key)
    assert [sent.text for sent in channel.delivered] == ["Once upon a time"]
    assert "" not in [text for _, text in channel.drafts]


async def test_a_platform_that_wants_fewer_drafts_is_given_the_time_and_then_shown_the_newest(house):
    channel, first, second = Drafting(), asyncio.Event(), asyncio.Event()
    channel.refused = [0.05]
    model = ScriptedModel([(Say("one"), Wait(first), Say(" two"), Wait(second), Say(" three"))])
    async with house(model, channels=[channel]):
        deliver = await channel.listens.get()
        await deliver(incoming("e1"))
        await channel.until("one")
        first.set()
        await channel.until("one two")
        second.set()
        await channel.sent(1)
    assert [text for _, text in channel.drafts][:2] == ["one", "one two"]
    assert list(channel.visible.values()) == ["one two three"]


async def test_a_platform_that_refuses_drafts_for_good_has_the_answer_nevertheless(house):
    channel, gate = Drafting(), asyncio.Event()
    channel.refused = [None]
    assert await answered(house, channel, gate) == ["Once upon a time"]
    assert (len(channel.drafts), channel.parts[0].draft) == (1, "")


def row(seq: int, thread: str = "t") -> OutboxRow:
    outbound = Outbound(reply_key(thread, seq), Address("fake", "room"), "done")
    return OutboxRow(1, thread, outbound, attempts=1, unsure=False, age=0.0)


class Watching:
    """A Live in front of a channel, which a test tells what happens."""

    def __init__(self, channel: Drafting, group: asyncio.TaskGroup, **more: bool) -> None:
        self.live = Live(channel, **more)
        self.live.note(Receipt(1, "t", fresh=True), Address("fake", "room"), ReplyTo(""))
        self._group = group

    def hear(self, *events) -> None:
        for event in events:
            self.live.hear(event, self._group)


def began(seq: int = 1) -> TurnBegan:
    return TurnBegan("t", seq, seq, ())


def piece(text: str = "", **more: str) -> AnswerPiece:
    return AnswerPiece("t", 1, 1, text=text, **more)


def ended(seq: int, text: str | None = "done") -> TurnEnded:
    return TurnEnded("t", seq, Finished(1, seq, text, "fake:room", ()))


async def test_an_answer_that_is_claimed_before_its_end_is_told_has_its_draft():
    channel = Drafting()
    async with asyncio.TaskGroup() as group:
        watching = Watching(channel, group)
        watching.hear(began(), piece("Once"))
        await channel.until("Once")
        found = await watching.live.claim(row(5))
        watching.live.settle(row(5).outbound.key, "sent")
        watching.hear(ended(5))
    assert (found, channel.visible) == ("draft 1", {"draft 1": "Once"})


async def test_a_draft_is_a_reply_to_a_letter_of_its_turn_whatever_has_come_since():
    channel = Drafting()
    async with asyncio.TaskGroup() as group:
        watching = Watching(channel, group)
        for number in (2, 3):
            letter = Receipt(number, "t", fresh=True)
            watching.live.note(letter, Address("fake", "room"), ReplyTo(f"letter {number}"))
        watching.hear(TurnBegan("t", 1, 1, (1, 2)), piece("Once"))
        await channel.until("Once")
        watching.hear(ended(5, None))
    assert channel.replies == ["letter 2", "letter 2"]


async def test_no_draft_is_shown_of_a_turn_whose_letters_came_to_another_process():
    channel = Drafting()
    async with asyncio.TaskGroup() as group:
        watching = Watching(channel, group)
        watching.hear(TurnBegan("t", 1, 1, (7,)), piece("Once"), ended(5))
        watching.hear(TurnBegan("t", 6, 6, (1,)), piece("Twice"))
        await channel.until("Twice")
        watching.hear(ended(8, None))
    assert [text for _, text in channel.drafts] == ["Twice", ""]


async def test_an_older_answer_of_the_same_conversation_does_not_have_the_draft_of_a_later_turn():
    channel = Drafting()
    async with asyncio.TaskGroup() as group:
        watching = Watching(channel, group)
        watching.hear(began(10), piece("Once"))
        await channel.until("Once")
        found = [await watching.live.claim(each) for each in (row(9), row(99, "another"))]
        watching.hear(ended(12, None))
    assert (found, channel.visible) == (["", ""], {})


async def test_the_draft_of_an_answer_that_is_given_up_is_taken_away():
    channel = Drafting()
    async with asyncio.TaskGroup() as group:
        watching = Watching(channel, group)
        watching.hear(began(), piece("Once"))
        await channel.until("Once")
        watching.hear(ended(5))
        await watching.live.claim(row(5))
        watching.live.settle(row(5).outbound.key, "pending")
        watching.live.settle(row(5).outbound.key, "failed")
    assert channel.visible == {}


@pytest.mark.parametrize(
    "receipt, last, visible",
    [
        ("another message", ("draft 1", ""), {}),
        ("draft 1", ("", "Once"), {"draft 1": "Once"}),  # the channel has found it: it is the answer by now
    ],
)
async def test_a_draft_whose_call_hangs_holds_up_no_answer_and_is_taken_away_later_unless_it_is_the_answer(
    receipt, last, visible
):
    class Hanging(Drafting):
        def __init__(self) -> None:
            super().__init__()
            self.go_on = asyncio.Event()

        async def preview(self, *args: object) -> str:
            self.called.add()
            await self.go_on.wait()
            return await super().preview(*args)

    channel = Hanging()
    async with asyncio.TaskGroup() as group:
        watching = Watching(channel, group)
        watching.hear(began(), piece("Once"))
        await channel.called.reached(1)
        watching.hear(ended(5))
        found = await watching.live.claim(row(5))
        watching.live.settle(row(5).outbound.key, "sent", receipt)
        channel.go_on.set()
    assert (found, channel.drafts[-1], channel.visible) == ("", last, visible)


async def test_drafts_tell_of_tools_and_thoughts_only_where_that_is_wanted():
    told = []
    for wanted in ({}, {"progress": True}, {"reasoning": True}, {"progress": True, "reasoning": True}):
        sketch = Sketch(**wanted)
        for event in (
            AnswerBegan("t", 1, 1),
            piece(reasoning="Let me look.\nWhere?"),
            piece(progress="asking again in 3 s …"),
        ):
            sketch.hear(event)
        before = sketch.text
        sketch.hear(ToolCalled("t", 2, "exec", '{"command":"ls `pwd`"}', 0))
        sketch.hear(AnswerBegan("t", 3, 3))
        sketch.hear(piece("Here"))
        told.append((before, sketch.text))
    thought, waits, hint = "> Let me look.\n> Where?", "asking again in 3 s …", '- `` exec("ls `pwd`") ``'
    assert told == [
        ("", "Here"),
        (waits, f"{hint}\n\nHere"),
        (thought, "Here"),
        (f"{thought}\n\n{waits}", f"{hint}\n\nHere"),
    ]


async def test_nothing_of_what_was_told_while_it_worked_is_in_the_answer():
    channel = Drafting()
    async with asyncio.TaskGroup() as group:
        watching = Watching(channel, group, progress=True, reasoning=True)
        watching.hear(began(), ToolCalled("t", 2, "exec", '{"command":"ls"}', 0))
        await channel.until('- `exec("ls")`')
        watching.hear(ended(5, None))
    assert channel.visible == {}
