"""A message that begins its turn with its commit: it is answered also when no event tells how that ended, and nothing
is said in a session of somebody else."""

import asyncio
from pathlib import Path

from everloop.app import open_desk
from everloop.app.records import open_records
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import Text
from everloop.gateway.server import serve
from everloop.settings.shape import GatewaySection
from everloop.testing import Say, ScriptedModel

from ..conftest import Door, plain
from .test_resume import Delayed

SESSION = "api:x"


async def test_it_is_answered_when_no_event_tells_how_its_turn_ended(tmp_path: Path):
    gate = asyncio.Event()
    gate.set()
    async with open_desk(home=tmp_path / "home", provider=ScriptedModel([Say("one"), Say("two")])) as agent:
        house = Delayed(agent, gate)
        async with serve(house, GatewaySection(port=0), tmp_path / "home") as gateway:
            door = Door(tmp_path / "home", gateway.url, gateway.link)
            async with door.socket() as wire:
                await wire.ask("a", "m1", SESSION)
                house.heard.clear()
                answered = await wire.ask("b", "m2", SESSION)  # the thread rests: its turn begins with the commit
    assert plain(answered) == [("ack", "m2"), ("response", "two")]


async def test_a_session_that_has_become_another_s_takes_nothing_from_whoever_watches_it(openings):
    model = ScriptedModel([Say("one"), Say("two")])
    door = await openings(model)
    token = await door.token()
    async with door.socket(token) as wire, door.client(token) as client:
        await wire.ask("a", "m1", SESSION)
        id = (await wire.ask("b", "m2", SESSION))[-1]["thread"]
        assert (await client.delete(f"/api/sessions/{id}", params={"confirm": id})).status == 200
        async with open_records(door.home) as records:
            said = Said((Text("mine"),), "anna", SESSION)
            await records.store.receive(Inbound(Address.parse(SESSION), "e1", said, "anna"))
        await wire.send("message", id="m3", session=SESSION, content="c")
        told = (await wire.until("error"))[-1]
    assert (told["id"], told["code"]) == ("m3", "forbidden")
    assert "c" not in [prompt.asked for prompt in model.prompts]
