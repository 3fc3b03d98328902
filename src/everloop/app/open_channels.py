"""The channels of an open house: each listens in one process at a time, and sends in all of them."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from msgspec import Struct

from ..core.message import Part
from ..files.attachments import Attachments
from ..ports import Admission, Bus, Channel, Clock, Files, Store
from ..ports.channel import ANY_PATH, DOORS, Hook, HookAnswer, HookRequest, Traits
from ..ports.events import CommandDone, Event, PermissionAsked, TurnEnded
from ..ports.policy import ChannelPolicy
from ..runtime.inbox import Inbox
from ..runtime.outbox import Outbox
from ..runtime.outgoing_files import Link, OutgoingFiles, no_link
from ..runtime.ownership import Ownership
from ..runtime.policy import AdmitByPolicy
from ..runtime.reception import Reception
from ..runtime.supervisor import Supervised, Supervisor
from ..runtime.voice import VoiceMessages
from .listening import Hide, ToldListening, lease_of

PUT_OFF_SECONDS = 60


class OpenChannel(Struct, frozen=True):
    """One channel: what listens there, who may, and what sends. An answer is claimed by who sends it: broken off
    because a lease was lost, it would wait for its claim to run out."""

    reception: Reception
    owner: Ownership
    outbox: Outbox
    told: ToldListening

    def start(self, supervisor: Supervisor, stack: AsyncExitStack) -> None:
        name, owner = self.reception.name, self.owner
        stack.push_async_callback(supervisor.start(f"lease {name}", owner.run).end)
        stack.push_async_callback(supervisor.start(f"outbox {name}", self.outbox.run).end)
        listening = supervisor.start(
            f"channel {name}", lambda: owner.during(self._listen), is_elsewhere=lambda: owner.is_elsewhere
        )
        stack.push_async_callback(listening.end)

    async def _listen(self) -> None:
        await self.told.run(self.reception.run)


class OpenChannels:
    """`hooks` are what the platforms call, by the channel's name: those of the channels that are open just now."""

    def __init__(
        self,
        inbox: Inbox,
        store: Store,
        attachments: Attachments,
        files: Files,
        bus: Bus,
        clock: Clock,
        lease_seconds: float,
        link: Link = no_link,
        voice: VoiceMessages | None = None,
        *,
        supervisor: Supervisor,
        traits: dict[str, Traits],
        open_now: dict[str, Channel],
    ) -> None:
        """`link` makes addresses of files, `voice` reads what is spoken; `traits` are those that everyone here goes by,
        also of channels that are opened later, and `open_now` the channels themselves."""

        async def enclose_file(name: str, data: bytes, owner: str) -> Part:
            return await attachments.take(owner, name, data)

        def make(channel: Channel, admission: Admission, policy: ChannelPolicy, hide: Hide) -> OpenChannel:
            manifest = channel.manifest
            reception = Reception(channel, inbox, store, admission, enclose_file, voice, policy)
            outgoing = OutgoingFiles(files, manifest.traits, link)
            return OpenChannel(
                reception,
                Ownership(store, lease_of(manifest.name), lease_seconds),
                Outbox(store, channel, clock=clock, files=outgoing, drafts=reception.live),
                ToldListening(store, manifest.name, clock, hide),
            )

        self._make = make
        self._bus = bus
        self._supervisor = supervisor
        self._traits = traits
        self._open_now = open_now
        self._all: dict[str, OpenChannel] = {}
        self._stacks: dict[str, AsyncExitStack] = {}
        self._telling: Supervised | None = None
        self.hooks: dict[str, Sequence[Hook]] = {}

    def start(self, channel: Channel, admission: AdmitByPolicy, hide: Hide = str) -> None:
        """Let one listen and send, until it is ended, or `close` ends all. `hide` takes its secrets out of a text."""
        name = channel.manifest.name
        opened, stack = self._make(channel, admission, admission.policy, hide), AsyncExitStack()
        self.hooks[name] = opened.reception.hooks()
        self._all[name], self._stacks[name] = opened, stack
        if name not in DOORS:  # which no stranger can speak for
            self._traits[name] = channel.manifest.traits
            self._open_now[name] = channel
        opened.start(self._supervisor, stack)
        if self._telling is None:
            self._telling = self._supervisor.start("answers", self._tell)

    async def end(self, name: str) -> None:
        """What is being sent ends first. Its traits stay known: its conversations are still there. Its hooks are
        answered until it is opened again, or `unhook`ed: no platform that calls meanwhile is turned away."""
        del self._all[name]
        self._open_now.pop(name, None)
        await self._stacks.pop(name).aclose()

    def unhook(self, name: str) -> None:
        self.hooks.pop(name, None)

    def put_off(self, name: str) -> None:
        """Who calls a channel that is set and cannot be opened is told to come again: what they bring is lost else."""
        self.hooks[name] = [Hook("GET", ANY_PATH, _not_yet), Hook("POST", ANY_PATH, _not_yet)]

    async def close(self) -> None:
        if self._telling:
            await self._telling.end()
        for name in reversed([*self._all]):
            await self.end(name)

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


async def _not_yet(request: HookRequest) -> HookAnswer:
    body = b'{"error":"this channel is not open just now; try again"}'
    return HookAnswer(503, body, {"Retry-After": f"{PUT_OFF_SECONDS}"})


def _answered_in(event: Event) -> tuple[str, ...]:
    if isinstance(event, TurnEnded):
        return (event.finished.address,)
    if isinstance(event, PermissionAsked):
        return tuple(each.session for each in event.approvals)
    return (event.address,) if isinstance(event, CommandDone) else ()
