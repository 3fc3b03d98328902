"""A talk that was taken over goes on in the chat where it was."""

import asyncio
from pathlib import Path

import everloop
from everloop.app.moving import open_mover
from everloop.core.people import Role
from everloop.ports import Deliver
from everloop.ports.channel import Incoming
from everloop.ports.directory import Person
from everloop.testing import RecordingChannel, Say, ScriptedModel, Shown
from tests.moving.foreign_homes import FIXTURES


class Telegram(RecordingChannel):
    def __init__(self) -> None:
        super().__init__("telegram")
        self.listens = asyncio.Event()

    async def run(self, deliver: Deliver, resume: str) -> None:
        await super().run(deliver, resume)
        self.listens.set()

    async def says(self, account: str, text: str) -> None:
        await self.listens.wait()
        assert self.deliver
        await self.deliver(Incoming(event="1", chat=account, account=account, text=text, direct=True))


async def test_a_private_chat_of_telegram_goes_on_with_what_was_said_in_it(tmp_path: Path):
    home, shown, chat = tmp_path / "home", list[Shown](), Telegram()
    async with open_mover(home, "nanobot", FIXTURES / "nanobot") as mover:
        await mover.move()
    (home / "config.toml").unlink()  # which names a model that nobody runs here

    def plays(given: Shown) -> Say:
        shown.append(given)
        return Say("It is a leaf still.")

    async with everloop.open(home=home, provider=ScriptedModel(plays), channels=[chat]) as agent:
        assert await agent.store.link("telegram:123456", "owner") == ""
        await chat.says("123456", "Is it still?")
        await chat.sent(1)
    texts = [text for _, text in shown[0].said]
    assert "A leaf." in texts
    assert texts[-1].startswith("Is it still?")


async def test_somebody_else_whose_chat_was_taken_over_is_heard_there_and_shown_nothing_of_it(tmp_path: Path):
    """Another agent does not tell whose a private chat was, and the owner may be somebody else."""
    home, shown, chat = tmp_path / "home", list[Shown](), Telegram()
    async with open_mover(home, "nanobot", FIXTURES / "nanobot") as mover:
        await mover.move()
    (home / "config.toml").unlink()

    def plays(given: Shown) -> Say:
        shown.append(given)
        return Say("Good morning.")

    async with everloop.open(home=home, provider=ScriptedModel(plays), channels=[chat]) as agent:
        assert await agent.store.introduce(Person("anna", "Anna", Role.USER, accounts=("telegram:123456",)))
        await chat.says("123456", "Is anybody there?")
        await chat.sent(1)
        [kept] = await agent.store.conversations("owner", session="telegram:123456")
    assert [text.partition("\n")[0] for _, text in shown[0].said] == ["Is anybody there?"]
    assert kept.title == "The garden"
