"""What every model is told first: sections that stay the same to the byte through a turn, and say what has changed."""

import asyncio
from pathlib import Path

import pytest

from everloop.app.briefer import runtime
from everloop.core.tool import Effect
from everloop.readings.contents import tokens_of
from everloop.readings.sections import BETWEEN, changed_parts
from everloop.testing import Call, Say, ScriptedModel
from everloop.tools.bootstrap import FILES
from everloop.tools.decorator import tool
from tests.runtime.test_turns import entries

DEFAULT, COMPACT = 3000, 1200  # tokens that a prompt may have before anything is said


def sections(shown) -> list[str]:
    """All but the skills, which tests/app/test_skills.py looks at."""
    return [each for each in shown.system.split(BETWEEN) if not each.startswith("# Skills")]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "home" / "workspace"


async def test_a_new_workspace_is_filled_and_what_stands_there_is_told(house, workspace):
    model = ScriptedModel([Say("hello")])
    async with house(model) as agent:
        await agent.ask("hi")
    assert sorted(path.name for path in workspace.iterdir()) == sorted(FILES)
    identity, agents, soul = sections(model.prompts[0])
    assert identity.startswith("You are everloop")
    assert str(workspace) in identity
    tools = ", ".join(model.prompts[0].tools)
    assert identity.endswith(f"You run in {runtime()}. Your tools: {tools}.")
    assert agents.startswith("## AGENTS.md\n\n- Look before")
    assert soul.startswith("## SOUL.md\n\nFriendly")


async def test_the_configured_system_prompt_takes_the_place_of_the_identity(house, workspace):
    workspace.mkdir(parents=True)
    (workspace / "USER.md").write_text("Speaks {German}.")
    model = ScriptedModel([Say("hello")])
    own = "You sell {fish} in {workspace}, by {tools}, in {runtime}."
    settings = {"agents": {"defaults": {"system_prompt": own}}}
    async with house(model, settings=settings) as agent:
        await agent.ask("hi")
    tools = ", ".join(model.prompts[0].tools)
    assert sections(model.prompts[0]) == [
        f"You sell {{fish}} in {workspace}, by {tools}, in {runtime()}.",
        "## USER.md\n\nSpeaks {German}.",
    ]


async def test_a_changed_file_is_told_from_the_next_turn_on_and_named(house, workspace):
    model = ScriptedModel(lambda shown: Say("hello"))
    async with house(model) as agent:
        for change in (
            lambda: None,
            lambda: (workspace / "AGENTS.md").write_text("Sing."),
            lambda: (workspace / "USER.md").write_text("Ann."),
            lambda: (workspace / "SOUL.md").unlink(),
            lambda: (workspace / "README.md").write_text("No matter."),
        ):
            change()
            await agent.ask("hi")
        told = [entry.prefix for entry in await entries(agent) if type(entry).__name__ == "ModelCalled"]
    first, *changed, last = told
    assert [changed_parts(*pair) for pair in zip([first, *changed], changed, strict=False)] == [
        ["agents.md"],
        ["user.md"],
        ["soul.md"],
    ]
    assert last == ""
    assert sections(model.prompts[-1])[1:] == ["## AGENTS.md\n\nSing.", "## USER.md\n\nAnn."]


async def test_nothing_changes_in_the_middle_of_a_turn_whatever_happens_to_the_files(house, workspace):
    @tool(Effect.READ)
    async def rewrite() -> str:
        """Rewrites a file."""
        (workspace / "AGENTS.md").write_text("Sing.")
        return "done"

    model = ScriptedModel([Call("rewrite"), Say("one"), Say("two")])
    async with house(model, tools=[rewrite]) as agent:
        await agent.ask("rewrite it")
        await agent.ask("and now?")
    before, still, after = (shown.system for shown in model.prompts)
    assert before == still
    assert ("Sing." in before, "Sing." in after) == (False, True)


async def test_a_turn_keeps_what_it_was_told_while_others_begin_with_something_new(house, workspace, gated):
    model = ScriptedModel(lambda shown: Call("wait") if shown.said[-1] == ("user", "slow") else Say("hello"))
    async with house(model, tools=[gated.make("wait", Effect.READ)]) as agent:
        slow = asyncio.ensure_future(agent.ask("slow", "api:slow"))
        await gated.begun.wait()
        (workspace / "AGENTS.md").write_text("Sing.")
        await agent.ask("quick", "api:quick")
        gated.gate.set()
        await slow
        await agent.ask("again", "api:slow")
    assert ["Sing." in shown.system for shown in model.prompts] == [False, True, False, True]


async def test_channel_chat_and_time_stand_in_the_tail_and_nowhere_before_it(house):
    model = ScriptedModel([Say("hello")])
    async with house(model) as agent:
        await agent.ask("hi", "api:kitchen")
    (shown,) = model.prompts
    assert shown.tail.split("\n")[1:] == ["Channel: api, chat: kitchen"]
    assert shown.tail.startswith("Current time: ")
    assert "kitchen" not in shown.system


async def told_with(house, window: int | None = None) -> tuple[ScriptedModel, int]:
    """The scripted model after one question, and how many tokens stood before it."""
    model = ScriptedModel([Say("hello")])
    async with house(model, settings={"agents": {"defaults": {"context_window": window}}}) as agent:
        await agent.ask("hi")
        specs = {spec.name: spec for spec in agent._lanes._driver._toolbox.specs.values()}
    (shown,) = model.prompts
    return model, tokens_of(shown.system, [specs[name] for name in shown.tools])


async def test_the_default_prompt_with_all_tools_is_small(house):
    model, tokens = await told_with(house)
    assert len(model.prompts[0].tools) >= 15
    assert tokens <= DEFAULT


async def test_the_compact_prompt_is_smaller_and_stays_so_however_long_the_files_are(house, workspace):
    model, tokens = await told_with(house, 4096)
    assert model.prompts[0].tools == ("read_file", "write_file", "edit_file", "list_dir")
    assert len(sections(model.prompts[0])) == 3
    assert tokens <= COMPACT
    (workspace / "AGENTS.md").write_text("Work well. " * 2000)
    model, tokens = await told_with(house, 4096)
    assert "cut here; the rest is in AGENTS.md" in model.prompts[0].system
    assert COMPACT - 200 <= tokens <= COMPACT


async def test_long_files_are_told_whole_where_there_is_room(house, workspace):
    await told_with(house)
    (workspace / "AGENTS.md").write_text("Work well. " * 1000)
    model, _ = await told_with(house)
    assert "cut here" not in model.prompts[0].system
    model, _ = await told_with(house, 8192)
    assert "cut here" in model.prompts[0].system
