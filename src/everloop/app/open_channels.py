"""The channels of an open house: each listens in one process at a time, and sends in all of them."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack

from msgspec import Struct

from ..core.message import Part
from ..files.attachments import Attachments
from ..ports import Admission, Bus, Channel, Clock, Files, Store
from ..ports.channel import Hook
from ..ports.events import CommandDone, Event, PermissionAsked, TurnEnded
from ..runtime.inbox import Inbox
from ..runtime.outbox import Outbox
from ..runtime.outgoing_files import Link, OutgoingFiles, no_link
from ..runtime.ownership import Ownership
from ..runtime.reception import Reception
from ..runtime.supervisor import Supervisor
from ..runtime.voice import VoiceMessages


class OpenChannel(Struct, frozen=True):
    """One channel: what listens there, who may, and what sends. An answer is claimed by who sends it: broken off
    because a lease was lost, it would wait for its claim to run out."""

    reception: Reception
    owner: Ownership
    outbox: Outbox

    def start(self, supervisor: Supervisor, stack: AsyncExitStack) -> None:
        name, owner = self.reception.name, self.owner
        stack.push_async_callback(supervisor.start(f"lease {name}", owner.run).end)
        stack.push_async_callback(supervisor.start(f"outbox {name}", self.outbox.run).end)
        listening = supervisor.start(
            f"channel {name}", lambda: owner.during(self.reception.run), is_elsewhere=lambda: owner.is_elsewhere
        )
        stack.push_async_callback(listening.end)


class OpenChannels:
    def __init__(
        self,
        channels: Sequence[tuple[Channel, Admission]],
        inbox: Inbox,
        store: Store,
        attachments: Attachments,
        files: Files,
        bus: Bus,
        clock: Clock,
        lease_seconds: float,
        link: Link = no_link,
        voice: VoiceMessages | None = None,
    ) -> None:
        """`link` makes addresses of files, `voice` reads what is spoken."""

        async def enclose_file(name: str, data: bytes, owner: str) -> Part:
            return await attachments.take(owner, name, data)

        self._bus = bus
        self._all: dict[str, OpenChannel] = {}
        for channel, admission in channels:
            manifest = channel.manifest
            reception = Reception(channel, inbox, store, admission, enclose_file, voice)
            outgoing = OutgoingFiles(files, manifest.traits, link)
            self._all[manifest.name] = OpenChannel(
                reception,
                Ownership(store, f"channel:{manifest.name}", lease_seconds),
                Outbox(store, channel, clock=clock, files=outgoing, drafts=reception.live),
            )

    @property
    def hooks(self) -> Mapping[str, Sequence[Hook]]:
        """What the platforms call, by the channel's name."""
        return {name: each.reception.hooks() for name, each in self._all.items()}

    def start(self, supervisor: Supervisor, stack: AsyncExitStack) -> None:
        """Let them listen and send, for as long as the stack is open."""
        for each in self._all.values():
            each.start(supervisor, stack)
        if self._all:
            stack.push_async_callback(supervisor.start("answers", self._tell).end)

    async def _tell(self) -> None:
        """Whoever sends in a conversation is told that something is to be sent there, and nobody else."""
        async with asyncio.TaskGroup() as group:
            while True:  # a feed ends when its reader is too slow
                with self._bus.subscribe() as events:
                    async for event in events:
                        for each in self._all.values():
                            each.reception.live.hear(event, group)
                        for session in _answered_in(event):
                            if sender := self._all.get(session.partition(":")[0]):
                                sender.outbox.nudge()


def _answered_in(event: Event) -> tuple[str, ...]:
    match event:
        case TurnEnded(finished=finished):
            return (finished.address,)
        case PermissionAsked(approvals=approvals):
            return tuple(each.session for each in approvals)
        case CommandDone(address=address):
            return (address,)
    return ()
