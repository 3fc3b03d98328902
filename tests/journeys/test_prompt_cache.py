"""Fifty turns with tools and steering, over the wire: what was sent before is sent again, so that a host that caches by
prefix reads only what is new.

A request ends with a tail of the moment, which no host can cache; all before it can be. Of that, the next request is to
begin with at least 97 % byte for byte. What is missing are the few bytes of punctuation that lead to the tail.
"""

import os
import re
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import everloop
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.tool import Effect
from everloop.testing import Call, Calls, Say
from everloop.testing.model_server import ModelServer
from everloop.testing.script import Line, Shown
from everloop.tools.decorator import tool

TURNS = 50
SHARE = 0.97
SESSION = "api:default"


def answer(shown: Shown) -> Line:
    """Every second turn uses tools, in one step or two; every fifth hears more from its user while a tool runs."""
    begins = [place for place, (role, text) in enumerate(shown.said) if role == "user" and text.startswith("turn")]
    turn, step = len(begins), sum(role == "assistant" for role, _ in shown.said[begins[-1] :])
    if turn % 5 == 0:
        return Call("be_steered") if step == 0 else Say(f"Turn {turn}: {shown.asked.partition(chr(10))[0]}, I do.")
    if turn % 2 or step > (turn % 4 == 0):
        return Say(f"Turn {turn} is done, as you wished.")
    if step == 1:
        return Call("list_dir")
    path = f"note{turn}.md"
    text = f"note {turn}\n" * 20
    return Calls(Call("write_file", {"path": path, "content": text}), Call("read_file", {"path": path}))


class Conversation:
    """Speaks for fifty turns, and keeps the requests that come of it."""

    def __init__(self, home: Path, server: ModelServer) -> None:
        self._home = home
        self._server = server
        self.steered = 0

    async def hold(self, before: Callable[[int], Any] = lambda turn: None) -> list[bytes]:
        settings = {
            "agents": {"defaults": {"model": "custom/a"}},
            "providers": {"custom": {"api_base": self._server.url, "api_key": "sk-canary-cache"}},
        }

        @tool(Effect.READ)
        async def be_steered() -> str:
            """Waits for a word from the user."""
            self.steered += 1
            letter = Said(said(f"and mind this, {self.steered}"), "owner", SESSION)
            await agent.tell(Inbound(Address.parse(SESSION), f"steer{self.steered}", letter))
            return "the user has something to say"

        async with everloop.open(self._home, settings, tools=[be_steered]) as agent:
            for turn in range(1, TURNS + 1):
                before(turn)
                await agent.ask(f"turn {turn}", SESSION)
        # How long an answer may be is no part of the prompt; it changes once, when the host has told its window.
        return [re.sub(rb'"max_tokens":\d+,', b"", request.raw) for request in self._server.requests]


@pytest.fixture
async def conversation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Conversation]:
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        monkeypatch.delenv(name)
    async with ModelServer(answer, models=("a",)) as server:
        yield Conversation(tmp_path / "home", server)


def cacheable(body: bytes) -> bytes:
    """What stands before the tail."""
    return body[: body.rindex(b"Current time: ")]


def kept(before: bytes, after: bytes) -> int:
    """How many bytes of what could be cached of a request the next begins with."""
    pairs = enumerate(zip(cacheable(before), after, strict=False))
    return next((place for place, (one, other) in pairs if one != other), len(cacheable(before)))


def shares(bodies: list[bytes]) -> list[float]:
    return [kept(before, after) / len(cacheable(before)) for before, after in pairwise(bodies)]


async def test_over_fifty_turns_nearly_all_of_a_request_begins_the_next(conversation):
    bodies = await conversation.hold()
    assert len(bodies) > 1.5 * TURNS
    assert conversation.steered == TURNS // 5
    assert b"Turn 45: and mind this, 9, I do." in bodies[-1]  # it was heard in the turn that it steered
    assert min(shares(bodies)) >= SHARE
    cached = sum(kept(*pair) for pair in pairwise(bodies))
    assert cached / sum(map(len, bodies)) >= 0.95  # of all that was ever sent


async def test_a_file_that_is_edited_costs_the_cache_once(conversation, tmp_path):
    """The control: the measure sees a prefix that changes, and that it stays as it is from then on."""

    def edit(turn: int) -> None:
        if turn == 25:
            (tmp_path / "home" / "workspace" / "AGENTS.md").write_text("Be brief.")

    found = shares(await conversation.hold(edit))
    assert len([share for share in found if share < SHARE]) == 1
    assert min(found) < 0.5
