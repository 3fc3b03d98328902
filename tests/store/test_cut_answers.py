"""What was shown of an answer that was stopped or broke off is in the log, on both databases, and comes back."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, aclosing
from pathlib import Path

import pytest
from tests.store.conftest import Home, SqliteHome

import everloop
from everloop import TurnFailed
from everloop.core.log import GaveUp, ModelFailed, Stopped
from everloop.errors import StreamCut
from everloop.ports.events import AnswerPiece, TurnEnded
from everloop.testing import Fail, Say, ScriptedModel, Think, Wait

PIECES = ("one ", "two ", "three ", "four ", "five ")
Open = Callable[[ScriptedModel], AbstractAsyncContextManager[everloop.Agent]]


@pytest.fixture
def opened(home: Home, tmp_path: Path) -> Open:
    url = {} if isinstance(home, SqliteHome) else {"store": {"url": home.url}}
    return lambda model: everloop.open(home=tmp_path / "house", provider=model, settings=url)


async def cut_in(agent: everloop.Agent) -> list[Stopped | GaveUp]:
    row = await agent.store.session("cli:direct")
    assert row
    return [entry for entry in await agent.store.read(row.id) if isinstance(entry, Stopped | GaveUp)]


async def stop_after(agent: everloop.Agent, pieces: int, seen: list[str]) -> None:
    """Ask, and stop when so many pieces of the answer have been seen."""
    async for event in agent.stream("count", "cli:direct"):
        if isinstance(event, AnswerPiece):
            seen.append(event.text)
            if "".join(seen) == "".join(PIECES[:pieces]):
                await agent.ask("/stop", "cli:direct")


@pytest.mark.parametrize("pieces", range(1, len(PIECES) + 1))
async def test_a_stop_keeps_all_that_was_shown(opened: Open, pieces: int):
    model = ScriptedModel([[Think("hm"), Say(PIECES[:pieces]), Wait(asyncio.Event())], Say("six")])
    async with opened(model) as agent:
        pieces_seen: list[str] = []
        with pytest.raises(TurnFailed, match="stopped; what was said") as failed:
            await stop_after(agent, pieces, pieces_seen)
    seen = "".join(pieces_seen)
    assert (seen, failed.value.cut) == ("".join(PIECES[:pieces]), seen)
    async with opened(model) as agent:
        assert await cut_in(agent) == [Stopped("owner", seen, "hm")]
        assert (await agent.ask("go on", "cli:direct")).content == "six"
    assert model.prompts[-1].said == [
        ("user", "count"),
        ("assistant", f"{seen}\n\n[operation cancelled by user]"),
        ("user", "go on"),
    ]


@pytest.mark.parametrize("pieces", range(len(PIECES) + 1))
async def test_a_stream_that_is_cut_for_good_keeps_all_that_was_shown(opened: Open, pieces: int):
    broken = [*([Say(PIECES[:pieces])] if pieces else []), Fail(StreamCut("the host hung up"))]
    model = ScriptedModel(lambda asked: broken)
    async with opened(model) as agent:
        with pytest.raises(TurnFailed, match="hung up") as failed:
            await agent.ask("count", "cli:direct")
    said = "".join(PIECES[:pieces])
    async with opened(model) as agent:
        (gave_up,) = await cut_in(agent)
    assert (failed.value.cut, gave_up.cut) == (said, said)


async def test_a_stream_that_is_cut_and_then_whole_leaves_only_the_whole(opened: Open):
    model = ScriptedModel([[Say("hal"), Fail(StreamCut("the host hung up"))], Say("whole"), Say("yes")])
    async with opened(model) as agent:
        assert (await agent.ask("count", "cli:direct")).content == "whole"
        assert (await agent.ask("and?", "cli:direct")).content == "yes"
        row = await agent.store.session("cli:direct")
        assert row
        failed = [each for each in await agent.store.read(row.id) if isinstance(each, ModelFailed)]
    assert [each.cut for each in failed] == ["hal"]
    assert model.prompts[-1].said == [("user", "count"), ("assistant", "whole"), ("user", "and?")]


async def test_who_has_left_meanwhile_finds_what_had_been_said_and_how_to_have_the_rest(opened: Open):
    model = ScriptedModel([[Say(PIECES[:2]), Wait(asyncio.Event())]])
    async with opened(model) as agent:
        anna = agent.user("web:anna")
        async with aclosing(anna.stream("count")) as events:
            async for event in events:
                if isinstance(event, AnswerPiece) and event.text == PIECES[1]:
                    break
        with agent.events() as happens:
            await anna.ask("/stop")
            await anext(event async for event in happens if isinstance(event, TurnEnded))
        told = [each.text for each in await anna.unshown()]
    assert told == ['one two \n\n[stopped here; say "go on" to have the rest]']
