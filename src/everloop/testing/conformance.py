"""What every channel promises, as checks that anyone can run on a channel of their own.

Its author writes a `Platform`, a stand-in for what the channel speaks with, and runs each check on it:

    @pytest.mark.parametrize("name", CHECKS)
    def test_it_is_a_channel(name, tmp_path):
        asyncio.run(CHECKS[name](Trial(MyPlatform(), tmp_path, everloop.open)))

A check raises AssertionError with a sentence. A platform outlives the houses that are opened in front of it.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from ..core.mail import Address, Outbound
from ..errors import ChannelDown, StoreError
from ..ports import Channel, Deliver, Renders
from ..ports.channel import Hook, HookRequest, Incoming, OutgoingPart, Rendered
from .channel import Trouble
from .script import Say, ScriptedModel, Shown, Tally

LONG = "First, this.\n\n" + "Then a good deal more of it. " * 200 + "\n\nAnd that is all."
PATIENCE = 60.0  # seconds for what surely comes


class Platform(ABC):
    """A stand-in for the platform of a channel. It lets trouble happen, and remembers what people see."""

    long = LONG  # an answer that the channel sends in several parts, if it ever does
    resumes = False  # whether the channel says with its letters where it goes on

    def __init__(self) -> None:
        self.seen: list[str] = []  # what people see, in order
        self.acknowledged: list[str] = []  # the events that the platform need not tell again
        self.hooks: Sequence[Hook] = ()  # what it calls, once the channel is there
        self.retry_after = 0.0
        self._troubles: list[Trouble | None] = []
        self._known: set[str] = set()
        self._shown = Tally()
        self._tried = Tally()

    @abstractmethod
    def channel(self) -> Channel:
        """A channel that speaks with this platform; another one for each house."""
        ...

    @abstractmethod
    async def say(self, event: str, text: str) -> None:
        """Tell the channel that someone has written something, always in the same chat. Returns, or raises, when the
        channel has acknowledged it (see `acknowledged`) or will not."""
        ...

    def forged(self) -> Sequence[HookRequest]:
        """Requests of people who do not know the secret; a channel with hooks has some."""
        return ()

    def trouble(self, *troubles: Trouble | None, retry_after: float = 0.0) -> None:
        """What happens to the next messages that are sent, one after the other; to the rest nothing does."""
        self._troubles, self.retry_after = [*troubles], retry_after

    def receive(self, key: str, text: str) -> Trouble | None:
        """A message has been sent here. Returns what the channel is to be told in place of a receipt; a platform that
        is `once` gives the key, and shows a key that it knows to nobody."""
        trouble = self._troubles.pop(0) if self._troubles else None
        self._tried.add()
        if trouble in (Trouble.DOWN, Trouble.LIMITED):
            return trouble
        if not key or key not in self._known:
            self._known.add(key)
            self.seen.append(text)
        self._shown.add()
        return trouble

    async def shown(self, messages: int) -> None:
        """Wait until so many messages have arrived, repeats among them."""
        async with asyncio.timeout(PATIENCE):
            await self._shown.reached(messages)

    async def tried(self, messages: int) -> None:
        """Wait until so many have been sent, whatever became of them."""
        async with asyncio.timeout(PATIENCE):
            await self._tried.reached(messages)


class WatchedChannel:
    """A channel, and what passed through it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.errors: list[Exception] = []
        self.resumed: asyncio.Queue[str] = asyncio.Queue()
        self.last = ""  # where it was to go on

    def __getattr__(self, name: str) -> Any:
        return getattr(self._channel, name)

    @property
    def manifest(self) -> Any:
        return self._channel.manifest

    async def run(self, deliver: Deliver, resume: str) -> None:
        self.resumed.put_nowait(resume)
        await self._channel.run(deliver, resume)

    async def send(self, part: OutgoingPart) -> str:
        try:
            return await self._channel.send(part)
        except Exception as error:
            self.errors.append(error)
            raise


class Trial:
    """A platform, and a way to open houses in front of it, one after the other in the same home."""

    def __init__(self, platform: Platform, home: Path, open: Callable[..., AbstractAsyncContextManager[Any]]) -> None:
        self.platform = platform
        self._home = home
        self._open = open

    @asynccontextmanager
    async def house(self, answer: str = "hello") -> AsyncIterator[tuple[WatchedChannel, ScriptedModel, Any]]:
        channel = WatchedChannel(self.platform.channel())
        model = ScriptedModel(lambda shown: Say(answer if answer != "hello" else _heard(shown)))
        async with self._open(self._home, provider=model, channels=[channel]) as agent:
            self.platform.hooks = agent.hooks.get(channel.manifest.name, ())
            async with asyncio.timeout(PATIENCE):
                channel.last = await channel.resumed.get()
            yield channel, model, agent

    def parts(self, text: str) -> tuple[str, ...]:
        channel = self.platform.channel()
        outbound = Outbound("key", Address(channel.manifest.name, "chat"), text)
        made = channel.render(outbound) if isinstance(channel, Renders) else (text,)
        return tuple(each.text if isinstance(each, Rendered) else each for each in made)


def _heard(shown: Shown) -> str:
    return f"you said {shown.asked}"


async def check_answered_once(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house():
        await platform.say("e1", "one")
        await platform.shown(1)
        await platform.say("e2", "two")
        await platform.shown(2)
    assert platform.seen == ["you said one", "you said two"], f"each message is answered once: {platform.seen}"
    assert platform.acknowledged == ["e1", "e2"], f"each is acknowledged: {platform.acknowledged}"


async def check_known_event(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (_, model, _):
        for _ in range(3):
            await platform.say("e1", "one")
        await platform.shown(1)
        await platform.say("e2", "two")
        await platform.shown(2)
    async with trial.house() as (_, later, _):
        await platform.say("e1", "one")
        await platform.say("e3", "three")
        await platform.shown(3)
    said = ["you said one", "you said two", "you said three"]
    assert platform.seen == said, f"the same event is one message, also after a restart: {platform.seen}"
    assert (model.calls, later.calls) == (2, 1), "no model is asked about an event that is known"
    heard = " ".join(message.text for message in later.prompts[-1].messages if message.role == "user").split()
    assert heard.count("one") == 1, f"it stands in the conversation once, and not {heard.count('one')} times"


async def check_resumed(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (first, _, _):
        assert first.last == "", "a channel begins without a place to go on from"
        await platform.say("e1", "one")
        await platform.shown(1)
    async with trial.house() as (second, _, agent):
        kept = await agent.store.resume(second.manifest.name)
        assert second.last == kept, "it goes on where the last letter that was committed said"
        assert bool(kept) == platform.resumes, f"where it goes on is kept with its letters: {kept!r}"
        await platform.say("e2", "two")
        await platform.shown(2)
    assert platform.seen == ["you said one", "you said two"], f"nothing is lost or doubled: {platform.seen}"


async def check_uncommitted(trial: Trial) -> None:
    """A deliver that cannot commit: the platform must not be told that the message arrived."""
    platform, channel = trial.platform, trial.platform.channel()

    class Full:
        async def __call__(self, incoming: Incoming, resume: str = "") -> Any:
            tried.set()
            raise StoreError("the disk is full")

        async def skip_to(self, resume: str) -> None:
            raise StoreError("the disk is full")

    tried, full = asyncio.Event(), Full()
    platform.hooks = channel.hooks(full) if hasattr(channel, "hooks") else ()
    listening = asyncio.ensure_future(channel.run(full, ""))
    saying = asyncio.ensure_future(platform.say("e1", "one"))
    async with asyncio.timeout(PATIENCE):
        await tried.wait()
        if platform.hooks:
            await asyncio.gather(saying, return_exceptions=True)
        else:
            await asyncio.gather(listening, return_exceptions=True)
    for task in (saying, listening):
        task.cancel()
    await asyncio.gather(saying, listening, return_exceptions=True)
    assert platform.acknowledged == [], "what could not be committed is not acknowledged"
    async with trial.house():
        await platform.say("e1", "one")
        await platform.shown(1)
    assert platform.seen == ["you said one"], f"it is answered when it comes again: {platform.seen}"


async def check_retry_after(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (channel, _, _):
        platform.trouble(Trouble.LIMITED, retry_after=1.0)
        await platform.say("e1", "one")
        await platform.shown(1)
    asked = [error.retry_after for error in channel.errors if isinstance(error, ChannelDown)]
    assert asked == [1.0], f"the seconds that the platform asks for are told (ChannelDown.retry_after): {asked}"
    assert platform.seen == ["you said one"], f"the answer arrives once: {platform.seen}"


async def check_down(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (channel, _, _):
        platform.trouble(Trouble.DOWN, Trouble.DOWN)
        await platform.say("e1", "one")
        await platform.shown(1)
    kinds = {type(error) for error in channel.errors}
    assert all(issubclass(kind, ChannelDown) for kind in kinds), f"a platform that is down is ChannelDown: {kinds}"
    assert platform.seen == ["you said one"], f"the answer arrives once: {platform.seen}"


async def check_lost_receipt(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (channel, _, _):
        platform.trouble(Trouble.ACK_LOST)
        await platform.say("e1", "one")
        await platform.shown(2)
    once = channel.manifest.traits.once
    wanted = ["you said one"] if once else ["you said one", "(may be repeated) you said one"]
    assert platform.seen == wanted, (
        f"a send whose receipt was lost is repeated, with its key or marked: {platform.seen}"
    )


async def check_parts(trial: Trial) -> None:
    platform, parts = trial.platform, trial.parts(trial.platform.long)
    assert parts, "an answer has at least one part"
    assert parts == trial.parts(platform.long), "the parts of an answer are always the same"
    async with trial.house(platform.long):
        await platform.say("e1", "one")
        await platform.shown(len(parts))
    assert tuple(platform.seen) == parts, "the parts arrive in their order, each once"


async def check_restart_between_parts(trial: Trial) -> None:
    platform, parts = trial.platform, trial.parts(trial.platform.long)
    if len(parts) == 1:
        return
    async with trial.house(platform.long) as (channel, _, _):
        unsure = 1 if channel.manifest.traits.once else 0  # a part that arrives, and nobody hears of it
        platform.trouble(None, *[Trouble.ACK_LOST] * unsure, *[Trouble.DOWN] * 1000)
        await platform.say("e1", "one")
        await platform.tried(2 + unsure)
    platform.trouble()
    async with trial.house(platform.long):
        await platform.shown(len(parts) + unsure)
    seen = tuple(text.removeprefix("(may be repeated) ") for text in platform.seen)
    assert seen == parts, f"after a restart only the parts without a receipt are sent: {len(seen)} of {len(parts)}"


async def check_forged(trial: Trial) -> None:
    platform = trial.platform
    async with trial.house() as (_, model, _):
        forged = platform.forged()
        assert bool(forged) == bool(platform.hooks), "a channel with hooks is tried with forged requests"
        answers = [[(await hook.answer(each)).status for hook in platform.hooks] for each in forged]
        await platform.say("e1", "one")
        await platform.shown(1)
    refused = [status in (401, 403) for row in answers for status in row]
    assert all(refused), f"what is not signed is refused: {answers}"
    assert (model.calls, platform.seen) == (1, ["you said one"]), (
        "and nothing comes of it, while what is signed is heard"
    )


CHECKS: dict[str, Callable[[Trial], Awaitable[None]]] = {
    "each message is answered once": check_answered_once,
    "the same event is one message": check_known_event,
    "it goes on where it was": check_resumed,
    "what is not committed is not acknowledged": check_uncommitted,
    "the platform says when to try again": check_retry_after,
    "what is down is tried again": check_down,
    "a lost receipt is not a second message": check_lost_receipt,
    "parts arrive in order": check_parts,
    "a restart between parts repeats none": check_restart_between_parts,
    "what is forged is refused": check_forged,
}
