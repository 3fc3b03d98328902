"""A gateway with a channel that polls: `python -m tests.store.polling HOME URL FILE NAME`.

It writes a line when it begins to listen; what it is told in the chat it hears as long as it is asked, and it writes
down what it sends. The test that starts it kills it.
"""

import asyncio
import sys
from pathlib import Path

from everloop.app import open_desk
from everloop.ports import Deliver
from everloop.ports.channel import Incoming, Manifest, OutgoingPart
from everloop.testing import Say, ScriptedModel


class Polling:
    def __init__(self, file: Path, name: str) -> None:
        self.manifest = Manifest("polled")
        self._file = file
        self._name = name

    def _write(self, line: str) -> None:
        with self._file.open("a") as file:
            file.write(f"{self._name} {line}\n")

    async def run(self, deliver: Deliver, resume: str) -> None:
        """The platform has one message for each process that listens; a second poll of the same says the same."""
        self._write(f"listens from {resume or 'the beginning'}")
        number = int(resume or 0) + 1
        await deliver(Incoming(event=str(number), chat="room", account="ann", text="hi"), str(number))
        await asyncio.Event().wait()

    async def send(self, part: OutgoingPart) -> str:
        self._write(f"sends {part.text}")
        return part.key


async def live(home: Path, url: str, file: Path, name: str) -> None:
    settings = {"store": {"url": url, "lease_seconds": 8.0}}
    model = ScriptedModel(lambda shown: Say("hello"))
    async with open_desk(home, settings, provider=model, channels=(Polling(file, name),)):
        print("open", flush=True)  # noqa: T201  the test waits for it
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]), sys.argv[4]))
