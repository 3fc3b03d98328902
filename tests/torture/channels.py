"""Kills with messages in flight over all channels: `python -m tests.torture.channels --kills 1000`.

One gateway listens on all of them. It is killed at random moments while people write everywhere; at the end each
message has an answer, and a second one only where the platform cannot tell, and then it says so."""

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from tests.cli.person import Person
from tests.cli.test_gateway_command import start
from tests.ports import free_port
from tests.torture.channel_platforms import MARK, PLATFORMS, TorturedPlatform

from everloop.testing import Pause, Say, Shown
from everloop.testing.model_server import ModelServer

CHATS = 3
LOOK = 0.05  # seconds between two looks at what people see
PAUSE = 2.0  # seconds, at most, before somebody who was answered goes on
END = ". That is all."  # by which an answer is told from a draft, which may be withdrawn
PATIENCE = 60.0  # seconds for an answer, kills among them


class Campaign:
    """What was said on one platform, and is open."""

    def __init__(self, platform: TorturedPlatform) -> None:
        self.platform = platform
        self.asked: set[str] = set()
        self._unseen: set[str] = set()  # of what was asked, as of the last look
        self._looked = 0.0

    def open(self) -> set[str]:
        """All who wait share one look: it goes through every answer that there is."""
        if self._unseen and time.monotonic() - self._looked >= LOOK:
            self._unseen -= {_question(text) for text in self.platform.seen()}
            self._looked = time.monotonic()
        return self._unseen

    async def talk(self, chat: int, is_over: asyncio.Event, chosen: random.Random) -> None:
        number = 0
        while not is_over.is_set():
            text = f"{self.platform.name}-{chat}-{number}"
            self.asked.add(text)
            self._unseen.add(text)
            await self.platform.say(chat, text)
            await answered(self, {text})
            await asyncio.sleep(chosen.random() * PAUSE)
            number += 1

    def wrong(self) -> list[str]:
        seen = self.platform.seen()
        twice = [text for text, times in seen.items() if times > 1 and not text.startswith(MARK)]
        marked = [text for text in seen if text.startswith(MARK)] if self.platform.once else []
        lost = [
            f"lost on {self.platform.name}: {text}" for text in sorted(self.asked - {_question(each) for each in seen})
        ]
        other = [f"people see on {self.platform.name}: {text}" for text in seen if not _question(text)] if lost else []
        return lost + other + [f"twice on {self.platform.name}: {text}" for text in (*twice, *marked)]


def _question(answer: str) -> str:
    """What was asked; of a draft, nothing that anybody has."""
    return answer.removeprefix(MARK).removeprefix("you said ").removesuffix(END) if answer.endswith(END) else ""


async def answered(campaign: Campaign, texts: set[str]) -> None:
    try:
        await asyncio.wait_for(_all_seen(campaign, texts), PATIENCE)
    except TimeoutError:
        other = [text for text in campaign.platform.seen() if "you said" not in text]
        raise TimeoutError(f"nobody has answered {sorted(texts & campaign.open())}; people see {other}") from None


async def _all_seen(campaign: Campaign, texts: set[str]) -> None:
    while texts & campaign.open():  # noqa: ASYNC110 — of what people see nobody tells
        await asyncio.sleep(LOOK)


def lines(shown: Shown) -> list[object]:
    return [Say(["you said ", shown.asked.split()[0]]), Pause(0.01), Say([END])]


async def kill_often(folder: Path, names: Sequence[str], kills: int, seed: int, tell=lambda text: None) -> Counter[str]:
    """Returns what was seen, and what is wrong by its sentence."""
    chosen, port, is_over = random.Random(seed), free_port(), asyncio.Event()
    found: Counter[str] = Counter()
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(ModelServer(lines))
        person = Person(folder, model)
        stack.push_async_callback(person.leave)
        person.environment["EVERLOOP_USERS__STRANGERS"] = "guest"
        for name in ("GUEST_TOKENS", "GUESTS_TOKENS"):  # more is said here than guests may usually have said
            person.environment[f"EVERLOOP_USERS__BUDGETS__{name}"] = "0"
        campaigns = [Campaign(await stack.enter_async_context(PLATFORMS[name](CHATS))) for name in names]
        for each in campaigns:
            chosen_for = {**each.platform.settings, "gather": "0"}
            for name, value in chosen_for.items():
                person.environment[f"EVERLOOP_CHANNELS__{each.platform.name.upper()}__{name.upper()}"] = str(value)
        gateway = await start(person, port)
        for each in campaigns:
            each.platform.gateway = gateway.url
            await each.platform.is_ready()
        async with asyncio.TaskGroup() as group:
            for each in campaigns:
                for chat in range(CHATS):
                    group.create_task(each.talk(chat, is_over, random.Random(chosen.random())))
            for each in campaigns:  # where nobody has spoken yet, a platform may not know what was missed
                await answered(each, {f"{each.platform.name}-{chat}-0" for chat in range(CHATS)})
            for kill in range(kills):
                await asyncio.sleep(chosen.random() * 0.5)
                interrupted = [set(each.open()) for each in campaigns]
                await gateway.kill()
                gateway = await start(person, port)
                for each, texts in zip(campaigns, interrupted, strict=True):  # one that is cut off thrice is given up
                    await answered(each, texts)
                tell(f"{kill + 1} of {kills} kills, {sum(len(each.asked) for each in campaigns)} messages")
            is_over.set()
        while (await person.run("outbox", "list")).out != "Nothing waits to be delivered.\n":  # noqa: ASYNC110
            await asyncio.sleep(LOOK)
        await gateway.stop()
        for each in campaigns:
            seen = each.platform.seen()
            found[f"{each.platform.name}: messages"] = len(each.asked)
            found[f"{each.platform.name}: marked as possible repeats"] = sum(text.startswith(MARK) for text in seen)
            found.update({f"WRONG {sentence}": 1 for sentence in each.wrong()})
    found["kills"] = kills
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture.channels", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument(
        "--only", default=",".join(PLATFORMS), help=f"these channels, with commas: {', '.join(PLATFORMS)}"
    )
    parser.add_argument("--seed", type=int, default=int(time.time()))
    options = parser.parse_args()

    def say(text: str) -> None:
        sys.stderr.write(f"{time.strftime('%H:%M:%S')} {text}\n")

    say(f"kills over all channels, seed {options.seed}")
    with tempfile.TemporaryDirectory(prefix="everloop-channels-") as folder:
        found = asyncio.run(kill_often(Path(folder), options.only.split(","), options.kills, options.seed, say))
    for name, count in found.items():
        sys.stdout.write(f"{name:>60} {count:>8,}\n")
    return 1 if any(name.startswith("WRONG") for name in found) else 0


if __name__ == "__main__":
    sys.exit(main())
