"""What a platform, or whoever writes there, calls a message is never taken for a name that the house gives."""

import pytest

from everloop import Effect, Role, tool
from everloop.ports.channel import Incoming
from everloop.testing import Call, Say, ScriptedModel
from tests.runtime.test_principals import Listening


@tool(Effect.UNSAFE, guarded=True, permission=Role.GUEST)
async def pay() -> str:
    """Pay."""
    return "paid"


@pytest.mark.parametrize("named", ["decision:{}", "m2"])
async def test_a_message_that_is_called_as_a_decision_does_not_stand_in_its_way(house, named: str):
    """In mail, and where bots pass messages on, whoever writes one chooses its id."""
    channel = Listening("fake")
    model = ScriptedModel([Call("pay", {}), Say("paid"), Say("hello")])
    async with house(model, channels=[channel], tools=[pay]) as agent:
        await channel.listens.wait()
        assert channel.deliver
        await channel.deliver(Incoming(event="m1", chat="room", account="7", text="pay", direct=False))
        await channel.sent(1)
        (asked,) = await agent.approvals()
        event = named.format(asked.id)
        await channel.deliver(Incoming(event=event, chat="hall", account="8", text="hi", direct=False))
        await channel.deliver(Incoming(event=event, chat="hall", account="8", text="hi", direct=False))  # one letter
        await agent.decide(asked.id, True, by="owner")
        assert await agent.approvals() == []
        await channel.sent(3)
    assert sorted(sent.text for sent in channel.sends)[-2:] == ["hello", "paid"]
