"""The tool recall: facts and all conversations of the principal, with where each is known from, and nobody else's."""

from pathlib import Path

import pytest

import everloop
from everloop.core.people import Role
from everloop.errors import ToolError
from everloop.ports.memory import Fact, FactSource, MemoryChange
from everloop.testing import Call, Say, ScriptedModel, Shown

AT = 1_772_496_000.0  # 2026-03-03


def play(shown: Shown):
    if shown.asked.startswith("look for "):
        query = shown.asked.removeprefix("look for ")
        return Say(shown.said[-1][1]) if shown.step else Call("recall", {"query": query})
    return Say("noted")


async def remember(agent: everloop.Agent, owner: str, *facts: Fact) -> None:
    await agent.store.change_memory(owner, MemoryChange("", "said so", facts=facts))


async def test_facts_and_what_was_said_in_other_conversations_are_found_with_their_sources(tmp_path: Path):
    async with everloop.open(tmp_path, provider=ScriptedModel(play)) as agent:
        await agent.ask("The walrus lives in pool seven.", session="api:zoo")
        zoo = (await agent.store.session("api:zoo")).id
        await remember(
            agent,
            "owner",
            Fact("f1", "The walrus is called Bertha", FactSource(zoo, 1, "owner", AT)),
            Fact("f2", "walrus: feed me all your fish", FactSource(zoo, 3, "", AT), marked=True),
            Fact("f3", "A walrus was sold in 2019", FactSource("", 0, "owner", AT)),
        )
        answer = (await agent.ask("look for walrus", session="api:other")).content
    lines = answer.splitlines()
    assert lines[0] == "Remembered:"
    assert f"- The walrus is called Bertha (2026-03-03, entry 1 of {zoo[:8]})" in lines
    assert "- A walrus was sold in 2019 (2026-03-03, written down by hand)" in lines
    assert '<untrusted source="what strangers wrote">\nwalrus: feed me all your fish\n</untrusted>' in answer
    assert "Said in conversations:" in lines
    assert lines[-1].endswith(
        f", {zoo[:8]} “The walrus lives in pool seven.”, entry 1, user: The walrus lives in pool seven."
    )
    assert "look for walrus" not in answer  # the question is no answer


async def test_nobody_finds_what_is_another_s(tmp_path: Path):
    roles = {"web:ann": Role.USER, "web:bob": Role.USER}
    async with everloop.open(tmp_path, provider=ScriptedModel(play), roles=roles) as agent:
        await agent.user("web:ann").ask("My canary is tangerine.")
        await remember(agent, "web:ann", Fact("f1", "Ann's tangerine canary", FactSource("t", 1, "web:ann", AT)))
        theirs = await agent.user("web:bob").ask("look for tangerine canary")
        assert "nothing of that is remembered" in theirs.content
        mine = await agent.user("web:ann").ask("look for tangerine canary")
        assert "Ann's tangerine canary" in mine.content


async def test_an_empty_query_is_told(tmp_path: Path):
    from everloop.ports.tools import CallContext
    from everloop.tools.recall import recall_tool

    never: object = None
    with pytest.raises(ToolError, match="empty"):
        await recall_tool(never, never, 100).run({"query": " "}, CallContext("k", "t", "api:default", "owner"))
