"""What the gateway tells, made into what people say and committed."""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Struct

from ...errors import ChannelDown, ChannelRefused, ProviderError, StoreError
from ...ports import Deliver
from ...ports.channel import Delivered, Incoming
from ..batch import deliver_all
from .codec import DiscordMessage, DiscordRemoval, incoming_of, reply_to
from .gateway import GatewayEvent
from .interactions import Interaction, interacted, receipt
from .missed import Missed
from .places import DiscordPlaces
from .rest import DiscordRefused, DiscordRest
from .resume import ResumePoint, ResumeProgress

_log = logging.getLogger("everloop.channels.discord")

SAVING = 60.0  # seconds after which it is kept where we are, though nobody has said anything to us
AUTHORS = 5_000  # messages whose authors are remembered: when one is deleted, nobody says whose it was


class _Ready(Struct):
    session_id: str
    resume_gateway_url: str = ""


class DiscordListening:
    """Of one `run`: it takes what each of its connections tells. `seq` is the last event that is committed; it is
    `settled` when the gateway has let us in."""

    def __init__(
        self, rest: DiscordRest, places: DiscordPlaces, deliver: Deliver, me: str, progress: ResumeProgress
    ) -> None:
        self._rest = rest
        self._places = places
        self._deliver = deliver
        self._me = me
        self._progress = progress
        self._authors: OrderedDict[str, str] = OrderedDict()
        self._answering: set[asyncio.Task[None]] = set()
        self._saved = asyncio.get_running_loop().time()
        self.settled = False

    @property
    def progress(self) -> ResumeProgress:
        return self._progress

    def committed(self) -> int:
        return self._progress.point.seq

    async def take(self, batch: Sequence[GatewayEvent]) -> None:
        """Commit what was said, and with it where to go on. Raises StoreError and ChannelDown: it comes again then."""
        heard = _Receipts(self._deliver, self._answer)
        incoming: list[Incoming] = []
        for event in batch:
            if event.t == "READY":  # the first event of a session
                await self._begin(event)
            self.settled = self.settled or event.t in ("READY", "RESUMED")
            incoming += await self._read(event, heard)
        point, now = self._progress.point, asyncio.get_running_loop().time()
        reached = self._progress.at(point.session, batch[-1].s or point.seq, point.url)
        if incoming:
            await deliver_all(heard, incoming, str(reached))
            self._saved = now
        elif now - self._saved > SAVING:
            await self._save(reached)
        self._progress.point = reached

    async def _begin(self, ready: GatewayEvent) -> None:
        """A new session is kept at once, when nothing before it is missing: what is said while we are away is told
        after it is resumed."""
        told = msgspec.json.decode(ready.d, type=_Ready)
        await Missed(self._rest, self._places, self._progress, self._hand_in).catch_up()
        self._progress.point = self._progress.at(told.session_id, ready.s or 0, told.resume_gateway_url)
        try:
            await self._save(self._progress.point)
        except StoreError as error:
            _log.warning("where listening goes on cannot be kept, and will be tried again: %s", error)
            self._saved = -SAVING

    async def _save(self, point: ResumePoint) -> None:
        await self._deliver.skip_to(str(point))
        self._saved = asyncio.get_running_loop().time()

    async def close(self) -> None:
        for task in self._answering:
            task.cancel()
        await asyncio.gather(*self._answering, return_exceptions=True)

    async def _read(self, event: GatewayEvent, heard: "_Receipts") -> list[Incoming]:
        try:
            match event.t:
                case "MESSAGE_CREATE":
                    return await self._said(msgspec.json.decode(event.d, type=DiscordMessage))
                case "MESSAGE_UPDATE":
                    return await self._edited(event)
                case "MESSAGE_DELETE" | "MESSAGE_DELETE_BULK":
                    return await self._removed(msgspec.json.decode(event.d, type=DiscordRemoval))
                case "INTERACTION_CREATE":
                    return self._interacted(msgspec.json.decode(event.d, type=Interaction), heard)
        except msgspec.ValidationError as error:  # which tells a place, and nothing that was said
            _log.warning("Discord has told a %s that cannot be read: %s", event.t, error)
        return []

    async def _said(self, message: DiscordMessage) -> list[Incoming]:
        self._progress.see(message.channel_id, message.id, direct=not message.guild_id)
        incoming = await self._incoming(message)
        return [incoming] if incoming else []

    async def _hand_in(self, message: DiscordMessage) -> None:
        for incoming in await self._said(message):
            await self._deliver(incoming)

    async def _incoming(self, message: DiscordMessage) -> Incoming | None:
        if message.author.id == self._me:
            return None
        self._authors[message.id] = message.author.id
        while len(self._authors) > AUTHORS:
            self._authors.popitem(last=False)
        place = await self._places.of(message.channel_id, message.guild_id)
        asked = message.mention_roles and place.server
        roles = await self._places.roles(place.server, self._me) if asked else frozenset[str]()
        return incoming_of(message, place, self._me, roles)

    async def _edited(self, event: GatewayEvent) -> list[Incoming]:
        """Also pictures of links are told as changes, without a time at which somebody has edited something."""
        try:
            message = msgspec.json.decode(event.d, type=DiscordMessage)
        except msgspec.ValidationError:
            return []  # one that says only what has changed, and that is not the text
        incoming = await self._incoming(message) if message.edited_timestamp else None
        if not incoming:
            return []
        changed = f"{message.id}/{message.edited_timestamp}"
        return [msgspec.structs.replace(incoming, event=changed, replaces=message.id)]

    async def _removed(self, removal: DiscordRemoval) -> list[Incoming]:
        gone = [id for id in (removal.id, *removal.ids) if id in self._authors]
        if not gone:
            return []
        place = await self._places.of(removal.channel_id, removal.guild_id)
        return [
            Incoming(
                event=f"{id}/deleted",
                chat=place.chat,
                thread=place.thread,
                server=place.server,
                account=self._authors[id],
                text="",
                direct=not place.server,
                reply_to=reply_to(place, id),
                replaces=id,
                withdrawn=True,
            )
            for id in gone
        ]

    def _interacted(self, interaction: Interaction, heard: "_Receipts") -> list[Incoming]:
        incoming = interacted(interaction)
        if incoming is None:
            return []
        self._progress.see(interaction.place.channel, interaction.id, direct=incoming.direct)
        heard.waiting[incoming.event] = interaction
        return [incoming]

    def _answer(self, interaction: Interaction, said: str, delivered: Delivered) -> None:
        """Beside the next messages: Discord waits three seconds for it."""
        task = asyncio.create_task(self._acknowledge(interaction, receipt(interaction, said, delivered)))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _acknowledge(self, interaction: Interaction, told: dict[str, object]) -> None:
        try:
            path = f"interactions/{interaction.id}/{interaction.token}/callback"
            await self._rest.call("POST", path, told, as_bot=False)
        except (
            ChannelDown,
            ChannelRefused,
            DiscordRefused,
            ProviderError,
        ) as error:  # what they wanted is done all the same
            _log.info("Discord was not told that a command or a button has come: %s", type(error).__name__)


class _Receipts:
    """A Deliver after which interactions are acknowledged, each as soon as it is committed."""

    def __init__(self, deliver: Deliver, answer: Callable[[Interaction, str, Delivered], None]) -> None:
        self._deliver = deliver
        self._answer = answer
        self.waiting: dict[str, Interaction] = {}

    async def __call__(self, incoming: Incoming, resume: str = "") -> Delivered:
        delivered = await self._deliver(incoming, resume)
        if interaction := self.waiting.get(incoming.event):
            self._answer(interaction, incoming.text, delivered)
        return delivered

    async def skip_to(self, resume: str) -> None:
        await self._deliver.skip_to(resume)
