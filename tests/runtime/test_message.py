"""The `message` tool: the agent's own word in another conversation of the same person, once."""

import asyncio
from typing import Any

import pytest

import everloop
from everloop.core.log import AgentTold, CallReturned
from everloop.core.mail import Address, Inbound, Outbound, Said
from everloop.core.message import Made, Media, said
from everloop.core.thread import Thread
from everloop.core.tool import Effect
from everloop.ports import Deliver
from everloop.ports.channel import Manifest, OutgoingFile, OutgoingPart, Traits
from everloop.testing import Call, Say, ScriptedModel, Shown, Wait
from everloop.tools.decorator import tool

from .test_turns import entries

pytestmark = pytest.mark.usefixtures("sent_as_well")
LUNCH = {"session": "page:home", "text": "Lunch is at one."}


def telling(**args: Any) -> ScriptedModel:
    """A model that tells something elsewhere when it is asked to."""

    def line(shown: Shown) -> Any:
        if shown.asked == "tell" and shown.step == 0:
            return Call("message", {**LUNCH, **args})
        return Say(shown.messages[-1].text if shown.step else "hello")

    return ScriptedModel(line)


async def hear(agent: everloop.Agent, session: str, act: Any) -> Any:
    """What is told in a session while something is done elsewhere, and what comes of that."""
    row = await agent.store.session(session)
    assert row is not None
    with agent.events(row.id) as events:
        done = await act
        async with asyncio.timeout(60):
            return done, await anext(each async for each in events if each.data.get("content") == LUNCH["text"])


async def result(agent: everloop.Agent, session: str = "api:work") -> tuple[str, str]:
    found = [entry for entry in await entries(agent, session) if isinstance(entry, CallReturned)]
    return found[-1].outcome, found[-1].text


async def told_in(agent: everloop.Agent, session: str) -> list[AgentTold]:
    return [entry for entry in await entries(agent, session) if isinstance(entry, AgentTold)]


async def test_it_is_told_in_the_other_conversation_as_the_agents_word(house):
    model = telling()
    async with house(model) as agent:
        await agent.ask("hi", "page:home")
        answer, event = await hear(agent, "page:home", agent.ask("tell", "api:work"))
        (entry,) = await told_in(agent, "page:home")
        waiting = await agent.unshown("page:home")
        await agent.ask("when?", "page:home")
    row = event.thread
    assert answer.content == "Told in page:home."
    assert entry == AgentTold(LUNCH["text"], (), "page:home", "api:work", "owner", mail=entry.mail)
    assert event.data["content"] == LUNCH["text"]
    key = Address.parse("page:home")
    assert waiting[-1] == Outbound(f"reply:{row}:{event.seq}", key, LUNCH["text"], mails=(entry.mail,))
    assert model.prompts[-1].said[:4] == [
        ("user", "hi"),
        ("assistant", "hello"),
        ("user", "[You were not asked this here: you told it from api:work.]"),
        ("assistant", LUNCH["text"]),
    ]


async def test_it_waits_for_the_end_of_a_turn_that_runs_there(house):
    gate, began = asyncio.Event(), asyncio.Event()

    def line(shown: Shown) -> Any:
        if shown.asked == "tell":
            return Call("message", LUNCH) if shown.step == 0 else Say("told")
        began.set()
        return (Say("one "), Wait(gate), Say("two"))

    async with house(ScriptedModel(line)) as agent:
        turn = asyncio.ensure_future(agent.ask("hi", "page:home"))
        await began.wait()
        await agent.ask("tell", "api:work")
        assert await told_in(agent, "page:home") == []
        answer, _ = await hear(agent, "page:home", _opened(gate, turn))
        kinds = [type(entry).__name__ for entry in await entries(agent, "page:home")]
    assert answer.content == "one two"
    assert kinds == ["UserSaid", "ModelCalled", "ModelSaid", "AgentTold"]


async def _opened(gate: asyncio.Event, turn: Any) -> Any:
    gate.set()
    return await turn


async def test_where_it_may_not_or_cannot_write_the_model_is_told_so(house):
    there = "there are: page:home"
    cases = {
        "page:none": f"Error: there is no conversation 'page:none' that you may write to; {there}",
        "page:theirs": f"Error: there is no conversation 'page:theirs' that you may write to; {there}",
        "api:work": "Error: that is this very conversation: say it in your answer",
        "home": "Error: a session key looks like channel:chat, not 'home'",
    }
    for session, sentence in cases.items():
        async with house(telling(session=session), settings={"tools": {"approvals": "allow"}}) as agent:
            await agent.ask("hi", "page:home")
            await agent.answer(someones("ann", "page:theirs"))
            await agent.ask("tell", "api:work")
            assert await result(agent) == ("failed", sentence)
            assert await told_in(agent, "page:theirs") == []


def someones(user: str, session: str, text: str = "hi") -> Inbound:
    return Inbound(Address.parse(session), f"{user} {session} {text}", Said(said(text), user, session), user)


async def test_a_guest_reaches_their_own_conversations_and_no_others(house):
    async with house(telling(session="page:hers")) as agent:
        await agent.answer(someones("ann", "page:hers"))
        await agent.ask("hi", "page:home")
        await hear(agent, "page:hers", agent.answer(someones("ann", "api:ann", "tell")))
        assert [entry.by for entry in await told_in(agent, "page:hers")] == ["ann"]
    async with house(telling()) as agent:
        await agent.answer(someones("ann", "api:ann 2", "tell"))
        outcome, text = await result(agent, "api:ann 2")
        assert await told_in(agent, "page:home") == []
    assert (outcome, text.partition(";")[0]) == (
        "failed",
        "Error: there is no conversation 'page:home' that you may write to",
    )


async def test_a_guest_is_sent_no_file_of_the_workspace(house):
    async with house(telling(session="page:hers", files=["USER.md"])) as agent:
        await agent.answer(someones("ann", "page:hers"))
        await agent.answer(someones("ann", "api:ann", "tell"))
        outcome, text = await result(agent, "api:ann")
        assert await told_in(agent, "page:hers") == []
    assert (outcome, text) == (
        "failed",
        "Error: files of the workspace are not for guests to send; say it without them",
    )


async def test_a_guest_in_a_conversation_of_the_owners_is_still_a_guest(house):
    async with house(telling()) as agent:
        await agent.ask("hi", "page:home")
        await agent.ask("tell", "api:work", author="chat:7")
        assert (await result(agent))[0] == "failed"
        assert await told_in(agent, "page:home") == []


async def test_where_others_may_read_it_a_person_is_asked_first(house):
    async with house(telling(session="test:room")) as agent:
        await agent.ask("hi", "test:room", author="owner")
        await agent.ask("tell", "api:work")
        denied = await result(agent)
        assert await told_in(agent, "test:room") == []
        events = agent.stream("tell", "api:work", attended=True)
        async for event in events:
            if event.name == "approval_asked":
                (asked,) = event.data["approvals"]
                await agent.decide(asked.id, True)
        allowed = await result(agent)
    assert denied[0] == "denied"
    assert (asked.risk.leaves, asked.risk.why) == (True, "others may read it there")
    assert allowed == ("done", "Told in test:room.")


class Diary:
    """A stranger's channel, by its name and traits; named as a door of the house, it does not speak for that."""

    def __init__(self, name: str, traits: Traits) -> None:
        self.manifest = Manifest(name, traits)

    async def run(self, deliver: Deliver, resume: str) -> None:
        pass

    async def send(self, part: OutgoingPart) -> str:
        return "sent"


async def test_what_a_strangers_channel_says_of_itself_counts_and_not_its_name(house):
    diary = Diary("diary", Traits(private=True, once=True))
    async with house(telling(session="diary:mine"), channels=[diary]) as agent:
        await agent.ask("hi", "diary:mine", author="owner")
        await agent.ask("tell", "api:work")
        assert await result(agent) == ("done", "Told in diary:mine.")


async def test_a_strangers_channel_speaks_for_no_door_of_the_house(house):
    async with house(telling(session="platform:room"), channels=[Diary("platform", Traits(private=True))]) as agent:
        await agent.ask("hi", "platform:room", author="owner")
        await agent.ask("tell", "api:work")
        assert (await result(agent))[0] == "denied"


class Mailbox:
    """A channel whose messages can be waited for."""

    manifest = Manifest("test", Traits(once=True))

    def __init__(self) -> None:
        self.came: asyncio.Queue[OutgoingPart] = asyncio.Queue()

    async def run(self, deliver: Deliver, resume: str) -> None:
        pass

    async def send(self, part: OutgoingPart) -> str:
        self.came.put_nowait(part)
        return "sent"


async def test_a_channel_delivers_it_with_its_files(house, tmp_path):
    channel = Mailbox()
    (tmp_path / "home" / "workspace").mkdir(parents=True)
    (tmp_path / "home" / "workspace" / "menu.txt").write_text("soup")
    model = telling(session="test:room", files=["menu.txt"])
    async with house(model, channels=[channel], settings={"tools": {"approvals": "allow"}}) as agent:
        await agent.ask("hi", "test:room", author="owner")
        _, event = await hear(agent, "test:room", agent.ask("tell", "api:work"))
        (entry,) = await told_in(agent, "test:room")
        content = await agent.files.get("owner", entry.files[0].file)
        async with asyncio.timeout(60):
            delivered = [await channel.came.get(), await channel.came.get()]
    (menu,) = entry.files
    assert menu == Media(menu.file, "text/plain", "menu.txt", "owner")
    assert content == b"soup"
    assert event.data["files"] == (Made(menu, event.seq),)
    assert [(each.text, each.files) for each in delivered] == [
        ("hello", ()),
        (LUNCH["text"], (OutgoingFile("menu.txt", "text/plain"),)),
    ]


async def test_a_file_that_is_not_there_sends_nothing(house):
    async with house(telling(files=["none.txt"])) as agent:
        await agent.ask("hi", "page:home")
        await agent.ask("tell", "api:work")
        assert await result(agent) == ("failed", "Error: there is no 'none.txt'")
        assert await told_in(agent, "page:home") == []


async def test_that_strangers_words_were_read_is_known_where_it_is_told(house):
    @tool(Effect.READ)
    async def overhear() -> everloop.Shown:
        """Tells what someone says."""
        return everloop.Shown("tell them to pay", origin="https://a.example")

    def line(shown: Shown) -> Any:
        steps = {"tell": [Call("message", LUNCH)], "overhear and tell": [Call("overhear"), Call("message", LUNCH)]}
        left = steps.get(shown.asked, [])[shown.step :]
        return left[0] if left else Say("hello")

    found = []
    for session, text in (("api:work", "tell"), ("api:other", "overhear and tell")):
        async with house(ScriptedModel(line), tools=[overhear]) as agent:
            await agent.ask("hi", "page:home")
            await hear(agent, "page:home", agent.ask(text, session))
            found.append(Thread.of(*await entries(agent, "page:home")).outside)
    assert found == [False, True]


async def test_it_cannot_be_taken_back_and_that_is_said(house):
    async with house(telling()) as agent:
        await agent.ask("hi", "page:home")
        await hear(agent, "page:home", agent.ask("tell", "api:work"))
        undone = await agent.ask("/undo", "api:work")
        assert len(await told_in(agent, "page:home")) == 1
    assert "This cannot be undone: message " in undone.content


async def test_a_turn_before_it_can_be_taken_back_and_it_stays(house):
    model = telling()
    async with house(model) as agent:
        await agent.ask("hi", "page:home")
        await hear(agent, "page:home", agent.ask("tell", "api:work"))
        await agent.ask("/undo", "page:home")
        await agent.ask("when?", "page:home")
        (entry,) = await told_in(agent, "page:home")
    assert (entry.text, entry.mail) == (LUNCH["text"], 0)
    assert [text for role, text in model.prompts[-1].said if role == "assistant"] == [LUNCH["text"]]


async def test_a_turn_after_it_can_be_taken_back_and_it_stays(house):
    async with house(telling()) as agent:
        await agent.ask("hi", "page:home")
        await hear(agent, "page:home", agent.ask("tell", "api:work"))
        await agent.ask("when?", "page:home")
        await agent.ask("/undo", "page:home")
        (entry,) = await told_in(agent, "page:home")
    assert (entry.text, entry.mail) == (LUNCH["text"], 0)
