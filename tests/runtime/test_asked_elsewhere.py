"""A question that its requester may not answer goes to those who may, where they are; the requester is told of it."""

import asyncio
import re
from typing import Any

import pytest

from everloop.core.people import Role
from everloop.ports import Deliver
from everloop.ports.channel import Incoming
from everloop.ports.directory import Person
from everloop.runtime.approvers import ReachedApprover, who_was_asked
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Shown
from everloop.tools.decorator import tool


class Post(RecordingChannel):
    """A channel on which each person has a chat of their own, and may write into a room."""

    def __init__(self, name: str = "fake") -> None:
        super().__init__(name)
        self.listens = asyncio.Event()
        self.events = 0

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.set()

    async def says(self, who: str, text: str, room: str = "", *, alone: str = "") -> None:
        await self.listens.wait()
        self.events += 1
        assert self.deliver
        event = str(self.events)
        chat = room or alone or who
        await self.deliver(Incoming(event=event, chat=chat, account=who, text=text, direct=not room))

    async def told(self, who: str, count: int) -> list[str]:
        """What was sent to somebody, once it is so much."""
        while len(found := self.seen_by(who)) < count:
            async with asyncio.timeout(30):
                await self.sent(len(self.sends) + 1)
        return found

    def seen_by(self, who: str) -> list[str]:
        return [sent.text for sent in self.sends if sent.chat in (who, f"{self.name}:{who}")]


def plays(shown: Shown) -> Any:
    last = shown.asked.splitlines()[-1]
    return Call("act", {}) if last == "act" and not shown.step else Say(f"then: {shown.messages[-1].text[-40:]}")


@pytest.fixture
async def acted(house):
    ran: list[str] = []

    @tool(permission=Role.GUEST, guarded=True)
    async def act() -> str:
        """Act."""
        ran.append("act")
        return "acted"

    post = Post()
    async with house(ScriptedModel(plays), channels=[post], tools=[act]) as agent:
        for id, role in (("fake:ada", Role.ADMIN), ("fake:eve", Role.ADMIN), ("fake:ann", Role.USER)):
            await agent.store.introduce(Person(id, id[5:].title(), role, accounts=(id,)))
        await agent.store.link("fake:me", "owner")
        for who in ("me", "ada"):  # Eve has never written here
            await post.says(who, "hi")
            await post.told(who, 1)
        yield agent, post, ran


NAME = re.compile(r"/approve (\w{10}) or")


@pytest.mark.parametrize("asks", ["ann", "stranger"])
async def test_who_may_answer_is_asked_where_they_were_last_and_the_first_answer_counts(acted, asks):
    agent, post, ran = acted
    await post.says(asks, "act")
    told = (await post.told(asks, 1))[0]
    owner, ada = (await post.told("me", 2))[1], (await post.told("ada", 2))[1]
    assert told == (
        "May I run act\n(risk: medium, changes something)\n"
        "That is not yours to allow. I have asked the owner on fake and an administrator on fake "
        "and an administrator in the page, and go on when one of them has answered."
    )
    assert owner == ada
    called = {"ann": "Ann", "stranger": "fake:stranger"}[asks]
    assert owner.startswith(f"{called} wants this, in fake:{asks}.\nMay I run act\n")
    name = NAME.search(owner)[1]
    await post.says(asks, f"/approve {name}")
    assert (await post.told(asks, 2))[1].startswith(("/approve is not for", f"This is not for fake:{asks}"))
    await post.says("ada", f"/approve {name}")
    assert (await post.told("ada", 3))[2] == "act is allowed."
    assert (await post.told("me", 3))[2] == f"act ({name}) was allowed by somebody else."
    assert (await post.told(asks, 3))[2] == "then: acted"
    await post.says("me", f"/approve {name} no")
    assert "may have been answered already" in (await post.told("me", 4))[3]
    assert (ran, await agent.approvals()) == (["act"], [])
    assert [sent.kind for sent in post.sends if sent.approval] == ["question", "question"]


async def test_a_no_counts_as_well_and_what_the_requester_says_meanwhile_withdraws_it(acted):
    agent, post, ran = acted
    await post.says("ann", "act")
    name = NAME.search((await post.told("me", 2))[1])[1]
    await post.says("me", f"/approve {name} no")
    assert (await post.told("ada", 3))[2] == f"act ({name}) was refused by somebody else."
    await post.told("ann", 2)
    await post.says("ann", "act")
    await post.told("me", 4)
    await post.says("ann", "no, leave it")
    assert (await post.told("ada", 5))[4].endswith("is not wanted any more.")
    assert (await post.told("me", 5))[4].endswith("is not wanted any more.")
    assert (ran, await agent.approvals()) == ([], [])


async def test_in_a_group_those_who_may_answer_there_are_shown_it_there_too(acted):
    _, post, ran = acted
    await post.says("ann", "act", room="room")
    asked = (await post.told("room", 1))[0]
    name = NAME.search(asked)[1]
    assert "I have asked the owner on fake" in asked
    assert NAME.search((await post.told("ada", 2))[1])[1] == name
    await post.says("ada", f"/approve {name}", room="room")
    assert (await post.told("room", 3))[1:] == ["act is allowed.", "then: acted"]
    assert (await post.told("me", 3))[2] == f"act ({name}) was allowed by somebody else."
    assert ran == ["act"]


async def test_who_may_answer_is_asked_where_they_are_and_nobody_else(acted):
    """The control: an administrator, and the owner, answer themselves, and nobody else hears of it."""
    agent, post, _ = acted
    await post.says("ada", "act")
    assert NAME.search((await post.told("ada", 2))[1])
    assert len(await post.told("me", 1)) == 1
    await agent.store.change_person("fake:ada", role=Role.USER)
    await post.says("ann", "act")
    assert "an administrator in the page" in (await post.told("ann", 1))[0]
    assert len(post.seen_by("ada")) == 2


async def test_nobody_is_asked_by_an_account_that_was_taken_from_who_may_answer(acted):
    agent, post, _ = acted
    await agent.store.unlink("fake:me")
    await post.says("ann", "act")
    assert "the owner in the page and an administrator on fake" in (await post.told("ann", 1))[0]
    assert (len(await post.told("ada", 2)), len(post.seen_by("me"))) == (2, 1)


async def test_who_may_answer_is_asked_where_they_speak_whatever_the_platform_calls_that_chat(acted):
    agent, post, _ = acted
    await post.says("me", "hi", alone="D7")
    await post.told("D7", 1)
    await post.says("ann", "act")
    assert "I have asked the owner on fake and" in (await post.told("ann", 1))[0]
    assert NAME.search((await post.told("D7", 2))[1])
    await agent.store.unlink("fake:me")
    await post.says("ann", "no")  # which withdraws the first
    await post.says("ann", "act")
    await post.told("ada", 4)
    assert [NAME.search(told) is not None for told in post.seen_by("D7")] == [False, True, False]


async def test_a_name_that_is_not_whole_answers_nothing_of_another_conversation(acted):
    agent, post, ran = acted
    await post.says("ann", "act")
    name = NAME.search((await post.told("me", 2))[1])[1]
    await post.says("me", f"/approve {name[:6]}")
    assert "no question has the name" in (await post.told("me", 3))[2].lower()
    assert (len(await agent.approvals()), ran) == (1, [])


def test_the_requester_is_told_roles_and_places_and_nothing_that_leads_to_somebody():
    reached = [
        ReachedApprover("owner", Role.OWNER, "telegram:4711"),
        ReachedApprover("p1", Role.ADMIN, "telegram:4712"),
        ReachedApprover("p2", Role.ADMIN, "telegram:4713"),
        ReachedApprover("p3", Role.ADMIN),
    ]
    told = who_was_asked(reached)
    assert told.startswith(
        "That is not yours to allow. I have asked the owner on telegram and 2 administrators on telegram and an "
        "administrator in the page,"
    )
    assert not re.search(r"47|p\d", told)
    by_bot = who_was_asked([ReachedApprover("p1", Role.ADMIN, "platform:discord//@4711")])
    assert by_bot.startswith("That is not yours to allow. I have asked an administrator on discord, and")
