"""A stand-in for the platform of a channel, and houses that are opened in front of it."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..core.mail import Address, Outbound
from ..ports import Channel, Deliver, Hooked, Renders
from ..ports.channel import Delivered, Hook, HookRequest, Incoming, OutgoingPart, Rendered
from ..readings.keys import escaped
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

    def visible(self) -> Sequence[str] | None:
        """What of ours stands in the chat at present, drafts among it, in order. With None, nothing is tried of drafts
        and of what can be changed."""
        return None

    def files(self) -> Sequence[tuple[str, bytes]] | None:
        """The files that people have been sent. With None, nothing is tried of that."""
        return None

    def reactions(self) -> Sequence[str] | None:
        """How we have reacted to what was said last. With None, nothing is tried of that."""
        return None

    async def say_with_file(self, event: str, text: str, name: str, data: bytes) -> bool:
        """As `say`, with a file. False: nothing is tried of that."""
        return False

    async def pass_by(self) -> bool:
        """Let something happen that the channel hears, and that is not for us, after which it goes on elsewhere
        (`Deliver.skip_to`). False: nothing is tried of that."""
        return False

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


class WatchedDeliver:
    """A Deliver that tells of what passed through it."""

    def __init__(self, deliver: Deliver, skipped: asyncio.Queue[str]) -> None:
        self._deliver = deliver
        self._skipped = skipped

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        return await self._deliver(incoming, resume)

    async def skip_to(self, resume: str) -> None:
        await self._deliver.skip_to(resume)
        self._skipped.put_nowait(resume)


class Caught:
    """A Deliver that only remembers what came."""

    def __init__(self) -> None:
        self.came: asyncio.Queue[Incoming] = asyncio.Queue()

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        self.came.put_nowait(incoming)
        return Delivered()

    async def skip_to(self, resume: str) -> None:
        pass


_ABILITIES = (
    "render", "preview", "signal", "fetch", "hooks", "react", "replace", "withdraw", "chat_with", "probe",
)  # fmt: skip


class WatchedChannel:
    """A channel, and what passed through it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self.errors: list[Exception] = []
        self.resumed: asyncio.Queue[str] = asyncio.Queue()
        self.skipped: asyncio.Queue[str] = asyncio.Queue()
        self.last = ""  # where it was to go on
        for name in _ABILITIES:  # an attribute that is only looked up is none to a Protocol, from Python 3.12 on
            if hasattr(channel, name):
                setattr(self, name, getattr(channel, name))

    @property
    def manifest(self) -> Any:
        return self._channel.manifest

    async def run(self, deliver: Deliver, resume: str) -> None:
        self.resumed.put_nowait(resume)
        await self._channel.run(WatchedDeliver(deliver, self.skipped), resume)

    async def send(self, part: OutgoingPart) -> str:
        try:
            return await self._channel.send(part)
        except Exception as error:
            self.errors.append(error)
            raise


class Met(NamedTuple):
    """A channel that listens, what it has heard first, where to answer that, and what it hears further."""

    channel: Channel
    heard: Incoming
    address: Address
    came: asyncio.Queue[Incoming]


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

    @asynccontextmanager
    async def met(self) -> AsyncIterator[Met]:
        """The channel alone, and the first thing that it has heard."""
        channel, caught = self.platform.channel(), Caught()
        self.platform.hooks = channel.hooks(caught) if isinstance(channel, Hooked) else ()
        begun = asyncio.Event()

        async def listen() -> None:
            begun.set()
            await channel.run(caught, "")

        listening = asyncio.ensure_future(listen())
        try:
            async with asyncio.timeout(PATIENCE):
                await begun.wait()
                await self.platform.say("e1", "one")
                heard = await caught.came.get()
            place = Address(channel.manifest.name, escaped(heard.chat), escaped(heard.thread))
            yield Met(channel, heard, place, caught.came)
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)

    def parts(self, text: str) -> tuple[str, ...]:
        channel = self.platform.channel()
        outbound = Outbound("key", Address(channel.manifest.name, "chat"), text)
        made = channel.render(outbound) if isinstance(channel, Renders) else (text,)
        return tuple(each.text if isinstance(each, Rendered) else each for each in made)


def _heard(shown: Shown) -> str:
    return f"you said {shown.asked}"
