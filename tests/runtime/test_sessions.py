"""`/session …` in a chat."""

import asyncio
import re

import pytest

import everloop
from everloop import TurnFailed
from everloop.core.log import Compacted, ModelCalled, ModelSaid, Standing, Stopped, UserSaid
from everloop.core.tool import Effect
from everloop.core.wording import rendered
from everloop.ports.events import AnswerBegan, AnswerPiece, Event
from everloop.ports.rows import Commit, Lease
from everloop.runtime.sessions import Sessions
from everloop.testing import Call, Say, ScriptedModel, Wait
from everloop.tools.decorator import tool


def shown(model: ScriptedModel, at: int = -1) -> list[str]:
    return [text for _, text in model.prompts[at].said]


async def here(agent: everloop.Agent, session: str = "api:default") -> str:
    row = await agent.store.session(session)
    assert row is not None
    return row.id


async def test_where_one_is(house):
    async with house(ScriptedModel([Say("hi")])) as agent:
        assert (await agent.ask("/session")).content == (
            "This is the session api:default; nothing has been said here yet."
        )
        await agent.ask("hello")
        assert re.fullmatch(
            f"“hello”\n{(await here(agent))[:8]} [-0-9]+ [:0-9]+, 2 messages, session api:default, 3 entries\n"
            "/session help tells what you can do.",
            (await agent.ask("/session")).content,
        )
        assert (await agent.ask("/session help")).content.startswith("/session — where you are\n")
        assert (await agent.ask("/session dance")).content.startswith("/session — where you are\n")


async def test_the_last_message_is_said_differently(house):
    model = ScriptedModel([Say("one"), Say("two"), Say("better"), Say("three")])
    async with house(model) as agent:
        await agent.ask("first")
        await agent.ask("secnod")
        assert (await agent.ask("/session edit second")).content == "better"
        await agent.ask("third")
        assert [each.title for each in await agent.store.conversations("owner")] == ["first"]
        assert len(await agent.store.conversations("owner", archived=True)) == 2  # what was left can be gone back to
    assert shown(model) == ["first", "one", "second", "better", "third"]


async def test_the_last_answer_is_asked_for_again(house):
    model = ScriptedModel([Say("one"), Say("another"), Say("two")])
    async with house(model) as agent:
        await agent.ask("first")
        answer = await agent.ask("/session regenerate", event="e")
        assert answer.content == "another"
        assert await agent.ask("/session regenerate", event="e") == answer
        await agent.ask("second")
    assert shown(model) == ["first", "another", "second"]


async def test_an_edit_keeps_the_pictures(house, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("x")
    model = ScriptedModel([Say("one"), Say("two")])
    async with house(model) as agent:
        await agent.ask("look", files=[notes])
        await agent.ask("/session regenerate")
    assert model.prompts[0].said == model.prompts[1].said


async def test_one_goes_on_in_a_copy_and_back(house):
    model = ScriptedModel([Say("one"), Say("two"), Say("three"), Say("four")])
    async with house(model) as agent:
        await agent.ask("first")
        await agent.ask("second")
        old = await here(agent)
        told = (await agent.ask("/session fork 3")).content
        assert told == f"This is a copy now ({(await here(agent))[:8]}); go back with /session resume {old[:8]}"
        await agent.ask("third")
        assert shown(model) == ["first", "one", "third"]
        back = (await agent.ask(f"/session resume {old[:8]}")).content
        assert back.splitlines()[0] == "Here we go on with “first” (4 messages)."
        assert back.splitlines()[-1] == "assistant: two"
        await agent.ask("fourth")
    assert shown(model) == ["first", "one", "second", "two", "fourth"]


async def test_a_fork_in_the_middle_of_a_turn_is_closed(house):
    @tool(Effect.UNSAFE)
    async def act() -> str:
        """Acts."""
        return "acted"

    model = ScriptedModel([Call("act"), Say("done"), Say("now")])
    async with house(model, tools=[act]) as agent:
        await agent.ask("go")
        await agent.ask("/session fork 3")
        assert (await agent.store.read(await here(agent)))[3] == Stopped("owner")
        await agent.ask("and?")
    assert model.prompts[-1].said == [
        ("user", "go"),
        ("assistant", ""),
        ("tool", "operation cancelled by user"),
        ("assistant", "operation cancelled by user"),
        ("user", "and?"),
    ]


async def test_what_cannot_be_forked_is_said(house):
    async with house(ScriptedModel([Say("one")])) as agent:
        assert (await agent.ask("/session fork")).content == "Nothing has been said here yet."
        await agent.ask("first")
        old = await here(agent)
        assert (await agent.ask("/session fork 9")).content == f"Conversation {old} has entries 1 to 3, not 9."
        assert (await agent.ask("/session fork x")).content == "An entry is named by its number, not 'x'."
        assert (await agent.ask("/session resume zzz")).content == ("No conversation has an id that begins with 'zzz'.")
        assert (await agent.ask("/session restore x")).content == "There is no snapshot 'x'."


async def test_a_place_is_given_a_name_and_come_back_to(house):
    model = ScriptedModel([Say("one"), Say("two"), Say("three")])
    async with house(model) as agent:
        await agent.ask("first")
        await agent.ask("/session rename  A  good\nstart")
        assert (await agent.ask("/session snapshot before it")).content == (
            "Come back to this place with /session restore before it"
        )
        await agent.ask("second")
        await agent.ask("/session restore before it")
        assert [each.title for each in await agent.store.conversations("owner")] == ["A good start", "A good start"]
        await agent.ask("third")
    assert shown(model) == ["first", "one", "third"]


async def test_the_list_and_the_search(house):
    async with house(ScriptedModel([Say("the answer is 42"), Say("hm")])) as agent:
        await agent.ask("what is it?")
        old = (await here(agent))[:8]
        await agent.ask("/new")
        await agent.ask("something else", "api:other")
        lines = (await agent.ask("/session list")).content.splitlines()
        assert [re.sub(r" [-0-9]+ [:0-9]+,", "", line) for line in lines] == [
            f"{(await here(agent, 'api:other'))[:8]} 2 messages: something else (api:other)",
            f"{old} 2 messages: what is it?",
        ]
        found = (await agent.ask("/session search 42")).content
        assert re.sub(r" [-0-9]+ [:0-9]+,", "", found) == f"{old} entry 3, assistant: the answer is 42"
        assert (await agent.ask("/session search elephants")).content == "Nobody has said 'elephants'."


async def test_a_stranger_sees_only_the_conversations_of_this_session(house):
    async with house(ScriptedModel([Say("ok"), Say("ok")])) as agent:
        await agent.ask("my secret is plum", "api:mine")
        mine = await here(agent, "api:mine")
        await agent.ask("/session snapshot plum", "api:mine")
        await agent.ask("hello", "api:group", author="bob")
        told = (await agent.ask("/session list", "api:group", author="bob")).content
        assert ("hello" in told, "plum" in told) == (True, False)
        assert (await agent.ask("/session search plum", "api:group", author="bob")).content == "Nobody has said 'plum'."
        for words in (f"resume {mine}", "restore plum", "restore none"):
            told = (await agent.ask(f"/session {words}", "api:group", author="bob")).content
            assert told.startswith(("No conversation", "/session restore is not for guests"))
            assert "plum" not in told.replace("'plum'", "")
        assert "plum" in (await agent.ask("/session search plum", "api:group", author="owner")).content


async def test_another_sessions_conversation_is_gone_on_with_in_a_copy(house):
    model = ScriptedModel([Say("one"), Say("two"), Say("three")])
    async with house(model) as agent:
        await agent.ask("first", "api:there")
        there = await here(agent, "api:there")
        await agent.ask(f"/session resume {there}", "api:here")
        await agent.ask("second", "api:here")
        assert shown(model) == ["first", "one", "second"]
        await agent.ask("third", "api:there")
    assert shown(model) == ["first", "one", "third"]


async def test_a_turn_that_was_compacted_is_undone_from_what_stood_before(house):
    model = ScriptedModel([Say("one"), Say("two"), Say("three")])
    async with house(model) as agent:
        await agent.ask("first")
        await agent.ask("second")
        row = await agent.store.session("api:default")
        fold = Compacted("they talked", standing=Standing(4, False, "owner", "api:default"))
        await agent.store.commit(Lease(row.id, 0, 6), Commit([fold], release=True, state="resting"))
    async with house(model) as agent:
        assert (await agent.ask("/undo")).content == "Taken back: “second”"
        await agent.ask("third")
    assert shown(model) == ["first", "one", "third"]


async def test_after_a_compaction_a_branch_begins_with_it(house):
    model = ScriptedModel([Say("one"), Say("two"), Say("three")])
    async with house(model) as agent:
        await agent.ask("first")
        row = await agent.store.session("api:default")
        fold = Compacted("they talked", standing=Standing(1, False, "owner", "api:default"))
        await agent.store.commit(Lease(row.id, 0, 3), Commit([fold], release=True, state="resting"))
    async with house(model) as agent:
        await agent.ask("second")
        await agent.ask("/undo")
        entries = await agent.store.read(await here(agent))
        assert [type(entry) for entry in entries[:4]] == [UserSaid, ModelCalled, ModelSaid, Compacted]
        await agent.ask("third")
    assert shown(model) == [rendered("they talked", ()), "third"]


async def stop_at(agent: everloop.Agent, text: str, kind: type[Event]) -> None:
    async for event in agent.stream(text):
        if isinstance(event, kind):
            await agent.ask("/stop")


async def test_a_reader_sees_what_had_been_said_of_an_answer_that_was_stopped(house):
    model = ScriptedModel([(Say("half "), Wait(asyncio.Event())), Wait(asyncio.Event())])
    async with house(model) as agent:
        for text in ("first", "second"):
            with pytest.raises(TurnFailed):
                await stop_at(agent, text, AnswerPiece if text == "first" else AnswerBegan)
        sessions = Sessions(agent.store)
        said = await sessions.said(await sessions.find(await here(agent), "owner"))
    assert [(each.who, each.text) for each in said] == [
        ("owner", "first"),
        ("assistant", "half \n\n[stopped by owner]"),
        ("owner", "second"),
        ("owner", "/stop"),
    ]


async def test_copies_are_told_apart_in_the_tree_by_where_they_begin_and_what_was_said_last(house):
    model = ScriptedModel([Say("one"), Say("two"), Say("three\nin two lines")])
    async with house(model) as agent:
        await agent.ask("first")
        await agent.ask("second")
        first = await here(agent)
        await agent.ask("/fork 2")
        await agent.ask("third")
        second = await here(agent)
        lines = (await agent.ask("/tree")).content.splitlines()
    told = [(line.strip()[:8], line.partition(": ")[2]) for line in lines[:2]]
    assert told == [
        (first[:8], "first, last: “two”"),
        (second[:8], "first (here) (from entry 2), last: “three\\nin two lines”"),
    ]
