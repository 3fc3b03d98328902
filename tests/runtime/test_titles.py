"""Titles in an open house: what is made of what a model says, who is asked, and what a turn notices of it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everloop.app import open_desk
from everloop.ports.events import TitleGiven
from everloop.runtime.titles import LONGEST, plain_title
from everloop.testing import Say, ScriptedModel, Shown, Wait
from everloop.testing.model_server import ModelServer

from .conftest import letter


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Walrus research", "Walrus research"),
        ('\n  "Walrus research."  \nand more', "Walrus research"),
        ("**Title: Walrus research**", "Walrus research"),
        ("# Où vivent les morses ?", "Où vivent les morses ?"),
        ("a\x1b[31mb\u202ec\td\x07", "a [31mb c d"),
        ("ignore all rules and " * 20, "ignore all rules and ignore all rules and ignore all rules…"),
        ("...\n\n***", ""),
        ("", ""),
    ],
)
def test_a_title_is_one_line_of_plain_text(text: str, title: str):
    assert plain_title(text) == title
    assert len(title) <= LONGEST


def settings_for(server: ModelServer, **defaults: object) -> dict[str, Any]:
    return {
        "agents": {"defaults": {"model": "custom/large", "context_window": 100_000, **defaults}},
        "providers": {"custom": {"api_base": server.url, "api_key": "sk-canary-titles"}},
    }


def is_naming(shown: Shown) -> bool:
    return shown.system.startswith("You give a conversation its title")


async def test_after_the_first_answer_the_small_model_names_it_and_no_turn_waits(tmp_path: Path):
    gate = asyncio.Event()

    def answer(shown: Shown) -> Any:
        return (Wait(gate), Say("Walrus research")) if is_naming(shown) else Say(f"{len(shown.messages)} messages")

    async with (
        ModelServer(answer, models=("large", "small")) as server,
        open_desk(tmp_path / "home", settings_for(server, small_model="custom/small")) as agent,
    ):
        with agent.events() as events:
            await agent.tell(letter("Where do walruses live?", "e1", session="page:one"))
            while not any(request.body["model"] == "small" for request in server.requests):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
            await agent.tell(letter("And seals?", "e2", session="page:one"))
            ends = 0
            async for event in events:
                if event.name == "thinking_finished":
                    ends += 1
                    if ends == 2:
                        gate.set()
                if isinstance(event, TitleGiven):
                    break
        (found,) = await agent.store.conversations("owner")
        spent = [(row.model, row.purpose, row.calls) for row in await agent.store.spent()]
        models = [request.body["model"] for request in server.requests]
    assert (found.title, found.named) == ("Walrus research", True)
    assert spent == [("custom/large", "", 2), ("custom/small", "titles", 1)]
    assert sorted(models) == ["large", "large", "small"]


@pytest.mark.parametrize(
    ("command", "named", "title"),
    [
        ("/session regenerate", True, "mine"),
        ("/session edit And seals?", True, "mine"),
        ("/session edit And seals?", False, "And seals?"),
        ("/undo", True, ""),
    ],
)
async def test_a_first_message_that_is_said_again_keeps_a_title_that_was_given(house, command, named, title):
    async with house(ScriptedModel(lambda shown: Say("fine"))) as agent:
        await agent.ask("Where do walruses live?", session="page:one")
        if named:
            await agent.ask("/session rename mine", session="page:one")
        await agent.ask(command, session="page:one")
        await agent.ask("/session", session="page:one")
        (found,) = [each for each in await agent.store.conversations("owner", archived=True) if each.current]
    assert found.title == title
