"""What anyone could have written in somebody's name is never taken for theirs, however the account came to be known."""

import re

import pytest

from everloop.core.people import Role
from everloop.ports.channel import Delivered
from everloop.ports.directory import Person
from everloop.runtime.admission import UNKNOWN
from tests.runtime.test_admission import PAIR, answering, told
from tests.runtime.test_reception import Heard, incoming


async def test_whoever_is_unproven_is_told_no_code_and_only_once_a_day(house):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=PAIR) as agent:
        deliver = await channel.listens.get()
        came = [await deliver(incoming(event, chat="anna", unproven=True)) for event in ("e1", "e2")]
        await channel.sent(1)
        codes = await agent.store.codes("pair")
        await deliver(incoming("e3", chat="eve", account="eve"))  # the control: a stranger who is who they are
        await channel.sent(2)
        after = await agent.store.codes("pair")
    assert (came, model.prompts) == ([Delivered(), Delivered(refused=UNKNOWN)], [])
    assert told(channel)[0].startswith("I cannot tell whether you have written this")
    assert (list(codes), [each.account for each in after]) == ([], ["fake:eve"])


@pytest.mark.parametrize("strangers", ["pair", "guest", "ignore"])
@pytest.mark.parametrize("direct", [True, False])
async def test_a_linked_account_is_not_its_person_where_that_is_unproven(house, strangers, direct):
    channel, model = Heard(), answering()
    settings = {"users": {"strangers": strangers}, "channels": {"fake": {"groups": "always", "gather": 0}}}
    async with house(model, channels=[channel], settings=settings) as agent:
        await agent.store.introduce(Person("fake:anna", "Anna", Role.ADMIN, accounts=("fake:anna",)))
        deliver = await channel.listens.get()
        forged = await deliver(incoming("e1", chat="there", account="anna", unproven=True, direct=direct))
        assert model.prompts == []
        await deliver(incoming("e2", chat="there", account="anna", direct=direct))  # the control
        await channel.sent(1 if not forged.fresh or forged.refused else 2)
    assert forged == (Delivered() if direct and strangers != "ignore" else Delivered(refused=UNKNOWN))
    assert len(model.prompts) == 1


async def test_a_code_that_was_told_elsewhere_is_not_taken_from_the_unproven(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=PAIR) as agent:
        code = re.search(r"/link (\w{8})", (await agent.ask("/link", "cli:direct")).content)[1]
        deliver = await channel.listens.get()
        await deliver(incoming("e1", chat="me", account="me", text=f"/link {code}", unproven=True))
        assert await agent.store.known_by("fake:me") is None
        await deliver(incoming("e2", chat="me", account="me", text=f"/link {code}"))  # the control
        assert await agent.store.known_by("fake:me")


async def test_as_a_guest_the_unproven_speak_where_guests_may(house):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings={"users": {"strangers": "guest"}}) as agent:
        deliver = await channel.listens.get()
        await deliver(incoming("e1", chat="anna", unproven=True))
        await channel.sent(1)
        assert (await agent.store.session("fake:anna")).owner == "fake:anna"
