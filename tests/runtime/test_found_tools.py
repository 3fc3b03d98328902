"""Tools that a prompt has no room for: found by words, called by name, and nothing else knows of it."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

import everloop
from everloop.app.presets import MOST_FOR_BROUGHT
from everloop.core.log import ModelSaid
from everloop.core.tool import Effect, ToolCall, ToolSpec
from everloop.ports.tools import CallContext, Tool
from everloop.readings.contents import tokens_of
from everloop.readings.found_tools import CALL, ESSENTIAL, FIND, found, opened
from everloop.testing import Call, Say, ScriptedModel

MANY = 400


def brought(number: int) -> Tool:
    async def run(args: dict[str, Any], context: CallContext) -> str:
        return f"{number} was called with {args}"

    text = f"Does the work of number {number}; " + "and says a good deal about how it is done. " * 5
    if number == 321:
        text = "Waters the tomatoes in the greenhouse."
    schema = {"type": "object", "properties": {"city": {"type": "string"}}}
    return Tool(ToolSpec(f"mcp_garden_{number}", text, schema, Effect.READ), run)


class Garden:
    version = 1

    def tools(self) -> list[Tool]:
        return [brought(number) for number in range(MANY)]


@pytest.mark.parametrize("window", [8192, 32_768, 200_000])
async def test_what_a_prompt_has_no_room_for_is_found_and_called(tmp_path: Path, window: int):
    args = {"name": "mcp_garden_321", "arguments": {"city": "Oslo"}}
    model = ScriptedModel([Call(FIND, {"query": "water tomatoes"}), Call(CALL, args), Say("Done."), Say("Again.")])
    settings = {"agents": {"defaults": {"context_window": window, "max_tokens": 512}}}
    workspace = tmp_path / "home" / "workspace"
    workspace.mkdir(parents=True)
    (workspace / "AGENTS.md").write_text("Mind the slugs.")
    async with everloop.open(tmp_path / "home", settings, provider=model, tools=[Garden()]) as agent:
        await agent.ask("water them", session="api:a")
        await agent.ask("and again", session="api:a")
        row = await agent.store.session("api:a")
        entries = await agent.store.read(row.id)
    shown = [list(prompt.tools) for prompt in model.prompts]
    specs = [brought(int(name.rpartition("_")[2])).spec for name in shown[0] if name.startswith("mcp_")]
    assert {*ESSENTIAL, FIND, CALL} <= {*shown[0]}
    assert tokens_of("", specs) <= min(window // 10, MOST_FOR_BROUGHT)
    assert all(each == shown[0] for each in shown)
    assert "Mind the slugs." in model.prompts[0].system
    assert "Waters the tomatoes" in model.prompts[1].said[-1][1]
    assert "321 was called with {'city': 'Oslo'}" in model.prompts[2].said[-1][1]
    calls = [call.name for entry in entries if isinstance(entry, ModelSaid) for call in entry.calls]
    assert calls == [FIND, "mcp_garden_321"]


async def test_where_there_is_room_for_all_nothing_is_to_be_found(tmp_path: Path):
    model = ScriptedModel([Say("hi")])
    async with everloop.open(tmp_path / "home", provider=model, tools=[brought(2), brought(1)]) as agent:
        await agent.ask("hi", session="api:a")
    tools = model.prompts[0].tools
    assert [*tools][-2:] == ["mcp_garden_1", "mcp_garden_2"]  # by their names: one that comes first is used more often
    assert not {FIND, CALL} & {*tools}


async def test_who_calls_a_tool_that_there_is_not_is_told_so(tmp_path: Path):
    model = ScriptedModel([Call(CALL, {"name": "nothing", "arguments": {}}), Say("ok")])
    async with everloop.open(tmp_path / "home", provider=model, tools=[Garden()]) as agent:
        await agent.ask("hi", session="api:a")
    assert "there is no tool 'nothing'" in model.prompts[1].said[-1][1]


SPECS = {name: ToolSpec(name, "", {}) for name in ("mcp_a", FIND, CALL)}


@pytest.mark.parametrize(
    "held, meant",
    [
        ({"name": "mcp_a", "arguments": {"x": 1}}, ("mcp_a", '{"x":1}')),
        ({"name": "mcp_a", "arguments": '{"x": 1}'}, ("mcp_a", '{"x": 1}')),
        ({"name": "mcp_a"}, ("mcp_a", "{}")),
        ({"name": CALL, "arguments": {}}, None),
        ({"name": FIND, "arguments": {}}, None),
        ({"name": "other", "arguments": {}}, None),
        ({"name": 3}, None),
        ([], None),
    ],
)
def test_an_envelope_is_opened_if_it_holds_a_call(held: Any, meant: tuple[str, str] | None):
    call = ToolCall("1", CALL, msgspec.json.encode(held).decode())
    assert opened((call,), SPECS) == ((ToolCall("1", *meant) if meant else call),)


def test_words_in_a_name_count_more_than_in_a_description():
    named, told = ToolSpec("mcp_git_log", "", {}), ToolSpec("mcp_x", "the git log of all", {})
    neither = ToolSpec("mcp_y", "weather", {})
    assert found("git log", [neither, told, named]) == [named, told]
