"""A channel that remembers every send, in memory or in a file that outlives the process.

Two things are told apart. `once` is what the platform is: whether it knows our keys and shows a second send of the
same key to nobody. `trouble` is what happens to it: the same platform may lose an acknowledgement or be down.
"""

import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from ..core.mail import Outbound
from ..errors import ChannelDown
from ..ports import Deliver
from ..ports.channel import Manifest, OutgoingPart, Traits
from . import outside
from .script import Tally


class Trouble(StrEnum):
    ACK_LOST = "ack-lost"  # delivered, but the sender never hears of it
    DOWN = "down"  # nothing is delivered
    LIMITED = "429"  # nothing is delivered, and the platform says so


class Limited(ChannelDown):
    """The platform refused the message for now."""


class AckLost(Exception):
    """The connection broke after the message had gone: nobody here knows whether it arrived."""


class Sent(Struct, frozen=True):
    """One send that reached the platform."""

    key: str
    chat: str
    text: str
    kind: str
    approval: str
    receipt: str
    pid: int
    once: bool


class RecordingChannel:
    """A Channel for tests. With `path` the platform is that file: a later process with the same path goes on with it.

    `trouble(Trouble.ACK_LOST, times=1)` spoils the next sends. `attempts` counts what was tried here, delivered or not.
    """

    def __init__(
        self, name: str = "fake", path: Path | None = None, *, once: bool = True, retry_after: float = 1.0
    ) -> None:
        self.name = name
        self.once = once
        self.deliver: Deliver | None = None  # once it runs
        self.resumed: list[str] = []  # where it was to go on, each time that it was begun
        self._retry_after = retry_after
        self._path = path
        self._sends: list[Sent] = []
        self._troubles: list[Trouble] = []
        self._always: Trouble | None = None
        self._tried = Tally()
        self._done = Tally()

    @property
    def manifest(self) -> Manifest:
        return Manifest(self.name, Traits(once=self.once))

    async def run(self, deliver: Deliver, resume: str) -> None:
        """Nobody speaks here but a test, through `deliver`."""
        self.deliver = deliver
        self.resumed.append(resume)

    def render(self, outbound: Outbound) -> tuple[str, ...]:
        """A part for each page: a form feed in the text begins another."""
        return tuple(outbound.text.split("\f"))

    @property
    def attempts(self) -> int:
        """How often `send` was called in this process."""
        return self._tried.count

    @property
    def sends(self) -> list[Sent]:
        """Every send that reached the platform, repeats among them."""
        return list(self._sends) if self._path is None else sends_in(self._path)

    @property
    def delivered(self) -> list[Sent]:
        """What people see."""
        return delivered_of(self.sends)

    @property
    def repeats(self) -> list[Sent]:
        """What the platform dropped because it knew the key."""
        return repeats_of(self.sends)

    def trouble(self, trouble: Trouble | None, times: int | None = None) -> None:
        """Let the next `times` sends go wrong in this way, or all of them until told otherwise. None ends it."""
        self._always = trouble if times is None else None
        self._troubles = [] if trouble is None or times is None else [trouble] * times

    async def tried(self, times: int) -> None:
        """Wait until `send` has been called so many times."""
        await self._tried.reached(times)

    async def sent(self, times: int) -> None:
        """Wait until so many sends of this process have returned a receipt."""
        await self._done.reached(times)

    async def send(self, part: OutgoingPart) -> str:
        """Deliver. Raises ChannelDown or Limited before anything is delivered, AckLost after a delivery."""
        trouble = self._troubles.pop(0) if self._troubles else self._always
        self._tried.add()
        if trouble is Trouble.DOWN:
            raise ChannelDown(f"{self.name} does not answer")
        if trouble is Trouble.LIMITED:
            raise Limited(f"{self.name} answered 429: too many messages", retry_after=self._retry_after)
        receipt = self._deliver(part)
        if trouble is Trouble.ACK_LOST:
            raise AckLost(f"{self.name} closed the connection before it acknowledged {part.key}")
        self._done.add()
        return receipt

    def _deliver(self, out: OutgoingPart) -> str:
        receipt = f"{self.name}-{out.key}" if self.once else f"{self.name}-{os.getpid()}-{self.attempts}"
        sent = Sent(out.key, str(out.address), out.text, out.kind, out.approval, receipt, os.getpid(), self.once)
        if self._path is None:
            self._sends.append(sent)
        else:
            outside.append(self._path, sent)
        return receipt


def sends_in(path: Path) -> list[Sent]:
    """Every send that a file holds, in order, repeats among them."""
    return [msgspec.convert(record, Sent) for record in outside.records_in(path)]


def delivered_of(sends: Sequence[Sent]) -> list[Sent]:
    """The sends that people see."""
    return outside.told_apart(sends, _known_by)[0]


def repeats_of(sends: Sequence[Sent]) -> list[Sent]:
    """The sends that a platform which knows our keys dropped."""
    return outside.told_apart(sends, _known_by)[1]


def _known_by(sent: Sent) -> str | None:
    return sent.key if sent.once else None
