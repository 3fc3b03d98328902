"""The `message` tool to a person, and where nothing was said yet: who may be written to, and that it is told once."""

from typing import Any

import pytest

from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.core.people import Role
from everloop.errors import ChannelDown, Undeliverable
from everloop.ports.directory import Person
from everloop.testing import Call, RecordingChannel, Say, ScriptedModel, Shown
from tests.runtime.test_message import hear, result, told_in

LUNCH = "Lunch is at one."
FREE = {"tools": {"approvals": "allow"}}


class Phone(RecordingChannel):
    """A channel on which we may speak first."""

    def __init__(self, name: str = "phone", error: Exception | None = None) -> None:
        super().__init__(name)
        self.asked: list[str] = []
        self._error = error

    async def chat_with(self, account: str) -> str:
        self.asked.append(account)
        if self._error:
            raise self._error
        return f"chat of {account}"


def telling(**args: Any) -> ScriptedModel:
    def line(shown: Shown) -> Any:
        if shown.asked.endswith("tell") and shown.step == 0:
            return Call("message", {"text": LUNCH, **args})
        return Say(shown.messages[-1].text if shown.step else "hello")

    return ScriptedModel(line)


async def speak(agent, session: str, who: str, text: str = "hi", **more: str) -> None:
    """Somebody says something there, and is answered."""
    letter = Said(said(text), who, session, principal=more.get("owner", ""))
    await agent.answer(
        Inbound(Address.parse(session), f"{who} {text} {session}", letter, more.pop("owner", who), **more)
    )


async def introduce(agent, *people: Person) -> None:
    for each in people:
        assert await agent.store.introduce(each)


ANN = Person("p1", "Ann", Role.USER, accounts=("phone:7", "mail:ann@a.example"))


async def test_a_person_with_whom_nobody_has_spoken_yet_is_written_to_and_the_conversation_is_theirs(house):
    phone = Phone()
    async with house(telling(to="ann"), channels=[phone], settings=FREE) as agent:
        await introduce(agent, ANN)
        answer = await agent.ask("tell", "api:work")
        await phone.sent(1)
        row = await agent.store.session("phone:chat%20of%207")
        at = await agent.store.account_at("phone:chat%20of%207")
        (entry,) = await told_in(agent, "phone:chat%20of%207")
    assert answer.content == "Told in phone:chat%20of%207."
    assert (row.owner, at, phone.asked) == ("p1", "phone:7", ["7"])
    assert [(sent.chat, sent.text) for sent in phone.sends] == [("phone:chat%20of%207", LUNCH)]
    assert (entry.text, entry.sender, entry.by) == (LUNCH, "owner", "owner")


@pytest.mark.parametrize(
    ("args", "told"),
    [({"to": "p1"}, "Told in mail:inbox."), ({"to": "Ann", "channel": "phone"}, "Told in phone:chat%20of%207.")],
)
async def test_somebody_is_written_to_where_they_last_spoke_alone_unless_a_channel_is_named(house, args, told):
    channels = [Phone(), RecordingChannel("mail")]
    async with house(telling(**args), channels=channels, settings=FREE) as agent:
        await introduce(agent, ANN)
        await speak(agent, "mail:inbox", "p1", account="mail:ann@a.example")
        await speak(agent, "mail:group", "p1", owner="chat:mail/group")
        await agent.ask("tell", "api:work")
        assert await result(agent) == ("done", told)


async def test_a_process_that_does_not_open_the_channel_leaves_it_to_one_that_does(house):
    async with house(telling(to="Ann"), settings=FREE) as agent:
        await introduce(agent, ANN)
        await speak(agent, "phone:chat", "p1", account="phone:7")
        await hear(agent, "phone:chat", agent.ask("tell", "api:work"))
        assert await result(agent) == ("done", "Told in phone:chat.")
        waiting = [each.text for each in await agent.unshown("phone:chat")]
    assert waiting[-1:] == [LUNCH]


async def test_a_conversation_of_an_account_that_is_theirs_no_longer_is_not_used(house):
    async with house(telling(to="ann"), channels=[RecordingChannel("mail")], settings=FREE) as agent:
        await introduce(agent, ANN)
        await speak(agent, "mail:inbox", "p1", account="mail:ann@a.example")
        await agent.store.unlink("mail:ann@a.example")
        await agent.ask("tell", "api:work")
        found = await result(agent)
    assert found == ("failed", "Error: Ann is not reached from here; Ann has accounts on: phone")


async def test_one_is_written_to_oneself_on_another_channel_unasked(house):
    phone = Phone()
    async with house(telling(to="me"), channels=[phone]) as agent:
        await agent.store.link("phone:1", "owner")
        await agent.ask("tell", "api:work")
        found = await result(agent)
    assert found == ("done", "Told in phone:chat%20of%201.")


async def test_before_another_person_is_told_something_a_person_is_asked(house):
    phone = Phone()
    async with house(telling(to="Ann"), channels=[phone]) as agent:
        await introduce(agent, ANN)
        await agent.ask("tell", "api:work")
        assert ((await result(agent))[0], phone.asked) == ("denied", [])


@pytest.mark.parametrize("to", ["Ann", "phone:7", "p1", "owner"])
async def test_users_and_guests_write_to_nobody_but_themselves(house, to):
    phone, roles = Phone(), {"phone:user": Role.USER}
    found = []
    async with house(telling(to=to), channels=[phone], settings=FREE, roles=roles) as agent:
        await introduce(agent, ANN)
        for who in ("user", "guest"):
            await speak(agent, f"phone:{who}", f"phone:{who}", "tell")
            found.append(await result(agent, f"phone:{who}"))
    refused = "Error: only the owner and administrators write to other people; to 'me' you may"
    assert (found, phone.asked) == ([("failed", refused)] * 2, [])


async def test_whom_one_may_write_to_is_told_where_nobody_is_called_so(house):
    async with house(telling(to="Bob"), settings=FREE) as agent:
        await introduce(agent, ANN, Person("p2", "Eve", Role.USER, blocked=True))
        await agent.store.change_person("p2", blocked=True)
        await agent.ask("tell", "api:work")
        _, text = await result(agent)
    assert "nobody is called 'Bob' here; there are:" in text
    assert "Ann" in text
    assert "Eve" not in text


@pytest.mark.parametrize("error", [ChannelDown("the platform is away"), Undeliverable("they have blocked us")])
async def test_a_chat_that_cannot_be_opened_is_told_to_the_model(house, error):
    phone = Phone(error=error)
    async with house(telling(to="Ann"), channels=[phone], settings=FREE) as agent:
        await introduce(agent, ANN)
        await agent.ask("tell", "api:work")
        found = await result(agent)
    assert found == ("failed", f"Error: Ann cannot be written to on phone: {error}")


async def test_a_group_is_written_to_by_those_who_speak_in_it_and_by_administrators(house):
    roles = {"phone:in": Role.USER, "phone:out": Role.USER, "phone:admin": Role.ADMIN, "phone:guest": Role.GUEST}
    found = {}
    async with house(telling(session="phone:group"), channels=[Phone()], settings=FREE, roles=roles) as agent:
        for who in ("phone:in", "phone:guest"):
            await speak(agent, "phone:group", who, owner="chat:phone/group")
        for who in roles:
            await speak(agent, f"{who} alone", who, "tell")
            found[who] = (await result(agent, f"{who} alone"))[0]
    assert found == {"phone:in": "done", "phone:out": "failed", "phone:admin": "done", "phone:guest": "failed"}


@pytest.mark.parametrize(
    ("session", "wanted"),
    [
        ("phone:mine", ("done", "Told in phone:mine.")),
        (
            "phone:none",
            ("failed", "Error: there is no conversation 'phone:none' that you may write to; there is no other"),
        ),
    ],
)
async def test_from_a_group_one_is_told_something_alone_and_the_group_hears_of_no_conversation(house, session, wanted):
    roles = {"phone:in": Role.USER}
    async with house(telling(session=session), channels=[Phone()], settings=FREE, roles=roles) as agent:
        await speak(agent, "phone:mine", "phone:in")
        await speak(agent, "phone:group", "phone:in", "tell", owner="chat:phone/group")
        assert await result(agent, "phone:group") == wanted


async def test_a_message_says_where_or_to_whom_and_not_both(house):
    for args in ({}, {"to": "me", "session": "page:home"}):
        async with house(telling(**args), settings=FREE) as agent:
            await agent.ask("tell", "api:work")
            assert await result(agent) == (
                "failed",
                "Error: say where by session, or to whom by to, and not both",
            )
