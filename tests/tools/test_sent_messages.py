"""Reactions, and changes of what was said, where a channel has them: on which message, and offered nowhere else."""

from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.runtime.test_turns import entries
from tests.tools.board import Board

import everloop
from everloop.core.log import CallReturned, ModelSaid
from everloop.core.mail import ReplyTo
from everloop.core.people import Role
from everloop.errors import ChannelDown, Undeliverable
from everloop.ports.channel import Incoming
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Shown
from everloop.tools.sent_messages import NAMES

ROLES = {"board:ann": Role.USER, "board:gus": Role.GUEST}


def acting(*calls: Call) -> ScriptedModel:
    """A model that answers at length, and acts when it is told so."""

    def line(shown: Shown) -> Any:
        if shown.asked.endswith("act"):
            return calls[shown.step] if shown.step < len(calls) else Say("done")
        return Say(f"{shown.asked} one\f{shown.asked} two" if shown.asked.endswith("long") else f"re {shown.asked}")

    return ScriptedModel(line)


@asynccontextmanager
async def opened(tmp_path, channel: Board, *calls: Call, account: str = "ann"):
    """A house, and how somebody says things there; each returns when it is answered."""
    given = {"provider": acting(*calls), "channels": [channel], "roles": ROLES}
    async with everloop.open(tmp_path / "home", {"tools": {"approvals": "allow"}}, **given) as agent:
        deliver = await channel.listens.get()

        async def say(*texts: str) -> None:
            for text in texts:
                before = channel.attempts
                await deliver(
                    Incoming(event=text, chat="room", account=account, text=text, reply_to=ReplyTo(f"to {text}"))
                )
                await channel.sent(before + (2 if text.endswith("long") else 1))
                while await agent.store.unshown("board:room"):  # its receipt is being written
                    pass

        yield agent, say


async def results(agent: everloop.Agent) -> list[tuple[str, str]]:
    found = [entry for entry in await entries(agent, "board:room") if isinstance(entry, CallReturned)]
    return [(each.outcome, each.text) for each in found]


async def seqs(agent: everloop.Agent) -> list[int]:
    """Of what the model has said, the answers of turns."""
    found = enumerate(await entries(agent, "board:room"), 1)
    return [seq for seq, entry in found if isinstance(entry, ModelSaid) and not entry.calls]


async def test_it_reacts_to_the_message_that_it_answers(tmp_path):
    channel = Board()
    async with opened(tmp_path, channel, Call("react", {"emoji": "👍"})) as (agent, say):
        await say("hi", "act")
        assert await results(agent) == [("done", "Reacted with 👍.")]
    assert channel.done == [("react", "to act", "👍")]


async def test_an_answer_is_changed_by_counting_back(tmp_path):
    channel = Board()
    calls = [Call("edit_message", {"text": "better", "back": back}) for back in (1, 2)]
    async with opened(tmp_path, channel, *calls) as (agent, say):
        await say("a", "b", "act")
        first, second, _ = await seqs(agent)
        assert await results(agent) == [("done", "Changed: re b"), ("done", "Changed: re a")]
    assert channel.done == [
        ("replace", f"{second}", "<better>", "better"),
        ("replace", f"{first}", "<better>", "better"),
    ]


async def test_what_was_sent_in_parts_becomes_one_or_is_deleted_whole(tmp_path):
    channel = Board()
    calls = [Call("edit_message", {"text": "short"}), Call("delete_message"), Call("delete_message", {"back": 1})]
    async with opened(tmp_path, channel, *calls) as (agent, say):
        await say("long", "act")
        first, _ = await seqs(agent)
    assert channel.done == [
        ("replace", f"{first}", "<short>", "short"),
        ("withdraw", f"{first}/1"),
        *[("withdraw", f"{first}/1"), ("withdraw", f"{first}")] * 2,
    ]


async def test_the_same_message_is_meant_after_it_was_deleted(tmp_path):
    """So a call that a crash has cut off can be made again: it deletes no second one."""
    channel = Board()
    async with opened(tmp_path, channel, Call("delete_message"), Call("delete_message")) as (agent, say):
        await say("a", "b", "act")
        assert await results(agent) == [("done", "Deleted: re b")] * 2
    assert channel.done[0] == channel.done[1]


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (Call("edit_message", {"text": "x", "back": 3}), "you have not sent so many answers here lately: there are 1"),
        (Call("edit_message", {"text": "one\ftwo"}), "this is too long for one message"),
        (Call("edit_message", {"text": " "}), "a message has some text"),
        (Call("react", {"emoji": ""}), "a reaction is one emoji"),
        (Call("react", {"emoji": "x" * 65}), "a reaction is one emoji"),
    ],
)
async def test_what_cannot_be_done_is_told_and_nothing_happens(tmp_path, call, why):
    channel = Board()
    async with opened(tmp_path, channel, call) as (agent, say):
        await say("a", "act")
        ((outcome, text),) = await results(agent)
    assert (outcome, text.startswith(f"Error: {why}"), channel.done) == ("failed", True, [])


@pytest.mark.parametrize("error", [ChannelDown("the board is away"), Undeliverable("it is gone")])
@pytest.mark.parametrize(
    "call", [Call("react", {"emoji": "👍"}), Call("delete_message"), Call("edit_message", {"text": "x"})]
)
async def test_what_the_platform_refuses_is_told(tmp_path, call, error):
    channel = Board(error)
    async with opened(tmp_path, channel, call) as (agent, say):
        await say("a", "act")
        ((outcome, text),) = await results(agent)
    assert (outcome, text.endswith(f": {error}")) == ("failed", True)


async def offered_in(tmp_path, channels: list[RecordingChannel], session: str, author: str = "board:ann") -> set[str]:
    model = ScriptedModel([Say("hello")])
    async with everloop.open(tmp_path / "home", provider=model, channels=channels, roles=ROLES) as agent:
        await agent.ask("hi", session, author=author)
    return set(model.prompts[0].tools) & set(NAMES)


@pytest.mark.parametrize(
    ("session", "author", "wanted"),
    [
        ("board:room", "board:ann", set(NAMES)),
        ("board:room", "board:gus", {"react"}),
        ("plain:room", "board:ann", set()),
        ("api:work", "owner", set()),
        ("page:home", "owner", set()),
    ],
)
async def test_they_are_offered_where_the_channel_has_them_and_nowhere_else(tmp_path, session, author, wanted):
    channels = [Board(), RecordingChannel("plain")]
    assert await offered_in(tmp_path, channels, session, author) == wanted


async def test_a_call_that_was_not_offered_does_nothing(tmp_path):
    channel = Board()
    async with opened(tmp_path, channel, Call("delete_message"), account="gus") as (agent, say):
        await say("a", "act")
        ((outcome, _),) = await results(agent)
    assert (outcome == "done", channel.done) == (False, [])


async def test_they_can_be_left_out_also_where_no_channel_has_them(tmp_path):
    settings = {"tools": {"disabled": ["react", "delete_*"]}}
    async with everloop.open(tmp_path / "home", settings, provider=ScriptedModel([Say("hello")])) as agent:
        assert (await agent.ask("hi")).content == "hello"
