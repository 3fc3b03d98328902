"""A process in which a turn goes to the background, ends there and is taken back, and which is killed at the failpoint
that its environment names. The next one goes on with the same story: what was said before is not said again."""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import everloop
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.testing import RecordingChannel, Say, ScriptedModel, Wait, sends_in
from everloop.testing.channel import delivered_of
from everloop.testing.script import Shown

CHAT = "fake:room"


class Story:
    def __init__(self, agent: everloop.Agent, folder: Path, gate: asyncio.Event) -> None:
        self._agent = agent
        self._sends = folder / "sends"
        self._gate = gate

    async def run(self) -> None:
        await self._say("dig deep")
        await self._until(self._has_begun)
        await self._say("/bg")
        await self._say("hey")
        await self._until(lambda: self._was_sent("Yes?"))
        self._gate.set()
        await self._until(lambda: self._was_sent("Task 1 is done:\n\ngold"))
        await self._say("/fg 1")
        await self._say("more")
        await self._until(lambda: self._was_sent("More gold."))

    async def _say(self, text: str) -> None:
        await self._agent.tell(Inbound(Address("fake", "room"), text, Said(said(text), "owner", CHAT)))

    async def _until(self, is_so: Callable[[], Awaitable[bool]]) -> None:
        while not await is_so():  # noqa: ASYNC110  # the process before may have done it
            await asyncio.sleep(0.02)

    async def _has_begun(self) -> bool:
        """Its model is asked; or it has gone to the background before."""
        row = await self._agent.store.session(CHAT)
        return row is not None and (row.head > 1 or bool(await self._agent.store.tasks()))

    async def _was_sent(self, text: str) -> bool:
        return text in [sent.text for sent in delivered_of(sends_in(self._sends))]


async def main(folder: Path, url: str) -> None:
    gate = asyncio.Event()

    def answer(shown: Shown) -> object:
        asked = [text for who, text in shown.said if who == "user"][-1]
        return {"dig deep": (Wait(gate), Say("gold")), "hey": Say("Yes?"), "more": Say("More gold.")}[asked]

    channel = RecordingChannel("fake", folder / "sends", once=True)
    settings = {"store": {"url": url, "lease_seconds": 2}} if url else {}  # on a server a lease has to expire
    async with everloop.open(folder / "home", settings, provider=ScriptedModel(answer), channels=[channel]) as agent:
        story = Story(agent, folder, gate)
        await story.run()
        spent = sum(row.calls for row in await agent.store.spent())
        threads = await agent.store.conversations("owner", archived=True)
    texts = [sent.text.partition(";")[0] for sent in delivered_of(sends_in(folder / "sends"))]
    told = [text.partition(" Back to")[0].replace("\n\n", " ") for text in texts]
    sys.stdout.write(f"{' | '.join(told)} / {len(threads)} conversations, {spent} calls\n")


if __name__ == "__main__":
    Path(sys.argv[1]).mkdir(exist_ok=True)
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
