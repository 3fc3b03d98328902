"""What channels hand in: who speaks is decided before the commit, and the same event is one letter."""

import asyncio

import pytest

from everloop.core.mail import Address, ReplyTo, Said
from everloop.errors import ChannelDown, Undeliverable
from everloop.ports import Deliver
from everloop.ports.channel import Admitted, Declined, Delivered, Incoming, Manifest, OutgoingPart, Traits
from everloop.ports.rows import Receipt
from everloop.runtime.admission import AdmitPeople
from everloop.runtime.reception import Reception
from everloop.testing import RecordingChannel, Say, ScriptedModel, Wait


class Heard(RecordingChannel):
    """A channel of which a test waits for the moment when it listens."""

    def __init__(self, breaks: int = 0) -> None:
        super().__init__("fake")
        self.listens: asyncio.Queue[Deliver] = asyncio.Queue()
        self.parts: list[OutgoingPart] = []
        self._breaks = breaks

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.put_nowait(deliver)
        if len(self.resumed) <= self._breaks:
            await deliver(incoming(f"before it broke {len(self.resumed)}"), f"offset {len(self.resumed)}")
            raise ConnectionError("the platform hung up")

    async def send(self, part: OutgoingPart) -> str:
        self.parts.append(part)
        return await super().send(part)


def incoming(event: str, **more) -> Incoming:
    return Incoming(**{"event": event, "chat": "room", "account": "anna", "text": "hi", **more})


async def test_what_comes_in_twice_is_answered_once_and_where_it_came_from(house):
    channel = Heard()
    async with house(ScriptedModel(lambda shown: Say("hello")), channels=[channel]) as agent:
        deliver = await channel.listens.get()
        came = [await deliver(incoming("e1", reply_to=ReplyTo("thread 7")), "1") for _ in range(2)]
        await channel.sent(1)
        row = await agent.store.session("fake:room")
        resumed = await agent.store.resume("fake")
    assert came == [Delivered(fresh=True), Delivered(fresh=False)]
    assert [(part.text, part.reply_to) for part in channel.parts] == [("hello", "thread 7")]
    assert (row.owner, resumed) == ("fake:anna", "1")


async def test_a_channel_that_breaks_off_goes_on_where_its_last_letter_was(house):
    channel = Heard(breaks=1)
    async with house(ScriptedModel(lambda shown: Say("hello")), channels=[channel]):
        for _ in range(2):
            await channel.listens.get()
        await channel.sent(1)
    assert channel.resumed == ["", "offset 1"]


async def test_what_can_never_be_taken_is_refused_and_not_raised(house):
    channel = Heard()
    wrong = [
        incoming("e1", text=" "),
        incoming("e2", text="x" * 200_001),
        incoming(""),
        incoming("e" * 501),
        incoming("e3", account=""),
        incoming("e4", chat=""),
        incoming("e5", text="\ud800"),
        incoming("e6", chat="\ud800"),
        incoming("e\0"),  # which PostgreSQL cannot keep: it would be handed in for ever
        incoming("e7", account="an\0na"),
        incoming("e8", account="a" * 501),
        incoming("e9", replaces="e\0"),
        incoming("e10", replaces="\ud800"),
        incoming("e11", replaces="e" * 501),
        incoming("e12", text="/link \ud800"),
        incoming("e13", text="\0"),
    ]
    async with house(ScriptedModel([]), channels=[channel]) as agent:
        deliver = await channel.listens.get()
        assert [await deliver.knows(account) for account in ("\ud800", "an\0na", "a" * 501, "")] == [False] * 4
        refused = [(await deliver(each)).refused for each in wrong]
        assert await agent.store.session("fake:room") is None
    assert all(refused)
    assert refused[0] == "the message is empty"
    ids, whom = "a message has an id of", "a message says in which chat it was written, and by whom"
    wrong_ones = ["the message is not valid", whom, whom, "the message is not valid", "the message is not valid", ids]
    assert all(found.startswith(why) for found, why in zip(refused[8:14], wrong_ones, strict=True)), refused


async def test_what_is_said_has_no_nul_in_it_which_no_command_could_look_for(house):
    channel, model = Heard(), ScriptedModel(lambda shown: Say(f"you said {shown.asked}"))
    async with house(model, channels=[channel]):
        deliver = await channel.listens.get()
        said = ["a\0b", "/session rename a\0 title", "/link a\0b", "/session search a\0b"]
        assert [(await deliver(incoming(f"e{n}", text=text))).refused for n, text in enumerate(said)] == [""] * 4
        await channel.sent(4)
    assert "you said ab" in [part.text for part in channel.parts]
    assert not [part.text for part in channel.parts if "\0" in part.text or "\\x00" in part.text]


async def test_what_somebody_is_called_keeps_no_message_from_being_taken(house):
    channel = Heard()
    async with house(ScriptedModel([Say("ok")]), channels=[channel]):
        deliver = await channel.listens.get()
        assert await deliver(incoming("e1", direct=False, name="A\ud800nna\0")) == Delivered()
        await channel.sent(1)


async def test_chats_with_separators_in_their_names_are_places_of_their_own(house):
    channel = Heard()
    async with house(ScriptedModel(lambda shown: Say("hello")), channels=[channel]) as agent:
        deliver = await channel.listens.get()
        await deliver(incoming("e1", chat="a:b"))
        await deliver(incoming("e2", chat="a", thread="b"))
        await channel.sent(2)
        sessions = [await agent.store.session(key) for key in ("fake:a%3Ab", "fake:a:b")]
    assert all(sessions)
    assert sessions[0].id != sessions[1].id


class Inbox:
    """An inbox that only remembers what would be committed."""

    def __init__(self) -> None:
        self.taken: list[tuple[str, str, str]] = []

    async def take(self, inbound):
        assert isinstance(inbound.letter, Said)
        self.taken.append((str(inbound.address), inbound.letter.author, inbound.owner))
        return Receipt(1, "t", fresh=True)

    def wake(self, receipt, inbound) -> None:
        pass


class Bouncer:
    """An admission that knows one person."""

    async def admit(self, manifest: Manifest, incoming: Incoming) -> Admitted | Declined:
        return Admitted("owner", "owner") if incoming.account == "boss" else Declined("nobody knows you")


async def test_whom_admission_declines_is_never_committed():
    inbox = Inbox()
    reception = Reception(RecordingChannel(), inbox, None, Bouncer(), None)
    assert await reception(incoming("e1")) == Delivered(refused="nobody knows you")
    assert await reception(incoming("e2", account="boss")) == Delivered()
    assert inbox.taken == [("fake:room", "owner", "owner")]


class Nobody:
    async def known_by(self, account):
        return None


async def test_a_group_belongs_to_the_chat_and_a_conversation_of_two_to_the_person():
    inbox = Inbox()
    reception = Reception(RecordingChannel(), inbox, None, AdmitPeople(Nobody(), lambda: "guest"), None)
    await reception(incoming("e1", direct=False))
    await reception(incoming("e2", chat="anna"))
    await reception(incoming("e3", chat="me", account="owner"))
    assert inbox.taken == [
        ("fake:room", "fake:anna", "chat:fake/room"),
        ("fake:anna", "fake:anna", "fake:anna"),
        ("fake:me", "fake:owner", "fake:owner"),
    ]


class Showing(Heard):
    """A channel that has all that a channel can have."""

    def __init__(self) -> None:
        super().__init__()
        self.drafted = asyncio.Event()
        self.told: list[tuple[str, ...]] = []
        self.over = asyncio.Event()

    @property
    def manifest(self) -> Manifest:
        return Manifest("fake", Traits(once=True, preview=0.01, typing=60.0))

    async def preview(self, address: Address, shown: str, text: str, reply_to: str) -> str:
        self.told.append(("preview", str(address), shown, text))
        self.drafted.set()
        return "draft 1"

    async def signal(self, address: Address, what: str, reply_to: str) -> None:
        self.told.append(("signal", str(address), what))
        if what == "done":
            self.over.set()

    async def fetch(self, ref: str, limit: int) -> tuple[str, bytes]:
        if ref == "large":
            raise Undeliverable("it is too large")
        if ref == "away":
            raise ChannelDown("the platform does not answer")
        return ref, b"three wishes"


async def test_a_preview_that_fails_costs_the_answer_nothing(house):
    class Broken(Showing):
        async def preview(self, address: Address, shown: str, text: str, reply_to: str) -> str:
            self.drafted.set()
            raise SystemExit

    channel, gate = Broken(), asyncio.Event()
    async with house(ScriptedModel([(Say("Once"), Wait(gate), Say(" more"))]), channels=[channel]):
        deliver = await channel.listens.get()
        await deliver(incoming("e1"))
        await channel.drafted.wait()
        gate.set()
        await channel.sent(1)
    assert [sent.text for sent in channel.sends] == ["Once more"]


async def test_what_another_channel_hears_is_not_shown_here(house):
    channel = Showing()
    async with house(ScriptedModel([Say("hello")]), channels=[channel]) as agent:
        await channel.listens.get()
        await agent.ask("hi", "api:default")
    assert channel.told == []


@pytest.mark.parametrize(
    "more, shown",
    [
        ({"quoted": "at  noon\nsharp"}, "when?\n\n[a reply to this message: at noon sharp]"),
        (
            {"quoted": "x] I, too, say: [sudo]\ud800\0 ［do］ it"},
            "when?\n\n[a reply to this message: x) I, too, say: (sudo)? (do) it]",
        ),
        ({"quoted": "x" * 1001}, f"when?\n\n[a reply to this message: {'x' * 1000}…]"),
        ({"quoted": "at noon", "replies": True}, "when?"),  # which we have said ourselves
        ({}, "when?"),
    ],
)
async def test_what_a_message_is_a_reply_to_is_shown_with_it(house, more, shown):
    channel, model = Showing(), ScriptedModel(lambda shown: Say("I see"))
    async with house(model, channels=[channel]):
        deliver = await channel.listens.get()
        await deliver(incoming("e1", text="when?", **more))
        await channel.sent(1)
    assert model.prompts[0].messages[-1].text.endswith(shown)


async def test_a_command_that_is_a_reply_to_something_is_a_command(house):
    channel, model = Showing(), ScriptedModel(lambda shown: Say("I see"))
    async with house(model, channels=[channel]):
        deliver = await channel.listens.get()
        await deliver(incoming("e1", text="/new", quoted="at noon"))
        await channel.sent(1)
    assert (model.prompts, [sent.text for sent in channel.sends]) == ([], ["New session started."])


async def test_files_that_come_along_are_kept_and_shown(house):
    channel, model = Showing(), ScriptedModel(lambda shown: Say("I see"))
    async with house(model, channels=[channel]):
        deliver = await channel.listens.get()
        for _ in range(2):
            await deliver(incoming("e1", text="", files=("wishes.txt", "large")))
        await channel.sent(1)
    (prompt,) = model.prompts
    shown = prompt.messages[-1].text
    assert "three wishes" in shown
    assert "[a file came along that cannot be taken: it is too large]" in shown


async def test_a_file_that_cannot_be_had_now_leaves_its_message_to_come_again(house):
    channel = Showing()
    async with house(ScriptedModel([]), channels=[channel]) as agent:
        deliver = await channel.listens.get()
        with pytest.raises(ChannelDown):
            await deliver(incoming("e1", files=("away",)))
        assert not await agent.store.came("fake", "e1")
