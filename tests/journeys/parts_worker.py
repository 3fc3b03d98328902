"""A process that answers one message in three parts, and is killed at the failpoint that its environment names."""

import asyncio
import sys
from pathlib import Path

import everloop
from everloop.core.mail import Address, Inbound, Said
from everloop.core.message import said
from everloop.testing import RecordingChannel, Say, ScriptedModel, sends_in
from everloop.testing.channel import delivered_of

PARTS = "one\ftwo\fthree"


async def main(folder: Path, once: bool) -> None:
    channel = RecordingChannel("fake", folder / "sends", once=once)
    model = ScriptedModel(by_conversation=[Say(PARTS)])
    async with everloop.open(folder / "home", provider=model, channels=[channel]) as agent:
        await agent.tell(Inbound(Address("fake", "room"), "e1", Said(said("hi"), "owner", "fake:room")))
        while not await is_sent(agent):  # noqa: ASYNC110  # the process before may have sent it
            await asyncio.sleep(0.02)
    sys.stdout.write("|".join(sent.text for sent in delivered_of(sends_in(folder / "sends"))))


async def is_sent(agent: everloop.Agent) -> bool:
    found = await agent.store.deliveries(await keys(agent))
    return bool(found) and all(each.state == "sent" for each in found.values())


async def keys(agent: everloop.Agent) -> list[str]:
    row = await agent.store.session("fake:room")
    return [f"reply:{row.id}:{seq}" for seq in range(1, row.head + 1)] if row else []


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), sys.argv[2] == "once"))
