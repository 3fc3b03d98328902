"""A guest's world: nothing of the owner's in the prompt, no tools that are not theirs, and a budget of their own."""

import re
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.core.people import Role
from everloop.core.tool import Effect
from everloop.errors import BadRequest, TurnFailed
from everloop.testing import Call, Fail, Say, ScriptedModel, Shown
from everloop.tools.decorator import tool

GROUP = "api:room"  # where several people speak
CANARY = "CANARY-of-the-owner"


def furnished(home: Path) -> Path:
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    for name in ("AGENTS.md", "SOUL.md", "USER.md", "TOOLS.md", "IDENTITY.md"):
        (workspace / name).write_text(f"{CANARY} in {name}")
    return home


class Prompts:
    """A model that keeps what it was shown."""

    def __init__(self) -> None:
        self.shown: list[Shown] = []

    def __call__(self, shown: Shown) -> Say:
        self.shown.append(shown)
        return Say("ok")


async def test_a_guest_is_told_nothing_of_the_owner_and_the_owner_all_in_the_same_conversation(tmp_path: Path):
    prompts = Prompts()
    async with everloop.open(furnished(tmp_path), provider=ScriptedModel(prompts)) as agent:
        for author in ("owner", "discord:7", "discord:8", "owner"):
            await agent.ask("hello", GROUP, author=author)
    owner, seven, eight, again = prompts.shown
    assert owner.system == again.system
    assert (CANARY in owner.system, str(tmp_path) in owner.system, "exec" in owner.tools) == (True, True, True)
    for guest in (seven, eight):
        assert CANARY not in guest.system
        assert str(tmp_path) not in f"{guest.system}{guest.tail}"
        assert (guest.system, guest.tools) == (seven.system, ("read_file", "web_fetch", "message", "web_search"))


async def test_nor_when_the_owners_files_change_or_the_settings_have_words_of_their_own(tmp_path: Path):
    prompts = Prompts()
    settings = {"agents": {"defaults": {"system_prompt": "You are a pirate in {workspace}."}}}
    async with everloop.open(furnished(tmp_path), settings, provider=ScriptedModel(prompts)) as agent:
        await agent.ask("hello", GROUP, author="discord:7")
        (tmp_path / "workspace" / "USER.md").write_text(f"{CANARY} again")
        await agent.ask("hello", "cli:direct")
        await agent.ask("hello", GROUP, author="discord:7")
    first, owner, last = prompts.shown
    assert first.system == last.system == "You are a pirate in workspace."
    assert f"{CANARY} again" in owner.system


async def test_a_tool_that_is_not_for_guests_is_not_there_for_them_nor_named(tmp_path: Path):
    ran: list[str] = []

    @tool(Effect.READ, permission=Role.USER)
    async def hidden() -> str:
        """Look."""
        ran.append("hidden")
        return "seen"

    @tool(Effect.READ, permission=Role.GUEST)
    async def shown() -> str:
        """Look."""
        ran.append("shown")
        return "seen"

    lines = [Call("hidden", {}), Call("search_history", {"query": "x"}), Call("shown", {}), Say("done")]
    async with everloop.open(tmp_path, provider=ScriptedModel(lines), tools=[hidden, shown]) as agent:
        await agent.ask("look", GROUP, author="discord:7")
        row = await agent.store.session(GROUP)
        told = [entry.text for entry in await agent.store.read(row.id) if hasattr(entry, "outcome")]
    assert ran == ["shown"]
    assert told == [
        "Error: there is no tool 'hidden'. The tools are: read_file, web_fetch, message, web_search, shown.",
        "Error: there is no tool 'search_history'. The tools are: read_file, web_fetch, message, web_search, shown.",
        "seen",
    ]


async def test_what_a_host_says_of_models_and_keys_is_told_to_the_owner_and_not_to_a_guest(tmp_path: Path):
    def lines(shown: Shown) -> Any:
        return Fail(BadRequest("the key sk-1 of openai/secret-model is not valid"))

    async with everloop.open(tmp_path, provider=ScriptedModel(lines)) as agent:
        with pytest.raises(TurnFailed) as guest:
            await agent.ask("hello", GROUP, author="discord:7")
        with pytest.raises(TurnFailed) as owner:
            await agent.ask("hello", "cli:direct")
    assert re.fullmatch(r"I could not answer. Whoever runs this can look up why. \(error \w+-\d+\)", str(guest.value))
    assert "secret-model" in str(owner.value)
