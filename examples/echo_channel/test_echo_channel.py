"""The conformance suite, run on a channel of one's own: `pytest` in this folder."""

import asyncio
import json

import pytest
from echo_channel import Folder

import everloop
from everloop.errors import ChannelDown
from everloop.testing import Trouble
from everloop.testing.conformance import CHECKS, Platform, Trial


class InAFolder(Platform):
    resumes = True

    def __init__(self, folder) -> None:
        super().__init__()
        self.folder = folder

    def channel(self) -> Folder:
        platform = self

        class Troubled(Folder):
            async def send(self, part):
                match platform.receive(part.key, part.text):
                    case Trouble.DOWN:
                        raise ChannelDown("the disk is away")
                    case Trouble.LIMITED:
                        raise ChannelDown("too many lines", platform.retry_after)
                    case Trouble.ACK_LOST:
                        raise OSError("the disk went away")
                return await super().send(part)

            async def run(self, deliver, resume):
                async def noted(message, resume):
                    await deliver(message, resume)
                    platform.acknowledged.append(message.event)

                await super().run(noted, resume)

        return Troubled(self.folder)

    async def say(self, event: str, text: str) -> None:
        with (self.folder / "in.jsonl").open("a") as file:
            file.write(json.dumps({"id": event, "by": "anna", "text": text}) + "\n")


@pytest.mark.parametrize("name", CHECKS)
def test_it_is_a_channel(name, tmp_path):
    asyncio.run(CHECKS[name](Trial(InAFolder(tmp_path), tmp_path / "home", everloop.open)))
