"""The conformance suite notices a channel that says it can do something, and does it wrong."""

from collections.abc import Callable
from typing import Any

import pytest
from msgspec import structs

import everloop
from everloop.core.mail import Address
from everloop.errors import Undeliverable
from everloop.ports import Deliver
from everloop.ports.channel import FileRef, Incoming, Manifest, OutgoingPart, Rendered, Traits
from everloop.testing.abilities import ABILITIES
from everloop.testing.conformance import CHECKS, Platform, Trial


class Able:
    """A channel that can do all that a channel can do."""

    def __init__(self, board: "Board") -> None:
        self.board = board

    @property
    def manifest(self) -> Manifest:
        return Manifest("able", Traits(once=True, preview=0.01, files=1000, enclosed=True, edits=True))

    async def run(self, deliver: Deliver, resume: str) -> None:
        self.board.deliver = deliver

    async def send(self, part: OutgoingPart) -> str:
        text = "\n".join([part.text, *(file.mention for file in part.files if not file.data)])
        self.board.receive(part.key, text)
        self.board.received += [(file.name, file.data) for file in part.files if file.data]
        self.board.drop(part.draft)
        self.board.messages[part.key] = text
        return part.key

    async def preview(self, address: Address, shown: str, text: str, reply_to: str) -> str:
        draft = shown or f"draft {len(self.board.messages)}"
        self.board.messages[draft] = f"{text} …"
        if not text:
            self.board.drop(draft)
        return draft

    async def replace(self, address: Address, sent: str, text: Rendered) -> None:
        self.board.messages[sent] = text.text

    async def withdraw(self, address: Address, sent: str) -> None:
        self.board.drop(sent)

    async def react(self, address: Address, to: str, emoji: str) -> None:
        self.board.emojis.append(emoji)

    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        name, data = self.board.sent[ref]
        if len(data) > limit:
            raise Undeliverable("it is too large")
        return name, data


class Board(Platform):
    resumes = True
    deliver: Deliver  # once the channel runs

    def __init__(self, make: Callable[["Board"], Any] = Able) -> None:
        super().__init__()
        self.messages: dict[str, str] = {}
        self.received: list[tuple[str, bytes]] = []
        self.sent: dict[str, tuple[str, bytes]] = {}
        self.emojis: list[str] = []
        self._make = make

    def channel(self) -> Any:
        return self._make(self)

    async def say(self, event: str, text: str, **more: Any) -> None:
        said = Incoming(event=event, chat="room", account="anna", text=text, **more)
        await self.deliver(said, f"after {event}")
        self.acknowledged.append(event)

    async def say_with_file(self, event: str, text: str, name: str, data: bytes) -> bool:
        self.sent["ref"] = name, data
        await self.say(event, text, files=(FileRef("ref"),))
        return True

    async def pass_by(self) -> bool:
        await self.deliver.skip_to("after what was not for us")
        return True

    def drop(self, message: str) -> None:
        self.messages.pop(message, None)

    def visible(self) -> list[str]:
        return [text.strip() for text in self.messages.values()]

    def files(self) -> list[tuple[str, bytes]]:
        return self.received

    def reactions(self) -> list[str]:
        return self.emojis


class LeavesDrafts(Able):
    async def send(self, part: OutgoingPart) -> str:
        return await super().send(structs.replace(part, draft=""))


class CutsFiles(Able):
    async def send(self, part: OutgoingPart) -> str:
        cut = tuple(structs.replace(file, data=file.data[:-1]) for file in part.files)
        return await super().send(structs.replace(part, files=cut))


class KeepsLinks(Able):
    async def send(self, part: OutgoingPart) -> str:
        return await super().send(structs.replace(part, files=tuple(file for file in part.files if file.data)))


class FetchesAll(Able):
    async def fetch(self, ref: FileRef, limit: int) -> tuple[str, bytes]:
        return await super().fetch(ref, 1_000_000)


class WithdrawsNothing(Able):
    async def withdraw(self, address: Address, sent: str) -> None:
        pass


class ReactsTwice(Able):
    async def react(self, address: Address, to: str, emoji: str) -> None:
        self.board.emojis += [emoji, emoji]


WRONG = {
    LeavesDrafts: "a draft becomes the answer",
    CutsFiles: "files arrive whole",
    KeepsLinks: "files arrive whole",
    FetchesAll: "files are fetched",
    WithdrawsNothing: "what was sent can be changed",
    ReactsTwice: "reactions are seen",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
async def test_a_channel_that_cannot_do_what_it_says_is_found_out(wrong, tmp_path):
    with pytest.raises(AssertionError):
        await CHECKS[WRONG[wrong]](Trial(Board(wrong), tmp_path / "home", everloop.open))


@pytest.mark.parametrize("name", ABILITIES)
async def test_a_channel_that_can_do_all_passes(name, tmp_path):
    await CHECKS[name](Trial(Board(), tmp_path / "home", everloop.open))
