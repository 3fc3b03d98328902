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
from everloop.runtime import acknowledgements
from everloop.testing import ScriptedModel
from everloop.tools.decorator import tool

Opener = Callable[..., AbstractAsyncContextManager[everloop.Agent]]


@pytest.fixture
def house(tmp_path: Path) -> Opener:
    """Open everloop in this test's home, with a scripted model: `async with house(model, tools=…) as agent`."""

    def open(model: ScriptedModel, **more) -> AbstractAsyncContextManager[everloop.Agent]:
        return everloop.open(home=tmp_path / "home", provider=model, **more)

    return open


@pytest.fixture
def sent_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that somebody has waited for leaves by its channel, too, however late the sender comes to its turn: in
    the usual time it would be noted as shown by then, and be sent no more."""
    monkeypatch.setattr(acknowledgements, "LAZY", 60.0)


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
