import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

import everloop
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.tool import Effect
from everloop.ports.tools import Tool
from everloop.testing import ScriptedModel
from everloop.tools.decorator import tool

Opener = Callable[..., AbstractAsyncContextManager[everloop.Agent]]


@pytest.fixture
def house(tmp_path: Path) -> Opener:
    """Open everloop in this test's home, with a scripted model: `async with house(model, tools=…) as agent`."""

    def open(model: ScriptedModel, **more) -> AbstractAsyncContextManager[everloop.Agent]:
        return everloop.open(home=tmp_path / "home", provider=model, **more)

    return open


class Gated:
    """Tools that a test can hold open: each run waits at the gate and is counted."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.begun = asyncio.Event()
        self.runs = 0

    def make(self, name: str, effect: Effect, **more) -> Tool:
        @tool(effect, name=name, **more)
        async def run() -> str:
            """Wait at the gate."""
            self.runs += 1
            self.begun.set()
            await self.gate.wait()
            return f"{name} done"

        return run


@pytest.fixture
async def gated() -> Gated:
    return Gated()


def letter(text: str, event: str, author: str = "owner", session: str = "api:default") -> Inbound:
    return Inbound(Address.parse(session), event, Said(said(text), author, session))
