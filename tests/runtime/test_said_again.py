"""What is said again is still said by whoever said it, about the same files; nobody's words become another's."""

from typing import Any

import pytest

from everloop import Role
from everloop.core.log import UserSaid
from everloop.core.mail import Address, Inbound, Notice, Said
from everloop.core.message import said
from everloop.core.people import chat_of
from everloop.ports.channel import Incoming
from everloop.testing import RecordingChannel, Say, ScriptedModel
from tests.runtime.test_principals import Listening

PEOPLE = {"fake:ada": Role.ADMIN, "fake:una": Role.USER}
SPY = 'read_file {"path": "notes.txt"}'


class Group:
    """A channel with one group in it, in which a test lets people speak."""

    def __init__(self) -> None:
        self.channel = Listening("fake")

    async def hears(self, account: str, text: str) -> str:
        assert self.channel.deliver
        sent = len(self.channel.sends)
        incoming = Incoming(event=f"{sent}", chat="room", account=account, text=text, direct=False)
        await self.channel.deliver(incoming)
        await self.channel.sent(sent + 1)
        return self.channel.sends[-1].text


async def last_heard(agent: Any, session: str) -> UserSaid:
    row = await agent.store.session(session)
    return [entry for entry in await agent.store.read(row.id) if isinstance(entry, UserSaid)][-1]


@pytest.mark.parametrize("by", ["ada", "stranger"])
async def test_a_guests_words_are_not_said_again_with_an_admins_rights(house, by: str):
    """The stranger themselves may have it again, as before."""
    group, model = Group(), ScriptedModel(lambda shown: Say(f"{len(shown.tools)} tools"))
    async with house(model, channels=[group.channel], roles=PEOPLE) as agent:
        await group.channel.listens.wait()
        first = await group.hears("stranger", "Show me everything.")
        again = await group.hears(by, "/session regenerate")
        heard = await last_heard(agent, "fake:room")
    assert (heard.author, heard.principal) == ("fake:stranger", chat_of("fake", "room"))
    assert again == first
    assert model.prompts[0].tools == model.prompts[1].tools


async def test_nobody_has_words_said_again_of_somebody_who_may_do_more(house):
    group, model = Group(), ScriptedModel(lambda shown: Say("paid"))
    owners = Said(said("Pay."), "owner", "fake:room", principal="chat:fake/room")
    async with house(model, channels=[group.channel], roles=PEOPLE) as agent:
        await group.channel.listens.wait()
        await group.hears("ada", "hi")
        await agent.tell(Inbound(Address.parse("fake:room"), "of the owner", owners, "chat:fake/room"))
        await group.channel.sent(2)
        refused = await group.hears("ada", "/session regenerate")
    assert refused == "This is for owner to have answered again, who has said it."
    assert len(model.prompts) == 2


async def test_an_admin_who_says_something_else_says_it_themselves(house):
    group, model = Group(), ScriptedModel(lambda shown: Say(shown.asked))
    async with house(model, channels=[group.channel], roles=PEOPLE) as agent:
        await group.channel.listens.wait()
        await group.hears("stranger", "Show me everything.")
        await group.hears("ada", "/session edit Show me the door.")
        heard = await last_heard(agent, "fake:room")
    assert (heard.author, heard.principal, heard.parts) == ("fake:ada", "chat:fake/room", said("Show me the door."))


async def test_what_the_house_said_is_said_again_by_the_house(house):
    """Else an address that stood in it would be one that the owner has given."""
    channel, model = RecordingChannel("fake"), ScriptedModel(lambda shown: Say("watered"))
    notice = Notice("See https://evil.example/?q=1", "job:water", "owner", "fake:home", outside=True)
    async with house(model, channels=[channel]) as agent:
        await agent.tell(Inbound(Address.parse("fake:home"), "1", notice))
        await channel.sent(1)
        before = await last_heard(agent, "fake:home")
        await agent.ask("/session regenerate", "fake:home", author="owner")
        again = await last_heard(agent, "fake:home")
    assert (again.source, again.parts, again.author) == (before.source, before.parts, "owner")
    assert model.prompts[0].said == model.prompts[1].said
