"""Who is let in on a channel: people by their accounts, and strangers as the settings say."""

import re
from collections.abc import Callable

import pytest

from everloop.core.people import Role
from everloop.ports.channel import Delivered
from everloop.ports.directory import Person
from everloop.runtime.admission import BLOCKED, UNKNOWN
from everloop.testing import Say, ScriptedModel
from tests.runtime.test_reception import Heard, incoming

CODE = re.compile(r"/pair (\w{8})")
PAIR = {"users": {"strangers": "pair"}}


def answering() -> ScriptedModel:
    return ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))


def told(channel: Heard) -> list[str]:
    return [part.text for part in channel.parts]


async def test_a_stranger_is_told_a_code_once_and_what_they_wrote_reaches_nobody(house):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings=PAIR) as agent:
        deliver = await channel.listens.get()
        came = [await deliver(incoming(event, chat="anna", text="my secret")) for event in ("e1", "e1", "e2")]
        await channel.sent(1)
        (asked,) = await agent.store.codes("pair")
        kept = [str(mail) for mail in await agent.store.mail((await agent.store.session("fake:anna")).id)]
    assert came == [Delivered(), Delivered(fresh=False), Delivered(refused=UNKNOWN)]
    assert [CODE.search(text)[1] for text in told(channel)] == [asked.code]
    assert (asked.account, asked.session, asked.event) == ("fake:anna", "fake:anna", "e1")
    assert (model.prompts, kept) == ([], [])


async def test_with_the_code_they_are_let_in_and_speak_as_what_they_were_made(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=PAIR) as agent:
        deliver = await channel.listens.get()
        await deliver(incoming("e1", chat="anna"))
        await channel.sent(1)
        reply = await agent.ask(f"/pair {CODE.search(told(channel)[0])[1]}", "cli:direct")
        await deliver(incoming("e2", chat="anna", text="hello"))
        await channel.sent(2)
        row, person = await agent.store.session("fake:anna"), await agent.store.person("fake:anna")
        again = await agent.ask(f"/pair {CODE.search(told(channel)[0])[1]}", "cli:direct")
    assert reply.content == "anna (fake:anna) is user from now on, and can write again."
    assert again.content.startswith("Nobody waits with the code")
    assert told(channel)[1] == "you said hello"
    assert (row.owner, person.role, person.accounts) == ("fake:anna", Role.USER, ("fake:anna",))


@pytest.mark.parametrize(
    "strangers, direct", [("ignore", True), ("ignore", False), ("pair", False)], ids=lambda each: str(each)
)
async def test_who_is_not_let_in_is_told_nothing(house, strangers, direct):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings={"users": {"strangers": strangers}}) as agent:
        deliver = await channel.listens.get()
        assert await deliver(incoming("e1", direct=direct)) == Delivered(refused=UNKNOWN)
        assert await agent.store.session("fake:room") is None
        assert await agent.store.codes("pair") == []
    assert (told(channel), model.prompts) == ([], [])


async def test_guests_speak_where_guests_may(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings={"users": {"strangers": "guest"}}):
        deliver = await channel.listens.get()
        assert await deliver(incoming("e1")) == Delivered()
        await channel.sent(1)
    assert told(channel) == ["you said hi"]


async def test_whom_the_program_has_introduced_is_no_stranger(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=PAIR, roles={"fake:anna": Role.USER}):
        deliver = await channel.listens.get()
        assert await deliver(incoming("e1")) == Delivered()
        await channel.sent(1)
    assert told(channel) == ["you said hi"]


async def test_whoever_is_blocked_is_not_heard(house):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel]) as agent:
        await agent.store.introduce(Person("fake:anna", "Anna", Role.USER, accounts=("fake:anna",)))
        await agent.store.change_person("fake:anna", blocked=True)
        deliver = await channel.listens.get()
        assert await deliver(incoming("e1")) == Delivered(refused=BLOCKED)
    assert model.prompts == []


async def linked(agent, channel: Heard, say: Callable[[str], str], event: str = "e1"):
    code = re.search(r"/link (\w{8})", (await agent.ask("/link", "cli:direct")).content)[1]
    deliver = await channel.listens.get()
    return code, deliver, await deliver(incoming(event, chat="me", account="me", text=say(code)))


async def test_who_says_a_code_from_another_account_is_the_same_person_there(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=PAIR) as agent:
        code, deliver, came = await linked(agent, channel, lambda code: f"/link {code}")
        await channel.sent(1)
        await deliver(incoming("e2", chat="me", account="me", text="/model"))
        await channel.sent(2)
        row, thief = await agent.store.session("fake:me"), await deliver(incoming("e3", text=f"/link {code}"))
    assert (came, told(channel)[0]) == (Delivered(), "You are owner here, too, from now on.")
    assert "answers in this conversation" in told(channel)[1]  # which guests are not told
    assert (row.owner, thief) == ("owner", Delivered())  # the code is used up: they are a stranger


@pytest.mark.parametrize(
    "say", [lambda code: "/link", lambda code: "/link ABCDEFGH", lambda code: f"/pair {code}", str]
)
async def test_who_does_not_say_it_is_a_stranger(house, say):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=PAIR) as agent:
        await linked(agent, channel, say)
        await channel.sent(1)
        assert await agent.store.known_by("fake:me") is None
    assert CODE.search(told(channel)[0])


async def test_in_a_group_nobody_is_linked(house):
    channel = Heard()
    async with house(answering(), channels=[channel], settings=PAIR) as agent:
        code = re.search(r"/link (\w{8})", (await agent.ask("/link", "cli:direct")).content)[1]
        deliver = await channel.listens.get()
        await deliver(incoming("e1", text=f"/link {code}", direct=False))
        assert await agent.store.known_by("fake:anna") is None
        assert [each.code for each in await agent.store.codes("link")] == [code]


@pytest.mark.parametrize("direct", [True, False])
async def test_the_code_by_which_one_is_somebody_is_told_to_them_alone(house, direct):
    """In a group any stranger could read it, say it where they are alone with the agent, and be the owner."""
    channel = Heard()
    async with house(answering(), channels=[channel], settings=PAIR) as agent:
        await agent.store.link("fake:boss", "owner")
        deliver = await channel.listens.get()
        await deliver(incoming("e1", account="boss", text="/link", direct=direct))
        await channel.sent(1)
        found = re.search(r"/link (\w{8})$", told(channel)[0])
        await deliver(incoming("e2", chat="eve", account="eve", text=f"/link {found[1] if found else 'ABCDEFGH'}"))
        await channel.sent(2)
        eve = await agent.store.known_by("fake:eve")
    assert (bool(found), eve.id if eve else None) == ((True, "owner") if direct else (False, None))


@pytest.mark.parametrize("strangers", ["pair", "guest", "ignore"])
async def test_an_account_that_was_taken_from_a_person_who_is_named_by_it_is_not_heard_as_them(house, strangers):
    channel, model = Heard(), answering()
    async with house(model, channels=[channel], settings={"users": {"strangers": strangers}}) as agent:
        await agent.store.introduce(Person("fake:anna", "Anna", Role.ADMIN, accounts=("fake:anna",)))
        await agent.store.link("fake:new", "fake:anna")
        deliver = await channel.listens.get()
        await agent.store.unlink("fake:anna")
        gone = await deliver(incoming("e1", chat="anna", account="anna", text="/approve"))
        await deliver(incoming("e2", chat="new", account="new", text="/approve"))  # the control: she is who she was
        await channel.sent(1)
        await agent.store.link("fake:anna", "fake:anna")
        back = await deliver(incoming("e3", chat="anna", account="anna", text="/approve"))
        await channel.sent(2)
    assert (gone, back) == (Delivered(refused=BLOCKED), Delivered())
    assert told(channel) == ["Nothing waits for permission here."] * 2
