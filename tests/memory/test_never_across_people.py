"""Nobody's memory reaches another, by any path: each request to a model holds the canary of one person, or one group.

Fifty people and the groups that they share each tell something of their own. They ask for it in new conversations; the
model searches and recalls as far as it can; summaries, titles and consolidation read what was said. All that any
model was shown is looked at, and what people take with them when they go.
"""

import asyncio
import re
import zipfile
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from everloop.app import open_desk
from everloop.core.people import Role, chat_of
from everloop.ports import Deliver
from everloop.ports.channel import Incoming
from everloop.ports.directory import Person
from everloop.ports.memory import Fact, FactSource, MemoryChange
from everloop.testing import Call, Line, RecordingChannel, Say, ScriptedModel, Shown
from everloop.testing.model_server import ModelServer
from tests.effort import in_full

from .remembering import QuickClock, everything, fact, is_extracting, save, settled

CANARY = re.compile(r"canary-\w+")
LOOKS = ("search_history", "recall")  # tools by which a model looks around, as far as they are there
LINE = re.compile(r"^\[(\d+)\] .*?:\n    (.*)$", re.MULTILINE)


class Room(RecordingChannel):
    """A channel with many chats; `says` waits for what is answered."""

    def __init__(self) -> None:
        super().__init__("fake")
        self.listens = asyncio.Event()
        self.said = 0

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.set()

    async def says(self, account: str, text: str, chat: str) -> None:
        await self.listens.wait()
        assert self.deliver
        self.said += 1
        event = str(self.said)
        await self.deliver(Incoming(event=event, chat=chat, account=account, text=text, direct=False))
        await self.sent(self.said)


class Curious:
    """Remembers whatever it is told, and looks around wherever it can. `requests` are all that it was shown."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.looked: set[str] = set()
        self.offered: set[str] = set()

    def __call__(self, shown: Shown) -> Line:
        self.requests.append(everything(shown))
        if is_extracting(shown):
            lines = LINE.findall(shown.asked.split("The lines:")[-1].split("What is new:")[-1])
            told = [fact(text, int(number)) for number, text in lines if CANARY.search(text)]
            return save("They told something: " + " ".join(CANARY.findall(shown.asked)), *told)
        looks = [name for name in LOOKS if name in shown.tools]
        self.offered.update(looks)
        if shown.asked.endswith("?") and shown.step < len(looks):
            self.looked.add(looks[shown.step])
            return Call(looks[shown.step], {"query": "canary"})
        return Say("I see: " + " ".join(CANARY.findall(shown.asked)))


def mixed(texts: Iterable[str]) -> list[set[str]]:
    """The canaries of texts that hold more than one."""
    found = ({*CANARY.findall(text)} for text in texts)
    return [canaries for canaries in found if len(canaries) > 1]


async def introduce(agent: Any, people: list[str]) -> None:
    for id in people:
        await agent.store.introduce(Person(f"web:{id}", id.title(), Role.USER, accounts=(f"web:{id}", f"fake:{id}")))


async def live(agent: Any, room: Room, people: list[str], groups: dict[str, list[str]]) -> None:
    """Everybody tells something, begins anew, asks for it, has it summarised, and begins anew again."""

    async def alone(id: str) -> None:
        user, session = agent.user(f"web:{id}"), f"web:{id}:talk"
        for text in (
            f"My canary is canary-{id}",
            "/new",
            "What is my canary?",
            "/compact",
            "My canary?",
            "/new",
        ):
            await user.ask(text, session=session)
            if text == "/new":
                await settled(agent.store, f"web:{id}")

    async def together(chat: str, members: list[str]) -> None:
        for text in (f"Our canary is canary-{chat}", "What is my canary?", "/new", "What is our canary?", "/new"):
            for member in members if "?" in text else members[:1]:
                await room.says(member, text, chat)
            if text == "/new":
                await settled(agent.store, chat_of("fake", chat))

    for id in people:
        await alone(id)
    for chat, members in groups.items():
        await together(chat, members)


async def taken_out(agent: Any, id: str) -> str:
    """All that is in somebody's export."""
    data = b"".join([piece async for piece in agent.export(await agent.store.person(f"web:{id}"))])
    with zipfile.ZipFile(BytesIO(data)) as archive:
        return "\n".join(archive.read(name).decode("utf-8", "replace") for name in archive.namelist())


def town(size: int, groups: int) -> tuple[list[str], dict[str, list[str]]]:
    people = [f"p{number:02}" for number in range(size)]
    return people, {f"g{number}": [people[(number * 4 + n) % size] for n in range(3)] for number in range(groups)}


@pytest.mark.shortened
async def test_fifty_people_and_their_groups_see_no_canary_but_their_own(tmp_path: Path):
    people, groups = town(*in_full((50, 10), (14, 4)))
    curious, room = Curious(), Room()
    model = ScriptedModel(curious)
    async with open_desk(tmp_path / "home", provider=model, clock=QuickClock(), channels=[room]) as agent:
        await introduce(agent, people)
        await live(agent, room, people, groups)
        facts = {id: [each.text for each in await agent.store.facts(f"web:{id}")] for id in people}
        shared = {chat: [each.text for each in await agent.store.facts(chat_of("fake", chat))] for chat in groups}
        exports = [await taken_out(agent, id) for id in people[:10]]
    assert mixed(curious.requests) == []
    assert all({*CANARY.findall(" ".join(texts))} == {f"canary-{id}"} for id, texts in (facts | shared).items())
    told = [{*CANARY.findall(text)} - {f"canary-{chat}" for chat in groups} for text in exports]
    assert told == [{f"canary-{id}"} for id in people[:10]]
    assert curious.looked == curious.offered >= {"search_history"}
    assert sum(1 for text in curious.requests if CANARY.search(text)) > len(people) * 4


async def test_a_foreign_canary_in_somebody_s_memory_would_be_noticed(tmp_path: Path):
    """The check sees what it is there for: the same town, in which one fact was put into another's memory."""
    people, _ = town(2, 0)
    curious = Curious()
    async with open_desk(tmp_path / "home", provider=ScriptedModel(curious), clock=QuickClock()) as agent:
        await introduce(agent, people)
        foreign = Fact("f", "My canary is canary-p01", FactSource(), "Notes")
        await agent.store.change_memory("web:p00", MemoryChange("", "a leak", facts=(foreign,)))
        await live(agent, Room(), people, {})
    assert {frozenset(each) for each in mixed(curious.requests)} == {frozenset({"canary-p00", "canary-p01"})}


async def test_titles_are_made_of_one_s_own_words(tmp_path: Path):
    curious = Curious()

    def answer(shown: Shown) -> Line:
        if shown.system.startswith("You give a conversation its title"):
            curious.looked.add("title")
        return curious(shown)

    async with ModelServer(answer, models=("large", "small")) as server:
        settings = {
            "agents": {"defaults": {"model": "custom/large", "small_model": "custom/small", "context_window": 100_000}},
            "providers": {"custom": {"api_base": server.url, "api_key": "sk-canary-memory"}},
        }
        async with open_desk(tmp_path / "home", settings, clock=QuickClock()) as agent:
            for number in range(3):
                await agent.ask(f"My canary is canary-o{number}", session=f"page:{number}")
            async with asyncio.timeout(60):
                while not all(each.named for each in await agent.store.conversations("owner")):  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
    titles = [text for text in curious.requests if text.startswith("You give a conversation its title")]
    assert len(titles) == 3
    assert mixed(titles) == []
